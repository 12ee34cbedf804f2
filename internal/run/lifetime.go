package run

import (
	"context"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// startLifetimes adds the objects that an op has made to the queues of the rates with lifetimes. Lifetimes
// count from the op's intended time.
func (r *runner) startLifetimes(o *op.Op, made []item) {
	rates := r.lifetimeRates.Load()
	if rates == nil {
		return
	}
	for _, rt := range *rates {
		if rt.deadlineQueue == nil {
			continue
		}
		for _, it := range made {
			rt.addDeadline(it, o.Intended, o.Ended, false)
		}
	}
}

// addDeadline adds a trigger for each action that has the object as target. With met, the object existed when
// the rate started, and its residual lifetime counts.
func (rt *rateRunner) addDeadline(it item, from, born op.Time, met bool) {
	for _, a := range rt.actions {
		t := a.Target
		if t.Kind != it.Kind || t.Action != "" && t.Action != it.Action || !matches(t, &it.Object) {
			continue
		}
		seed := seedOf(rt.Plan.Seed, rt.Name)
		life := rt.Lifetime.Of(seed, it.Name)
		if met {
			life = rt.Lifetime.Rest(seed, it.Name)
		}
		rt.deadlineQueue.add(deadline{from + op.Time(life), born, a, it})
	}
}

// lifetimes triggers the actions for each object at the end of its lifetime. An object that exists when the
// rate starts is at a random instant of its life then.
func (rt *rateRunner) lifetimes(ctx context.Context, start op.Time) {
	if rt.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, rt.Clock.At(start).Add(rt.Duration))
		defer cancel()
	}
	for _, it := range rt.inventory.all() {
		rt.addDeadline(it, start, start, true)
	}
	for n := int64(0); rt.Limit == 0 || n < rt.Limit; n++ {
		d, ok := rt.awaitFirst(ctx)
		if !ok {
			return
		}
		rt.mu.Lock()
		rt.count.Triggers++
		rt.mu.Unlock()
		rt.end(d)
	}
}

// awaitFirst returns the first trigger when it is due. The precise sleep of the last milliseconds is not
// interrupted: an earlier trigger that is added meanwhile is late by up to that time.
func (rt *rateRunner) awaitFirst(ctx context.Context) (deadline, bool) {
	const coarse = 2 * time.Millisecond
	for {
		at, ok := rt.deadlineQueue.first()
		wait := time.NewTimer(time.Hour)
		if ok {
			wait.Reset(time.Until(rt.Clock.At(at)) - coarse)
		}
		select {
		case <-ctx.Done():
			wait.Stop()
			return deadline{}, false
		case <-rt.deadlineQueue.sooner:
			wait.Stop()
			continue
		case <-wait.C:
		}
		if !ok {
			continue
		}
		if !rt.Sleep(ctx, rt.Clock.At(at)) {
			return deadline{}, false
		}
		return rt.deadlineQueue.pop(), true
	}
}

// end executes the action of a trigger, or records it as dropped if the object was deleted otherwise.
func (rt *rateRunner) end(d deadline) {
	o, there := rt.inventory.claim(d.item, d.action.Kind == op.Delete)
	if !there {
		rt.mu.Lock()
		rt.count.Ops++
		rt.count.Dropped++
		rt.mu.Unlock()
		lost := rt.newOp(d.action, d.at, rt.episodes.Add(1))
		lost.Target = d.item.Name
		rt.drop(lost, codeNoTarget, "something else has deleted it")
		return
	}
	t := rt.onTarget(d.action, d.at, rt.episodes.Add(1), o)
	if d.born > d.at {
		t.unblocked, t.op.Message = d.born, "it was created after the end of its lifetime"
	}
	rt.offer(t)
}

// all returns all objects, in no particular order.
func (v *inventory) all() []item {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []item
	for _, items := range v.groups {
		list = append(list, items...)
	}
	return list
}
