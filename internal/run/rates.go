package run

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// failurePause is the pause of a slot of a closed loop after a failed op, so that a broken driver does not
// get millions of requests per second.
const failurePause = 100 * time.Millisecond

// makeRates creates the rateRunners of all rates that have actions.
func (r *runner) makeRates() {
	r.result.Rates = make([]RateCount, len(r.Plan.Rates))
	for i := range r.Plan.Rates {
		rt := &rateRunner{runner: r, Rate: &r.Plan.Rates[i], count: &r.result.Rates[i]}
		rt.place = fmt.Sprintf("a place: maxInFlight is %d", rt.MaxInFlight)
		rt.count.Rate, rt.count.Lateness = rt.Name, hist.New()
		for j := range r.Plan.Actions {
			if a := &r.Plan.Actions[j]; a.Rate == rt.Name {
				rt.actions = append(rt.actions, a)
			}
		}
		switch {
		case len(rt.actions) == 0:
			continue
		case rt.Steps != nil:
			rt.replay = &replay{rateRunner: rt, objects: map[string]*tracedObject{}}
		case rt.Lifetime != nil:
			rt.deadlineQueue = newDeadlineQueue()
		}
		r.rates = append(r.rates, rt)
	}
}

// startRates runs every rate in its own goroutine until ctx ends. The WaitGroup is done when no rate triggers
// any more, except for those that startLate starts.
func (r *runner) startRates(ctx context.Context) *sync.WaitGroup {
	var all sync.WaitGroup
	for _, rt := range r.rates {
		if rt.deadlineQueue != nil {
			r.lifetimeRates.Store(&r.rates)
		}
		if rt.StartAction != "" {
			r.ends.first(rt.StartAction, func(at op.Time) { r.startLate(ctx, rt, at) })
			continue
		}
		all.Add(1)
		go func() {
			defer all.Done()
			rt.run(ctx, rt.result.BarrierAt+op.Time(rt.StartAfter))
		}()
	}
	return &all
}

// startLate starts a rate after the first op of an action has ended. The rate counts as one of the run's ops,
// so that the run waits for its end.
func (r *runner) startLate(ctx context.Context, rt *rateRunner, at op.Time) {
	r.ops.Add(1)
	go func() {
		defer r.ops.Done()
		rt.run(ctx, max(at, r.result.BarrierAt))
	}()
}

func (rt *rateRunner) run(ctx context.Context, start op.Time) {
	if !rt.Sleep(ctx, rt.Clock.At(start)) {
		return
	}
	switch {
	case rt.Closed():
		rt.closedLoop(ctx, start)
		rt.count.Active = time.Duration(rt.Clock.Now() - start)
		return
	case rt.Lifetime != nil:
		rt.lifetimes(ctx, start)
	case rt.Condition != nil:
		rt.conditional(ctx, start)
	default:
		rt.openLoop(ctx, start)
	}
	rt.count.Active = time.Duration(rt.Clock.Now() - start)
	if rt.replay != nil {
		rt.replay.blocked.Wait()
		rt.replay.cut()
	}
	if !rt.queueEmptied(ctx) {
		rt.abandonQueue()
	}
}

// openLoop dispatches each trigger at its due time, or at once if it is late.
func (rt *rateRunner) openLoop(ctx context.Context, start op.Time) {
	times := rt.Schedule.New(seedOf(rt.Plan.Seed, rt.Name))
	for n := int64(0); rt.Limit == 0 || n < rt.Limit; n++ {
		t, ok := times.Next()
		if !ok || rt.Duration > 0 && t.Due > rt.Duration {
			return
		}
		at := start + op.Time(t.Due)
		if !rt.Sleep(ctx, rt.Clock.At(at)) {
			return
		}
		rt.trigger(ctx, at, t)
	}
}

func (rt *rateRunner) trigger(ctx context.Context, at op.Time, what schedule.Trigger) {
	rt.mu.Lock()
	rt.count.Triggers++
	rt.mu.Unlock()
	if rt.replay != nil {
		rt.replay.step(ctx, rt.Steps[what.Step], at)
		return
	}
	for _, a := range rt.actions {
		if way := a.Way(); what.Way != schedule.NoWay && way != schedule.NoWay && way != what.Way {
			continue
		}
		for _, t := range rt.tasks(a, at, nil) {
			if rt.because != "" {
				t.op.Message = rt.because
			}
			rt.offer(t)
		}
	}
}

// offer starts a task. If MaxInFlight ops are in flight, it queues or drops the task.
func (rt *rateRunner) offer(t *task) {
	t.then = func(o *op.Op) {
		rt.observe(o)
		t.settled()
		rt.next()
	}
	rt.mu.Lock()
	rt.count.Ops++
	full := rt.MaxInFlight > 0 && rt.inFlight >= rt.MaxInFlight
	switch {
	case full && rt.Queue:
		rt.waiting = append(rt.waiting, t)
		rt.count.QueuedMax = max(rt.count.QueuedMax, int64(len(rt.waiting)))
	case full:
		rt.count.Dropped++
	default:
		rt.inFlight++
	}
	rt.mu.Unlock()
	switch {
	case !full:
		rt.begin(t)
	case !rt.Queue:
		rt.putBack(t)
		rt.drop(t.op, codeSaturated, "maxInFlight ops were in flight")
		t.settled()
	}
}

func (rt *rateRunner) begin(t *task) {
	started := rt.start(t)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if started {
		rt.count.Started++
	} else {
		rt.count.Dropped++
	}
}

// lateBound is the lateness above which an op counts as late.
const lateBound = 10 * time.Millisecond

// observe counts the outcome and the lateness of an op.
func (rt *rateRunner) observe(o *op.Op) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if o.Outcome == op.OK {
		rt.count.OK++
	}
	late, ok := o.Lateness()
	if !ok || rt.Closed() {
		return
	}
	_ = rt.count.Lateness.Record(max(0, late)) // never negative: no op starts early
	if late > int64(lateBound) {
		rt.count.Late++
	}
}

// next frees a slot or gives it to the task that has waited longest.
func (rt *rateRunner) next() {
	rt.mu.Lock()
	if len(rt.waiting) == 0 {
		rt.inFlight--
		rt.mu.Unlock()
		return
	}
	t := rt.waiting[0]
	rt.waiting = rt.waiting[1:]
	if len(rt.waiting) == 0 && rt.emptied != nil {
		close(rt.emptied)
		rt.emptied = nil
	}
	rt.mu.Unlock()
	t.waited(rt.Clock.Now(), rt.place)
	rt.begin(t)
}

// queueEmptied waits until the queue of a rate without further triggers is empty. It returns false if ctx
// ends first.
func (rt *rateRunner) queueEmptied(ctx context.Context) bool {
	rt.mu.Lock()
	emptied := make(chan struct{})
	if len(rt.waiting) == 0 {
		close(emptied)
	} else {
		rt.emptied = emptied
	}
	rt.mu.Unlock()
	select {
	case <-emptied:
		return true
	case <-ctx.Done():
		return false
	}
}

// abandonQueue drops the tasks that are still queued at the end of the run.
func (rt *rateRunner) abandonQueue() {
	rt.mu.Lock()
	left := rt.waiting
	rt.waiting = nil
	rt.count.Dropped += int64(len(left))
	rt.mu.Unlock()
	for _, t := range left {
		rt.putBack(t)
		rt.drop(t.op, codeRunEnded, "the run ended while it waited")
		t.settled()
	}
}

// putBack returns the targets of a delete that was not started to the inventory.
func (rt *rateRunner) putBack(t *task) {
	if t.action.Kind == op.Delete {
		rt.inventory.add(t.targets...)
	}
}

// closedLoop keeps Parallelism triggers in flight.
func (rt *rateRunner) closedLoop(ctx context.Context, start op.Time) {
	if rt.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, rt.Clock.At(start).Add(rt.Duration))
		defer cancel()
	}
	var slots sync.WaitGroup
	for i := range rt.Parallelism {
		slots.Add(1)
		go func() {
			defer slots.Done()
			rt.slot(ctx, i)
		}()
	}
	slots.Wait()
}

// slot runs one trigger after another. The actions of the rate alternate.
func (rt *rateRunner) slot(ctx context.Context, turn int) {
	// The worker goroutine outlives the slot if an op is in flight when the run ends.
	worker := make(chan func(), 1)
	defer close(worker)
	go func() {
		for work := range worker {
			work()
		}
	}()
	for ctx.Err() == nil && rt.take() {
		a := rt.actions[turn%len(rt.actions)]
		turn++
		if !rt.once(ctx, a, worker) && !rt.Sleep(ctx, time.Now().Add(failurePause)) {
			return
		}
	}
}

// take counts one trigger. It returns false when the limit is reached.
func (rt *rateRunner) take() bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.Limit > 0 && rt.count.Triggers >= rt.Limit {
		return false
	}
	rt.count.Triggers++
	return true
}

// once runs one trigger of a closed loop until all its ops have ended, and reports whether all succeeded. The
// first op runs on worker.
func (rt *rateRunner) once(ctx context.Context, a *plan.Action, worker chan<- func()) bool {
	tasks := rt.tasks(a, rt.Clock.Now(), nil)
	ended := make(chan *task, len(tasks))
	for i, t := range tasks {
		t.closed = true
		if i == 0 {
			t.worker = worker
		}
		t.then = func(o *op.Op) {
			rt.observe(o)
			ended <- t
		}
		rt.mu.Lock()
		rt.count.Ops++
		rt.mu.Unlock()
		rt.begin(t)
	}
	ok := true
	for range tasks {
		select {
		case t := <-ended:
			ok = ok && t.op.Outcome == op.OK && !t.broken
			if rt.UntilEnded && t.op.Outcome == op.OK {
				rt.instances.waitFor(ctx, t.op.Target)
			}
		case <-ctx.Done():
			return false
		}
	}
	return ok
}

// seedOf derives a separate random stream for each rate from the run's seed.
func seedOf(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return seed ^ h.Sum64()
}
