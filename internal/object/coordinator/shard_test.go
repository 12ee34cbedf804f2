package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/agent/rendezvous"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

// slow is a store in virtual time whose operations take as long as their object
// has a number, in ms.
type slow struct {
	clock op.Clock

	mu    sync.Mutex
	asked []string // verb container/object, but for the looks
	fails string   // what fails
}

func (s *slow) do(r *client.Request, res *client.Result, _ <-chan struct{}) {
	verbs := map[client.Verb]string{client.Get: "get", client.Put: "put", client.Delete: "delete",
		client.MakeContainer: "make", client.CheckOwner: "look"}
	what := fmt.Sprintf("%s %s/%s", verbs[r.Verb], r.Container, r.Object)
	*res = client.Result{Status: 200, Attempts: 1, Started: s.clock.Now(), Bytes: r.Size}
	if r.Verb != client.CheckOwner {
		n := 1
		_, _ = fmt.Sscanf(string(r.Object), "myobjects%d", &n)
		time.Sleep(time.Duration(n) * time.Millisecond)
		s.mu.Lock()
		s.asked = append(s.asked, what)
		if s.fails != "" && strings.Contains(what, s.fails) {
			res.Status = 500
		}
		s.mu.Unlock()
	}
	res.First, res.Ended = s.clock.Now(), s.clock.Now()
}

// room is where parts meet, in memory: all of them at every step.
type room struct {
	parts int
	mu    sync.Mutex
	steps map[int]*step
	open  chan struct{} // the barrier
	at    []int         // who stands there
}

type step struct {
	come   map[int]bool
	failed bool
	all    chan struct{}
}

func newRoom(n int) *room {
	return &room{parts: n, steps: map[int]*step{}, open: make(chan struct{})}
}

func (r *room) step(n int) *step {
	if r.steps[n] == nil {
		r.steps[n] = &step{come: map[int]bool{}, all: make(chan struct{})}
	}
	return r.steps[n]
}

func (r *room) full(s *step) {
	for i := range r.parts {
		if !s.come[i] {
			return
		}
	}
	select {
	case <-s.all:
	default:
		close(s.all)
	}
}

// seat is a part's place in it.
type seat struct {
	*room
	index int
}

func (s seat) Wait(_ context.Context, m rendezvous.Rendezvous) (rendezvous.Reply, time.Time, error) {
	s.mu.Lock()
	at := s.step(m.Step)
	at.come[m.Index], at.failed = true, at.failed || m.Failed
	s.full(at)
	s.mu.Unlock()
	<-at.all
	s.mu.Lock()
	defer s.mu.Unlock()
	a := rendezvous.Reply{Failed: at.failed}
	for i := range s.parts {
		a.Present = append(a.Present, i)
	}
	return a, time.Now().Add(50 * time.Millisecond), nil
}

func (s seat) Barrier(ctx context.Context) (time.Time, error) {
	s.mu.Lock()
	s.at = append(s.at, s.index)
	s.mu.Unlock()
	select {
	case <-s.open:
		return time.Now().Add(time.Second), nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

func (s seat) ReportStart() error { return nil }

func rng(n int64) selector.Spec { return selector.Spec{Kind: selector.Range, Low: 1, High: n} }

func op1(t model.OpType, division model.Division) model.Op {
	o := model.Op{Type: t, Name: string(t), Weight: 100, Division: division, Containers: rng(2),
		ContainerName: model.Name{Prefix: "c"}, ObjectName: model.Name{Prefix: "myobjects"}}
	if t != model.MakeContainer && t != model.RemoveContainer {
		o.Objects = rng(20)
	}
	if t == model.Write {
		o.Sizes = selector.Sizes{Spec: selector.Spec{Kind: selector.Constant, Low: 64, High: 64}, Unit: 1}
	}
	return o
}

func stage(name string, kind model.WorkKind, workers int, o model.Op, change func(*model.Work)) model.Stage {
	w := model.Work{Name: name, Kind: kind, Workers: workers, Interval: 5 * time.Second,
		Store: model.Store{Kind: "null"}, Ops: []model.Op{o}}
	if change != nil {
		change(&w)
	}
	return model.Stage{Name: name, Works: []model.Work{w}}
}

func whole(main func(*model.Work)) *coordinator.ShardOrder {
	return &coordinator.ShardOrder{Seed: 7, Grace: time.Second,
		Workload: model.Workload{Name: "w", Stages: []model.Stage{
			stage("init", model.Init, 1, op1(model.MakeContainer, model.ByContainer), nil),
			stage("prepare", model.Prepare, 5, op1(model.Write, model.ByObject), nil),
			stage("main", model.Normal, 7, op1(model.Read, model.ByNone), main),
			stage("cleanup", model.Cleanup, 4, op1(model.Delete, model.ByObject), nil),
		}}}
}

// outcome is what the parts of a run left.
type outcome struct {
	parts []*coordinator.Shard
	texts []string
	errs  []error
	store *slow
	early []string // asked before the barrier opened
}

// execute runs n parts together in virtual time.
func execute(t *testing.T, order *coordinator.ShardOrder, n int,
	during func(r *room, s *slow, cancel []context.CancelFunc)) outcome {
	t.Helper()
	clock := op.NewClock()
	s, r := &slow{clock: clock}, newRoom(n)
	out := outcome{store: s, parts: make([]*coordinator.Shard, n), texts: make([]string, n), errs: make([]error, n)}
	files := make([]bytes.Buffer, n)
	cancels := make([]context.CancelFunc, n)
	var wait sync.WaitGroup
	for i := range n {
		var ctx context.Context
		ctx, cancels[i] = context.WithCancel(t.Context())
		wait.Go(func() {
			out.errs[i] = coordinator.RunShard(ctx, t.Context(), coordinator.ShardConfig{Order: order, Index: i,
				Parts: n, Group: "g", Rendezvous: seat{r, i}, Out: &files[i], Version: "test",
				Open: func(*model.Store) (client.Store, error) { return clienttest.Func(s.do), nil }, Clock: clock,
				Sleep: clienttest.Sleep})
		})
	}
	if during == nil {
		during = func(r *room, _ *slow, _ []context.CancelFunc) {
			time.Sleep(time.Minute)
			s.mu.Lock()
			out.early = append(out.early, s.asked...)
			s.mu.Unlock()
			close(r.open)
		}
	}
	during(r, s, cancels)
	wait.Wait()
	for i := range files {
		out.texts[i] = files[i].String()
		p, err := coordinator.ReadShard(&files[i])
		if err != nil {
			t.Fatal(err)
		}
		out.parts[i] = p
		cancels[i]()
	}
	return out
}

// all are the cells of a stage, of all parts together.
func (o *outcome) all(t *testing.T, stage int) loadgen.Cells {
	t.Helper()
	cells := loadgen.Cells{}
	for _, p := range o.parts {
		for _, w := range p.Stages[stage].Works {
			if err := cells.Merge(w.Cells); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cells
}

// The parts together did what one process would have, each item once, and all
// their histograms merged are the one that one process has.
func TestPartsAreTheWhole(t *testing.T) {
	main := func(w *model.Work) { // one read each 40 ms: no worker waits for another
		w.Workers, w.TotalOps, w.Runtime, w.Rate, w.RateText = 7, 90, time.Minute, schedule.Constant{Rate: 25},
			"constant(25)"
		w.Ops[0].Division = model.ByObject
	}
	var one outcome
	synctest.Test(t, func(t *testing.T) { one = execute(t, whole(main), 1, nil) })
	for _, n := range []int{2, 3, 5, 9} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				many := execute(t, whole(main), n, nil)
				for i, err := range many.errs {
					if err != nil || many.parts[i].Torn {
						t.Errorf("part %d: %v, torn %v", i, err, many.parts[i].Torn)
					}
				}
				for _, k := range []int{0, 1, 3} {
					if diff := cmp.Diff(figures(t, one.all(t, k)), figures(t, many.all(t, k))); diff != "" {
						t.Errorf("stage %d (-one process +%d parts):\n%s", k, n, diff)
					}
				}
				if got := many.all(t, 2)[loadgen.Key{Label: "200", OK: true}].N; got != 90 {
					t.Errorf("%d reads, not 90", got)
				}
				early := 0
				for _, a := range many.early {
					if strings.Contains(a, "get") {
						early++
					}
				}
				if len(many.early) != 2+2*20 || early > 0 {
					t.Errorf("before the barrier opened there were %d requests, %d of them reads", len(many.early),
						early)
				}
				if len(many.store.asked) != len(one.store.asked) {
					t.Errorf("%d requests, one process made %d", len(many.store.asked), len(one.store.asked))
				}
			})
		})
	}
}

// figures of cells that can be compared.
func figures(t *testing.T, cells loadgen.Cells) map[string]string {
	t.Helper()
	all := map[string]string{}
	for k, c := range cells {
		text, err := c.Response.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%+v", k)] = fmt.Sprintf("%d ops, %d bytes, %s", c.N, c.Bytes, text)
	}
	return all
}

// A part that comes late to the barrier has its operations due as was agreed.
func TestLatePart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 300 * time.Millisecond
		order := whole(func(w *model.Work) {
			w.Runtime, w.Rate, w.RateText = 2*time.Second, schedule.Constant{Rate: 25}, "constant(25)"
		})
		order.Workload.Stages = order.Workload.Stages[2:3]
		clock, r := op.NewClock(), newRoom(1)
		s := &slow{clock: clock}
		close(r.open)
		var file bytes.Buffer
		var barrier sync.Once
		err := coordinator.RunShard(t.Context(), t.Context(), coordinator.ShardConfig{Order: order, Parts: 1,
			Group: "g", Rendezvous: seat{r, 0}, Out: &file, Version: "test", Clock: clock,
			Open: func(*model.Store) (client.Store, error) { return clienttest.Func(s.do), nil },
			Sleep: func(ctx context.Context, until time.Time) bool {
				barrier.Do(func() { until = until.Add(late) })
				return clienttest.Sleep(ctx, until)
			}})
		p, bad := coordinator.ReadShard(&file)
		if err = errors.Join(err, bad); err != nil {
			t.Fatal(err)
		}
		w := p.Stages[0].Works[0]
		c := w.Cells[loadgen.Key{Label: "200", OK: true}]
		if c == nil || c.N != 49 || time.Duration(c.Late.Max()) < late/2 || p.Barrier-w.Began != op.Time(late) {
			t.Errorf("%+v: began %v before it came", c, time.Duration(p.Barrier-w.Began))
		}
	})
}

func TestStagesBeginTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := execute(t, whole(func(w *model.Work) { w.Runtime = 5 * time.Second }), 3, nil)
		for k := range out.parts[0].Stages {
			for _, p := range out.parts[1:] {
				a, b := out.parts[0].Stages[k], p.Stages[k]
				if a.Began != b.Began {
					t.Errorf("stage %s began at %v and at %v", a.Name, a.Began, b.Began)
				}
				if k > 0 && b.Began < out.parts[0].Stages[k-1].Ended {
					t.Errorf("stage %s began before the one before had ended everywhere", b.Name)
				}
			}
		}
		if b := out.parts[0].Barrier; !b.Known() || b != out.parts[0].Stages[2].Began {
			t.Errorf("the barrier was at %v, and the stage main began at %v", b, out.parts[0].Stages[2].Began)
		}
	})
}

// A part that fails before the barrier ends all, but for what cleans up.
func TestOneFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := execute(t, whole(func(w *model.Work) { w.Runtime = 5 * time.Second }), 3,
			func(r *room, s *slow, _ []context.CancelFunc) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.fails = "put c1/myobjects7"
			})
		failed := 0
		for i, p := range out.parts {
			if out.errs[i] != nil {
				failed++
			}
			if !p.Stages[2].Skipped || p.Stages[3].Skipped || !p.Stages[3].Over {
				t.Errorf("part %d: main skipped %v, cleanup skipped %v", i, p.Stages[2].Skipped, p.Stages[3].Skipped)
			}
		}
		if failed != 1 {
			t.Errorf("%d parts say that they failed: %v", failed, out.errs)
		}
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := execute(t, whole(func(w *model.Work) { w.Runtime = time.Hour }), 2,
			func(r *room, _ *slow, cancel []context.CancelFunc) {
				time.Sleep(time.Minute)
				close(r.open)
				time.Sleep(10 * time.Second)
				for _, c := range cancel {
					c()
				}
			})
		for i, p := range out.parts {
			if out.errs[i] != nil || !p.Interrupted || p.Torn {
				t.Errorf("part %d: %v, interrupted %v, torn %v", i, out.errs[i], p.Interrupted, p.Torn)
			}
			if p.Stages[3].Skipped {
				t.Errorf("part %d did not clean up", i)
			}
		}
		deleted := 0
		for _, a := range out.store.asked {
			if strings.HasPrefix(a, "delete") {
				deleted++
			}
		}
		if deleted != 40 {
			t.Errorf("%d objects were deleted, of 40", deleted)
		}
	})
}

// What a part leaves that is killed has all but its last second, and its share
// is accounted for.
func TestLostPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := execute(t, whole(func(w *model.Work) {
			w.Runtime, w.Rate, w.RateText = 10*time.Second, schedule.Constant{Rate: 25}, "constant(25)"
		}), 2, nil)
		text := out.texts[1]
		var cut []string
		seconds := 0
		for line := range strings.Lines(text) {
			if strings.Contains(line, `"second":{"stage":2`) {
				seconds++
			}
			if seconds > 4 {
				break
			}
			cut = append(cut, line)
		}
		p, err := coordinator.ReadShard(strings.NewReader(strings.Join(cut, "") + `{"second":{"sta`))
		if err != nil {
			t.Fatal(err)
		}
		if !p.Torn {
			t.Fatal("it is not said to be torn")
		}
		var kept, share int64
		for _, c := range p.Stages[2].Works[0].Cells {
			kept += c.N
		}
		for _, c := range out.parts[1].Stages[2].Works[0].Cells {
			share += c.N
		}
		missing := p.Missing()
		var lost int64
		for k, c := range p.Stages[2].Works[0].Cells {
			if k.Lost {
				lost += c.N
			}
		}
		if kept == 0 || kept+lost != share {
			t.Errorf("%d kept and %d lost are not the %d of the share", kept, lost, share)
		}
		if len(missing) != 2 || !strings.Contains(missing[0], "stage main, work main: its 3 of 7 workers did") ||
			!strings.Contains(missing[1], "had not begun") {
			t.Errorf("missing: %q", missing)
		}
	})
}

func TestReadRefuses(t *testing.T) {
	head := `{"head":{"format":1,"parts":1,"workload":{"stages":[{"name":"s","works":[{"name":"w","kind":"normal","workers":1,"operations":[{"type":"read","name":"read"}]}]}]}}}` + "\n"
	for name, text := range map[string]string{
		"nothing": "", "half a head": head[:40], "no JSON": "fio-3.33\n", "no head": `{"done":{}}` + "\n",
		"two heads":              head + head,
		"newer":                  strings.Replace(head, `"format":1`, `"format":2`, 1),
		"no such part":           strings.Replace(head, `"parts":1`, `"parts":0`, 1),
		"no such stage":          head + `{"began":{"stage":1,"at":5}}` + "\n",
		"a work before it began": head + `{"second":{"work":"w","from":1,"to":2,"cells":[]}}` + "\n",
		"no such operation": head + `{"began":{"stage":0,"at":5}}` +
			"\n" + `{"second":{"work":"w","from":1,"to":2,"cells":[{"Key":{"Op":3},"Cell":{"N":1}}]}}` + "\n",
	} {
		if p, err := coordinator.ReadShard(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read as %+v", name, p)
		}
	}
	if p, err := coordinator.ReadShard(strings.NewReader(head)); err != nil || !p.Torn {
		t.Errorf("a head alone: %v", err)
	}
}

func FuzzReadShard(f *testing.F) {
	f.Add([]byte(`{"head":{"format":1,"parts":1,"workload":{"stages":[{"name":"s","works":[{"name":"w","kind":"normal","workers":1,"rate":"poisson(5)","operations":[{"type":"read","name":"read"}]}]}]}}}
{"began":{"stage":0,"at":5,"barrier":true}}
{"second":{"stage":0,"work":"w","from":5,"to":9,"cells":[{"Key":{"Op":0,"Label":"200","OK":true},"Cell":{"N":1}}]}}
{"ended":{"stage":0,"at":9,"works":[{"work":"w","began":5,"from":5,"to":9,"ended":9}]}}
{"done":{}}
`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := coordinator.ReadShard(bytes.NewReader(data))
		if err == nil && p == nil {
			t.Fatal(errors.New("neither a part nor an error"))
		}
	})
}
