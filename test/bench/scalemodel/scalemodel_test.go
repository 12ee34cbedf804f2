package scalemodel

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// known is a model from which points are made.
var known = &Model{Capacity: 2, Delay: 1.5, Costs: map[string]UnitCosts{
	"apiserver": {Idle: 0.1, PerNode: 0.0002, PerMove: 0.03, PerBatch: 0.01},
	"runner":    {Idle: 0.01, PerInstance: 0.0001, PerMove: 0.004},
	"scheduler": {PerNode: 0.00001, PerMove: 0.006},
}}

// pointsOf simulates points of the known model, with what its components use.
func pointsOf(m *Model) []Point {
	var all []Point
	for _, nodes := range []int{100, 400, 1000} {
		for i, offered := range []float64{2, 5, 10, 20, 60, 100} {
			p := Point{Nodes: nodes, Instances: 60 + 120*(i%2), Offered: offered, InFlight: 100, Seconds: 60, CPUs: 2}
			got := m.Predict(p, uint64(nodes+i))
			p.Achieved, p.ResponseP50, p.Busy = got.Achieved, got.ResponseP50, got.Used
			p.Dropped = int64(got.Dropped)
			p.Cores = m.Needs(p.Nodes, p.Instances, p.Achieved)
			all = append(all, p)
		}
	}
	return all
}

// TestFitRecovers checks that the costs, the capacity and the delay of a known model are found.
func TestFitRecovers(t *testing.T) {
	fitted, rest := Halves(pointsOf(known))
	if len(fitted) != 9 || len(rest) != 9 {
		t.Fatalf("halves of %d and %d points", len(fitted), len(rest))
	}
	m, err := Fit(fitted, "runner")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(known.Costs, m.Costs, cmpopts.EquateApprox(1e-6, 1e-9)); diff != "" {
		t.Errorf("costs: -want +got\n%s", diff)
	}
	// The CPUs are idle until the first moves have waited.
	if math.Abs(m.Capacity-2) > 0.1 || math.Abs(m.Delay-1.5) > 0.05 {
		t.Errorf("capacity %g, want 2; delay %g, want 1.5", m.Capacity, m.Delay)
	}
	for _, p := range rest {
		got := m.Predict(p, 1)
		if off := got.Achieved/p.Achieved - 1; math.Abs(off) > 0.1 {
			t.Errorf("%d nodes, %g/s: predicted %g, want %g", p.Nodes, p.Offered, got.Achieved, p.Achieved)
		}
	}
}

// TestPredict compares the simulation with what queueing theory says.
func TestPredict(t *testing.T) {
	tests := []struct {
		name      string
		point     Point
		rate, p50 float64
	}{
		// A move takes 40 ms + 10 ms/√(moves per second) of the 1.864 CPUs that 100 nodes and 50 instances leave:
		// 44.9/s; 100 in flight, so by Little's law each takes 100/44.9 s. None ends in the first 1.5 of 60 s.
		{"saturated", Point{Nodes: 100, Instances: 50, Offered: 200, InFlight: 100, Seconds: 60}, 43.8, 2.226},
		{"free", Point{Nodes: 100, Instances: 50, Offered: 5, InFlight: 100, Seconds: 60}, 4.87, 1.545},
		// At most 3 in flight, each for 1.55 s: Erlang's B(3, 5·1.55) = 0.66 are dropped. The last 3 do not end.
		{"in flight", Point{Nodes: 100, Instances: 50, Offered: 5, InFlight: 3, Seconds: 60}, 1.63, 1.54},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := known.Predict(tt.point, 7)
			if math.Abs(got.Achieved/tt.rate-1) > 0.05 || math.Abs(got.ResponseP50/tt.p50-1) > 0.05 {
				t.Errorf("%+v, want about %g/s and %g s", got, tt.rate, tt.p50)
			}
		})
	}
}

// TestFitNeedsPoints checks that too few points have no model.
func TestFitNeedsPoints(t *testing.T) {
	if m, err := Fit(pointsOf(known)[:3]); err == nil {
		t.Errorf("three points have the model %+v", m)
	}
}

// TestShards checks the number of runners: an idle one takes 1 %, so each has 0.99 CPUs for 0.4 and 10.
func TestShards(t *testing.T) {
	if n := known.Shards("runner", 100_000, 100); n != 11 {
		t.Errorf("%d shards, want 11", n)
	}
}

// TestPointsFile checks that points are read as they were written.
func TestPointsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.json")
	want := pointsOf(known)[:2]
	if err := WritePoints(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadPoints(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
