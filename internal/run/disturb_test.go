package run

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

func kills(name, of string) plan.Action {
	return plan.Action{Name: name, Kind: op.Kill, Rate: "r", Count: 1, Timeout: time.Minute,
		Kill:   &plan.KillSpec{Signal: "SIGKILL"},
		Target: &plan.Target{Kind: engine.WorkloadObject, Action: of, Select: plan.SelectAll}}
}

// TestKilledWorkloads checks that the end of a workload because of an op does not fail the run, and that any
// other end does, also after a successful op.
func TestKilledWorkloads(t *testing.T) {
	died := func(name string) op.InstanceEnd {
		return op.InstanceEnd{Instance: name, Containers: []op.ContainerEnd{{Name: "fio", Signal: "SIGKILL",
			ExitCode: 137}}}
	}
	tests := []struct {
		name  string
		kill  func(s *script) error // returns the result of the kill, 2 s after its start
		later bool                  // the workload dies after the kill
		state bundle.State
		flags []string
		want  map[op.Outcome]int
	}{
		{name: "it is made again", kill: func(*script) error { return nil }, state: bundle.Complete,
			want: map[op.Outcome]int{op.OK: 1}},
		{name: "it is lost with the op", kill: func(s *script) error {
			s.sink.Ended(died("fio-0"))
			return &engine.Error{Code: "IO", Message: "no way back"}
		}, state: bundle.Complete, flags: []string{"workloadLost"}, want: map[op.Outcome]int{op.Error: 1}},
		{name: "the op fails, and it dies of it later",
			kill:  func(*script) error { return &engine.Error{Code: "IO", Message: "no way back"} },
			later: true, state: bundle.Complete, want: map[op.Outcome]int{op.Error: 1}},
		{name: "it dies by itself after it was made again", kill: func(*script) error { return nil }, later: true,
			state: bundle.Failed, want: map[op.Outcome]int{op.OK: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{}
				s.took = func(r engine.Request) (time.Duration, error) {
					if r.Kill == nil {
						return 0, nil
					}
					time.Sleep(2 * time.Second)
					return 0, tt.kill(s)
				}
				end := 20 * time.Second
				if tt.later {
					time.AfterFunc(10*time.Second, func() { s.sink.Ended(died("fio-0")) })
				}
				p := plan.Plan{Runtime: end, Actions: []plan.Action{runs("fio", 1), kills("crash", "fio")},
					Rates: []plan.Rate{{Name: "r", Schedule: schedule.Constant{Interval: 5 * time.Second}, Limit: 1}}}
				m, res := carry(t.Context(), t.Context(), p, s)
				if res.State != tt.state {
					t.Errorf("state %s (%s), want %s", res.State, res.Reason, tt.state)
				}
				if diff := cmp.Diff(tt.want, m.outcomes("crash")); diff != "" {
					t.Error(diff)
				}
				var flags []string
				for _, f := range res.Flags {
					flags = append(flags, f.Name)
				}
				if diff := cmp.Diff(tt.flags, flags); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestEndedWorkloadsAreNotKilled checks that an action that restarts workloads does not select one that has
// ended.
func TestEndedWorkloadsAreNotKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.took = func(r engine.Request) (time.Duration, error) {
			// makes fio-1 ready after fio-0, so that kills are in that order
			return time.Duration(r.Instance) * time.Millisecond, nil
		}
		time.AfterFunc(12*time.Second, func() { s.sink.Ended(op.InstanceEnd{Instance: "fio-0", OK: true}) })
		p := plan.Plan{Runtime: 18 * time.Second, Actions: []plan.Action{runs("fio", 2), kills("crash", "fio")},
			Rates: []plan.Rate{every(5 * time.Second)}}
		m, _ := carry(t.Context(), t.Context(), p, s)
		var targets []string
		for _, o := range m.of("crash") {
			targets = append(targets, o.Target)
		}
		if diff := cmp.Diff([]string{"fio-0", "fio-1", "fio-0", "fio-1", "fio-1"}, targets); diff != "" {
			t.Error(diff)
		}
	})
}

// requests is an engine that stores its requests.
type requests struct {
	*script
	mu   sync.Mutex
	list []engine.Request
}

func (e *requests) took(r engine.Request) (time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, r)
	return 0, nil
}

// TestObjectsAndNodes checks the actions on objects of any kind and on nodes: scale, drain, and delete by
// reference.
func TestObjectsAndNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ref := &engine.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "old"}
		action := func(name string, kind op.Kind, a plan.Action) plan.Action {
			a.Name, a.Kind, a.Rate, a.Count, a.Timeout = name, kind, "r", 1, time.Minute
			return a
		}
		p := plan.Plan{Runtime: 7 * time.Second, Seed: 4, Rates: []plan.Rate{every(2 * time.Second)},
			Actions: []plan.Action{
				action("scale", op.Scale, plan.Action{Scale: &plan.ScaleSpec{Replicas: []int32{1, 5}},
					Target: &plan.Target{Kind: engine.ManifestObject, Object: ref}}),
				action("drain", op.Drain, plan.Action{Drain: &plan.DrainSpec{Labels: map[string]string{"b": "2",
					"a": "1"}}}),
				action("purge", op.Delete, plan.Action{Target: &plan.Target{Kind: engine.ManifestObject, Object: ref}}),
			}}
		e := &requests{script: &script{}}
		e.script.took = e.took
		m, res := carry(t.Context(), t.Context(), p, e.script)
		if res.State != bundle.Complete {
			t.Errorf("%s: %s", res.State, res.Reason)
		}
		var replicas []int32
		picks := map[uint64]bool{}
		for _, o := range m.of("scale") {
			for _, r := range e.list {
				if r.ID == o.ID {
					replicas = append(replicas, r.Scale.Replicas)
				}
			}
		}
		for _, r := range e.list {
			switch {
			case r.Drain != nil:
				picks[r.Drain.Pick] = true
			case r.Kind == op.Delete:
				if r.Target.Ref != ref {
					t.Errorf("deletes %+v", r.Target)
				}
			}
		}
		if diff := cmp.Diff([]int32{1, 5, 1}, replicas); diff != "" {
			t.Error(diff)
		}
		if drains := m.of("drain"); len(drains) != 3 || len(picks) != 3 || drains[0].Target != "a=1,b=2" {
			t.Errorf("drains %v, picks %v", drains, picks)
		}
		if n := m.outcomes("purge")[op.OK]; n != 3 {
			t.Errorf("%d deletions of what is not ours, want each trigger's", n)
		}
	})
}

// TestLabelsOfWhatIsMade checks that snapshots are found by the labels of their volumes.
func TestLabelsOfWhatIsMade(t *testing.T) {
	gold, silver := map[string]string{"tier": "gold", "size": "s"}, map[string]string{"tier": "silver", "size": "s"}
	a, b := engine.Object{Kind: engine.VolumeObject, Name: "a", Labels: gold}, engine.Object{Kind: engine.VolumeObject,
		Name: "b", Labels: silver}
	made := []engine.Object{
		{Kind: engine.SnapshotObject, Name: "s-0", Source: "a"}, {Kind: engine.SnapshotObject, Name: "s-1",
			Source: "b"},
		{Kind: engine.GroupSnapshotObject, Name: "s"}}
	describeMade(&task{action: &plan.Action{},
		request: engine.Request{Snapshot: &engine.Snapshot{Sources: []engine.Object{a, b}, Group: true}}}, made)
	want := []map[string]string{gold, silver, {"size": "s"}}
	for i, o := range made {
		if diff := cmp.Diff(want[i], o.Labels); diff != "" {
			t.Errorf("%s: %s", o.Name, diff)
		}
	}
	if gold["tier"] != "gold" {
		t.Error("the volume's own labels were changed")
	}
	inv := newInventory(1)
	inv.add(made...)
	found := inv.find("x", &plan.Target{Kind: engine.SnapshotObject, Labels: map[string]string{"tier": "silver"},
		Select: plan.SelectAll}, false)
	if len(found) != 1 || found[0].Name != "s-1" {
		t.Errorf("found %v", found)
	}
}
