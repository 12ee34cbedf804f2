package run

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// TestOriginOfChecks checks which volume of a workload a checked one is a copy of, and when the data was copied.
func TestOriginOfChecks(t *testing.T) {
	c := newChecks(&plan.Plan{Actions: []plan.Action{{Kind: op.Check}}})
	makes := func(kind engine.ObjectKind, name, source, owner string, from, ready op.Time) {
		o := &op.Op{Started: from, Ended: ready + 100, Milestones: []op.Milestone{{Name: op.Ready, At: ready}}}
		c.hasMade(o, []engine.Object{{Kind: kind, Name: name, Source: source, Owner: owner}})
	}
	makes(engine.VolumeObject, "w-0-data", "", "w-0", 0, 1)
	makes(engine.VolumeObject, "loose", "", "", 0, 1)
	makes(engine.SnapshotObject, "s-0", "w-0-data", "group", 10, 12)
	makes(engine.VolumeObject, "back-0", "s-0", "", 20, 21)
	makes(engine.VolumeObject, "copy-0", "w-0-data", "", 30, 31)
	makes(engine.SnapshotObject, "s-1", "copy-0", "", 40, 41)
	makes(engine.VolumeObject, "back-1", "s-1", "", 50, 51)
	makes(engine.VolumeObject, "other", "loose", "", 60, 61)
	for name, want := range map[string]parser.Interval{
		"back-0": {From: 10, To: 12}, "copy-0": {From: 30, To: 31}, "back-1": {From: 30, To: 31}, "other": {}} {
		source, at, ok := c.origin(c.made[keyOf(engine.VolumeObject, name)])
		if ok != (want != parser.Interval{}) || at != want || ok && source.Owner != "w-0" {
			t.Errorf("%s: %+v at %v, %v; want %v", name, source, at, ok, want)
		}
	}
	if none := newChecks(&plan.Plan{}); none.wanted {
		t.Error("there are no checks")
	}
}
