package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/footprint"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Sequence runs the stages of a workload one after the other. When ctx ends, or a stage fails, it skips the remaining
// stages except those that clean up; when hard ends, those too. It calls ended for each stage that was not skipped. A
// cause of ctx other than context.Canceled is why the run failed.
func Sequence(ctx, hard context.Context, w *model.Workload, execute func(ctx, hard context.Context,
	s *model.Stage) *StageResult, ended func(*StageResult)) *Result {
	r := &Result{}
	for i := range w.Stages {
		s := &w.Stages[i]
		failed := r.Err != nil || ctx.Err() != nil
		if hard.Err() != nil || failed && !Cleans(s) {
			r.Stages = append(r.Stages, StageResult{Name: s.Name, Skipped: true})
			continue
		}
		in := ctx
		if Cleans(s) {
			in = hard // an interrupted run still cleans up
		}
		result := execute(in, hard, s)
		r.Stages = append(r.Stages, *result)
		ended(result)
		if result.Err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("stage %s: %w", s.Name, result.Err))
		}
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case errors.Is(cause, context.Canceled):
		r.Interrupted = true
	default:
		r.Err = errors.Join(r.Err, cause)
	}
	r.Aborted = hard.Err() != nil
	return r
}

// Cleans reports whether a stage only removes things.
func Cleans(s *model.Stage) bool {
	for _, w := range s.Works {
		if w.Kind != model.Cleanup && w.Kind != model.Dispose {
			return false
		}
	}
	return true
}

// Runner runs stages, one after the other; between them it remembers which containers are ours.
type Runner struct{ config Config }

// NewRunner makes one.
func NewRunner(c Config) *Runner {
	c.nonce, c.owned, c.absent = rand.Uint64(), map[string]bool{}, map[string]bool{}
	return &Runner{c}
}

// Stage runs one stage. When ctx ends its works end, and after Grace their operations in flight; when hard ends,
// everything ends at once.
func (r *Runner) Stage(ctx, hard context.Context, s *model.Stage) *StageResult {
	return r.config.stage(ctx, hard, s)
}

// stage runs the works of a stage side by side.
func (c *Config) stage(ctx, hard context.Context, s *model.Stage) *StageResult {
	r := &StageResult{Name: s.Name, Began: c.Clock.Now()}
	c.Observer.StageBegan(s, r.Began)
	works, workers, err := c.ready(ctx, s)
	if err != nil {
		r.Err, r.Ended = err, c.Clock.Now()
		return r
	}
	if !measuredAtOnce(s) {
		_ = footprint.Unmap() // without it, only more memory is resident
	}
	if r.Began, err = c.begin(ctx); err != nil {
		discard(workers)
		r.Err, r.Ended = err, c.Clock.Now()
		return r
	}
	before := UsageNow()
	var wait sync.WaitGroup
	ended := make(chan int, len(works))
	r.Works = make([]WorkResult, len(works))
	for i, k := range works {
		k.start(r.Began)
		wait.Go(func() {
			k.execute(ctx, hard, workers[i])
			ended <- i
		})
	}
	c.follow(works, r, ended)
	wait.Wait()
	r.Usage = UsageNow().since(before)
	r.Outages, r.TokenRequests = outages(works, r.Began, c.Clock.Now()), tokenRequests(works)
	for i := range r.Works {
		r.Works[i].Routes = routes(works[i].store)
		if r.Works[i].Err == nil {
			r.Works[i].Err = judge(&r.Works[i], works[i].stopped())
		}
		if err := r.Works[i].Err; err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("work %s: %w", r.Works[i].Work.Name, err))
		}
	}
	if s.Closure > 0 && r.Err == nil {
		c.Sleep(ctx, c.Clock.At(c.Clock.Now()+op.Time(s.Closure)))
	}
	r.Ended = c.Clock.Now()
	return r
}

// measuredAtOnce says whether the first operations of a stage are measured.
func measuredAtOnce(s *model.Stage) bool {
	return slices.ContainsFunc(s.Works, func(w model.Work) bool { return w.Kind == model.Normal && w.RampUp == 0 })
}

func (c *Config) begin(ctx context.Context) (op.Time, error) {
	if c.Begin == nil {
		return c.Clock.Now(), nil
	}
	return c.Begin(ctx)
}

// discard closes the clients of workers that never run.
func discard(workers [][]*worker) {
	for _, of := range workers {
		for _, w := range of {
			w.client.Close()
		}
	}
}

// ready makes all that a stage needs before its clock starts: clients,
// selectors, and the knowledge that its containers are ours.
func (c *Config) ready(ctx context.Context, s *model.Stage) ([]*working, [][]*worker, error) {
	var works []*working
	var workers [][]*worker
	for i := range s.Works {
		w := &s.Works[i]
		if w.Kind == model.Delay {
			continue
		}
		st, err := c.Open(&w.Store)
		if err != nil {
			return nil, nil, atLine(w.Line, err)
		}
		if err := c.checkOwners(ctx, st, w); err != nil {
			return nil, nil, err
		}
		k, err := newWorking(c, s.Name, w, st)
		if err != nil {
			return nil, nil, atLine(w.Line, err)
		}
		if err := k.loadKeys(ctx, st); err != nil {
			return nil, nil, err
		}
		k.store = st
		var all []*worker
		for n := range w.Workers {
			one, err := k.worker(n)
			if err != nil {
				return nil, nil, err
			}
			all = append(all, one)
		}
		works, workers = append(works, k), append(workers, all)
	}
	return works, workers, nil
}

// execute runs the workers until they have ended; Grace after the work's end, or after it was stopped, their
// operations in flight are aborted.
func (k *working) execute(ctx, hard context.Context, workers []*worker) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopSoft := context.AfterFunc(ctx, func() {
		k.halt()
		cancel() // wakes those that sleep; exchanges go on
		time.AfterFunc(k.config.Grace, k.abort)
	})
	defer stopSoft()
	defer context.AfterFunc(hard, func() {
		k.halt()
		cancel()
		k.abort()
	})()
	if k.end.Known() {
		t := time.AfterFunc(time.Until(k.config.Clock.At(k.end))+k.config.Grace, k.abort)
		defer t.Stop()
	}
	var wait sync.WaitGroup
	for _, w := range workers {
		wait.Go(func() { w.run(inner) })
	}
	wait.Wait()
}

// follow gathers results each second until all works have ended.
func (c *Config) follow(works []*working, r *StageResult, ended <-chan int) {
	from := make([]op.Time, len(works))
	over := make([]bool, len(works))
	for i, k := range works {
		r.Works[i] = WorkResult{Work: k.work, Began: k.began, From: k.from, To: k.to, Cells: Cells{}}
		from[i] = k.began
	}
	settle := make([]settling, len(works))
	for i := range settle {
		settle[i].since = op.Never
	}
	collect := func(i int, now op.Time) {
		k, w := works[i], &r.Works[i]
		cells, err := k.take()
		if err == nil {
			err = w.Cells.Merge(cells)
		}
		if err != nil {
			w.Err = err
			return
		}
		if k.work.UntilSteady && !over[i] {
			if s := settle[i].add(k, from[i], now, cells); s != nil {
				if w.Steady = s; s.Steady {
					k.halt()
				}
			}
		}
		c.Observer.Second(r.Name, k.work, from[i], now, cells)
		from[i] = now
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for left := len(works); left > 0; {
		select {
		case i := <-ended:
			now := c.Clock.Now()
			over[i] = true
			left--
			collect(i, now)
			r.Works[i].close(now, op.Time(works[i].halted.Load()))
		case <-tick.C:
			now := c.Clock.Now()
			for i := range works {
				if !over[i] {
					collect(i, now)
				}
			}
		}
	}
}

// close sets the end of the work, and the end of its window if the work was stopped or ended before.
func (w *WorkResult) close(now, halted op.Time) {
	w.Ended = now
	end := now
	if halted.Known() {
		end = min(now, halted)
	}
	if !w.To.Known() || w.To > end {
		w.To = end
	}
	w.From = min(w.From, w.To)
}

// anyFailures is how many in a million a work accepts that accepts all: then it
// may also have been that nothing ended at all.
const anyFailures = 1_000_000

// judge returns an error if more operations failed than the work accepts, or none of the due ones ended. It also
// fails a work without any operation, unless the work was stopped, or is a share that may have none.
func judge(w *WorkResult, stopped bool) error {
	var n, bad, unbegun, unended int64
	worst, many := "", int64(0)
	cells, err := w.Cells.whole()
	if err != nil {
		return err
	}
	for k, c := range cells {
		if k.Ramp || !k.Whole() {
			continue
		}
		if k.Lost {
			if k.Label == Dropped {
				unbegun += c.N
			} else {
				unended += c.N
			}
			continue
		}
		n += c.N
		if k.OK {
			continue
		}
		bad += c.N
		if c.N > many {
			worst, many = fmt.Sprintf("%s: %s", w.Work.Ops[k.Op].Name, k.Label), c.N
			if c.Detail != "" {
				worst += " (" + c.Detail + ")"
			}
		}
	}
	if n+unbegun+unended == 0 && !stopped && w.Work.Kind == model.Normal && w.Work.Workers == w.Work.AllWorkers() &&
		w.Work.MaxFailures < anyFailures {
		return fmt.Errorf("nothing was measured: no operation began in the window from %v to %v of the work, "+
			"which ended after %v",
			time.Duration(w.From-w.Began), time.Duration(w.To-w.Began), time.Duration(w.Ended-w.Began))
	}
	if lost := unbegun + unended; n == 0 && lost > 0 && w.Work.MaxFailures < anyFailures {
		return fmt.Errorf("none of the %d operations that were due ended: %d had not begun when the work was "+
			"over, %d were under way", lost, unbegun, unended)
	}
	if bad > 0 && float64(bad)*1e6 > float64(n)*float64(w.Work.MaxFailures) {
		return fmt.Errorf("%d of %d operations failed, more than %d in a million; most of them %s", bad, n,
			w.Work.MaxFailures, worst)
	}
	return nil
}
