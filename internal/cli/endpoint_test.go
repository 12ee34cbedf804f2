package cli

import (
	"os"
	"strings"
	"testing"
)

// TestRunEndpoint checks that a run whose --csi-endpoint is no socket has created nothing.
func TestRunEndpoint(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: x}\nspec: {actions: " +
		"[{name: v, createObjSpec: {volume: {storageClass: a, size: 1Mi}}}]}\n"
	if err := os.WriteFile("x.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range []string{"/nowhere/csi.sock", "x.yaml"} {
		code, _, errs := call("run", "x.yaml", "--csi-endpoint", endpoint, "--out", "out")
		if code != exitUsage || !strings.Contains(errs, "--csi-endpoint") || !strings.Contains(errs, endpoint) {
			t.Errorf("%s: exit %d, %s", endpoint, code, errs)
		}
	}
	if _, err := os.Stat("out"); err == nil {
		t.Error("there is a bundle")
	}
}
