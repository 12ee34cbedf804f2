package run

import (
	"context"
	"fmt"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// codeDependency is of ops whose object was not made, because the op that was to
// make it did not succeed.
const codeDependency = "DependencyFailed"

// replay carries out the steps of a trace. Each is intended when the trace says,
// whatever became of those before it. One that acts on an object waits until the
// op that makes it is over, and a removal until all earlier ops on it are too;
// while it waits, later steps go on. Only its dispatcher uses it.
type replay struct {
	*rateRunner
	objects map[string]*tracedObject
	blocked sync.WaitGroup // steps that wait for others
}

// tracedObject is an object that an op of the trace makes.
type tracedObject struct {
	made  <-chan struct{} // closed when that op is over
	item  item            // then: what it made
	ok    bool            // then: whether it did
	users []<-chan struct{}
}

// Before is what the record puts behind an action's name for ops that only make
// what was there when a trace began: they are none of the trace's.
const Before = ".before"

// before makes what was there when the trace began, in its order and so many at
// once; each op is recorded as intended when it starts. It returns when all have
// ended.
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
			t.closed, t.unblocked, t.op.Message = true, 0, "" // its wait is over when it is intended
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

// step does what the trace has at this instant.
func (p *replay) step(ctx context.Context, s plan.Step, at op.Time) {
	step := p.bind(s, at)
	p.run(ctx, step, func(t *task) {
		t.settle = func() { step.over(t) }
		p.offer(t)
	})
}

// cut says how much of the trace the rate did not come to.
func (p *replay) cut() {
	p.mu.Lock()
	came := p.count.Triggers
	p.mu.Unlock()
	if all := int64(len(p.Steps)); came < all {
		p.flag(info, "traceCut", fmt.Sprintf("%s: %d of the trace's %d operations came due; the run, or the rate's duration or limit, ended before the others", p.Name, came, all))
	}
}

// step is one step under way.
type step struct {
	plan.Step
	action *plan.Action
	at     op.Time
	on     *tracedObject // what it acts on; nil: nothing
	makes  *tracedObject
	after  []<-chan struct{} // ops that it waits for
	ended  chan struct{}
	lost   func() // called if it cannot be begun; may be nil
}

// bind ties a step to the objects that it names, and these to it.
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

// unfinished drops ops that are over.
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

// over gives what the op of a step has made to those that wait for it.
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

// run begins a step: at once if nothing is in its way, else in a goroutine that
// counts as one of the run's ops.
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

// begin makes a step's task, now that its object is there.
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

// lose records a step that cannot be done.
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

// claim gives an item as it is now, if it is still there, and with take removes
// it in the same step.
func (v *inventory) claim(it item, take bool) (engine.Object, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, there := v.at(it)
	if there && take {
		v.remove(it)
	}
	return now.Object, there
}
