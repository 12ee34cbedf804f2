package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cnsbench/cnsbench/internal/owned"
)

// TestAnnounce checks that a clean-up can read an announced run, and that Withdraw removes the announcement unless more
// files were added.
func TestAnnounce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	if _, err := ReadRun(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no bundle: %v", err)
	}
	own := owned.New("0abc")
	run := Run{ID: "0abc", Engine: "kubernetes", Identity: own}
	must(t, Announce(dir, run))
	got, err := ReadRun(dir)
	if err != nil || !reflect.DeepEqual(got.Identity, own) || got.State != Running || !Announced(dir) || CheckBundle(dir) != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := Announce(dir, run); err == nil {
		t.Error("a directory in use is taken")
	}
	must(t, os.WriteFile(filepath.Join(dir, "ledger"), nil, 0o600))
	must(t, Withdraw(dir))
	if _, err := ReadRun(dir); err != nil {
		t.Errorf("a bundle is withdrawn: %v", err)
	}
	must(t, os.Remove(filepath.Join(dir, "ledger")))
	must(t, Withdraw(dir))
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory: %v", err)
	}
}
