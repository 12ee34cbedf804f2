package figure

import (
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestStates: two instances, one of which has its volume reattached from 5 to 7.
func TestStates(t *testing.T) {
	instance := func(name string, start, end op.Time) bundle.Instance {
		return bundle.Instance{Name: name, Starts: []op.InstanceStart{{Instance: name, At: start}},
			End: &op.InstanceEnd{Instance: name, At: end}}
	}
	instances := []bundle.Instance{instance("a-0", 2, 10), instance("a-1", 3, 9)}
	s := newStates(instances)
	for _, o := range []op.Op{
		{Kind: op.Create, Target: "a-0", Started: 0, Ended: 2},
		{Kind: op.Create, Target: "a-1", Started: 1, Ended: 3},
		{Kind: op.Reattach, Target: "b,a-1-data", Started: 5, Ended: 7},
		{Kind: op.Kill, Target: "a-1", Started: op.Never, Ended: op.Never},
		{Kind: op.Snapshot, Target: "a-1", Started: 6, Ended: 8},
	} {
		s.add(&o, 10)
	}
	p := s.panel(10)
	if p == nil || len(p.Values) != 1 || len(p.Values[0].Lines) != 3 {
		t.Fatalf("%+v", p)
	}
	// At each instant from 0 on.
	want := map[string][]float64{
		"starting":       {1, 2, 1, 0, 0, 0, 0, 0, 0, 0},
		"running":        {0, 0, 1, 2, 2, 1, 1, 2, 2, 1},
		"being replaced": {0, 0, 0, 0, 0, 1, 1, 0, 0, 0},
	}
	for _, l := range p.Values[0].Lines {
		var got []float64
		for at := op.Time(0); at < 10; at++ {
			for _, x := range l.Points {
				if x.From <= at && at < x.To {
					got = append(got, x.Value)
				}
			}
		}
		if !slices.Equal(got, want[l.Name]) {
			t.Errorf("%s: %v, want %v", l.Name, got, want[l.Name])
		}
	}
	if p := newStates(instances[:1]).panel(10); p != nil {
		t.Errorf("one instance: %+v", p)
	}
}
