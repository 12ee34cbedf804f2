package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// metered is an engine in virtual time whose workload writes at a rate that is a function of the time since the
// barrier, and is sampled each 250 ms.
type metered struct {
	*script
	clock    op.Clock
	perSec   func(at time.Duration) int64
	sampled  func(at time.Duration) bool // whether there is a sample
	stopFeed context.CancelFunc
}

func (m *metered) Release(ctx context.Context, group string, names []string, at op.Time) error {
	m.sink.Started(op.InstanceStart{Instance: names[0], At: at})
	ctx, m.stopFeed = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		var total int64
		for k := time.Duration(0); ; k += 10 * time.Millisecond {
			if !TimerSleep(ctx, m.clock.At(at+op.Time(k))) {
				return
			}
			if k%(250*time.Millisecond) == 0 && (m.sampled == nil || m.sampled(k)) {
				m.sink.Sample(op.Sample{Instance: names[0], At: at + op.Time(k), WriteBytes: total})
			}
			total += m.perSec(k) / 100
		}
	}()
	return m.script.Release(ctx, group, names, at)
}

func (m *metered) Stop(ctx context.Context, names []string, grace time.Duration) error {
	m.stopFeed()
	return m.script.Stop(ctx, names, grace)
}

// growth runs a workload with a trigger on its throughput for a time.
func growth(t *testing.T, runtime time.Duration, m *metered, c plan.Condition,
	change func(*plan.Rate)) (Result, *memory) {
	t.Helper()
	m.script, m.clock = &script{took: took(20 * time.Millisecond)}, op.NewClock()
	rate := plan.Rate{Name: "grow", Condition: &c}
	if change != nil {
		change(&rate)
	}
	p := plan.Plan{Runtime: runtime, Grace: time.Second, Rates: []plan.Rate{rate}, Actions: []plan.Action{
		runs("w", 1), makes("v", "grow", 2)}}
	live, err := slo.NewLive([]slo.LiveCondition{{Rate: "grow", When: c.When, Reset: c.Reset, Interval: c.Interval}})
	if err != nil {
		t.Fatal(err)
	}
	m.script.life = time.Hour
	record := &memory{}
	return Run(t.Context(), t.Context(), Config{Plan: &p, Engine: m, Clock: m.clock, Record: record, Observer: quiet{},
		Live: live}), record
}

// TestTriggerByCondition checks that a trigger comes within one interval and 50 ms of the truth, that its ops are
// recorded with their cause, and that hysteresis, cooldown and limit hold.
func TestTriggerByCondition(t *testing.T) {
	const s = time.Second
	busy := func(spans ...time.Duration) func(time.Duration) int64 {
		return func(at time.Duration) int64 {
			for i := 0; i < len(spans); i += 2 {
				if at >= spans[i] && at < spans[i+1] {
					return 4_000_000
				}
			}
			return 500_000
		}
	}
	when := plan.Condition{When: `throughput(w.write) > 2000000`, Interval: s}
	for _, tt := range []struct {
		name    string
		load    func(time.Duration) int64
		sampled func(time.Duration) bool
		with    func(*plan.Condition)
		rate    func(*plan.Rate)
		truth   []time.Duration // each is followed by a trigger within 1.05 s
		flags   []string
	}{
		{name: "one crossing", load: busy(5130*time.Millisecond, 9*s), truth: []time.Duration{5130 * time.Millisecond}},
		{name: "two crossings", load: busy(3*s, 5*s, 9*s, 11*s), truth: []time.Duration{3 * s, 9 * s}},
		{name: "never", load: busy(), flags: []string{"info triggerNotFired"}},
		{name: "cooldown", load: busy(3*s, 5*s, 9*s, 11*s), with: func(c *plan.Condition) { c.Cooldown = 30 * s },
			truth: []time.Duration{3 * s}},
		{name: "the cooldown ends while it holds", load: busy(3*s, 5*s, 9*s, 18*s),
			with:  func(c *plan.Condition) { c.Cooldown = 10 * s },
			truth: []time.Duration{3 * s, 12800 * time.Millisecond}},
		{name: "limit", load: busy(3*s, 5*s, 9*s, 11*s), rate: func(r *plan.Rate) { r.Limit = 1 },
			truth: []time.Duration{3 * s}},
		{name: "for", load: busy(3*s, 5*s, 9*s, 15*s), with: func(c *plan.Condition) { c.For = 3 * s },
			truth: []time.Duration{12 * s}},
		{name: "not below the reset", load: busy(3*s, 5*s, 9*s, 11*s),
			with: func(c *plan.Condition) { c.Reset = `throughput(w.write) < 100000` }, truth: []time.Duration{3 * s}},
		{name: "late start", load: busy(3*s, 8*s), rate: func(r *plan.Rate) { r.StartAfter = 6 * s },
			truth: []time.Duration{6 * s}},
		{name: "duration", load: busy(13*s, 18*s), rate: func(r *plan.Rate) { r.Duration = 6 * s },
			flags: []string{"info triggerNotFired"}},
		{name: "no samples of the crossing", load: busy(5*s, 9*s), sampled: func(at time.Duration) bool {
			return at < 4*s || at > 10*s
		}, flags: []string{"info triggerNotFired", "warning triggerDataMissing"}},
		{name: "no samples at all", load: busy(5*s, 9*s), sampled: func(time.Duration) bool { return false },
			flags: []string{"info triggerNotFired", "warning triggerDataMissing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := when
				if tt.with != nil {
					tt.with(&c)
				}
				got, record := growth(t, 20*s, &metered{perSec: tt.load, sampled: tt.sampled}, c, tt.rate)
				count := got.Rates[0]
				if got.State != bundle.Complete || count.Condition == nil || count.Triggers != int64(len(tt.truth)) ||
					len(count.Condition.Firings) != len(tt.truth) || len(record.of("v")) != 2*len(tt.truth) {
					t.Fatalf("%+v %s, %+v, %d ops, want %d triggers", got.State, got.Reason, count.Condition,
						len(record.of("v")), len(tt.truth))
				}
				for i, f := range count.Condition.Firings {
					at := got.BarrierAt + op.Time(tt.truth[i])
					if late := time.Duration(f.At - at); late < 0 || late > 1050*time.Millisecond || f.Since > f.At ||
						!strings.Contains(f.Observed, "throughput(w.write) = ") {
						t.Errorf("trigger %+v, %v after the truth", f, late)
					}
					for _, o := range record.of("v")[2*i : 2*i+2] {
						if o.Intended != f.At || o.Outcome != op.OK || !strings.Contains(o.Message, f.Observed) {
							t.Errorf("%+v of %+v", o, f)
						}
					}
				}
				var flags []string
				for _, f := range got.Flags {
					flags = append(flags, f.Severity+" "+f.Name)
				}
				if diff := cmp.Diff(tt.flags, flags); diff != "" {
					t.Errorf("flags: %s\n%+v", diff, got.Flags)
				}
			})
		})
	}
}

// TestTriggerByOps checks that ops of the run itself trigger: each failure of a snapshot makes a volume, once.
func TestTriggerByOps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		e := &script{took: func(r engine.Request) (time.Duration, error) {
			if n++; r.Action == "v" && (n == 5 || n == 12) {
				return 10 * time.Millisecond, &engine.Error{Code: "Broken", Message: "by the test"}
			}
			return 10 * time.Millisecond, nil
		}}
		rate := every(500 * time.Millisecond)
		c := plan.Condition{When: "errors(v) > 0", Interval: time.Second}
		p := plan.Plan{Runtime: 10 * time.Second, Grace: time.Second,
			Rates:   []plan.Rate{rate, {Name: "broken", Condition: &c}},
			Actions: []plan.Action{makes("v", "r", 1), makes("x", "broken", 1)}}
		live, err := slo.NewLive([]slo.LiveCondition{{Rate: "broken", When: c.When, Interval: c.Interval}})
		if err != nil {
			t.Fatal(err)
		}
		record := &memory{}
		got := Run(t.Context(), t.Context(), Config{Plan: &p, Engine: e, Clock: op.NewClock(), Record: record,
			Observer: quiet{}, Live: live})
		var failed []op.Time
		for _, o := range record.of("v") {
			if o.Outcome == op.Error {
				failed = append(failed, o.Ended)
			}
		}
		var due []op.Time
		for _, o := range record.of("x") {
			due = append(due, o.Intended)
		}
		if got.State != bundle.Complete || len(failed) != 2 || len(due) != 2 ||
			slices.ContainsFunc([]int{0, 1}, func(i int) bool {
				return due[i] < failed[i] || due[i]-failed[i] > op.Time(100*time.Millisecond)
			}) {
			t.Errorf("%s: failures at %v, triggers at %v", got.State, failed, due)
		}
		if stats := got.RateStats()[1]; stats.Condition == nil || len(stats.Condition.Firings) != 2 ||
			fmt.Sprint(stats.Condition.Firings[0].Since) != fmt.Sprint(failed[0]) {
			t.Errorf("%+v", stats.Condition)
		}
	})
}

// TestTriggerByQuery: a query triggers once for each time that its mean over the interval crosses the threshold, as of
// the answer by which it did. Answers without a value, and none at all, neither trigger nor reset.
func TestTriggerByQuery(t *testing.T) {
	const s, first = op.Time(time.Second), op.Time(37 * time.Millisecond)
	answer := func(at op.Time) op.QueryReading {
		r := op.QueryReading{Query: "q", At: at, Values: []op.QueryValue{{Value: 10}}}
		switch {
		case at < 5*s, at >= 12*s && at < 14*s: // below
			r.Values[0].Value = 0
		case at >= 8*s && at < 10*s:
			r.Values, r.Problem = nil, op.QueryNoData
		case at >= 14*s && at < 16*s:
			r.Values, r.Problem = nil, op.QueryMissed
		}
		return r
	}
	for _, tt := range []struct {
		long  time.Duration
		since []op.Time // the third answer above the threshold is the first with such a mean, or the first after a gap
	}{{0, []op.Time{5*s + 500*op.Time(time.Millisecond), 16 * s}}, {3 * time.Second, []op.Time{16 * s}}} {
		synctest.Test(t, func(t *testing.T) {
			c, clock := plan.Condition{When: "value(q) > 5", For: tt.long, Interval: time.Second}, op.NewClock()
			p := plan.Plan{Runtime: 20 * time.Second, Grace: time.Second,
				Rates: []plan.Rate{{Name: "above", Condition: &c}}, Actions: []plan.Action{makes("v", "above", 1)}}
			live, err := slo.NewLive([]slo.LiveCondition{{Rate: "above", When: c.When, Interval: c.Interval}})
			if err != nil {
				t.Fatal(err)
			}
			got := Run(t.Context(), t.Context(), Config{Plan: &p, Engine: &script{took: took(time.Millisecond)}, Clock: clock,
				Record: &memory{}, Observer: quiet{}, Live: live,
				Queries: func(ctx context.Context, keep func(op.QueryReading)) {
					for at := first; TimerSleep(ctx, clock.At(at)); at += op.Time(250 * time.Millisecond) {
						keep(answer(at))
					}
				}})
			seen := got.Rates[0].Condition
			var since []op.Time
			for _, f := range seen.Firings {
				since = append(since, f.Since-first)
				late := time.Duration(f.At-f.Since) - tt.long
				if late < 0 || late > 100*time.Millisecond || !strings.Contains(f.Observed, "value(q) = ") {
					t.Errorf("%v after the truth: %+v", late, f)
				}
			}
			if diff := cmp.Diff(tt.since, since); diff != "" {
				t.Errorf("since: %s", diff)
			}
			if len(got.Flags) != 1 || got.Flags[0].Name != "triggerDataMissing" ||
				!strings.Contains(got.Flags[0].Evidence, "query q: the server had no data") {
				t.Errorf("flags %+v", got.Flags)
			}
			if open := seen.Unknown; open < 30 || open > 35 { // of 2 s, and of 1.2 s
				t.Errorf("%d of %d evaluations are undecided", open, seen.Evaluations)
			}
		})
	}
}
