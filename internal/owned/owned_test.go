package owned

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemoveAll: links are not followed, neither in place of the directory nor in it, and only what belongs to this user
// is removed.
func TestRemoveAll(t *testing.T) {
	base := t.TempDir()
	precious, dir, link := filepath.Join(base, "precious"), filepath.Join(base, "dir"), filepath.Join(base, "link")
	must(t, os.Mkdir(precious, 0o755))
	canary := filepath.Join(precious, "canary")
	must(t, os.WriteFile(canary, nil, 0o600))
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Symlink(precious, filepath.Join(dir, "inside")))
	must(t, os.Symlink(dir, link))
	refused(t, RemoveAll(link), true)
	refused(t, RemoveAll(canary), true)
	refused(t, RemoveAll("/"), true)
	refused(t, RemoveAll("dir"), true)
	must(t, RemoveAll(""))
	must(t, RemoveAll(dir))
	must(t, RemoveAll(dir)) // again
	if _, err := os.Stat(canary); err != nil {
		t.Errorf("the canary behind a link: %v", err)
	}
	if os.Geteuid() == 0 {
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.Chown(dir, 65534, 65534))
		refused(t, Owns(dir), true)
		refused(t, RemoveAll(dir), true)
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
		"relative":         func(id *Identity) { id.Storage = "etc" },
		"not clean":        func(id *Identity) { id.Storage = "/var/../lib" },
	} {
		id := good
		change(&id)
		_, err := id.StorageDir()
		t.Log(name)
		refused(t, err, true)
	}
	if dir, err := good.StorageDir(); err != nil || dir != "/var/lib/cnsbench/abc" {
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
