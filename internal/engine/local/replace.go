package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The ops on what runs: kill, rollout, reattach. Each ends pods of an instance
// and makes them again as they were.

// disturbances lets one such op at a time be done to something: a second one is
// refused, since to wait would be a queue that no record shows. The zero value
// is ready for use; it is safe for concurrent use.
type disturbances struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // of the op under way
	done   chan struct{}           // closed when it has ended; nil: there is none
	closed bool
}

var errRemoved = errors.New("it is being removed")

// begin starts an op, whose context also ends when its object is removed.
func (d *disturbances) begin(ctx context.Context, name string) (context.Context, func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, nil, &engine.Error{Code: "NotFound", Message: name + " exists no more"}
	case d.done != nil:
		return nil, nil, &engine.Error{Code: "Aborted", Message: "another operation on " + name + " is under way"}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	d.cancel, d.done = cancel, done
	return ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		cancel(nil)
		d.cancel, d.done = nil, nil
		close(done)
	}, nil
}

// allow takes forbid back: the removal failed.
func (d *disturbances) allow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = false
}

// forbid refuses ops from now on and ends the one under way; it returns when
// that has ended, or ctx has.
func (d *disturbances) forbid(ctx context.Context) {
	d.mu.Lock()
	d.closed = true
	done := d.done
	if d.cancel != nil {
		d.cancel(errRemoved)
	}
	d.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

var signals = map[string]unix.Signal{"SIGKILL": unix.SIGKILL, "SIGTERM": unix.SIGTERM, "SIGINT": unix.SIGINT, "SIGSTOP": unix.SIGSTOP}

// kill ends the pods of an instance by a signal or as a deletion does, or has
// them hang for a while.
func (e *Engine) kill(ctx context.Context, request engine.Request, tr *op.Trace) error {
	k := request.Kill
	w := e.workload(k.Target.Name)
	if w == nil {
		return gone(k.Target)
	}
	tr.On(e.node, w.name)
	sig, known := signals[k.Signal]
	if !known && k.Signal != "" {
		return &engine.Error{Code: "InvalidArgument", Message: "engine local does not send " + k.Signal}
	}
	ctx, done, live, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	switch {
	case sig == unix.SIGSTOP:
		return w.hang(ctx, live, k.StopFor)
	case k.Signal == "":
		return w.again(ctx, tr, live, func() error {
			mark(ctx, op.Signalled)
			return each(live, func(p *pod.Pod) error { return p.Stop(ctx, k.Grace) })
		}, nil)
	}
	return w.again(ctx, tr, live, func() error {
		if err := each(live, func(p *pod.Pod) error { return p.Signal(sig) }); err != nil {
			return err
		}
		mark(ctx, op.Signalled)
		return each(live, func(p *pod.Pod) error { return awaitEnd(ctx, p) })
	}, nil)
}

// begin starts an op on all pods of an instance, if any still runs.
func (w *workload) begin(ctx context.Context) (context.Context, func(), []*member, error) {
	if len(w.live(nil)) == 0 {
		return nil, nil, nil, &engine.Error{Code: "Ended", Message: fmt.Sprintf("workload %s has ended: there is nothing to make again", w.name)}
	}
	ctx, done, err := w.ops.begin(ctx, w.name)
	return ctx, done, w.live(nil), err
}

func awaitEnd(ctx context.Context, p *pod.Pod) error {
	select {
	case <-p.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("its processes did not end: %w", context.Cause(ctx))
	}
}

// hang stops the processes of pods, and lets them go on in any case.
func (w *workload) hang(ctx context.Context, live []*member, d time.Duration) error {
	if err := each(live, func(p *pod.Pod) error { return p.Signal(unix.SIGSTOP) }); err != nil {
		return err
	}
	mark(ctx, op.Signalled)
	timer := time.NewTimer(d)
	defer timer.Stop()
	var cut error
	select {
	case <-timer.C:
	case <-ctx.Done():
		cut = fmt.Errorf("the hang of %s was cut short: %w", w.name, context.Cause(ctx))
	}
	if err := each(live, func(p *pod.Pod) error { return p.Signal(unix.SIGCONT) }); err != nil || cut != nil {
		return errors.Join(cut, err)
	}
	mark(ctx, op.Resumed)
	return w.touch(ctx, live)
}

// rollout replaces the pods of an instance one after another.
func (e *Engine) rollout(ctx context.Context, request engine.Request, tr *op.Trace) error {
	r := request.Rollout
	w := e.workload(r.Target.Name)
	switch {
	case r.Target.Kind != engine.WorkloadObject || r.Undo:
		return &engine.Error{Code: "InvalidArgument", Message: "engine local rolls out workloads, and keeps no earlier template of them"}
	case w == nil:
		return gone(r.Target)
	}
	tr.On(e.node, w.name)
	ctx, done, live, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	for _, m := range live {
		one := ctx
		if len(live) > 1 {
			one = withTrace(ctx, tr, "/"+m.manifest.Name)
		}
		if err := w.again(one, tr, []*member{m}, func() error { return m.stop(one) }, nil); err != nil {
			return err
		}
	}
	return nil
}

// stop ends a pod with the grace that its manifest gives it.
func (m *member) stop(ctx context.Context) error {
	return each([]*member{m}, func(p *pod.Pod) error { return p.Stop(ctx, p.Grace()) })
}

// reattach takes a volume from this node and brings it back; the pods that
// have it are ended before and made again after.
func (e *Engine) reattach(ctx context.Context, request engine.Request, tr *op.Trace) error {
	r := request.Reattach
	v := e.findVolume(r.Target.Name)
	switch {
	case r.Node == engine.NodeOther:
		return &engine.Error{Code: "InvalidArgument", Message: "engine local has one node"}
	case v == nil:
		return gone(r.Target)
	case !v.is(&v.published):
		return &engine.Error{Code: "FailedPrecondition", Message: fmt.Sprintf("volume %s is not attached", v.object.Name)}
	}
	tr.On(e.node, v.object.Name)
	ctx, done, err := v.ops.begin(ctx, v.object.Name)
	if err != nil {
		return err
	}
	defer done()
	w := e.workload(v.object.Owner)
	if w == nil || len(w.live(v)) == 0 {
		if err := v.reattach(ctx); err != nil {
			return err
		}
		return v.touch(ctx, false)
	}
	ctx, done, err = w.ops.begin(ctx, w.name)
	if err != nil {
		return err
	}
	defer done()
	users := w.live(v)
	return w.again(ctx, tr, users, func() error {
		return each(users, func(p *pod.Pod) error { return p.Stop(ctx, p.Grace()) })
	}, v)
}

func (v *volume) reattach(ctx context.Context) error {
	if err := v.detach(ctx); err != nil {
		return err
	}
	return v.attach(ctx)
}

// live lists the pods that run, of those that have v if it is not nil.
func (w *workload) live(v *volume) []*member {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*member
	for _, m := range w.members {
		if !w.over && m.live && (v == nil || slices.Contains(m.claims(), v.object.Name)) {
			list = append(list, m)
		}
	}
	return list
}

// claims are the volumes that a pod mounts.
func (m *member) claims() []string {
	var names []string
	for _, v := range m.manifest.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// again ends pods in the way of end, reattaches moved if it is not nil, makes
// the pods again one after another, and lets them go. What it cannot make again
// has ended.
func (w *workload) again(ctx context.Context, tr *op.Trace, members []*member, end func() error, moved *volume) (err error) {
	w.mu.Lock()
	for _, m := range members {
		m.ending = true
	}
	w.mu.Unlock()
	defer func() { w.settle(members) }()
	if err := end(); err != nil {
		return err
	}
	mark(ctx, op.Gone)
	if moved != nil {
		if err := moved.reattach(ctx); err != nil {
			return err
		}
	}
	for _, m := range members {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s is not made again: %w", m.base, context.Cause(ctx))
		}
		if err := m.launch(ctx, m.n+1, tr); err != nil {
			return err
		}
	}
	mark(ctx, op.Replaced)
	if err := w.touch(ctx, members); err != nil {
		return err
	}
	return w.release(ctx, w.engine.session.Clock.Now())
}

// settle counts those of the pods out that were ended and not made again, and
// reports the instance's end if that is it. Those that were not even ended are
// as before.
func (w *workload) settle(members []*member) {
	now := w.engine.session.Clock.Now()
	var end *op.InstanceEnd
	w.mu.Lock()
	for _, m := range members {
		m.ending = false
		if m.live {
			continue
		}
		if last := w.without(m, false, now); last != nil {
			end = last
		}
	}
	w.mu.Unlock()
	if end != nil {
		w.engine.pods.report(w, *end)
	}
}

// touch makes a first write on the volumes of pods, all at once.
func (w *workload) touch(ctx context.Context, members []*member) error {
	names := map[string]bool{}
	for _, m := range members {
		for _, name := range m.claims() {
			names[name] = true
		}
	}
	var g errgroup.Group
	for name := range names {
		v, one := w.engine.findVolume(name), ctx
		if v == nil {
			continue // an op of its own deleted it
		}
		if t, ok := ctx.Value(tracedKey{}).(traced); ok && len(names) > 1 {
			one = withTrace(ctx, t.trace, t.suffix+"/"+name)
		}
		g.Go(func() error { return v.touch(one, false) })
	}
	return g.Wait()
}
