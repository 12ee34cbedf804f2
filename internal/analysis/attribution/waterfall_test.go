package attribution

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestInOrder checks that the path covers an op without gaps, in order, and that spans have the path's components.
func TestInOrder(t *testing.T) {
	o := op.Op{Kind: op.Snapshot, Intended: 0, Started: 10, Ended: 110, Outcome: op.OK, Milestones: []op.Milestone{
		{Name: "acked", At: 20}, {Name: "CreateSnapshot.start", At: 30}, {Name: "CreateSnapshot.end", At: 90},
		{Name: "taken", At: 100}, {Name: "ready", At: 110}}}
	at, calls := op.Time(0), int64(0)
	for _, i := range InOrder(&o, false) {
		if i.From != at {
			t.Errorf("%s begins at %d, want %d", i.Component, i.From, at)
		}
		at = i.To
		if i.Component == Driver {
			calls += i.Ns()
		}
	}
	if at != o.Ended || calls != 60 {
		t.Errorf("the path ends at %d, %d ns of it the driver's", at, calls)
	}
	if by := ComponentOf(&o, "CreateSnapshot.start", "CreateSnapshot.end", false); by != Driver {
		t.Errorf("the call is of %s", by)
	}
	if by := ComponentOf(&o, "acked", "taken", true); by != Engine {
		t.Errorf("on one machine the snapshot is of %s", by)
	}
	if by := ComponentOf(&o, "started", "other", false); by != Unknown {
		t.Errorf("an unknown milestone is of %s", by)
	}
	o.Outcome = op.Error
	if path := InOrder(&o, false); path != nil {
		t.Errorf("a failed op has the path %v", path)
	}
}
