package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/stats/search"
	"github.com/cnsbench/cnsbench/test/clienttest"
	"github.com/cnsbench/cnsbench/test/loadtest"
)

// queueing is a store that deals with so many requests at a time, each for as
// long as takes says, in virtual time.
type queueing struct {
	clock op.Clock
	slots chan struct{}
	takes func() time.Duration
	fails func() bool

	mu sync.Mutex // of fails
}

func (q *queueing) do(_ *client.Request, res *client.Result, aborted <-chan struct{}) {
	*res = client.Result{Started: q.clock.Now(), First: op.Never, Status: 200, Attempts: 1}
	select {
	case q.slots <- struct{}{}:
		time.Sleep(q.takes())
		<-q.slots
		res.First = q.clock.Now()
	case <-aborted:
		res.Status, res.Failure = 0, "aborted"
	}
	if res.Ended = q.clock.Now(); q.fails != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.fails() {
			res.Status = 503
		}
	}
}

type deaf struct{}

func (deaf) StageBegan(*model.Stage, op.Time)                            {}
func (deaf) Second(string, *model.Work, op.Time, op.Time, loadgen.Cells) {}

func reading(workers int, r schedule.Schedule) *model.Workload {
	return &model.Workload{Stages: []model.Stage{{Name: "before", Works: []model.Work{{Kind: model.Delay}}},
		{Name: "main", Works: []model.Work{{
			Name: "main", Kind: model.Normal, Workers: workers, Interval: 5 * time.Second, Rate: r, TotalOps: 10,
			MaxFailures: 0,
			Ops: []model.Op{{Type: model.Read, Name: "read", Weight: 100,
				Containers: selector.Spec{Kind: selector.Constant, Low: 1, High: 1},
				Objects:    selector.Spec{Kind: selector.Uniform, Low: 1, High: 9}}}}}}}}
}

// find searches q for the highest rate at which a condition holds.
func find(t *testing.T, q *queueing, condition string, w *model.Workload, s search.Search, window time.Duration) (*Maximum,
	*loadgen.Result) {
	t.Helper()
	stage, err := Target(w, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(condition, stage)
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	f := &Finder{Condition: c, Search: s, Window: window, WarmUp: time.Second, Tell: func(string) {},
		Ended: func(*loadgen.StageResult) { ended++ }}
	if err := f.Check(w); err != nil {
		t.Fatal(err)
	}
	q.clock = op.NewClock()
	runner := loadgen.NewRunner(loadgen.Config{Workload: w, Open: func(*model.Store) (client.Store,
		error) {
		return clienttest.Func(q.do), nil
	}, Clock: q.clock, Sleep: clienttest.Sleep,
		Seed: 1, Grace: 5 * time.Second, Observer: deaf{}})
	carry := func(ctx, hard context.Context, s *model.Stage) *loadgen.StageResult {
		r := runner.Stage(ctx, hard, s)
		r.Usage = loadgen.Usage{} // real, where time is not
		return r
	}
	r := loadgen.Sequence(t.Context(), t.Context(), w, f.Around(carry), func(*loadgen.StageResult) { ended++ })
	if m := f.Result(); m == nil || ended != len(m.Steps)+1 {
		t.Fatalf("%v: %d stages ended", m, ended)
	}
	return f.Result(), r
}

// The capacity of a server with c places and a known time of service is found,
// at even arrivals exactly; at Poisson's, the rate that a simulated queue has it at.
func TestFindsTheCapacity(t *testing.T) {
	const places, service = 4, 10 * time.Millisecond
	always := func() time.Duration { return service }
	tests := []struct {
		name      string
		condition string
		rate      schedule.Schedule
		truth     float64
	}{
		{"even", "p99(read) < 40ms", schedule.Constant{Rate: 1}, 400},
		{"Poisson", "p99(read) < 20ms", nil, poissonLimit(places, service, 0.99, 20*time.Millisecond)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, r := find(t, &queueing{slots: make(chan struct{}, places), takes: always}, tt.condition,
					reading(500, tt.rate), search.Search{From: 50, Least: 1, Most: 1e5, Resolution: 0.02}, time.Minute)
				if r.Err != nil || m.Verdict != search.Found || math.Abs(*m.PerSecond/tt.truth-1) > 0.05 ||
					*m.Resolution > 0.02 {
					t.Fatalf("%v, want %.4g a second; %v", m, tt.truth, r.Err)
				}
				if m.Bound != loadgen.ServerBound {
					t.Errorf("%s: %s, want %s", m.Bound, m.Evidence, loadgen.ServerBound)
				}
				for _, s := range m.Steps {
					if math.Abs(s.Offered/s.PerSecond-1) > 0.05 || s.Stage == "" || s.Window < time.Minute {
						t.Errorf("%+v: the step is not what was asked for", s)
					}
				}
				t.Log(m)
			})
		})
	}
}

// poissonLimit bisects, by a simulated queue, the rate at which a quantile of the
// response reaches a limit.
func poissonLimit(places int, service time.Duration, q float64, limit time.Duration) float64 {
	low, high := 0.0, float64(places)/service.Seconds()
	for range 20 {
		middle := (low + high) / 2
		rng := rand.New(rand.NewPCG(7, 7))
		free := make([]float64, places)
		now, late, n := 0.0, 0, 150_000
		for range n {
			now += rng.ExpFloat64() / middle
			k := 0
			for i := range free {
				if free[i] < free[k] {
					k = i
				}
			}
			free[k] = max(now, free[k]) + service.Seconds()
			if free[k]-now >= limit.Seconds() {
				late++
			}
		}
		if float64(late)/float64(n) <= 1-q {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// says is what a search came to.
func says(m *Maximum) string {
	rate := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	return fmt.Sprintf("%s: up to %g, above %g; %s %s", m.Verdict, rate(m.PerSecond), rate(m.Above), m.Evidence,
		m.Message)
}

func TestHowASearchEnds(t *testing.T) {
	quick := func() time.Duration { return time.Millisecond }
	rng := rand.New(rand.NewPCG(3, 3))
	tests := []struct {
		name      string
		q         *queueing
		condition string
		workers   int
		search    search.Search
		verdict   search.Verdict
		bound     loadgen.Bound
		says      string
	}{
		{"never", &queueing{slots: make(chan struct{}, 100),
			takes: func() time.Duration { return 30 * time.Millisecond }}, "p99(read) < 20ms", 100,
			search.Search{From: 100, Least: 30, Most: 1e5, Resolution: 0.05}, search.Never, loadgen.ServerBound,
			"never: up to 0, above 30"},
		{"always", &queueing{slots: make(chan struct{}, 100), takes: quick}, "p99(read) < 20ms", 100,
			search.Search{From: 100, Least: 30, Most: 900, Resolution: 0.05}, search.Always, "",
			"always: up to 900, above 0"},
		{"for want of workers", &queueing{slots: make(chan struct{}, 1000),
			takes: func() time.Duration { return 10 * time.Millisecond }}, "p99(read) < 20ms", 3,
			search.Search{From: 50, Least: 1, Most: 1e5, Resolution: 0.05}, search.Found, WorkerBound,
			"waited for one of 3 workers"},
		{"failures are not in time", &queueing{slots: make(chan struct{}, 1000), takes: quick,
			fails: func() bool { return rng.IntN(20) == 0 }}, "p99(read) < 20ms", 50,
			search.Search{From: 100, Least: 50, Most: 1e5, Resolution: 0.05}, search.Never, loadgen.ServerBound,
			"never: up to 0, above 50"},
		{"too few to tell", &queueing{slots: make(chan struct{}, 10), takes: quick}, "p99(read.connect) < 20ms", 10,
			search.Search{From: 20, Least: 20, Most: 30, Resolution: 0.05}, search.Undecided, "", "needs n ≥ 299"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, r := find(t, tt.q, tt.condition, reading(tt.workers, nil), tt.search, 5*time.Second)
				if r.Err != nil || m.Verdict != tt.verdict || m.Bound != tt.bound ||
					!strings.Contains(says(m), tt.says) {
					t.Errorf("%s, %q: %v; %v; want %s, %q and %q", m.Verdict, m.Bound, m, r.Err, tt.verdict, tt.bound,
						tt.says)
				}
			})
		})
	}
}

// What no window could tell is not tried: the least rate is raised, or refused
// where it was asked for.
func TestRatesThatCannotTell(t *testing.T) {
	for _, tt := range []struct {
		name        string
		condition   string
		window      time.Duration
		from, least float64
		most        float64
		given       bool
		want        search.Search // rates
		says        string
	}{
		{"the default is raised", "p99(read) < 20ms", time.Second, 50, 1, 1e6, false, search.Search{From: 74.5, Least: 74.5},
			""},
		{"and not the first rate", "p99(read) < 20ms", time.Second, 500, 1, 1e6, false,
			search.Search{From: 500, Least: 74.5}, ""},
		{"it was asked for", "p99(read) < 20ms", time.Second, 50, 25, 1e6, true, search.Search{},
			"at 25 a second a step has too few of read to tell: in the longest window, 10s, 125 are expected, and " +
				"the condition takes 373; give --find-least 74.5 or more, or --window 3s"},
		{"it can be", "p99(read) < 20ms", 3 * time.Second, 50, 25, 1e6, true, search.Search{From: 50, Least: 25}, ""},
		{"none can", "p99(read) < 20ms", time.Second, 10, 1, 20, false, search.Search{},
			"give --find-most 74.5 or more, or --window 3.8s"},
		{"no quantile", "mean(read) < 20ms", time.Second, 10, 1, 20, true, search.Search{From: 10, Least: 1}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := reading(1, nil)
			main := &w.Stages[1].Works[0]
			main.Ops = append(main.Ops, main.Ops[0])
			main.Ops[0].Weight, main.Ops[1].Weight, main.Ops[1].Name = 50, 50, "other"
			c, err := Compile(tt.condition, &w.Stages[1])
			if err != nil {
				t.Fatal(err)
			}
			f := &Finder{Condition: c, Window: tt.window, LeastGiven: tt.given,
				Search: search.Search{From: tt.from, Least: tt.least, Most: tt.most, Resolution: 0.05}}
			err = f.Check(w)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v, want %s", err, tt.says)
				}
				return
			}
			if err != nil || f.Search.From != tt.want.From || f.Search.Least != tt.want.Least {
				t.Errorf("from %g, least %g, %v; want %g and %g", f.Search.From, f.Search.Least, err, tt.want.From,
					tt.want.Least)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	stage := &reading(1, nil).Stages[1]
	for _, good := range []string{"p99(read) < 20ms", "p99(read)<1.5s && rate(read) > 100.0",
		`mean(read.service) < duration("3ms")`, "quantile(read, 0.75) <= 20ms && errors(read) == 0",
		"p50(read.firstByte) < 900us"} {
		if _, err := Compile(good, stage); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"p99(write) < 20ms":                    `operation "write" not found; there are read`,
		"p99(read) < 20":                       "does not go with duration and number",
		"p99(read) <":                          "column 12",
		"p50(read) < 20ms && p99(raed) < 20ms": "column 25",
		"20ms":                                 "not a boolean",
		"p99(read, during(\"snapshots\")) < 20ms": `operation "snapshots" not found`,
		"p99(1) < 20ms":                      "an operation is wanted here, such as read, read.service",
		"p99(read, during(\"read\")) < 20ms": "need control operations",
		"iops(read.firstByte) > 3.0":         "rate(read)",
		"p99(read.ready) < 20ms":             `no metric "ready"`,
		"":                                   "unexpected end: want a value",
	} {
		if _, err := Compile(bad, stage); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
}

// What special works of the stage do under the same name is not judged, nor known
// to a condition where no normal one does it.
func TestConditionIsOfTheNormalWork(t *testing.T) {
	stage := reading(1, nil).Stages[1]
	before := stage.Works[0]
	before.Name, before.Kind = "before", model.Prepare
	before.Ops = []model.Op{{Type: model.Read, Name: "read"}, {Type: model.Write, Name: "write"}}
	stage.Works = []model.Work{before, stage.Works[0]}
	if _, err := Compile("p50(write) < 20ms", &stage); err == nil {
		t.Error("a condition about what is only prepared was taken")
	}
	c, err := Compile("p50(read) < 20ms && count(read) == 100", &stage)
	if err != nil {
		t.Fatal(err)
	}
	took := func(w *model.Work, d time.Duration) loadgen.WorkResult {
		cell := loadtest.NewCell()
		cell.N = 100
		if err := cell.Response.RecordN(int64(d), 100); err != nil {
			t.Fatal(err)
		}
		return loadgen.WorkResult{Work: w, From: 0, To: 1e9, Cells: loadgen.Cells{{Label: "200", OK: true}: cell}}
	}
	r := &loadgen.StageResult{Works: []loadgen.WorkResult{took(&stage.Works[0], time.Second),
		took(&stage.Works[1], time.Millisecond)}}
	if v, err := c.Judge(r); err != nil || v.Status != expr.Pass {
		t.Errorf("%+v, %v", v, err)
	}
}

// Steps keep the kind of arrivals that the work has, at another rate: bursts stay
// as large, and a window has whole ones.
func TestStepsKeepTheirArrivals(t *testing.T) {
	for _, tt := range []struct {
		is   schedule.Schedule
		want string
	}{{schedule.Constant{Interval: time.Second}, "constant(16)"}, {schedule.Poisson{Rate: 3}, "poisson(16)"},
		{nil, "poisson(16)"}, {schedule.Burst{Size: 40, Interval: time.Second}, "burst(40,2.5s)"}} {
		s, text := atRate(tt.is, 16)
		again, err := cosbench.ParseRate(text)
		if err != nil || text != tt.want || s.PerSecond() != 16 || again != s {
			t.Errorf("%v became %s, %v, %g a second: %v", tt.is, text, s, s.PerSecond(), err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		// Of a burst of 20 the last waits for four before it on one of 4 places.
		q := &queueing{slots: make(chan struct{}, 4), takes: func() time.Duration { return 10 * time.Millisecond }}
		m, r := find(t, q, "p99(read) < 60ms", reading(500, schedule.Burst{Size: 20, Interval: time.Second}),
			search.Search{From: 50, Least: 0.01, Most: 1e5, Resolution: 0.02}, 10*time.Second)
		if r.Err != nil || m.Verdict != search.Found || math.Abs(*m.PerSecond/400-1) > 0.03 {
			t.Fatalf("%v, want 400 a second; %v", m, r.Err)
		}
		for _, s := range m.Steps {
			if math.Abs(s.Offered/s.PerSecond-1) > 0.001 {
				t.Errorf("%s offered %g a second, not %g", s.Stage, s.Offered, s.PerSecond)
			}
		}
	})
}

func TestTarget(t *testing.T) {
	w := reading(1, nil)
	two := *w
	two.Stages = append(two.Stages, w.Stages[1])
	two.Stages[2].Name = "again"
	if s, err := Target(&two, "again"); err != nil || s.Name != "again" {
		t.Errorf("%v, %v", s, err)
	}
	for _, tt := range []struct {
		w    *model.Workload
		name string
		want string
	}{{&two, "", "choose one"}, {w, "nope", "unknown stage"}, {w, "before", "no work of type normal"},
		{&model.Workload{}, "", "no stage has"}} {
		if _, err := Target(tt.w, tt.name); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add("p99(read) < 20ms")
	f.Add(`p50(read["a 5ms"]) < 1h && "3s`)
	stage := &reading(1, nil).Stages[1]
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := Compile(text, stage); err == nil && c.Text != text {
			t.Errorf("%q became %q", text, c.Text)
		}
	})
}

// TestWhyEnded checks that an interrupt is named before what it caused.
func TestWhyEnded(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	broken, fail := context.WithCancelCause(t.Context())
	fail(errors.New("the disk is full"))
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{ended, nil, "the run was asked to end"},
		{ended, fmt.Errorf("stage: %w", context.Canceled), "the run was asked to end"},
		{ended, errors.New("refused"), "the run was asked to end; refused"},
		{t.Context(), errors.New("refused"), "refused"},
		{broken, nil, "the disk is full"},
	} {
		if got := whyEnded(tt.ctx, tt.err); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
