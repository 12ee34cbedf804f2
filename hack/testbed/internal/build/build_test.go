package build

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneVersionOfKubernetes: the modules that use the Kubernetes libraries have the same versions of all modules that
// they share, so that each is compiled once. The CSI specification is the exception: the kubelet needs an older one.
func TestOneVersionOfKubernetes(t *testing.T) {
	ours, theirs := versions(t, "kubernetes"), versions(t, "sidecars")
	shared := 0
	for module, version := range ours {
		other, ok := theirs[module]
		if !ok || module == "github.com/container-storage-interface/spec" {
			continue
		}
		shared++
		if other != version {
			t.Errorf("%s is %s in kubernetes and %s in sidecars", module, version, other)
		}
	}
	if ours["k8s.io/api"] == "" || shared < 50 {
		t.Errorf("%d modules are shared, k8s.io/api is %q in kubernetes", shared, ours["k8s.io/api"])
	}
}

// versions are those that a go.mod requires, or replaces them by.
func versions(t *testing.T, module string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "build", module, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, replaced := map[string]string{}, map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		switch w := strings.Fields(lines.Text()); {
		case len(w) >= 4 && w[1] == "=>":
			replaced[w[0]] = w[3]
		case len(w) >= 2 && strings.HasPrefix(w[1], "v"):
			all[w[0]] = w[1]
		}
	}
	for m := range all {
		if v := replaced[m]; v != "" {
			all[m] = v
		}
	}
	return all
}
