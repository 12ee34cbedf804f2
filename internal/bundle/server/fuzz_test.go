package server

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func tlsOf(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }

// FuzzPaths checks that no request path can read, create, change or remove a file outside the directory of its run.
func FuzzPaths(f *testing.F) {
	for _, seed := range [][3]string{
		{"ns", "r1", "raw/fio-0/fio/output.json"}, {"ns", "r1", "../../../secret"}, {"ns", "r1",
			"..%2f..%2fsecret"}, {"..", "r1", "x"},
		{"ns", "..", "secret"}, {"ns", "r1", "/secret"}, {"ns", "r1", "a/../../../secret"}, {"ns", "r1",
			"link/secret"}, {"ns", "r1", "\x00"},
		{"ns", "r1", "a//b"}, {"ns", "r1", "."}, {"ns", ".r1.closed", "x"}, {"ns", "r1", "x\\..\\..\\secret"}, {"ns",
			"r1", "filelink"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	top := f.TempDir()
	secret := filepath.Join(top, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		f.Fatal(err)
	}
	store, err := OpenStore(filepath.Join(top, "store"), Limits{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	if _, err := store.Append(context.Background(), "ns", "r1", "log.jsonl", 0, []byte("x")); err != nil {
		f.Fatal(err)
	}
	// Symbolic links that an attacker may have created in another way.
	for name, target := range map[string]string{"link": top, "filelink": secret} {
		if err := os.Symlink(target, filepath.Join(store.path("ns", "r1"), name)); err != nil {
			f.Fatal(err)
		}
	}
	handler := (&Handler{Store: store, Auth: AllowAll{}}).Serve()
	f.Fuzz(func(t *testing.T, ns, id, name string) {
		for _, escaped := range []bool{false, true} {
			target := "/v1/runs/" + ns + "/" + id + "/files/" + name
			if escaped {
				target = "/v1/runs/" + url.PathEscape(ns) + "/" + url.PathEscape(id) + "/files/" + url.PathEscape(name)
			}
			for _, method := range []string{http.MethodPut, http.MethodGet, http.MethodDelete} {
				for _, query := range []string{"?offset=0", "?replace=1"} {
					req, err := http.NewRequestWithContext(t.Context(), method, "http://h"+target+query,
						strings.NewReader("changed"))
					if err != nil {
						continue // not a valid request URL
					}
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, req)
					if strings.Contains(w.Body.String(), "secret") && method == http.MethodGet &&
						w.Code == http.StatusOK {
						t.Errorf("%s %s reads the secret", method, target)
					}
				}
			}
		}
		if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
			t.Fatalf("%q: the secret is %q, %v", name, b, err)
		}
		around, err := os.ReadDir(top)
		if err != nil || len(around) != 2 {
			t.Fatalf("%q: outside the store lies %v, %v", name, around, err)
		}
	})
}
