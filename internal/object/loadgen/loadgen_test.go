package loadgen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

// fake is a store whose answers take as long as takes says, in virtual time.
type fake struct {
	clock op.Clock
	takes func(r *client.Request, at op.Time) (time.Duration, func(*client.Result)) // nil func: 200
	delay time.Duration                                                             // before an operation begins

	mu   sync.Mutex
	seen map[string]int // "verb container/object"
}

func (f *fake) do(r *client.Request, res *client.Result, aborted <-chan struct{}) {
	time.Sleep(f.delay)
	now := f.clock.Now()
	*res = client.Result{Started: now, First: op.Never, Status: 200, Attempts: 1, Bytes: r.Size}
	f.mu.Lock()
	f.seen[fmt.Sprintf("%d %s/%s", r.Verb, r.Container, r.Object)]++
	f.mu.Unlock()
	d, change := f.takes(r, now)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-aborted:
		res.Status, res.Failure = 0, httpconn.Aborted
	}
	res.Ended = f.clock.Now()
	if res.First = res.Ended; change != nil && res.Failure == "" {
		change(res)
	}
}

// always takes d.
func always(d time.Duration) func(*client.Request, op.Time) (time.Duration, func(*client.Result)) {
	return func(*client.Request, op.Time) (time.Duration, func(*client.Result)) { return d, nil }
}

// ignore is an Observer that counts what is in the seconds.
type ignore struct{ seconds int64 }

func (i *ignore) StageBegan(*model.Stage, op.Time) {}
func (i *ignore) Second(_ string, _ *model.Work, _, _ op.Time, c Cells) {
	for _, cell := range c {
		i.seconds += cell.N
	}
}

func reads(weight int) model.Op {
	return model.Op{Type: model.Read, Name: "read", Weight: weight,
		Containers: selector.Spec{Kind: selector.Constant, Low: 1, High: 1},
		Objects:    selector.Spec{Kind: selector.Uniform, Low: 1, High: 50}, Length: 0}
}

func stageOf(w model.Work) model.Stage {
	if w.Interval == 0 {
		w.Interval = 5 * time.Second
	}
	if w.Kind == "" {
		w.Kind = model.Normal
	}
	return model.Stage{Name: "s-" + string(w.Kind), Works: []model.Work{w}}
}

// runAll runs all stages of a workload in this process.
func runAll(ctx, hard context.Context, c Config) *Result {
	return Sequence(ctx, hard, c.Workload, NewRunner(c).Stage, func(*StageResult) {})
}

// run carries stages out against f in virtual time.
func run(ctx context.Context, f *fake, stages ...model.Stage) (*Result, *ignore) {
	f.clock, f.seen = op.NewClock(), map[string]int{}
	seen := &ignore{}
	return runAll(ctx, context.WithoutCancel(ctx), Config{Workload: &model.Workload{Stages: stages}, Clock: f.clock,
		Sleep: clienttest.Sleep, Seed: 1, Grace: 5 * time.Second,
		Open: func(*model.Store) (client.Store, error) { return clienttest.Func(f.do), nil }, Observer: seen}), seen
}

// only is the figures of the first operation of the first work of a stage.
func only(t *testing.T, s StageResult) Figures {
	t.Helper()
	f, err := s.Works[0].Figures()
	if err != nil {
		t.Fatal(err)
	}
	return f[0]
}

// Four workers, 10 ms an operation: 400 a second, in the window and nowhere
// else.
func TestClosedLoopAndItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, seen := run(t.Context(), &fake{takes: always(10 * time.Millisecond)},
			stageOf(model.Work{Name: "w", Workers: 4, RampUp: time.Second, Runtime: 10 * time.Second,
				RampDown: 2 * time.Second, Ops: []model.Op{reads(100)}}))
		f := only(t, r.Stages[0])
		if f.OK != 4000 || f.Failed != 0 || f.Lost != 0 || f.PerSecond() != 400 {
			t.Errorf("%d ok, %d failed, %d lost, %.1f/s; want 4000 at 400/s", f.OK, f.Failed, f.Lost, f.PerSecond())
		}
		if p, inf, ok := f.Response(0.99); !ok || inf || p != int64(10*time.Millisecond) {
			t.Errorf("p99 %d", p)
		}
		if seen.seconds != 5200 {
			t.Errorf("the seconds have %d operations, want 5200, ramps included", seen.seconds)
		}
	})
}

// Workers that lose their CPU between the end of an operation and the begin of the next one begin their last operations
// after the end of the work: without a ramp all operations count, as those that the server has served do.
func TestLastOperationsBeginLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{takes: always(6 * time.Millisecond), delay: 3 * time.Millisecond}
		r, _ := run(t.Context(), store, stageOf(model.Work{Name: "w", Workers: 4, Runtime: time.Second,
			Ops: []model.Op{reads(100)}}))
		served := 0
		for _, n := range store.seen {
			served += n
		}
		if f := only(t, r.Stages[0]); f.OK != int64(served) || served != 448 {
			t.Errorf("%d operations, the store served %d; want 448 of both", f.OK, served)
		}
	})
}

// A request of an operation in parts counts where its operation does, even if it begins after the window.
func TestStepsOfTheLastOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := 0
		store := &fake{takes: func(r *client.Request, at op.Time) (time.Duration, func(*client.Result)) {
			if r.Steps == nil { // it looks for the owner of the container
				return 0, nil
			}
			later := at + op.Time(50*time.Millisecond)
			r.Steps(client.Part, &client.Result{Started: later, First: op.Never, Ended: later, Status: 200})
			steps++
			return 60 * time.Millisecond, nil
		}}
		write := model.Op{Type: model.MultipartWrite, Name: "write", Weight: 100, PartSize: 1,
			Containers: selector.Spec{Kind: selector.Constant, Low: 1, High: 1},
			Objects:    selector.Spec{Kind: selector.Constant, Low: 1, High: 1},
			Sizes:      selector.Sizes{Spec: selector.Spec{Kind: selector.Constant, Low: 2, High: 2}, Unit: 1}}
		r, _ := run(t.Context(), store, stageOf(model.Work{Name: "w", Workers: 1, Runtime: time.Second,
			Ops: []model.Op{write}}))
		counted := int64(0)
		for k, c := range r.Stages[0].Works[0].Cells {
			if k.Step != "" && !k.Ramp {
				counted += c.N
			}
		}
		if counted != int64(steps) || steps != 17 {
			t.Errorf("%d requests were counted, %d were made; want 17 of both", counted, steps)
		}
	})
}

// A thousand workers, operations of a second on the average, exponential: without
// a ramp a window of 5 s has a fifth too many, which is said; with one none.
func TestWindowsWithoutRamp(t *testing.T) {
	for _, ramp := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			draw := rand.New(rand.NewPCG(1, 2))
			takes := func(*client.Request, op.Time) (time.Duration, func(*client.Result)) {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(draw.ExpFloat64() * float64(time.Second)), nil
			}
			r, _ := run(t.Context(), &fake{takes: takes},
				stageOf(model.Work{Name: "w", Workers: 1000, RampUp: ramp, Runtime: 5 * time.Second,
					Ops: []model.Op{reads(100)}}))
			want := 0.2
			if ramp > 0 {
				want = 0
			}
			f := only(t, r.Stages[0])
			if tooHigh, said := f.PerSecond()/1000-1, r.Stages[0].Works[0].crowded(); math.Abs(tooHigh-want) > 0.06 ||
				math.Abs(said-tooHigh) > 0.06 {
				t.Errorf("ramp %v: %.1f %% too high, said are %.1f %%", ramp, 100*tooHigh, 100*said)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	writes := model.Op{Type: model.Write, Name: "write", Weight: 100,
		Containers: selector.Spec{Kind: selector.Constant, Low: 1, High: 1},
		Objects:    selector.Spec{Kind: selector.Constant, Low: 1, High: 1},
		Sizes:      selector.Sizes{Spec: selector.Spec{Kind: selector.Constant, Low: 10, High: 10}, Unit: 1000}}
	tests := []struct {
		name string
		work model.Work
		want int64
	}{
		{"fewer operations than workers", model.Work{Workers: 16, TotalOps: 7, Ops: []model.Op{reads(100)}}, 7},
		{"operations before time", model.Work{Workers: 3, TotalOps: 100, Runtime: time.Hour,
			Ops: []model.Op{reads(100)}}, 100},
		{"time before operations", model.Work{Workers: 1, TotalOps: 1e9, Runtime: time.Second,
			Ops: []model.Op{reads(100)}}, 100},
		{"bytes", model.Work{Workers: 1, TotalBytes: 95_000, Ops: []model.Op{writes}}, 10},
		{"an open loop of so many", model.Work{Workers: 5, TotalOps: 42, Rate: schedule.Constant{Rate: 100},
			Ops: []model.Op{reads(100)}}, 42},
		{"an open loop by time", model.Work{Workers: 5, Runtime: 2 * time.Second,
			Rate: schedule.Constant{Interval: 30 * time.Millisecond}, Ops: []model.Op{reads(100)}}, 66},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := run(t.Context(), &fake{takes: always(10 * time.Millisecond)}, stageOf(tt.work))
				if f := only(t, r.Stages[0]); f.OK != tt.want || r.Err != nil {
					t.Errorf("%d operations, %v; want %d", f.OK, r.Err, tt.want)
				}
			})
		})
	}
}

// A stall of 2 s under an open loop shows at its full weight, however few
// workers there are; service alone would hide it.
func TestStallUnderAnOpenLoop(t *testing.T) {
	for _, workers := range []int{1, 1000} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const from, to = op.Time(4 * time.Second), op.Time(6 * time.Second)
				f := &fake{takes: func(_ *client.Request, at op.Time) (time.Duration, func(*client.Result)) {
					if at >= from && at < to {
						return time.Duration(to-at) + time.Millisecond, nil
					}
					return time.Millisecond, nil
				}}
				r, _ := run(t.Context(), f, stageOf(model.Work{Workers: workers, Runtime: 10 * time.Second,
					Rate: schedule.Constant{Rate: 100}, Ops: []model.Op{reads(100)}}))
				g := only(t, r.Stages[0])
				if g.OK != 999 || g.Lost != 0 {
					t.Fatalf("%d ok, %d lost, want the 999 that are due before 10 s", g.OK, g.Lost)
				}
				// 200 operations are due in the stall and wait 1 s each, in the mean.
				sum := time.Duration(g.Cell.Response.Sum())
				if want := 201 * time.Second; workers > 1 && (sum < want-3*time.Second || sum > want+3*time.Second) {
					t.Errorf("the responses add up to %v, want about %v", sum, want)
				}
				if workers == 1 && sum < 220*time.Second {
					t.Errorf("the responses add up to %v; one worker needs 200 ms more to catch up", sum)
				}
				p90, _, _ := g.Response(0.9)
				if d := time.Duration(p90); d < 950*time.Millisecond {
					t.Errorf("p90 of the response is %v: the stall is hidden", d)
				}
				if s, _ := g.Cell.Service.Quantile(0.9); workers == 1 && s > int64(2*time.Millisecond) {
					t.Errorf("p90 of the service is %v", time.Duration(s))
				}
			})
		})
	}
}

// Bursts of 20 on four workers: five rounds of 10 ms, the last of which waited for
// the four before. Three hosts with the same workers among them do the same ones.
func TestBursts(t *testing.T) {
	work := model.Work{Name: "w", Workers: 4, RampUp: 1500 * time.Millisecond, Runtime: 8 * time.Second,
		Rate: schedule.Burst{Size: 20, Interval: time.Second}, Ops: []model.Op{reads(100)}}
	synctest.Test(t, func(t *testing.T) {
		r, _ := run(t.Context(), &fake{takes: always(10 * time.Millisecond)}, stageOf(work))
		f := only(t, r.Stages[0])
		if sum := time.Duration(f.Cell.Response.Sum()); f.OK != 8*20 || f.Lost != 0 || f.PerSecond() != 20 ||
			sum != 8*4*150*time.Millisecond {
			t.Errorf("%d ok, %d lost, %.1f a second, their responses add up to %v; want 160 in 8 s, and 4.8 s", f.OK,
				f.Lost, f.PerSecond(), sum)
		}
		for q, want := range map[float64]time.Duration{0.2: 10, 0.5: 30, 0.99: 50} {
			if got, _, _ := f.Response(q); math.Abs(float64(got)/float64(want*time.Millisecond)-1) > hist.RelativeError {
				t.Errorf("quantile %g: %v, want %d ms", q, time.Duration(got), want)
			}
		}
		if s, _ := f.Cell.Service.Quantile(1); s != int64(10*time.Millisecond) ||
			f.Cell.Late.Max() != int64(40*time.Millisecond) {
			t.Errorf("service %v, late by up to %v", time.Duration(s), time.Duration(f.Cell.Late.Max()))
		}
	})
	var ok int64
	for i := range 3 {
		share, err := (&model.Workload{Stages: []model.Stage{stageOf(work)}}).Share(i, make([]string, 3))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			r, _ := run(t.Context(), &fake{takes: always(10 * time.Millisecond)}, share.Stages...)
			f := only(t, r.Stages[0])
			if ok += f.OK; f.OK < 8*4 || f.Lost != 0 {
				t.Errorf("host %d: %d ok, %d lost", i, f.OK, f.Lost)
			}
		})
	}
	if ok != 8*20 {
		t.Errorf("three hosts did %d, want 160", ok)
	}
}

// What an open loop could not begin is counted, and is infinite in a quantile.
func TestDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := run(t.Context(), &fake{takes: always(100 * time.Millisecond)},
			stageOf(model.Work{Workers: 1, Runtime: time.Second, Rate: schedule.Constant{Rate: 100},
				Ops: []model.Op{reads(100)}, MaxFailures: 0}))
		f := only(t, r.Stages[0])
		if f.OK+f.Lost != 99 || f.OK != 10 {
			t.Errorf("%d ok and %d lost, want 10 of 99", f.OK, f.Lost)
		}
		if lost, all := r.Stages[0].Works[0].Lost(); lost != 89 || all != 99 {
			t.Errorf("%d of %d were lost, want 89 of 99", lost, all)
		}
		if _, infinite, ok := f.Response(0.5); !ok || !infinite {
			t.Error("the median is finite, though most operations were never begun")
		}
		if p, infinite, _ := f.Response(0.01); infinite || p != int64(100*time.Millisecond) {
			t.Errorf("the first percentile is %v", time.Duration(p))
		}
		if !slices.ContainsFunc(f.Failures, func(x Failure) bool { return x.Label == Dropped }) {
			t.Errorf("%v has no %s", f.Failures, Dropped)
		}
	})
}

// A work of which nothing ended has failed, and says why; unless it accepts
// anything, as the steps of a search do.
func TestAllLost(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ramp    time.Duration
		accepts int
		want    string
	}{
		{"all", 0, 200_000, "none of the 99 operations that were due ended: 98 had not begun when the work was " +
			"over, 1 were under way"},
		{"all of the window", time.Second, 200_000,
			"none of the 100 operations that were due ended: 100 had not begun when the work was over, 0 were " +
				"under way"},
		{"whatever comes", 0, 1_000_000, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := run(t.Context(), &fake{takes: always(time.Hour)},
					stageOf(model.Work{Workers: 1, RampUp: tt.ramp, Runtime: time.Second,
						Rate: schedule.Constant{Rate: 100}, Ops: []model.Op{reads(100)}, MaxFailures: tt.accepts}))
				switch {
				case tt.want == "" && r.Err != nil, tt.want != "" &&
					(r.Err == nil || !strings.Contains(r.Err.Error(), tt.want)):
					t.Errorf("%v, want %q", r.Err, tt.want)
				}
			})
		})
	}
}

// A work that measured nothing has failed, and says so: it ended within its ramp,
// or each operation took longer than its window.
func TestNothingMeasured(t *testing.T) {
	for _, tt := range []struct {
		name string
		work model.Work
		want string
	}{
		{"ended in its ramp", model.Work{Workers: 2, RampUp: 5 * time.Second, Runtime: time.Minute, TotalOps: 10},
			"nothing was measured: no operation began in the window from 50ms to 50ms of the work, which ended " +
				"after 50ms"},
		{"longer than its window", model.Work{Workers: 2, RampUp: 15 * time.Millisecond,
			Runtime: 4 * time.Millisecond}, "from 15ms to 19ms of the work, which ended after 20ms"},
		{"whatever comes", model.Work{Workers: 2, RampUp: time.Second, Runtime: time.Minute, TotalOps: 10,
			MaxFailures: 1_000_000}, "<nil>"},
		{"a share", model.Work{Workers: 2, Of: 3, RampUp: time.Second, Runtime: time.Minute, TotalOps: 10}, "<nil>"},
		{"a ramp and more", model.Work{Workers: 2, RampUp: 5 * time.Millisecond, Runtime: time.Second}, "<nil>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.work.Ops = []model.Op{reads(100)}
				r, _ := run(t.Context(), &fake{takes: always(10 * time.Millisecond)}, stageOf(tt.work))
				if got := fmt.Sprint(r.Err); !strings.Contains(got, tt.want) {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r, _ := run(ctx, &fake{takes: always(10 * time.Millisecond)},
			stageOf(model.Work{Workers: 2, RampUp: time.Minute, Runtime: time.Minute, Ops: []model.Op{reads(100)}}))
		if r.Err != nil || !r.Interrupted {
			t.Errorf("interrupted in its ramp: %v", r.Err)
		}
	})
}

// The window of a work that was told to end ends then, not when what was still
// under way has: nothing more began.
func TestWindowOfAnInterruptedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		n := 0
		r, _ := run(ctx, &fake{takes: func(*client.Request, op.Time) (time.Duration, func(*client.Result)) {
			if n++; n == 200 {
				return time.Second, nil
			}
			return 10 * time.Millisecond, nil
		}}, stageOf(model.Work{Workers: 1, Runtime: time.Hour, Ops: []model.Op{reads(100)}}))
		if f := only(t, r.Stages[0]); f.OK != 200 || f.PerSecond() != 100 {
			t.Errorf("%d operations, %.1f a second; want 200 in the 2 s before the end", f.OK, f.PerSecond())
		}
	})
}

// An operation that never ends does not keep the run from ending, and is lost.
func TestHangingOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r, _ := run(t.Context(), &fake{takes: func(*client.Request, op.Time) (time.Duration, func(*client.Result)) {
			if n++; n == 50 {
				return 1000 * time.Hour, nil
			}
			return 10 * time.Millisecond, nil
		}}, stageOf(model.Work{Workers: 1, Runtime: time.Second, Ops: []model.Op{reads(100)}}))
		f := only(t, r.Stages[0])
		if f.OK != 49 || f.Lost != 1 || r.Stages[0].Ended != op.Time(6*time.Second) {
			t.Errorf("%d ok, %d lost, ended at %v; want 49, 1, and the end 5 s after the work's", f.OK, f.Lost,
				time.Duration(r.Stages[0].Ended))
		}
	})
}

// The special works touch each container and object once, whatever the number
// of workers.
func TestSpecialWorksCoverAll(t *testing.T) {
	for _, workers := range []int{1, 3, 20} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{takes: always(time.Millisecond)}
			containers, objects := selector.Spec{Kind: selector.Range, Low: 2, High: 4},
				selector.Spec{Kind: selector.Range, Low: 5, High: 11}
			work := func(k model.WorkKind, ty model.OpType, d model.Division, objects selector.Spec) model.Stage {
				return stageOf(model.Work{Name: string(k), Kind: k, Workers: workers,
					Ops: []model.Op{{Type: ty, Name: string(ty), Weight: 100, Division: d,
						Containers: containers, Objects: objects, ContainerName: model.Name{Prefix: "c"},
						ObjectName: model.Name{Prefix: "o", Suffix: "x"},
						Sizes: selector.Sizes{Spec: selector.Spec{Kind: selector.Constant, Low: 3, High: 3},
							Unit: 1}}}})
			}
			r, _ := run(t.Context(), f, work(model.Init, model.MakeContainer, model.ByContainer, selector.Spec{}),
				work(model.Prepare, model.Write, model.ByObject, objects),
				work(model.Cleanup, model.Delete, model.ByObject, objects),
				work(model.Dispose, model.RemoveContainer, model.ByContainer, selector.Spec{}))
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			want := map[string]int{}
			for c := 2; c <= 4; c++ {
				for _, v := range []client.Verb{client.MakeContainer, client.RemoveContainer, client.CheckOwner} {
					want[fmt.Sprintf("%d c%d/", v, c)] = 1
				}
				for o := 5; o <= 11; o++ {
					want[fmt.Sprintf("%d c%d/o%dx", client.Put, c, o)] = 1
					want[fmt.Sprintf("%d c%d/o%dx", client.Delete, c, o)] = 1
				}
			}
			if d := cmp.Diff(want, f.seen); d != "" {
				t.Errorf("%d workers: %s", workers, d)
			}
		})
	}
}

func TestMixByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		head := reads(30)
		head.Type, head.Name = model.Head, "head"
		r, _ := run(t.Context(), &fake{takes: always(time.Millisecond)},
			stageOf(model.Work{Workers: 10, TotalOps: 20000, Ops: []model.Op{reads(70), head}}))
		f, err := r.Stages[0].Works[0].Figures()
		if err != nil {
			t.Fatal(err)
		}
		if f[0].OK+f[1].OK != 20000 || f[0].OK < 13700 || f[0].OK > 14300 {
			t.Errorf("%d and %d of 20000, want about 14000 and 6000", f[0].OK, f[1].OK)
		}
	})
}

// A worker to whose part nothing falls does nothing, and harms nobody.
func TestIdleWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := reads(100)
		o.Division, o.Objects = model.ByObject, selector.Spec{Kind: selector.Range, Low: 1, High: 3}
		f := &fake{takes: always(10 * time.Millisecond)}
		r, _ := run(t.Context(), f, stageOf(model.Work{Workers: 8, Runtime: time.Second, Ops: []model.Op{o}}))
		if g := only(t, r.Stages[0]); g.OK != 300 || len(f.seen) != 3 {
			t.Errorf("%d operations on %d objects, want 300 on 3", g.OK, len(f.seen))
		}
	})
}

// More failures than are accepted fail the run; what cleans up goes on.
func TestFailures(t *testing.T) {
	clean := func() model.Stage {
		return stageOf(model.Work{Name: "clean", Kind: model.Cleanup, Workers: 1,
			Ops: []model.Op{{Type: model.Delete, Name: "delete",
				Containers: selector.Spec{Kind: selector.Constant, Low: 1, High: 1},
				Objects:    selector.Spec{Kind: selector.Range, Low: 1, High: 2}}}})
	}
	slow := func(r *client.Request, _ op.Time) (time.Duration, func(*client.Result)) {
		return time.Millisecond, func(res *client.Result) {
			if r.Verb == client.Get {
				res.Status, res.Code, res.Bytes = 503, "SlowDown", 0
			}
		}
	}
	gone := func(r *client.Request, _ op.Time) (time.Duration, func(*client.Result)) {
		return time.Millisecond, func(res *client.Result) {
			if r.Verb == client.Delete {
				res.Status = 404
			}
		}
	}
	tests := []struct {
		name  string
		takes func(*client.Request, op.Time) (time.Duration, func(*client.Result))
		max   int
		want  string // in the error; empty: none
	}{
		{"too many", slow, 200_000, "100 of 100 operations failed, more than 200000 in a million; most of them " +
			"read: 503 SlowDown"},
		{"accepted", slow, 1_000_000, ""},
		{"what is to be deleted is not there", gone, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				main := stageOf(model.Work{Name: "main", Workers: 2, TotalOps: 100, MaxFailures: tt.max,
					Ops: []model.Op{reads(100)}})
				r, _ := run(t.Context(), &fake{takes: tt.takes}, main, main, clean())
				if got := fmt.Sprint(r.Err); tt.want == "" && r.Err != nil || !strings.Contains(got, tt.want) {
					t.Errorf("%v, want %q", r.Err, tt.want)
				}
				if skipped := r.Stages[1].Skipped; skipped != (tt.want != "") {
					t.Errorf("the second stage was skipped: %v", skipped)
				}
				if f := only(t, r.Stages[2]); f.OK != 2 {
					t.Errorf("%d objects were cleaned up, want 2", f.OK)
				}
			})
		})
	}
}

// A server that is not there is not asked a million times a second.
func TestRestAfterNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := func(*client.Request, op.Time) (time.Duration, func(*client.Result)) {
			return time.Microsecond, func(res *client.Result) { res.Status, res.Failure = 0, httpconn.Refused }
		}
		r, _ := run(t.Context(), &fake{takes: refuses},
			stageOf(model.Work{Workers: 1, Runtime: 10 * time.Second, Ops: []model.Op{reads(100)}}))
		if f := only(t, r.Stages[0]); f.Failed < 95 || f.Failed > 101 || f.Failures[0].Label != "refused" {
			t.Errorf("%d attempts in 10 s, %v; want about 100", f.Failed, f.Failures)
		}
	})
}

// Nothing is written where our mark is missing.
func TestOwnership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs := func(r *client.Request, _ op.Time) (time.Duration, func(*client.Result)) {
			return 0, func(res *client.Result) {
				if r.Verb == client.CheckOwner && string(r.Container) == "2" {
					res.Status, res.Code = 404, client.NotOurs
				}
			}
		}
		o := reads(100)
		o.Type, o.Name, o.Containers = model.Delete, "delete", selector.Spec{Kind: selector.Uniform, Low: 1, High: 3}
		f := &fake{takes: theirs}
		r, _ := run(t.Context(), f, stageOf(model.Work{Name: "w", Workers: 1, TotalOps: 10, Ops: []model.Op{o}}))
		if r.Err == nil || !strings.Contains(r.Err.Error(), "2 does not carry CNSBench's mark") {
			t.Errorf("%v", r.Err)
		}
		for what := range f.seen {
			if !strings.HasPrefix(what, fmt.Sprint(client.CheckOwner)) {
				t.Errorf("it did %s", what)
			}
		}
		// Stages that clean up go on after a failure, but not there.
		clean := stageOf(model.Work{Name: "c", Kind: model.Cleanup, Workers: 1, Ops: []model.Op{o}})
		r, _ = run(t.Context(), f, stageOf(model.Work{Name: "w", Workers: 1, TotalOps: 10, Ops: []model.Op{o}}), clean)
		if r.Err == nil || slices.ContainsFunc(slices.Collect(maps.Keys(f.seen)),
			func(what string) bool { return strings.HasPrefix(what, fmt.Sprint(client.Delete, " ")) }) {
			t.Errorf("%v: %v", r.Err, f.seen)
		}
		reading := o
		reading.Type = model.Read
		if r, _ := run(t.Context(), f, stageOf(model.Work{Workers: 1, TotalOps: 1,
			Ops: []model.Op{reading}})); r.Err != nil {
			t.Errorf("reading needs no mark: %v", r.Err)
		}
	})
}

// Containers between the buckets of a histogram are never drawn, so that they may
// be somebody else's; those in them may not.
func TestOwnershipOfAHistogramsContainers(t *testing.T) {
	for _, tt := range []struct {
		theirs string
		fails  bool
	}{{"3", false}, {"8", false}, {"9", true}, {"2", true}} {
		synctest.Test(t, func(t *testing.T) {
			o := reads(100)
			o.Type, o.Name, o.Containers = model.Delete, "delete", selector.Spec{Kind: selector.Histogram, Low: 1,
				High: 10, Buckets: []selector.Bucket{{Low: 1, High: 2, Weight: 50}, {Low: 9, High: 10, Weight: 50}}}
			f := &fake{takes: func(r *client.Request, _ op.Time) (time.Duration, func(*client.Result)) {
				return 0, func(res *client.Result) {
					if r.Verb == client.CheckOwner && string(r.Container) == tt.theirs {
						res.Status, res.Code = 404, client.NotOurs
					}
				}
			}}
			r, _ := run(t.Context(), f, stageOf(model.Work{Name: "w", Workers: 1, TotalOps: 10, Ops: []model.Op{o}}))
			if (r.Err != nil) != tt.fails {
				t.Errorf("container %s is not ours: %v", tt.theirs, r.Err)
			}
		})
	}
}

// What is not there is not cleaned up, also if somebody makes it meanwhile.
func TestCleanupOfWhatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: func(r *client.Request, _ op.Time) (time.Duration, func(*client.Result)) {
			return 0, func(res *client.Result) {
				if r.Verb == client.CheckOwner && string(r.Container) == "2" {
					res.Status = 404
				}
			}
		}}
		r, _ := run(t.Context(), f, stageOf(model.Work{Name: "c", Kind: model.Cleanup, Workers: 1,
			Ops: []model.Op{{Type: model.Delete, Name: "delete",
				Containers: selector.Spec{Kind: selector.Range, Low: 1, High: 3},
				Objects:    selector.Spec{Kind: selector.Range, Low: 1, High: 2}}}}))
		if g := only(t, r.Stages[0]); r.Err != nil || g.OK != 4 || f.seen[fmt.Sprintf("%d 2/1", client.Delete)] != 0 {
			t.Errorf("%d deleted, %v: %v; want 4, and none in 2", g.OK, r.Err, f.seen)
		}
	})
}

// A container that is not there needs no removal; one that is not ours was not
// removed, and neither was one of which a token service says 404.
func TestDisposeOfWhatIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		codes := map[string]string{"1": "", "2": client.NotOurs, "3": "NoSuchBucket", "4": "NoToken"}
		f := &fake{takes: func(r *client.Request, _ op.Time) (time.Duration, func(*client.Result)) {
			return 0, func(res *client.Result) { res.Status, res.Code = 404, codes[string(r.Container)] }
		}}
		r, _ := run(t.Context(), f, stageOf(model.Work{Name: "d", Kind: model.Dispose, Workers: 1,
			Ops: []model.Op{{Type: model.RemoveContainer, Name: "dispose",
				Containers: selector.Spec{Kind: selector.Range, Low: 1, High: 4}}}}))
		if g := only(t, r.Stages[0]); r.Err == nil || g.OK != 2 || g.Failed != 2 {
			t.Errorf("%d ok, %d failed: %v", g.OK, g.Failed, r.Err)
		}
	})
}

// Interrupted, a run awaits what is under way, then only cleans up.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second+5*time.Millisecond, cancel)
		main := stageOf(model.Work{Name: "main", Workers: 2, Runtime: time.Hour, Ops: []model.Op{reads(100)}})
		open := stageOf(model.Work{Name: "open", Workers: 2, Runtime: time.Hour, Rate: schedule.Constant{Rate: 1},
			Ops: []model.Op{reads(100)}})
		main.Works = append(main.Works, open.Works...)
		clean := stageOf(model.Work{Name: "c", Kind: model.Dispose, Workers: 1,
			Ops: []model.Op{{Type: model.RemoveContainer, Name: "dispose",
				Containers: selector.Spec{Kind: selector.Range, Low: 1, High: 2}}}})
		r, _ := run(ctx, &fake{takes: always(10 * time.Millisecond)}, main, main, clean)
		if !r.Interrupted || r.Err != nil || !r.Stages[1].Skipped {
			t.Fatalf("interrupted %v, %v, second stage %+v", r.Interrupted, r.Err, r.Stages[1])
		}
		if f := only(t, r.Stages[0]); f.OK != 602 || f.Lost != 0 {
			t.Errorf("%d ok, %d lost; want the 602 that had begun", f.OK, f.Lost)
		}
		if f := only(t, r.Stages[2]); f.OK != 2 {
			t.Errorf("%d containers were disposed of, want 2", f.OK)
		}
	})
}

// What was due and waited for a worker when the run was told to end is lost, not
// forgotten.
func TestInterruptOfABacklog(t *testing.T) {
	for _, workers := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(3*time.Second+5*time.Millisecond, cancel)
			r, _ := run(ctx, &fake{takes: always(time.Second)},
				stageOf(model.Work{Name: "open", Workers: workers, Runtime: time.Hour,
					Rate: schedule.Constant{Rate: 100}, Ops: []model.Op{reads(100)}}))
			if f := only(t, r.Stages[0]); f.OK+f.Lost != 300 || f.OK > int64(4*workers) {
				t.Errorf("%d workers: %d ok and %d lost, of 300 that were due", workers, f.OK, f.Lost)
			}
		})
	}
}

// A thousand hosts merged are one that saw all.
func TestMergeIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	one, merged := newMeter(2, true, []string{""}, &words{}), Cells{}
	for range 1000 {
		host := newMeter(2, true, []string{""}, &words{})
		for range 20 {
			r := client.Result{Status: 200 + 303*rng.IntN(2), Bytes: rng.Int64N(1000), Attempts: 1,
				Started: op.Time(rng.Int64N(1000))}
			r.First = r.Started + op.Time(rng.Int64N(1e9))
			r.Ended = r.First + op.Time(rng.Int64N(1e7))
			i, due := rng.IntN(2), r.Started-op.Time(rng.Int64N(1e6))
			one.record(0, i, due, false, false, &r)
			host.record(0, i, due, false, false, &r)
		}
		cells := Cells{}
		if err := errors.Join(host.moveTo(cells), merged.Merge(cells)); err != nil {
			t.Fatal(err)
		}
	}
	want := Cells{}
	if err := one.moveTo(want); err != nil {
		t.Fatal(err)
	}
	if len(merged) != len(want) {
		t.Fatalf("%d cells, want %d", len(merged), len(want))
	}
	for k, w := range want {
		g := merged[k]
		a, errA := w.Response.MarshalJSON()
		b, errB := g.Response.MarshalJSON()
		if errors.Join(errA, errB) != nil || string(a) != string(b) || g.N != w.N || g.Bytes != w.Bytes {
			t.Errorf("%v: %d operations of %d bytes, want %d of %d, or the histograms differ", k, g.N, g.Bytes, w.N,
				w.Bytes)
		}
	}
}

// A server that answers with ever other words, or with what is no text, has them
// counted: as many as can be told apart, each as it can be sent on and printed.
func TestWordsWithoutEnd(t *testing.T) {
	var said atomic.Int64
	babble := func(*client.Request, op.Time) (time.Duration, func(*client.Result)) {
		return time.Millisecond, func(res *client.Result) {
			n := said.Add(1)
			res.Status, res.Code, res.Detail = 500, fmt.Sprintf("E%d\xff\x1b[2J", n), strings.Repeat("\x1b\xfe", 5000)
			if n%2 == 0 {
				res.Code = string([]byte{0xf0 + byte(n%16)})
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r, _ := run(t.Context(), &fake{takes: babble},
			stageOf(model.Work{Workers: 3, TotalOps: 5000, MaxFailures: 1_000_000, Ops: []model.Op{reads(100)}}))
		cells := r.Stages[0].Works[0].Cells
		if f := only(t, r.Stages[0]); f.Failed != 5000 || len(cells) > mostWords+1 {
			t.Errorf("%d failed, in %d ways", f.Failed, len(cells))
		}
		text, err := json.Marshal(cells)
		var back Cells
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || len(back) != len(cells) || strings.Contains(string(text), `\u`) || len(text) > 1<<20 {
			t.Errorf("%v: %d of %d cells came through, in %d bytes", err, len(back), len(cells), len(text))
		}
	})
}

func TestFilesThatAreNotThere(t *testing.T) {
	if _, err := listFiles(t.TempDir()); err == nil {
		t.Error("a directory without files was taken")
	}
	if _, err := listFiles("/no/such/directory"); err == nil {
		t.Error("a directory that is not there was taken")
	}
}
