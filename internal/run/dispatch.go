package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// fire starts every op of one trigger of an action, without a limit on ops in flight. The channel is closed
// when all of them have ended.
func (r *runner) fire(a *plan.Action, due op.Time, then func(*op.Op)) <-chan struct{} {
	done := make(chan struct{})
	var pending sync.WaitGroup
	for _, t := range r.tasks(a, due, nil) {
		pending.Add(1)
		t.then = func(o *op.Op) {
			if then != nil {
				then(o)
			}
			pending.Done()
		}
		r.start(t)
	}
	go func() { pending.Wait(); close(done) }()
	return done
}

// tasks returns the ops of one trigger of an action: one per instance for actions that create objects, one
// per target for actions on targets. If no target is found, it returns one task with an empty request, which
// start records as dropped. within is the episode that the action belongs to. If it is nil, the ops start a
// new episode: one for each op if other actions follow, else one for all.
func (r *runner) tasks(a *plan.Action, due op.Time, within *episode) []*task {
	number := r.numbers(a, within)
	if a.Drain != nil {
		return []*task{r.drainTask(a, due, number())}
	}
	if a.Target == nil {
		tasks := make([]*task, a.Count)
		for i := range tasks {
			tasks[i] = r.createTask(a, due, number())
		}
		return tasks
	}
	targets := r.targets(a, within)
	if len(targets) == 0 {
		return []*task{{op: r.newOp(a, due, number()), action: a}}
	}
	if a.Snapshot != nil && a.Snapshot.Group {
		return []*task{r.groupSnapshot(a, due, number(), targets)}
	}
	tasks := make([]*task, 0, len(targets))
	for _, o := range targets {
		tasks = append(tasks, r.onTarget(a, due, number(), o))
	}
	return tasks
}

// numbers returns a function that gives each op of one trigger its episode number.
func (r *runner) numbers(a *plan.Action, within *episode) func() int64 {
	switch {
	case within != nil:
		return func() int64 { return within.id }
	case len(a.Then) > 0:
		return func() int64 { return r.episodes.Add(1) }
	}
	id := r.episodes.Add(1)
	return func() int64 { return id }
}

// targets selects the objects that one trigger of an action acts on.
func (r *runner) targets(a *plan.Action, within *episode) []engine.Object {
	if o := a.Target.Object; o != nil {
		return []engine.Object{{Kind: a.Target.Kind, Name: o.Name, Ref: o}}
	}
	take := a.Kind.Effect() == op.Removes
	if within != nil && within.means(a.Target) {
		return r.inventory.findAmong(within.made, a.Name, a.Target, take)
	}
	if a.Target.Kind == engine.WorkloadObject && !take {
		return r.inventory.findRunning(a.Name, a.Target, r.instances.isRunning)
	}
	return r.inventory.find(a.Name, a.Target, take)
}

// waited records what the task waited for and until when. This wait is not counted as lateness of the runner.
func (t *task) waited(until op.Time, what string) {
	t.unblocked = until
	if t.op.Message != "" {
		t.op.Message += "; "
	}
	t.op.Message += "waited for " + what
}

// hasNoTarget reports whether the action needs a target and none was found.
func (t *task) hasNoTarget() bool {
	return t.action.Target != nil && len(t.targets) == 0 && t.request.Snapshot == nil
}

func (r *runner) newOp(a *plan.Action, due op.Time, episode int64) op.Op {
	n, _ := r.counters.LoadOrStore(a.Name, new(atomic.Int64))
	return op.Op{
		ID: r.ids.Add(1), Episode: episode, Action: a.Name, Kind: a.Kind,
		Instance: int(n.(*atomic.Int64).Add(1) - 1),
		Intended: due, Started: op.Never, Ended: op.Never,
	}
}

func (r *runner) newTask(a *plan.Action, due op.Time, episode int64) *task {
	o := r.newOp(a, due, episode)
	return &task{op: o, action: a, request: engine.Request{
		ID: o.ID, Kind: a.Kind, Action: a.Name, Instance: o.Instance,
		Name: fmt.Sprintf("%s-%d", a.Name, o.Instance), PodTemplate: a.PodTemplate,
	}}
}

func (r *runner) createTask(a *plan.Action, due op.Time, episode int64) *task {
	t := r.newTask(a, due, episode)
	t.op.Target = t.request.Name
	return t
}

func (r *runner) groupSnapshot(a *plan.Action, due op.Time, episode int64, targets []engine.Object) *task {
	t := r.newTask(a, due, episode)
	names := make([]string, len(targets))
	for i, o := range targets {
		names[i] = o.Name
	}
	t.op.Target = strings.Join(names, ",")
	t.request.Snapshot = &engine.Snapshot{Sources: targets, Class: a.Snapshot.Class, Group: true}
	return t
}

func (r *runner) onTarget(a *plan.Action, due op.Time, episode int64, target engine.Object) *task {
	t := r.newTask(a, due, episode)
	t.op.Target = target.Name
	t.targets = []engine.Object{target}
	t.request.Target = target
	a.Complete(&t.request, func() int64 { return r.turnOf(target.Name, a.Name) })
	if a.Kind.Effect() == op.Removes {
		r.instances.deleting(target)
	}
	return t
}

// prepare renders the manifests of what the op makes, marks a workload that the op restarts, and calls the
// engine's Prepare if it has one.
func (r *runner) prepare(t *task) error {
	a, q := t.action, &t.request
	switch {
	case a.Workload != nil:
		w, err := a.Workload.Render(r.RunID, q.Instance)
		if err != nil {
			return err
		}
		q.Workload = &w
	case a.Volume != nil:
		v := a.Volume.Render(r.RunID, q.Instance)
		if len(t.targets) > 0 {
			source := t.targets[0]
			if source.Kind == engine.SnapshotObject {
				v.FromSnapshot = &source
			} else {
				v.FromVolume = &source
			}
		}
		q.Volume = &v
	case a.Manifest != nil:
		o, err := a.Manifest.Render(r.RunID, q.Instance)
		if err != nil {
			return err
		}
		q.Manifest = &engine.Manifest{Object: o}
	}
	if len(t.targets) > 0 {
		r.instances.markRestarting(restartedWorkload(a, t.targets[0]))
	}
	if p, ok := r.Engine.(engine.Preparer); ok {
		return p.Prepare(*q)
	}
	return nil
}

// start runs a task in a goroutine and returns at once. It returns false if there is no target; the op is
// then recorded as dropped.
func (r *runner) start(t *task) bool {
	if t.hasNoTarget() {
		r.drop(t.op, codeNoTarget, errNothing.Error())
		r.finished(t)
		return false
	}
	r.ops.Add(1)
	work := func() {
		defer r.ops.Done()
		r.execute(t)
		r.follow(t)
		r.finished(t)
	}
	if t.worker != nil {
		t.worker <- work
	} else {
		go work()
	}
	return true
}

// settled calls settle, if it is set.
func (t *task) settled() {
	if t.settle != nil {
		t.settle()
	}
}

func (r *runner) finished(t *task) {
	if t.then != nil {
		t.then(&t.op)
	}
}

// execute runs one op and records it.
func (r *runner) execute(t *task) {
	ctx, cancel := context.WithTimeoutCause(r.opsCtx, t.action.Timeout, errOpTimeout)
	defer cancel()
	tr := op.NewTrace(r.Clock)
	if t.unblocked > 0 {
		tr.MarkAt(op.Unblocked, t.unblocked, 0, "runner")
	}
	err := r.prepare(t) // before Started: the runner's own work counts as lateness, not latency
	t.op.Started = r.Clock.Now()
	if t.closed {
		t.op.Intended = t.op.Started
	}
	var made []engine.Object
	if err == nil {
		made, err = r.Engine.Do(ctx, t.request, tr)
	}
	t.op.Ended = r.Clock.Now()
	tr.Fill(&t.op)
	conclude(&t.op, err, context.Cause(ctx))
	r.account(t, made)
	r.keepOp(&t.op)
	r.Observer.OpEnded(&t.op)
	r.ends.of(t.action.Name, t.op.Ended)
}

var errOpTimeout = errors.New("the action's timeout passed")

// conclude sets the outcome from the engine's error and from the cause for which the op's context ended, if
// it did.
func conclude(o *op.Op, err, cause error) {
	if err == nil {
		o.Outcome = op.OK
		return
	}
	o.Outcome, o.Code, o.Message = op.Error, "Unknown", err.Error()
	var coded *engine.Error
	if errors.As(err, &coded) {
		o.Code, o.Message = coded.Code, coded.Message
	}
	switch {
	case errors.Is(cause, errOpTimeout):
		o.Outcome, o.Code, o.Message = op.Timeout, codeTimeout, fmt.Sprintf("%v: %s", cause, o.Message)
	case cause != nil:
		o.Outcome, o.Code = op.Censored, codeRunEnded
	}
}

// account updates the inventory and the instances after an op.
func (r *runner) account(t *task, made []engine.Object) {
	switch t.action.Kind.Effect() {
	case op.Restarts:
		r.settle(t)
	case op.Removes:
		if t.targets[0].Ref != nil {
			return // the run did not make it, so it is not in the inventory
		}
		if t.op.Outcome == op.OK {
			r.inventory.removeOwned(t.targets[0])
			r.instances.forget(t.targets[0].Name)
		} else {
			r.inventory.add(t.targets...)
		}
	case op.Changes:
		r.inventory.setSizes(made)
		r.checks.hasChecked(t)
	case op.Makes:
		describeMade(t, made)
		t.made = r.inventory.add(made...)
		r.checks.hasMade(&t.op, made)
		r.startLifetimes(&t.op, t.made)
		if t.request.Workload != nil && t.op.Outcome == op.OK {
			r.followInstance(t)
		}
	}
}

// followInstance registers a workload instance that is ready. Instances of the set-up wait for the common
// barrier; later ones are released at once.
func (r *runner) followInstance(t *task) {
	w := t.request.Workload
	initial := t.action.Rate == "" && !t.action.Chained
	if err := r.instances.created(t.action.Name, t.request.Name, w.SyncGroup, initial, allService(w)); err != nil {
		r.log(t.request.Name, err.Error())
		r.fail(err)
	}
	if initial {
		return
	}
	if err := r.Engine.Release(r.opsCtx, w.SyncGroup, []string{t.request.Name}, r.Clock.Now()); err != nil {
		r.log("run", fmt.Sprintf("barrier of %s: %v", t.request.Name, err))
	}
}

func allService(w *engine.Workload) bool {
	for _, p := range w.Pods {
		if !p.Service {
			return false
		}
	}
	return true
}

// drop records an op that was not started.
func (r *runner) drop(o op.Op, code, message string) {
	o.Outcome, o.Code, o.Message = op.Dropped, code, message
	r.keepOp(&o)
	r.Observer.OpEnded(&o)
}

// keepOp records an op that has ended or was dropped.
func (r *runner) keepOp(o *op.Op) {
	r.Record.Op(*o)
	r.Live.Op(o, r.Clock.Now())
}
