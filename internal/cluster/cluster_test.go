package cluster

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: SERVER}}]
contexts: [{name: c, context: {cluster: c, user: u}}, {name: no-cluster, context: {cluster: none, user: u}}]
users: [{name: u, user: {token: x}}]
current-context: c
`

// TestLoadExplains checks that the error of a missing or wrong kubeconfig names the file, and what to do.
func TestLoadExplains(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("HOME", dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	missing, good := filepath.Join(dir, "missing"), write("good", kubeconfig)
	for _, tt := range []struct {
		name, env string
		options   Options
		want      []string
	}{
		{"named by the environment, missing", missing, Options{}, []string{"no cluster: ", missing, "--kubeconfig"}},
		{"named by the flag, missing", good, Options{Kubeconfig: missing}, []string{"read kubeconfig", missing,
			"name another with --kubeconfig"}},
		{"empty", write("empty", ""), Options{}, []string{"no cluster: ", "empty", "has no context"}},
		{"not YAML", write("text", "text"), Options{}, []string{"read kubeconfig", filepath.Join(dir, "text")}},
		{"unknown context", good, Options{Context: "x"}, []string{good, `no context "x"`, "--context: c, no-cluster"}},
		{"context without cluster", good, Options{Context: "no-cluster"}, []string{good, `context "no-cluster"`,
			"correct it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.env)
			_, _, err := tt.options.Load()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %q in it", err, want)
				}
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(strings.Replace(kubeconfig, "SERVER", s.URL, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	config, _, err := Options{Kubeconfig: path}.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		status int
		want   string
	}{{http.StatusOK, ""}, {http.StatusForbidden, ""}, {http.StatusUnauthorized, "does not accept the user"}} {
		status = tt.status
		if err := Answers(t.Context(), config); tt.want == "" && err != nil ||
			tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("status %d: %v, want %q", tt.status, err, tt.want)
		}
	}
	s.Close()
	if err := Answers(t.Context(), config); err == nil || !strings.Contains(err.Error(), s.URL+" does not answer") {
		t.Errorf("closed: %v", err)
	}
}
