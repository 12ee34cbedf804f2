package run

import (
	"context"
	"fmt"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// codeDependency is the code of ops whose object does not exist because the op that makes it did not succeed.
const codeDependency = "DependencyFailed"

// Before is the suffix of the action name in the record for ops that only make the objects that existed when
// the trace began. These ops are not part of the trace.
const Before = ".before"

// before makes the objects that existed when the trace began, in the order of the trace, with up to 32 ops at
// a time. Each op is recorded as intended when it starts. It returns when all have ended, or when ctx ends.
func (p *replay) before(ctx context.Context, failures *firstError) {
	const atOnce = 32
	free := make(chan struct{}, atOnce)
	for _, s := range p.Before {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		step := p.bind(s, p.Clock.Now())
		step.lost = func() { <-free }
		p.run(ctx, step, func(t *task) {
			t.closed, t.unblocked, t.op.Message = true, 0, "" // Intended is after the wait, so no wait is recorded
			t.op.Action += Before
			t.then = func(o *op.Op) {
				step.over(t)
				failures.of(o)
				<-free
			}
			p.start(t)
		})
	}
	for range atOnce {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// step executes the step of the trace that is due at this time.
func (p *replay) step(ctx context.Context, s plan.Step, at op.Time) {
	step := p.bind(s, at)
	p.run(ctx, step, func(t *task) {
		t.settle = func() { step.over(t) }
		p.offer(t)
	})
}

// cut flags a trace of which the rate did not execute all steps.
func (p *replay) cut() {
	p.mu.Lock()
	came := p.count.Triggers
	p.mu.Unlock()
	if all := int64(len(p.Steps)); came < all {
		p.flag(info, "traceCut", fmt.Sprintf("%s: %d of the trace's %d operations came due; the run, or the rate's duration or limit, ended before the others", p.Name, came, all))
	}
}

// step is a step of the trace in execution.
type step struct {
	plan.Step
	action *plan.Action
	at     op.Time
	on     *tracedObject // the object it acts on, or nil
	makes  *tracedObject
	after  []<-chan struct{} // closed when the ops that it waits for are over
	ended  chan struct{}
	lost   func() // called if the step cannot start; may be nil
}

// bind resolves the objects that a step names, and registers the step as their user or maker.
func (p *replay) bind(s plan.Step, at op.Time) *step {
	b := &step{Step: s, action: &p.Plan.Actions[s.Action], at: at, on: p.objects[s.On], ended: make(chan struct{})}
	if b.on != nil {
		b.after = []<-chan struct{}{b.on.made}
		if b.action.Kind.Effect() == op.Removes {
			b.after = append(b.after, b.on.users...)
			delete(p.objects, s.On)
		} else {
			b.on.users = append(unfinished(b.on.users), b.ended)
		}
	}
	if s.Makes != "" {
		b.makes = &tracedObject{made: b.ended}
		p.objects[s.Makes] = b.makes
	}
	return b
}

// unfinished returns those of the ops that are not over.
func unfinished(ops []<-chan struct{}) []<-chan struct{} {
	var left []<-chan struct{}
	for _, o := range ops {
		if !closed(o) {
			left = append(left, o)
		}
	}
	return left
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// over publishes what the op of a step has made, and releases the steps that wait for it.
func (s *step) over(t *task) {
	if s.makes != nil && t.op.Outcome == op.OK {
		for _, it := range t.made {
			if it.Kind == s.action.Makes() {
				s.makes.item, s.makes.ok = it, true
			}
		}
	}
	close(s.ended)
}

// run starts a step: at once if no op has to end first, else in a goroutine that counts as one of the run's
// ops.
func (p *replay) run(ctx context.Context, s *step, begin func(*task)) {
	if len(unfinished(s.after)) == 0 {
		p.begin(s, 0, begin)
		return
	}
	p.ops.Add(1)
	p.blocked.Add(1)
	go func() {
		defer p.ops.Done()
		defer p.blocked.Done()
		for _, c := range s.after {
			select {
			case <-c:
			case <-ctx.Done():
				p.lose(s, codeRunEnded, "the run ended while it waited for "+s.On)
				return
			}
		}
		p.begin(s, p.Clock.Now(), begin)
	}()
}

// begin creates a step's task when the ops that it waits for are over. If its object does not exist, the step
// is dropped.
func (p *replay) begin(s *step, unblocked op.Time, begin func(*task)) {
	if s.on == nil {
		begin(p.createTask(s.action, s.at, p.episodes.Add(1)))
		return
	}
	if !s.on.ok {
		p.lose(s, codeDependency, s.On+", which it acts on, was not made")
		return
	}
	o, there := p.inventory.claim(s.on.item, s.action.Kind.Effect() == op.Removes)
	if !there {
		p.lose(s, codeNoTarget, s.On+" is gone: something else has deleted it")
		return
	}
	t := p.onTarget(s.action, s.at, p.episodes.Add(1), o)
	if unblocked > 0 {
		t.waited(unblocked, s.On)
	}
	begin(t)
}

// lose records a step that cannot be executed as dropped.
func (p *replay) lose(s *step, code, why string) {
	o := p.newOp(s.action, s.at, p.episodes.Add(1))
	o.Target = s.On
	p.mu.Lock()
	p.count.Ops++
	p.count.Dropped++
	p.mu.Unlock()
	p.drop(o, code, why)
	close(s.ended)
	if s.lost != nil {
		s.lost()
	}
}

// claim returns the current state of an item and whether it still exists. With take it also removes the item.
func (v *inventory) claim(it item, take bool) (engine.Object, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, there := v.at(it)
	if there && take {
		v.remove(it)
	}
	return now.Object, there
}
