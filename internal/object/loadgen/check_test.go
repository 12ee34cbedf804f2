package loadgen

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

// lagging keeps objects, and shows some changes late: to reads, to listings, or
// to both. It counts what it did.
type lagging struct {
	clock op.Clock
	lag   func(r *client.Request) (read, list time.Duration) // of a change
	// the answer of a change, which takes effect half a second later
	loses func(r *client.Request) bool

	mu      sync.Mutex
	objects map[string][]version
	writers map[string]map[<-chan struct{}]bool // clients that have changed an object
	lagged  map[string]int                      // changes that were shown late, by what was late
}

// version is what an object is from an instant on; no writer: it is not there.
type version struct {
	read, list op.Time
	writer     uint64
}

func (l *lagging) do(r *client.Request, res *client.Result, asker <-chan struct{}) {
	now := l.clock.Now()
	*res = client.Result{Started: now, Status: 200, Attempts: 1, Bytes: r.Size}
	time.Sleep(time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clock.Now()
	res.First, res.Ended = now, now
	name := string(r.Container) + "/" + string(r.Object)
	switch r.Verb {
	case client.Put, client.Delete:
		l.change(r, res, name, now, asker)
	case client.Get:
		if res.Writer = l.at(name, now, func(v version) op.Time { return v.read }); res.Writer == 0 {
			res.Status = 404
		}
	case client.Head:
		if l.at(name, now, func(v version) op.Time { return v.read }) == 0 {
			res.Status = 404
		}
	case client.List:
		res.Listed = l.at(name, now, func(v version) op.Time { return v.list }) != 0
	}
}

func (l *lagging) change(r *client.Request, res *client.Result, name string, now op.Time, asker <-chan struct{}) {
	read, list := l.lag(r)
	v := version{read: now + op.Time(read), list: now + op.Time(list)}
	if r.Verb == client.Put {
		v.writer = r.Writer
	}
	before := l.at(name, now, func(v version) op.Time { return v.read })
	listed := l.at(name, now, func(v version) op.Time { return v.list }) != 0
	if l.loses != nil && l.loses(r) {
		v.read, v.list = v.read+op.Time(time.Second/2), v.list+op.Time(time.Second/2)
		res.Status, res.Failure = 0, httpconn.Stalled
	} else if before == v.writer {
		v.read = now // there is nothing to show late
	} else if read > 0 {
		kind := Missing
		if r.Verb == client.Delete {
			kind = Remains
		} else if before != 0 {
			kind = Stale
		}
		l.lagged["read "+kind]++
	}
	if listed == (v.writer != 0) {
		v.list = min(v.list, now)
	} else if list > 0 {
		l.lagged["list"]++
	}
	l.objects[name] = append(l.objects[name], v)
	if l.writers[name] == nil {
		l.writers[name] = map[<-chan struct{}]bool{}
	}
	l.writers[name][asker] = true
}

// at is the writer of what is shown at an instant.
func (l *lagging) at(name string, now op.Time, from func(version) op.Time) (writer uint64) {
	latest := op.Time(-1)
	for _, v := range l.objects[name] {
		if at := from(v); at <= now && at >= latest {
			latest, writer = at, v.writer
		}
	}
	return writer
}

// checkedWork writes and deletes the same objects and checks both, by more
// workers than divide the objects evenly.
func checkedWork(workers int) model.Work {
	o := func(t model.OpType, weight int, checks ...model.IntegrityCheck) model.Op {
		return model.Op{Type: t, Name: string(t), Weight: weight,
			Containers: selector.Spec{Kind: selector.Uniform, Low: 1, High: 2},
			Objects:    selector.Spec{Kind: selector.Uniform, Low: 1, High: 100},
			Sizes:      selector.Sizes{Spec: selector.Spec{Kind: selector.Constant, Low: 64, High: 64}, Unit: 1},
			Checks:     checks, CheckWithin: 2 * time.Second}
	}
	other := o(model.Delete, 40, model.ReadAfterDelete, model.ListAfterDelete)
	other.Objects.Low = 31 // whose a number is does not depend on the range
	return model.Work{Name: "main", Workers: workers, TotalOps: 4000, Interval: 5 * time.Second, Kind: model.Normal,
		Ops: []model.Op{o(model.Write, 60, model.ReadAfterWrite, model.ListAfterWrite), other}}
}

func runChecked(t *testing.T, l *lagging, w model.Work) (*Result, []Figures) {
	t.Helper()
	l.clock, l.objects, l.writers, l.lagged = op.NewClock(), map[string][]version{},
		map[string]map[<-chan struct{}]bool{}, map[string]int{}
	workload := &model.Workload{Stages: []model.Stage{{Name: "main", Works: []model.Work{w}}}}
	if problems := model.Check(workload, model.COSBench, backend.Traits); problems.Fatal() {
		t.Fatal(problems)
	}
	r := runAll(t.Context(), t.Context(), Config{Workload: workload,
		Open:  func(*model.Store) (client.Store, error) { return clienttest.Func(l.do), nil },
		Clock: l.clock, Sleep: clienttest.Sleep, Seed: 1, Grace: 5 * time.Second, Observer: &ignore{}})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	f, err := r.Stages[0].Works[0].Figures()
	if err != nil {
		t.Fatal(err)
	}
	return r, f
}

func violations(figures []Figures) map[string]int {
	got := map[string]int{}
	for _, f := range figures {
		for _, c := range f.Checks {
			for _, v := range c.Violations {
				got[fmt.Sprintf("%s %s", c.Check, v.Kind)] += int(v.N)
			}
		}
	}
	return got
}

// What the store was made to show late is what is counted, exactly, whatever
// the number of workers; and a store that shows all at once has no violations.
func TestChecksFindWhatWasInjected(t *testing.T) {
	const late = 50 * time.Millisecond
	for _, workers := range []int{1, 7, 64} {
		for _, lags := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d workers, lags %v", workers, lags), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rng, mu := rand.New(rand.NewPCG(1, 2)), sync.Mutex{}
					l := &lagging{lag: func(*client.Request) (read, list time.Duration) {
						mu.Lock()
						defer mu.Unlock()
						if lags && rng.IntN(10) == 0 {
							read = late
						}
						if lags && rng.IntN(5) == 0 {
							list = late
						}
						return read, list
					}}
					r, f := runChecked(t, l, checkedWork(workers))
					got := violations(f)
					want := map[string]int{}
					for kind, n := range l.lagged {
						switch kind {
						case "read " + Remains:
							want["readAfterDelete remains"] = n
						case "list":
						default:
							want["readAfterWrite "+strings.TrimPrefix(kind, "read ")] = n
						}
					}
					lists := got["listAfterWrite missing"] + got["listAfterDelete remains"]
					delete(got, "listAfterWrite missing")
					delete(got, "listAfterDelete remains")
					if d := cmp.Diff(want, got); d != "" || lists != l.lagged["list"] {
						t.Errorf("%s%d violations of listings, want %d", d, lists, l.lagged["list"])
					}
					if lags != (lists > 100 && got["readAfterWrite stale"] > 20) {
						t.Errorf("%v and %d of listings were injected: too few to tell", want, lists)
					}
					for name, by := range l.writers {
						if len(by) > 1 {
							t.Errorf("%s was changed by %d workers", name, len(by))
						}
					}
					for _, one := range f {
						for _, c := range one.Checks {
							for _, v := range c.Violations {
								if v.Lasting > 0 || v.Until.N() != v.N || v.Until.Min() < int64(late) ||
									v.Until.Max() > int64(2*late+20*time.Millisecond) {
									t.Errorf("%s: %d lasting of %d, consistent after %v to %v; each was after %v",
										c.Check, v.Lasting, v.N, time.Duration(v.Until.Min()),
										time.Duration(v.Until.Max()), late)
								}
							}
							if c.Done != one.OK {
								t.Errorf("%s: %d checks after %d operations", c.Check, c.Done, one.OK)
							}
						}
					}
					if bad, all := r.Stages[0].Works[0].Violated(); all != 8000 || (bad > 0) != lags {
						t.Errorf("%d of %d checks were violated, want some of 8000 if it lags", bad, all)
					}
				})
			})
		}
	}
}

// What the store does not show within the time that it is given is said to last.
func TestLastingViolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lagging{lag: func(r *client.Request) (read, list time.Duration) {
			if string(r.Object) == "7" {
				return time.Hour, 0
			}
			return 0, 0
		}}
		w := checkedWork(3)
		w.TotalOps = 0
		w.Runtime = 5 * time.Second
		w.Ops = w.Ops[:1]
		w.Ops[0].Weight = 100
		w.Ops[0].Containers.High = 1
		_, f := runChecked(t, l, w)
		c := f[0].Checks[0]
		if len(c.Violations) != 1 || c.Violations[0].Kind != Missing ||
			c.Violations[0].Lasting != c.Violations[0].N || c.Violations[0].N < 1 {
			t.Errorf("%+v, want only lasting ones, of the kind missing", c.Violations)
		}
	})
}

// A change without an answer may take effect later: what is then seen of that
// object is no violation, and is not asked.
func TestUnknownOutcomesAreNoViolations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := &lagging{lag: func(*client.Request) (read, list time.Duration) { return 0, 0 },
			loses: func(*client.Request) bool {
				n++
				return n%400 == 0
			}}
		w := checkedWork(5)
		w.MaxFailures = 1_000_000
		_, f := runChecked(t, l, w)
		if got := violations(f); len(got) > 0 {
			t.Errorf("%v", got)
		}
		left := int64(0)
		for _, one := range f {
			for _, c := range one.Checks {
				left += c.Skipped
				if c.Done+c.Skipped != one.OK {
					t.Errorf("%s: %d done, %d left out of %d", c.Check, c.Done, c.Skipped, one.OK)
				}
			}
		}
		if left == 0 {
			t.Error("nothing was left out, though answers were lost")
		}
	})
}
