package owned

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOwns: only a directory that carries the run's own mark is removed; the
// canary in it says whether it was.
func TestOwns(t *testing.T) {
	id, other := New("abc"), New("abc")
	tests := []struct {
		name string
		make func(t *testing.T, dir string) // dir exists and is empty
		ours bool
	}{
		{"marked", func(t *testing.T, dir string) { must(t, id.Mark(dir)) }, true},
		{"not marked", func(*testing.T, string) {}, false},
		{"mark of another run", func(t *testing.T, dir string) { must(t, other.Mark(dir)) }, false},
		{"empty mark", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, MarkFile), nil, 0o600))
		}, false},
		{"mark is a directory", func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, MarkFile), 0o700))
		}, false},
		{"mark is a link to a mark", func(t *testing.T, dir string) {
			made := t.TempDir()
			must(t, id.Mark(made))
			must(t, os.Symlink(filepath.Join(made, MarkFile), filepath.Join(dir, MarkFile)))
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			must(t, os.Mkdir(dir, 0o755))
			tt.make(t, dir)
			canary := filepath.Join(dir, "canary")
			must(t, os.WriteFile(canary, []byte("sing"), 0o600))
			refused(t, id.Owns(dir), !tt.ours)
			refused(t, id.RemoveAll(dir), !tt.ours)
			if _, err := os.Stat(canary); os.IsNotExist(err) != tt.ours {
				t.Errorf("the canary: %v; want it gone: %v", err, tt.ours)
			}
		})
	}
}

// TestOwnsLinks: links are not followed, neither in place of the directory nor in it.
func TestOwnsLinks(t *testing.T) {
	id := New("abc")
	base := t.TempDir()
	precious, dir, link := filepath.Join(base, "precious"), filepath.Join(base, "dir"), filepath.Join(base, "link")
	must(t, os.Mkdir(precious, 0o755))
	canary := filepath.Join(precious, "canary")
	must(t, os.WriteFile(canary, nil, 0o600))
	must(t, id.Make(dir, 0o700))
	must(t, os.Symlink(precious, filepath.Join(dir, "inside")))
	must(t, os.Symlink(dir, link))
	refused(t, id.RemoveAll(link), true)
	must(t, id.RemoveAll(dir))
	must(t, id.RemoveAll(dir)) // again
	if _, err := os.Stat(canary); err != nil {
		t.Errorf("the canary behind a link: %v", err)
	}
	empty := filepath.Join(base, "empty") // killed before it was marked
	must(t, os.Mkdir(empty, 0o700))
	must(t, id.RemoveAll(empty))
	if os.Geteuid() == 0 {
		must(t, id.Make(dir, 0o700))
		must(t, os.Chown(dir, 65534, 65534))
		refused(t, id.Owns(dir), true)
	}
}

// TestIdentity refuses identities from which other directories would be derived.
func TestIdentity(t *testing.T) {
	good := New("abc")
	good.Scratch, good.Storage = "/tmp/cnsbench-abc", "/var/lib/cnsbench"
	for name, change := range map[string]func(*Identity){
		"none":             func(id *Identity) { *id = Identity{} },
		"no nonce":         func(id *Identity) { id.Nonce = "" },
		"short nonce":      func(id *Identity) { id.Nonce = "00" },
		"id that leads up": func(id *Identity) { id.RunID = "../etc" },
		"id of dots":       func(id *Identity) { id.RunID = ".." },
		"other scratch":    func(id *Identity) { id.Scratch, id.Storage = "/etc", "etc" },
		"not clean":        func(id *Identity) { id.Scratch, id.Storage = "/tmp/x/../cnsbench-abc", "/var/../lib" },
	} {
		id := good
		change(&id)
		_, err := id.StorageDir()
		t.Log(name)
		refused(t, id.OwnsScratch(), true)
		refused(t, err, true)
	}
	dir, err := good.StorageDir()
	if err := errors.Join(err, good.OwnsScratch()); err != nil || dir != "/var/lib/cnsbench/abc" {
		t.Errorf("%s, %v", dir, err)
	}
}

// TestOnCluster: where objects are is a part of the identity, and the proof that they
// carry is no way to the nonce.
func TestOnCluster(t *testing.T) {
	good := New("abc")
	good.Namespace, good.Server = "ns", "https://cluster.example"
	must(t, good.OnCluster())
	for name, change := range map[string]func(*Identity){
		"no nonce":                func(id *Identity) { id.Nonce = "" },
		"no namespace":            func(id *Identity) { id.Namespace = "" },
		"no server":               func(id *Identity) { id.Server = "" },
		"namespace that leads up": func(id *Identity) { id.Namespace = ".." },
		"namespace with a slash":  func(id *Identity) { id.Namespace = "ns/pods" },
	} {
		id := good
		change(&id)
		t.Log(name)
		refused(t, id.OnCluster(), true)
	}
	another := New("abc")
	renamed := good
	renamed.RunID = "abd"
	if p := good.Proof(); len(p) != 32 || p == another.Proof() || p == renamed.Proof() ||
		strings.Contains(p, good.Nonce) {
		t.Errorf("proof %s of %+v", p, good)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, want bool) {
	t.Helper()
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) != want || !want && err != nil {
		t.Errorf("%v; want it refused: %v", err, want)
	}
}
