package summary

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// What breaks off is a lower bound, what never began is infinite, and shares
// are of what came to its end.
func TestEpisodes(t *testing.T) {
	var spec dataset.Spec
	if err := json.Unmarshal([]byte(`{"actions":[{"name":"vol","then":["snap","del"]},{"name":"snap"},{"name":"del"}]}`), &spec); err != nil {
		t.Fatal(err)
	}
	cs := newChains(&dataset.Data{Bundle: &bundle.Bundle{}, Spec: spec})
	add := func(episode int64, action string, intended, ended op.Time, outcome op.Outcome) {
		cs.add(&op.Op{Episode: episode, Action: action, Intended: intended, Started: intended, Ended: ended,
			Outcome: outcome})
	}
	add(1, "vol", 100, 110, op.OK)
	add(1, "snap", 110, 150, op.OK)
	add(2, "vol", 200, 230, op.OK) // meanwhile
	add(1, "del", 150, 200, op.OK)
	add(2, "snap", 230, 240, op.OK)
	add(2, "snap", 230, 290, op.OK) // of a second volume: the last counts
	add(2, "del", 290, 300, op.OK)
	add(3, "vol", 300, 310, op.OK)
	add(3, "snap", 310, 370, op.Error)
	add(3, "del", 370, op.Never, op.Dropped)
	add(4, "vol", 400, op.Never, op.Dropped)
	add(5, "vol", 500, 510, op.OK) // and there the record ends
	got := cs.list()
	if len(got) != 1 {
		t.Fatalf("%d courses", len(got))
	}
	e := got[0]
	if diff := cmp.Diff(map[op.Outcome]int64{op.OK: 2, op.Error: 1, op.Dropped: 1, op.Censored: 1},
		e.Outcomes); diff != "" {
		t.Error(diff)
	}
	if r := e.Response; *r.MinNs != 100 || *r.MaxNs != 100 || r.Censored != 2 || r.Infinite != 1 || r.N != 5 {
		t.Errorf("response %+v", r)
	}
	type step struct {
		Action  string
		Percent int
		N       int64
		Broken  int64
	}
	var steps []step
	for _, s := range e.Steps {
		steps = append(steps, step{s.Action, int(100*s.Share + 0.5), s.Latency.N, s.Broken})
	}
	want := []step{{"vol", 20, 4, 1}, {"snap", 50, 2, 1}, {"del", 30, 2, 0}}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
}
