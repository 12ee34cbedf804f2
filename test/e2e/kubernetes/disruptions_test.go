//go:build e2e

package kubernetes

import (
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestDisruptions runs the example of what only a cluster has, as it stands: every
// action of it is carried out, and nothing fails.
func TestDisruptions(t *testing.T) {
	p := newBed(t).project(t, noRights)
	p.bind("default", "cluster-admin")
	c := p.commandOn("pod", filepath.Join("..", "..", "..", "examples", "kubernetes", "disruptions.yaml"))
	p.ends(c, 0)
	want := map[string]int{"hold": 2, "web": 1, "scale": 6, "renew": 1, "back": 1, "fall": 1, "crash": 1, "move": 1, "empty": 1, "remove": 1}
	got := map[string]int{}
	for _, o := range p.events(c.bundle) {
		if o.Outcome != op.OK {
			t.Errorf("%s %s: %s: %s", o.Action, o.Target, o.Outcome, o.Message)
			continue
		}
		got[o.Action]++
	}
	for action, n := range want {
		if got[action] != n {
			t.Errorf("%s: %d ok, want %d", action, got[action], n)
		}
	}
}
