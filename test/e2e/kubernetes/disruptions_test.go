//go:build e2e

package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestDisruptions checks that the unmodified example of disruptions, which needs a cluster, does
// every action without a failure.
func TestDisruptions(t *testing.T) {
	p := newBed(t).project(t, noRights)
	p.bind("default", "cluster-admin")
	c := p.commandOn("pod", filepath.Join("..", "..", "..", "examples", "kubernetes", "disruptions.yaml"))
	p.ends(c, 0)
	p.summarised(c)
	want := map[string]int{"hold": 2, "web": 1, "scale": 6, "renew": 1, "back": 1, "fall": 1, "crash": 1, "move": 1,
		"empty": 1, "remove": 1}
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

// TestMaintenance checks that the maintenance example does every action on two nodes, with the
// StorageClasses of the cluster. Pods that share a volume are created on one node at a time, so
// that none waits for another to release it.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	p := newBed(t).project(t, noRights)
	p.kubectl("label", "namespace", p.name, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
	c := p.commandOn("local", filepath.Join("..", "..", "..", "examples", "maintenance.yaml"),
		"--set", "hold.storageClass=loopfile-xfs", "--set", "spec.actions.protect.snapshotSpec.snapshotClass=loopfile",
		"--set", "spec.gracePeriod=3m") // a busy machine takes longer than the default
	p.ends(c, 0)
	begun, ok := map[string]int{}, map[string]int{}
	for _, o := range p.events(c.bundle) {
		begun[o.Action]++
		switch {
		case o.Outcome == op.OK:
			ok[o.Action]++
		case o.Outcome != op.Dropped:
			t.Logf("%s %s: %s: %s", o.Action, o.Target, o.Outcome, o.Message)
		}
	}
	if ok["hold"] != 2 {
		t.Errorf("hold: %d ok, want 2", ok["hold"])
	}
	for _, action := range []string{"grow", "tune", "protect", "look", "unlook", "forget", "renew"} {
		if ok[action] == 0 {
			t.Errorf("%s: none ok of %d", action, begun[action])
		}
	}
	if begun["remount"] == 0 { // rejected while the pods are replaced
		t.Error("remount: none begun")
	}
	log, err := os.ReadFile(filepath.Join(c.bundle, "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "Multi-Attach") {
		t.Errorf("a pod waited for a volume that a pod on the other node had:\n%s", log)
	}
}
