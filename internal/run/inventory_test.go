package run

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan"
)

func names(objects []engine.Object) (list []string) {
	for _, o := range objects {
		list = append(list, o.Name)
	}
	return list
}

func stocked() *inventory {
	v := newInventory(1)
	for i := range 3 {
		v.add(
			engine.Object{Kind: engine.VolumeObject, Action: "a", Name: fmt.Sprintf("a-%d", i),
				Labels: map[string]string{"n": fmt.Sprint(i)}},
			engine.Object{Kind: engine.VolumeObject, Action: "b", Name: fmt.Sprintf("b-%d", i)},
			engine.Object{Kind: engine.SnapshotObject, Action: "s", Name: fmt.Sprintf("s-%d", i),
				Source: fmt.Sprintf("a-%d", i)},
		)
	}
	return v
}

// TestFind checks which objects each kind of target selects.
func TestFind(t *testing.T) {
	volumes := func(action string, s plan.Select) *plan.Target {
		return &plan.Target{Kind: engine.VolumeObject, Action: action, Select: s}
	}
	tests := []struct {
		name   string
		target *plan.Target
		want   [][]string // of successive triggers
	}{
		{"all", volumes("a", plan.SelectAll), [][]string{{"a-0", "a-1", "a-2"}, {"a-0", "a-1", "a-2"}}},
		{"oldest", volumes("a", plan.SelectOldest), [][]string{{"a-0"}, {"a-0"}}},
		{"newest", volumes("b", plan.SelectNewest), [][]string{{"b-2"}}},
		{"round robin", volumes("a", plan.SelectRoundRobin), [][]string{{"a-0"}, {"a-1"}, {"a-2"}, {"a-0"}}},
		{"every action", volumes("", plan.SelectAll), [][]string{{"a-0", "b-0", "a-1", "b-1", "a-2", "b-2"}}},
		{"labels", &plan.Target{Kind: engine.VolumeObject, Labels: map[string]string{"n": "1"}, Select: plan.SelectAll},
			[][]string{{"a-1"}}},
		{"snapshots of a volume", &plan.Target{Kind: engine.SnapshotObject, Volume: "a-2", Select: plan.SelectAll},
			[][]string{{"s-2"}}},
		{"nothing", volumes("c", plan.SelectAll), [][]string{nil}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := stocked()
			for i, want := range tt.want {
				if got := names(v.find("x", tt.target, false)); !slices.Equal(got, want) {
					t.Errorf("trigger %d: %v, want %v", i, got, want)
				}
			}
		})
	}
}

// TestTake checks that an object that is taken is not selected again until it is put back.
func TestTake(t *testing.T) {
	v := stocked()
	oldest := &plan.Target{Kind: engine.VolumeObject, Action: "a", Select: plan.SelectOldest}
	random := &plan.Target{Kind: engine.VolumeObject, Action: "a", Select: plan.SelectRandom}
	first := v.find("x", oldest, true)
	seen := append(names(first), names(v.find("x", random, true))...)
	seen = append(seen, names(v.find("x", random, true))...)
	slices.Sort(seen)
	if want := []string{"a-0", "a-1", "a-2"}; !slices.Equal(seen, want) {
		t.Errorf("took %v, want %v", seen, want)
	}
	if left := v.find("x", oldest, true); left != nil {
		t.Errorf("took %v of an empty group", left)
	}
	v.add(first...)
	if got := names(v.find("x", oldest, false)); !slices.Equal(got, []string{"a-0"}) {
		t.Errorf("after putting back: %v", got)
	}
}

// TestWorkloadTakesItsVolumes checks that removeOwned removes the volumes of the workload only.
func TestWorkloadTakesItsVolumes(t *testing.T) {
	v := newInventory(1)
	w := engine.Object{Kind: engine.WorkloadObject, Action: "fio", Name: "fio-0"}
	v.add(w, engine.Object{Kind: engine.VolumeObject, Action: "fio", Name: "fio-0-data", Owner: "fio-0"},
		engine.Object{Kind: engine.VolumeObject, Action: "fio", Name: "fio-1-data", Owner: "fio-1"})
	v.removeOwned(w)
	all := &plan.Target{Kind: engine.VolumeObject, Action: "fio", Select: plan.SelectAll}
	if got := names(v.find("x", all, false)); !slices.Equal(got, []string{"fio-1-data"}) {
		t.Errorf("volumes %v, want that of fio-1", got)
	}
}

func BenchmarkChurn(b *testing.B) {
	v := newInventory(1)
	t := &plan.Target{Kind: engine.VolumeObject, Action: "a", Select: plan.SelectOldest}
	for i := range 10_000 {
		v.add(engine.Object{Kind: engine.VolumeObject, Action: "a", Name: fmt.Sprint(i)})
	}
	for b.Loop() {
		v.add(v.find("x", t, true)...)
	}
}
