package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// script is an engine in virtual time: the function took determines the duration and the error of each op.
type script struct {
	took func(r engine.Request) (time.Duration, error)
	sink engine.Sink

	mu       sync.Mutex
	released map[string]op.Time
	stopped  []string
	torn     int
	openErr  error
	life     time.Duration // of a workload instance after its release; 0: infinite
	exit     op.ContainerEnd
}

func (s *script) Capabilities() engine.Capabilities { return engine.Capabilities{Engine: "script"} }
func (s *script) Open(_ context.Context, c engine.Session) error {
	s.sink, s.released = c.Sink, map[string]op.Time{}
	return s.openErr
}

func (s *script) Do(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	tr.Attempt()
	d, err := s.took(r)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	switch {
	case r.Workload != nil:
		return []engine.Object{
			{Kind: engine.WorkloadObject, Name: r.Name, Action: r.Action},
			{Kind: engine.VolumeObject, Name: r.Name + "-data", Action: r.Action, Owner: r.Name},
		}, nil
	case r.Volume != nil:
		return []engine.Object{{Kind: engine.VolumeObject, Name: r.Name, Action: r.Action}}, nil
	}
	return nil, nil
}

func (s *script) Release(_ context.Context, _ string, names []string, at op.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		s.released[n] = at
		if s.life > 0 {
			end := op.InstanceEnd{Instance: n, OK: s.exit.ExitCode == 0, Containers: []op.ContainerEnd{s.exit}}
			time.AfterFunc(s.life, func() { s.sink.Ended(end) })
		}
	}
	return nil
}

func (s *script) Stop(_ context.Context, names []string, _ time.Duration) error {
	s.stopped = append(s.stopped, names...)
	return nil
}
func (s *script) Teardown(context.Context, engine.Ledger) error { s.torn++; return nil }
func (s *script) Environment(context.Context) (map[string]any, error) {
	return nil, nil
}
func (s *script) Close() error { return nil }

// memory is a recorder that keeps the ops.
type memory struct {
	mu  sync.Mutex
	ops []op.Op
}

func (m *memory) Op(o op.Op) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ops = append(m.ops, o)
}
func (m *memory) Started(op.InstanceStart)                 {}
func (m *memory) Ended(op.InstanceEnd)                     {}
func (m *memory) Sample(op.Sample)                         {}
func (m *memory) Machine(op.Machine)                       {}
func (m *memory) Canary(string, string, []op.CanaryIO)     {}
func (m *memory) Query(op.QueryReading)                    {}
func (m *memory) Volume(op.VolumeReading)                  {}
func (m *memory) Raw(string, string, string, []byte) error { return nil }
func (m *memory) Histogram(bundle.HistogramSlice)          {}
func (m *memory) Series(bundle.Series)                     {}
func (m *memory) Scalar(bundle.Scalar)                     {}
func (m *memory) Flush() error                             { return nil }
func (m *memory) Log(op.Time, string, string)              {}
func (m *memory) of(action string) (list []op.Op) {
	for _, o := range m.ops {
		if o.Action == action {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b op.Op) int { return int(a.ID - b.ID) })
	return list
}
func (m *memory) outcomes(action string) map[op.Outcome]int {
	n := map[op.Outcome]int{}
	for _, o := range m.of(action) {
		n[o.Outcome]++
	}
	return n
}

type quiet struct{}

func (quiet) Phase(Phase)        {}
func (quiet) OpEnded(*op.Op)     {}
func (quiet) Log(string, string) {}

func makes(name, rateName string, count int) plan.Action {
	return plan.Action{Name: name, Kind: op.Create, Rate: rateName, Count: count, Timeout: time.Minute,
		Volume: &plan.Volume{Action: name}}
}

func runs(name string, count int) plan.Action {
	return plan.Action{Name: name, Kind: op.Create, Count: count, Timeout: time.Minute,
		Workload: &plan.Workload{SyncGroup: "main", Params: []workload.Params{{Action: name, Count: count}},
			Template: &workload.Entry{Name: "pod", Parts: []workload.Part{{Key: "pod.yaml", Text: podManifest}}}}}
}

const podManifest = `apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, command: [sleep, "1"]}]}
`

func snaps(name, rateName, of string) plan.Action {
	return plan.Action{Name: name, Kind: op.Snapshot, Rate: rateName, Count: 1, Timeout: time.Minute,
		Target:   &plan.Target{Kind: engine.VolumeObject, Action: of, Select: plan.SelectAll},
		Snapshot: &plan.SnapshotSpec{}}
}

func every(d time.Duration) plan.Rate {
	return plan.Rate{Name: "r", Schedule: schedule.Constant{Interval: d}}
}

func took(d time.Duration) func(engine.Request) (time.Duration, error) {
	return func(engine.Request) (time.Duration, error) { return d, nil }
}

// carry runs a plan on a script in virtual time.
func carry(ctx, hard context.Context, p plan.Plan, e *script) (*memory, Result) {
	m := &memory{}
	if p.Grace == 0 {
		p.Grace = 30 * time.Second
	}
	return m, Run(ctx, hard, Config{Plan: &p, Engine: e, Clock: op.NewClock(), Record: m, Observer: quiet{}})
}

// TestSlowOpsDoNotDelayTriggers checks that an open loop starts ops on time when earlier ops have not ended.
func TestSlowOpsDoNotDelayTriggers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan.Plan{Runtime: 10 * time.Second, Actions: []plan.Action{makes("v", "r", 1)},
			Rates: []plan.Rate{every(time.Second)}}
		m, res := carry(t.Context(), t.Context(), p, &script{took: took(3500 * time.Millisecond)})
		ops := m.of("v")
		if len(ops) < 9 {
			t.Fatalf("%d ops, want at least 9", len(ops))
		}
		for i, o := range ops {
			if want := res.BarrierAt + op.Time(i+1)*op.Time(time.Second); o.Intended != want || o.Started != want {
				t.Errorf("op %d intended %d started %d, want both %d", i, o.Intended, o.Started, want)
			}
			if d, _ := o.Response(); d != int64(3500*time.Millisecond) {
				t.Errorf("op %d response %d", i, d)
			}
		}
		if res.State != bundle.Complete {
			t.Errorf("state %s: %s", res.State, res.Reason)
		}
	})
}

// TestSaturation checks that a rate at maxInFlight drops or queues ops, and that a wait in the queue is not
// lateness.
func TestSaturation(t *testing.T) {
	tests := []struct {
		name    string
		queue   bool
		want    map[op.Outcome]int
		lastLag time.Duration // response time of the last op that started
	}{
		// One in flight, 1.9 s each, a trigger each second to 10 s.
		{"drop", false, map[op.Outcome]int{op.OK: 5, op.Dropped: 5}, 1900 * time.Millisecond},
		{"queue", true, map[op.Outcome]int{op.OK: 10}, 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := every(time.Second)
				r.MaxInFlight, r.Queue, r.Limit = 1, tt.queue, 10
				p := plan.Plan{Actions: []plan.Action{makes("v", "r", 1)}, Rates: []plan.Rate{r}}
				m, res := carry(t.Context(), t.Context(), p, &script{took: took(1900 * time.Millisecond)})
				got := m.outcomes("v")
				for o, n := range tt.want {
					if got[o] != n {
						t.Errorf("%s: %d, want %d", o, got[o], n)
					}
				}
				var last int64
				for _, o := range m.of("v") {
					if o.Outcome == op.OK {
						last, _ = o.Response()
					}
					if late, ok := o.Lateness(); ok && late != 0 {
						t.Errorf("op %d: the wait for a place is taken for lateness of ours: %v", o.Instance,
							time.Duration(late))
					}
					if waited := strings.Contains(o.Message,
						"waited for a place: maxInFlight is 1"); waited != (o.Started > o.Intended) &&
						o.Outcome == op.OK {
						t.Errorf("op %d: started %v after it was due, message %q", o.Instance,
							time.Duration(o.Started-o.Intended), o.Message)
					}
				}
				if last != int64(tt.lastLag) {
					t.Errorf("response of the last op %v, want %v", time.Duration(last), tt.lastLag)
				}
				c := res.Rates[0]
				if c.Triggers != 10 || c.Started+c.Dropped != 10 {
					t.Errorf("count %+v", c)
				}
			})
		})
	}
}

// TestClosedLoopKeepsN checks the ops in flight and the throughput of a closed loop.
func TestClosedLoopKeepsN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan.Plan{Runtime: 10 * time.Second, Actions: []plan.Action{makes("v", "r", 1)},
			Rates: []plan.Rate{{Name: "r", Parallelism: 7}}}
		m, _ := carry(t.Context(), t.Context(), p, &script{took: func(r engine.Request) (time.Duration, error) {
			return time.Duration(100+r.Instance%13) * time.Millisecond, nil
		}})
		type edge struct {
			at op.Time
			d  int
		}
		var edges []edge
		for _, o := range m.of("v") {
			edges = append(edges, edge{o.Started, 1}, edge{o.Ended, -1})
		}
		slices.SortFunc(edges, func(a, b edge) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.d - b.d
		})
		inFlight, peak := 0, 0
		for _, e := range edges {
			inFlight += e.d
			peak = max(peak, inFlight)
		}
		if peak != 7 {
			t.Errorf("peak %d in flight, want 7", peak)
		}
		// 7 slots for 10 s at a mean of 106 ms an op.
		if n := len(edges) / 2; n < 640 || n > 700 {
			t.Errorf("%d ops, want about 660", n)
		}
	})
}

// TestBarrierOpensForAllAtOnce checks that the barrier opens when the slowest instance is ready, at the same
// time for all instances, and that the rates start then.
func TestBarrierOpensForAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &script{life: 20 * time.Second, took: func(r engine.Request) (time.Duration, error) {
			return time.Duration(r.Instance+1) * time.Second, nil
		}}
		p := plan.Plan{Actions: []plan.Action{runs("fio", 3), snaps("snap", "r", "fio")},
			Rates: []plan.Rate{every(5 * time.Second)}}
		m, res := carry(t.Context(), t.Context(), p, e)
		if res.BarrierAt < op.Time(3*time.Second) {
			t.Errorf("the barrier opened at %d, before the slowest instance was ready", res.BarrierAt)
		}
		for n, at := range e.released {
			if at != res.BarrierAt {
				t.Errorf("%s released at %d, barrier %d", n, at, res.BarrierAt)
			}
		}
		snapshots := m.of("snap")
		if len(snapshots) == 0 || snapshots[0].Intended != res.BarrierAt+op.Time(5*time.Second) {
			t.Fatalf("snapshots %v, want the first 5 s after the barrier", snapshots)
		}
		if len(snapshots)%3 != 0 {
			t.Errorf("%d snapshots, want three a trigger", len(snapshots))
		}
		if res.State != bundle.Complete {
			t.Errorf("%s: %s", res.State, res.Reason)
		}
	})
}

// TestEnds checks the state, the outcomes and the duration of runs that end in different ways.
func TestEnds(t *testing.T) {
	boom := &engine.Error{Code: "Internal", Message: "boom"}
	tests := []struct {
		name   string
		plan   plan.Plan
		engine *script
		cancel time.Duration // when the soft context is cancelled
		kill   time.Duration // when the hard context is cancelled
		state  bundle.State
		want   map[op.Outcome]int
		within time.Duration
	}{
		{name: "set-up fails", plan: plan.Plan{Actions: []plan.Action{makes("v", "", 2)}},
			engine: &script{took: func(engine.Request) (time.Duration, error) { return time.Second, boom }},
			state:  bundle.Failed, want: map[op.Outcome]int{op.Error: 2}, within: 2 * time.Second},
		{name: "engine does not open", plan: plan.Plan{Actions: []plan.Action{makes("v", "", 1)}},
			engine: &script{openErr: errors.New("no driver")}, state: bundle.Failed, within: time.Second},
		{name: "op times out", plan: plan.Plan{Actions: []plan.Action{makes("v", "r", 1)},
			Rates: []plan.Rate{{Name: "r", Schedule: schedule.Constant{Interval: time.Second}, Limit: 1}}},
			engine: &script{took: took(time.Hour)}, state: bundle.Complete, want: map[op.Outcome]int{op.Timeout: 1}, within: 2 * time.Minute},
		{name: "interrupt keeps the grace", plan: plan.Plan{Actions: []plan.Action{makes("v", "r", 1)},
			Rates: []plan.Rate{every(time.Second)}},
			engine: &script{took: took(10 * time.Second)}, cancel: 3500 * time.Millisecond,
			state: bundle.Interrupted, want: map[op.Outcome]int{op.OK: 3}, within: 14 * time.Second},
		{name: "grace ends", plan: plan.Plan{Actions: []plan.Action{makes("v", "r", 1)},
			Rates: []plan.Rate{every(time.Second)}, Grace: 2 * time.Second},
			engine: &script{took: took(50 * time.Second)}, cancel: 3500 * time.Millisecond,
			state: bundle.Interrupted, want: map[op.Outcome]int{op.Censored: 3}, within: 6 * time.Second},
		{name: "second interrupt", plan: plan.Plan{Actions: []plan.Action{makes("v", "r", 1)},
			Rates: []plan.Rate{every(time.Second)}},
			engine: &script{took: took(50 * time.Second)}, cancel: 3500 * time.Millisecond, kill: 4 * time.Second,
			state: bundle.Interrupted, want: map[op.Outcome]int{op.Censored: 3}, within: 5 * time.Second},
		{name: "closed loop at the grace", plan: plan.Plan{Runtime: 5 * time.Second,
			Actions: []plan.Action{makes("v", "r", 1)}, Rates: []plan.Rate{{Name: "r",
				Parallelism: 2}}, Grace: time.Second},
			engine: &script{took: took(20 * time.Second)}, state: bundle.Complete, want: map[op.Outcome]int{op.Censored: 2}, within: 7 * time.Second},
		{name: "workload fails", plan: plan.Plan{Actions: []plan.Action{runs("fio", 1)}},
			engine: &script{took: took(0), life: time.Second, exit: op.ContainerEnd{Name: "fio", ExitCode: 3}},
			state:  bundle.Failed, want: map[op.Outcome]int{}, within: 3 * time.Second},
		{name: "no target", plan: plan.Plan{Actions: []plan.Action{snaps("v", "r", "x")},
			Rates: []plan.Rate{{Name: "r", Schedule: schedule.Constant{Interval: time.Second}, Limit: 4}}},
			engine: &script{took: took(0)}, state: bundle.Complete, want: map[op.Outcome]int{op.Dropped: 4}, within: 5 * time.Second},
		{name: "queue at the end", plan: plan.Plan{Runtime: 3500 * time.Millisecond,
			Actions: []plan.Action{makes("v", "r", 1)}, Rates: []plan.Rate{{Name: "r",
				Schedule: schedule.Constant{Interval: time.Second}, Limit: 3, MaxInFlight: 1, Queue: true}}},
			engine: &script{took: took(20 * time.Second)}, state: bundle.Complete, want: map[op.Outcome]int{op.OK: 1,
				op.Dropped: 2}, within: 25 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				hard, kill := context.WithCancel(t.Context())
				defer kill()
				defer cancel(nil)
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, func() { cancel(ErrInterrupted) })
				}
				if tt.kill > 0 {
					time.AfterFunc(tt.kill, kill)
				}
				m, res := carry(ctx, hard, tt.plan, tt.engine)
				if res.State != tt.state {
					t.Errorf("state %s (%s), want %s", res.State, res.Reason, tt.state)
				}
				if tt.state != bundle.Complete && res.Reason == "" {
					t.Error("no reason")
				}
				got := m.outcomes("v")
				if len(got) != len(tt.want) {
					t.Errorf("outcomes %v, want %v", got, tt.want)
				}
				for o, n := range tt.want {
					if got[o] != n {
						t.Errorf("outcomes %v, want %v", got, tt.want)
					}
				}
				if res.EndedAt > op.Time(tt.within) {
					t.Errorf("ended after %v, want within %v", time.Duration(res.EndedAt), tt.within)
				}
				if tt.engine.torn != 1 {
					t.Errorf("torn down %d times", tt.engine.torn)
				}
			})
		})
	}
}
