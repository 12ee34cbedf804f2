package registry

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/owned"
)

// own returns an entry of a new run in a registry of the test, which is root's own where the test runs as root.
func own(t *testing.T) Entry {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
	}
	id := owned.New("t" + owned.New("t").Nonce[:16])
	id.Storage = "/storage"
	return Entry{Identity: id, Bundle: "/bundle", SecretFiles: []string{"/secret.yaml"}, Places: []byte(`[1]`)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLife registers a run, which other processes can neither hold nor forget while it is alive.
func TestLife(t *testing.T) {
	e := own(t)
	id := e.Identity.RunID
	r, err := Create(e)
	must(t, err)
	if _, err := Create(e); err == nil {
		t.Error("it is registered twice")
	}
	if _, err := Open(id); !errors.Is(err, ErrAlive) {
		t.Errorf("opened while it is alive: %v", err)
	}
	if ids, err := List(); err != nil || !slices.Contains(ids, id) {
		t.Errorf("list %q, %v", ids, err)
	}
	must(t, os.WriteFile(r.Dir().Path("ledger"), nil, 0o600))
	must(t, r.Close())
	again, err := Open(id)
	must(t, err)
	if again.Identity != e.Identity || again.Bundle != e.Bundle || again.SecretFiles[0] != "/secret.yaml" ||
		string(again.Places) != "[1]" || again.Dir() != r.Dir() {
		t.Errorf("entry %+v", again.Entry)
	}
	must(t, again.Remove())
	if _, err := Open(id); !errors.Is(err, ErrUnknown) {
		t.Errorf("opened after its end: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(r.dir), "*"+id+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

// TestUnknown: no ID leads out of the registry, and none but that of an entry opens one.
func TestUnknown(t *testing.T) {
	r, err := Create(own(t))
	must(t, err)
	defer func() { must(t, r.Remove()) }()
	id := r.Identity.RunID
	for _, name := range []string{"", ".", "..", "../" + filepath.Base(filepath.Dir(r.dir)) + "/" + id, id + "/", "none", newPrefix} {
		if _, err := Open(name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", name, err)
		}
	}
	bad := own(t)
	bad.Identity.RunID = "../up"
	if _, err := Create(bad); err == nil {
		t.Error("an entry above the registry was made")
	}
}

// TestPrivate: a registry that others can write to, or entries that are no directories, are not used.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	for mode, want := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o777: false, 0o770: false, 0o702: false} {
		must(t, os.Chmod(dir, mode))
		info, err := os.Stat(dir)
		must(t, err)
		if err := private(info, dir); (err == nil) != want {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if info, err := os.Stat("/proc/1"); err == nil && os.Geteuid() != 0 && private(info, "/proc/1") == nil {
		t.Error("another user's directory is trusted")
	}
	r, err := Create(own(t))
	must(t, err)
	must(t, r.Close())
	defer func() { must(t, errors.Join(os.Remove(r.dir), os.RemoveAll(r.dir+"moved"))) }()
	must(t, os.Rename(r.dir, r.dir+"moved"))
	must(t, os.Symlink(r.dir+"moved", r.dir))
	if _, err := Open(r.Identity.RunID); err == nil {
		t.Error("an entry behind a link is opened")
	}
}
