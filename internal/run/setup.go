package run

import (
	"context"
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// BarrierLead is the time between the announcement of the barrier's opening and the opening, so that every agent of
// that many instances knows the time in advance (docs/benchmarks.md#agents).
func BarrierLead(instances int) time.Duration {
	return 200*time.Millisecond + time.Duration(instances)*2*time.Millisecond
}

// setUp starts the actions without a rate that create objects, and waits for them. It returns the other
// actions without a rate, which run first after the barrier.
func (r *runner) setUp(ctx context.Context) (after []*plan.Action, err error) {
	var ended []<-chan struct{}
	failures := &firstError{}
	for i := range r.Plan.Actions {
		a := &r.Plan.Actions[i]
		switch {
		case a.Rate != "" || a.Chained:
		case a.Target != nil || a.Drain != nil:
			after = append(after, a)
		default:
			ended = append(ended, r.fire(a, r.Clock.Now(), func(o *op.Op) { failures.of(o) }))
		}
	}
	for _, rt := range r.rates {
		if rt.replay != nil {
			rt.replay.before(ctx, failures)
		}
	}
	for _, done := range ended {
		select {
		case <-done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return after, failures.err()
}

// openBarrier releases every sync group at the same time, which is also the start of the rates. It then
// starts the actions of after in sequence.
func (r *runner) openBarrier(ctx context.Context, after []*plan.Action) error {
	at := r.Clock.Now()
	if groups := r.instances.groups(); len(groups) > 0 {
		n := 0
		for _, names := range groups {
			n += len(names)
		}
		at += op.Time(BarrierLead(n))
		for group, names := range groups {
			if err := r.Engine.Release(ctx, group, names, at); err != nil {
				return fmt.Errorf("barrier %q: %w", group, err)
			}
		}
	}
	r.result.BarrierAt = at
	r.inSequence(ctx, after, at)
	return nil
}

// inSequence fires actions one after another in the background: the first at the time at, each other when the
// previous one has ended, since it may act on what that one makes.
func (r *runner) inSequence(ctx context.Context, actions []*plan.Action, at op.Time) {
	if len(actions) == 0 {
		return
	}
	r.ops.Add(1)
	go func() {
		defer r.ops.Done()
		if !r.Sleep(ctx, r.Clock.At(at)) {
			r.skip(actions, at)
			return
		}
		for i, a := range actions {
			select {
			case <-r.fire(a, at, nil):
			case <-ctx.Done():
				r.skip(actions[i+1:], r.Clock.Now())
				return
			}
			at = r.Clock.Now()
		}
	}()
}

// skip records actions that were not started before the run ended.
func (r *runner) skip(actions []*plan.Action, at op.Time) {
	for _, a := range actions {
		r.drop(r.newOp(a, at, r.episodes.Add(1)), codeRunEnded, "the run ended first")
	}
}
