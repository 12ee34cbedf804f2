package run

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

func removes(name, rateName, of string) plan.Action {
	return plan.Action{Name: name, Kind: op.Delete, Rate: rateName, Count: 1, Timeout: time.Minute,
		Target: &plan.Target{Kind: engine.VolumeObject, Action: of, Select: plan.SelectOldest}}
}

func at(s ...float64) (list schedule.Trace) {
	for _, x := range s {
		list = append(list, time.Duration(x*1e9))
	}
	return list
}

// traced returns a plan with creations of volumes, snapshots of them and removals: actions 0, 1 and 2.
func traced(due schedule.Trace, steps ...plan.Step) plan.Plan {
	return plan.Plan{
		Actions: []plan.Action{makes("v", "t", 1), snaps("s", "t", "v"), removes("d", "t", "v")},
		Rates:   []plan.Rate{{Name: "t", Schedule: due, Steps: steps}},
	}
}

// whatBecame formats ops as "action target outcome intended+lateness", in order of the intended time, which
// counts from the barrier.
func whatBecame(m *memory, res Result) (list []string) {
	ops := slices.Clone(m.ops)
	slices.SortStableFunc(ops, func(a, b op.Op) int { return int(a.Intended - b.Intended) })
	for _, o := range ops {
		text := fmt.Sprintf("%s %s %s %v", o.Action, o.Target, o.Outcome, time.Duration(o.Intended-res.BarrierAt))
		if o.Started > o.Intended {
			text += fmt.Sprintf("+%v", time.Duration(o.Started-o.Intended))
		}
		if o.Code != "" {
			text += " " + o.Code
		}
		list = append(list, text)
	}
	return list
}

// TestReplayKeepsDependencies checks that a step waits for its object and does not delay later steps.
func TestReplayKeepsDependencies(t *testing.T) {
	broken := &engine.Error{Code: "Internal", Message: "boom"}
	slow := func(r engine.Request) (time.Duration, error) {
		switch {
		case r.Name == "v-2":
			return time.Second, broken
		case r.Volume != nil:
			return 5 * time.Second, nil
		case r.Snapshot != nil:
			return 4 * time.Second, nil
		}
		return 0, nil
	}
	synctest.Test(t, func(t *testing.T) {
		p := traced(at(1, 2, 3, 4, 5, 10, 11),
			plan.Step{Action: 0, Makes: "a"},          // 1 s, there at 6 s
			plan.Step{Action: 1, Makes: "s", On: "a"}, // 2 s: waits until 6 s, over at 10 s
			plan.Step{Action: 0, Makes: "b"},          // 3 s
			plan.Step{Action: 2, On: "a"},             // 4 s: waits for the snapshot, until 10 s
			plan.Step{Action: 0, Makes: "c"},          // 5 s: fails
			plan.Step{Action: 1, On: "c"},             // its volume was not made
			plan.Step{Action: 2, On: "b"},             // 11 s
		)
		m, res := carry(t.Context(), t.Context(), p, &script{took: slow})
		want := []string{
			"v v-0 ok 1s", "s v-0 ok 2s+4s", "v v-1 ok 3s", "d v-0 ok 4s+6s", "v v-2 error 5s Internal", "s c dropped 10s DependencyFailed", "d v-1 ok 11s",
		}
		if diff := cmp.Diff(want, whatBecame(m, res)); diff != "" {
			t.Error(diff)
		}
		for _, o := range m.ops {
			if late, ok := o.Lateness(); ok && late != 0 {
				t.Errorf("%s: the wait for what it acts on is taken for lateness of ours: %v", o.Target,
					time.Duration(late))
			}
			if o.Outcome == op.Dropped {
				continue
			}
			if waited := o.Started > o.Intended; waited != (o.Milestone(op.Unblocked) == o.Started) ||
				waited != strings.HasPrefix(o.Message, "waited for ") {
				t.Errorf("%s %s: started %v, unblocked %v, message %q", o.Action, o.Target, o.Started,
					o.Milestone(op.Unblocked), o.Message)
			}
		}
		if c := res.Rates[0]; c.Triggers != 7 || c.Ops != 7 || c.Started != 6 || c.Dropped != 1 || c.OK != 5 ||
			c.Late != 0 {
			t.Errorf("count %+v", c)
		}
		if res.State != bundle.Complete {
			t.Errorf("%s: %s", res.State, res.Reason)
		}
	})
}

// TestReplayMakesWhatWasThere checks that the objects that existed when the trace began are made before the
// barrier.
func TestReplayMakesWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := traced(at(1), plan.Step{Action: 2, On: "v7"})
		for i := range 100 {
			p.Rates[0].Before = append(p.Rates[0].Before, plan.Step{Action: 0, Makes: fmt.Sprintf("v%d", i)})
		}
		m, res := carry(t.Context(), t.Context(), p, &script{took: took(time.Second)})
		if n := len(m.of("v" + Before)); n != 100 || res.BarrierAt != op.Time(4*time.Second) {
			t.Errorf("%d volumes, barrier at %v; want 100 made 32 at once in 4 s", n, time.Duration(res.BarrierAt))
		}
		if d := m.of("d"); len(d) != 1 || d[0].Target != "v-7" || d[0].Started != res.BarrierAt+op.Time(time.Second) {
			t.Errorf("deletions %v", d)
		}
	})
}

// TestReplayBeforeWaitsOutsideItsTime checks that a snapshot from before the trace is intended when it
// starts, after its volume exists, and has no recorded wait.
func TestReplayBeforeWaitsOutsideItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := traced(at(1), plan.Step{Action: 2, On: "a"})
		p.Rates[0].Before = []plan.Step{{Action: 0, Makes: "a"}, {Action: 1, Makes: "s", On: "a"}}
		m, _ := carry(t.Context(), t.Context(), p, &script{took: took(time.Second)})
		s := m.of("s" + Before)
		if len(s) != 1 || s[0].Outcome != op.OK || s[0].Intended != s[0].Started ||
			s[0].Milestone(op.Unblocked) != op.Never || s[0].Message != "" {
			t.Errorf("%+v", s)
		}
	})
}

// TestReplayEnds checks that steps that still wait at the end of the run are dropped.
func TestReplayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := traced(at(1, 2), plan.Step{Action: 0, Makes: "a"}, plan.Step{Action: 1, On: "a"})
		p.Runtime = 5 * time.Second
		m, res := carry(t.Context(), t.Context(), p, &script{took: took(20 * time.Second)})
		if diff := cmp.Diff([]string{"v v-0 ok 1s", "s a dropped 2s RunEnded"}, whatBecame(m, res)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestReplayCut checks that a trace whose steps did not all come due is flagged, and that a complete one is
// not.
func TestReplayCut(t *testing.T) {
	for runtime, want := range map[time.Duration][]string{
		1500 * time.Millisecond: {"t: 1 of the trace's 3 operations came due; the run, or the rate's duration or limit, ended before the others"},
		5 * time.Second:         nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := traced(at(1, 2, 3), plan.Step{Action: 0, Makes: "a"}, plan.Step{Action: 1, On: "a"},
				plan.Step{Action: 2, On: "a"})
			p.Runtime = runtime
			_, res := carry(t.Context(), t.Context(), p, &script{took: took(time.Millisecond)})
			var got []string
			for _, f := range res.Flags {
				if f.Name == "traceCut" && f.Severity == info {
					got = append(got, f.Evidence)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("runtime %v: %s", runtime, diff)
			}
		})
	}
}

// TestLifetimes checks that an object is deleted its lifetime after the intended time of its creation, and
// one that existed at the start within a lifetime of the start.
func TestLifetimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life := schedule.Lifetime{Quantiles: []time.Duration{4 * time.Second, 4 * time.Second}}
		p := plan.Plan{Runtime: 60 * time.Second,
			Actions: []plan.Action{makes("old", "", 20), makes("v", "r", 1), removes("d", "life", "v"),
				removes("dold", "life", "old")},
			Rates: []plan.Rate{{Name: "r", Schedule: schedule.Constant{Interval: time.Second}, Limit: 10},
				{Name: "life", Lifetime: &life}},
		}
		m, res := carry(t.Context(), t.Context(), p, &script{took: took(500 * time.Millisecond)})
		if n := m.outcomes("d")[op.OK]; n != 10 {
			t.Errorf("%d of 10 deleted", n)
		}
		for _, o := range m.of("d") {
			i := slices.IndexFunc(m.ops, func(v op.Op) bool { return v.Target == o.Target && v.Action == "v" })
			if lived := time.Duration(o.Intended - m.ops[i].Intended); lived != 4*time.Second ||
				o.Started != o.Intended {
				t.Errorf("%s lived %v, ended %v late", o.Target, lived, time.Duration(o.Started-o.Intended))
			}
		}
		old := m.of("dold")
		if len(old) != 20 {
			t.Fatalf("%d of 20 of the start deleted", len(old))
		}
		for _, o := range old {
			if rest := o.Intended - res.BarrierAt; rest < 0 || rest > op.Time(4*time.Second) {
				t.Errorf("%s of the start lived on for %v", o.Target, time.Duration(rest))
			}
		}
	})
}

// TestMortals checks that a deadlineQueue returns triggers in order of time, that an object can have triggers
// of several actions, and that equal triggers are added once.
func TestMortals(t *testing.T) {
	m := newDeadlineQueue()
	end, snap := &plan.Action{Name: "end"}, &plan.Action{Name: "snap"}
	for _, d := range []deadline{{at: 10, item: item{seq: 1}, action: end}, {at: 7, item: item{seq: 1}, action: snap},
		{at: 10, item: item{seq: 1}, action: end}} {
		m.add(d)
	}
	if at, ok := m.first(); !ok || at != 7 {
		t.Fatalf("first %v %v", at, ok)
	}
	m.add(deadline{at: 5, item: item{seq: 2}, action: end}) // as if awaitFirst were waiting for 7
	var got []op.Time
	for range 3 {
		got = append(got, m.pop().at)
	}
	if _, more := m.first(); more || !slices.Equal(got, []op.Time{5, 7, 10}) {
		t.Errorf("taken at %v, and more: %v", got, more)
	}
}

// TestLifeShorterThanItsMaking checks that an object whose lifetime is shorter than its creation is deleted
// when it exists, with the cause and without lateness.
func TestLifeShorterThanItsMaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life := schedule.Lifetime{Quantiles: []time.Duration{time.Second, time.Second}}
		p := plan.Plan{Runtime: 60 * time.Second, Actions: []plan.Action{makes("v", "r", 1), removes("d", "life", "v")},
			Rates: []plan.Rate{{Name: "r", Schedule: schedule.Constant{Interval: time.Second}, Limit: 1},
				{Name: "life", Lifetime: &life}}}
		m, _ := carry(t.Context(), t.Context(), p, &script{took: took(3 * time.Second)})
		d := m.of("d")
		if len(d) != 1 {
			t.Fatalf("%d deletions", len(d))
		}
		late, _ := d[0].Lateness()
		if wait := d[0].Started - d[0].Intended; wait != op.Time(2*time.Second) || late != 0 || d[0].Message == "" {
			t.Errorf("started %v after it was due, lateness %v, message %q", time.Duration(wait), late, d[0].Message)
		}
	})
}

// dates records when each op was due and when it was recorded. Ops without a target are recorded as soon as
// they are triggered.
type dates struct {
	memory
	clock     op.Clock
	due, came []op.Time
}

func (d *dates) Op(o op.Op) {
	d.due, d.came = append(d.due, o.Intended), append(d.came, d.clock.Now())
}

// TestMillionTriggers checks, in virtual time, that each of a million triggers of each rate is within 1 µs of
// the formula.
func TestMillionTriggers(t *testing.T) {
	const n = 1_000_000
	lasting := func(d time.Duration) v1alpha1.Duration {
		return v1alpha1.Duration{Duration: metav1.Duration{Duration: d}}
	}
	recorded := make(schedule.Trace, n)
	for i := range recorded {
		recorded[i] = time.Duration(i/3) * 7 * time.Microsecond
	}
	tests := []struct {
		name     string
		schedule schedule.Schedule
		want     func(k int) float64 // seconds after the barrier
	}{
		{"constant", schedule.Constant{Rate: 3000}, func(k int) float64 { return float64(k+1) / 3000 }},
		{"burst", schedule.Burst{Size: 1000, Interval: time.Second},
			func(k int) float64 { return float64(k/1000 + 1) }},
		{"ramp", schedule.Closed{Formula: &v1alpha1.RampRateSpec{Stages: []v1alpha1.RampStage{{Duration: lasting(1000 * time.Second), PerSecond: v1alpha1.NumberOrZero{Value: 2000}}}}},
			func(k int) float64 { return math.Sqrt(float64(k + 1)) }},
		{"up and down", schedule.Closed{Formula: &v1alpha1.ConstantIncreaseDecreaseRateSpec{IncInterval: lasting(time.Millisecond), DecInterval: lasting(2 * time.Millisecond), Max: 100}},
			func(k int) float64 {
				return float64(k/200)*0.3 + 0.001*min(float64(k%200+1), 100) + 0.002*max(0, float64(k%200-99))
			}},
		{"trace", recorded, func(k int) float64 { return float64(k/3) * 7e-6 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				touch := plan.Action{Name: "touch", Kind: op.Modify, Rate: "r", Count: 1, Timeout: time.Hour,
					Target: &plan.Target{Kind: engine.VolumeObject, Action: "v", Select: plan.SelectOldest}}
				p := plan.Plan{Grace: time.Second, Actions: []plan.Action{touch},
					Rates: []plan.Rate{{Name: "r", Schedule: tt.schedule, Limit: n}}}
				d := &dates{clock: op.NewClock()}
				res := Run(t.Context(), t.Context(),
					Config{Plan: &p, Engine: &script{took: took(0)}, Clock: d.clock, Record: d, Observer: quiet{}})
				if len(d.due) != n || res.Rates[0].Triggers != n {
					t.Fatalf("%d ops, %+v", len(d.due), res.Rates[0])
				}
				for k := range n {
					want := res.BarrierAt + op.Time(math.Round(tt.want(k)*1e9))
					if off := max(d.due[k]-want, want-d.due[k], d.came[k]-want); off > op.Time(time.Microsecond) {
						t.Fatalf("trigger %d intended %v, came %v, want %v", k, d.due[k], d.came[k], want)
					}
				}
			})
		})
	}
}
