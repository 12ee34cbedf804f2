package kubernetes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// dirs is a ledger of directories.
type dirs map[string]bool

func (d dirs) Add(e op.LedgerEntry) error { d[e.Name] = true; return nil }
func (d dirs) Done(_, name string) error  { delete(d, name); return nil }
func (d dirs) Open() (list []op.LedgerEntry) {
	for name := range d {
		list = append(list, op.LedgerEntry{Kind: "dir", Name: name})
	}
	return list
}

func TestScratchIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cnsbench-1")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ledger := dirs{dir: true, filepath.Join(t.TempDir(), "of-another-machine"): true}
	if err := removeScratch(ledger); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) || len(ledger) > 0 {
		t.Errorf("the directory: %v; still in the ledger: %v", err, ledger)
	}
}
