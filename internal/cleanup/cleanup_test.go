package cleanup

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/registry"
)

// TestClaimedID: a bundle of a run on a cluster that claims the ID of a run of this machine does not get its entry, by
// which the run would be forgotten while its volumes are left.
func TestClaimedID(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
	}
	ours := owned.New("t" + owned.New("t").Nonce[:16])
	entry, err := registry.Create(registry.Entry{Identity: ours, Bundle: "/moved"})
	if err != nil {
		t.Fatal(err)
	}
	if err := entry.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		nonce string
		want  bool
	}{"forged": {owned.New("x").Nonce, false}, "its own": {ours.Nonce, true}} {
		claims := owned.Identity{RunID: ours.RunID, Nonce: tt.nonce, Namespace: "ns", Server: "https://s"}
		dir := t.TempDir()
		text, err := json.Marshal(bundle.Run{Format: bundle.Version, ID: ours.RunID, Engine: "kubernetes", Identity: claims})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "run.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		run, err := OfBundle(dir, Options{Log: io.Discard}, true)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := run.ID() == ours.RunID; got != tt.want {
			t.Errorf("%s: it has the entry: %v", name, got)
		}
		if err := run.release(false); err != nil {
			t.Error(err)
		}
	}
	again, err := registry.Open(ours.RunID)
	if err != nil {
		t.Fatalf("the run was forgotten: %v", err)
	}
	if err := again.Remove(); err != nil {
		t.Error(err)
	}
}
