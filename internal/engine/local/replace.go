package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Ops on running pods: kill, rollout, reattach. Each ends pods of an instance
// and replaces them with equal ones.

var signals = map[string]unix.Signal{"SIGKILL": unix.SIGKILL, "SIGTERM": unix.SIGTERM, "SIGINT": unix.SIGINT,
	"SIGSTOP": unix.SIGSTOP}

// kill ends the pods of an instance, by a signal or by deletion, or stops them for a while.
func (e *Engine) kill(ctx context.Context, request engine.Request, tr *op.Trace) error {
	k := request.Kill
	w := e.workload(request.Target.Name)
	if w == nil {
		return notFoundError(request.Target)
	}
	tr.On(e.node, w.name)
	sig, known := signals[k.Signal]
	if !known && k.Signal != "" {
		return &engine.Error{Code: "InvalidArgument", Message: "engine local does not send " + k.Signal}
	}
	ctx, done, live, err := w.startOp(ctx)
	if err != nil {
		return err
	}
	defer done()
	switch {
	case sig == unix.SIGSTOP:
		return w.stopFor(ctx, live, k.StopFor)
	case k.Signal == "":
		return w.replacePods(ctx, tr, live, func() error {
			mark(ctx, op.Signalled)
			return eachPod(live, func(p *pod.Pod) error { return p.Stop(ctx, k.Grace) })
		}, nil)
	}
	return w.replacePods(ctx, tr, live, func() error {
		mark(ctx, op.Signalled) // before: a process may be gone when the call returns
		if err := eachPod(live, func(p *pod.Pod) error { return p.Signal(sig) }); err != nil {
			return err
		}
		return eachPod(live, func(p *pod.Pod) error { return awaitEnd(ctx, p) })
	}, nil)
}

// startOp starts an op on all running pods of an instance.
func (w *workload) startOp(ctx context.Context) (context.Context, func(), []*podSlot, error) {
	if len(w.live(nil)) == 0 {
		return nil, nil, nil, &engine.Error{Code: "Ended",
			Message: fmt.Sprintf("workload %s has ended: no pods to replace", w.name)}
	}
	ctx, done, err := w.ops.start(ctx, w.name)
	return ctx, done, w.live(nil), err
}

func awaitEnd(ctx context.Context, p *pod.Pod) error {
	select {
	case <-p.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the pod's processes did not end: %w", context.Cause(ctx))
	}
}

// stopFor stops the processes of pods for d, and continues them in any case.
func (w *workload) stopFor(ctx context.Context, live []*podSlot, d time.Duration) error {
	if err := eachPod(live, func(p *pod.Pod) error { return p.Signal(unix.SIGSTOP) }); err != nil {
		return err
	}
	mark(ctx, op.Signalled)
	timer := time.NewTimer(d)
	defer timer.Stop()
	var cut error
	select {
	case <-timer.C:
	case <-ctx.Done():
		cut = fmt.Errorf("stop of %s ended early: %w", w.name, context.Cause(ctx))
	}
	if err := eachPod(live, func(p *pod.Pod) error { return p.Signal(unix.SIGCONT) }); err != nil || cut != nil {
		return errors.Join(cut, err)
	}
	mark(ctx, op.Resumed)
	return w.probeVolumes(ctx, live)
}

// rollout replaces the pods of an instance one after another.
func (e *Engine) rollout(ctx context.Context, request engine.Request, tr *op.Trace) error {
	r := request.Rollout
	w := e.workload(request.Target.Name)
	switch {
	case request.Target.Kind != engine.WorkloadObject || r.Undo:
		return &engine.Error{Code: "InvalidArgument", Message: "engine local rolls out workloads only, without undo"}
	case w == nil:
		return notFoundError(request.Target)
	}
	tr.On(e.node, w.name)
	ctx, done, live, err := w.startOp(ctx)
	if err != nil {
		return err
	}
	defer done()
	for _, m := range live {
		one := ctx
		if len(live) > 1 {
			one = withTrace(ctx, tr, "/"+m.manifest.Name)
		}
		if err := w.replacePods(one, tr, []*podSlot{m}, func() error { return m.stop(one) }, nil); err != nil {
			return err
		}
	}
	return nil
}

// stop ends a pod with its manifest's grace period.
func (m *podSlot) stop(ctx context.Context) error {
	return eachPod([]*podSlot{m}, func(p *pod.Pod) error { return p.Stop(ctx, p.Grace()) })
}

// reattach detaches a volume and attaches it again; the pods that mount it are ended before and replaced
// after.
func (e *Engine) reattach(ctx context.Context, request engine.Request, tr *op.Trace) error {
	r := request.Reattach
	v := e.findVolume(request.Target.Name)
	switch {
	case r.Node == engine.NodeOther:
		return &engine.Error{Code: "InvalidArgument", Message: "engine local has one node"}
	case v == nil:
		return notFoundError(request.Target)
	case !v.is(&v.published):
		return &engine.Error{Code: "FailedPrecondition",
			Message: fmt.Sprintf("volume %s is not attached", v.object.Name)}
	}
	tr.On(e.node, v.object.Name)
	ctx, done, err := v.ops.start(ctx, v.object.Name)
	if err != nil {
		return err
	}
	defer done()
	w := e.workload(v.object.Owner)
	if w == nil || len(w.live(v)) == 0 {
		if err := v.reattach(ctx); err != nil {
			return err
		}
		return v.probe(ctx, false)
	}
	ctx, done, err = w.ops.start(ctx, w.name)
	if err != nil {
		return err
	}
	defer done()
	users := w.live(v)
	return w.replacePods(ctx, tr, users, func() error {
		return eachPod(users, func(p *pod.Pod) error { return p.Stop(ctx, p.Grace()) })
	}, v)
}

func (v *volume) reattach(ctx context.Context) error {
	if err := v.detach(ctx); err != nil {
		return err
	}
	return v.attach(ctx)
}

// live lists the running pods; with v only those that mount it.
func (w *workload) live(v *volume) []*podSlot {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*podSlot
	for _, m := range w.members {
		if !w.endReported && m.live && (v == nil || slices.Contains(m.claims(), v.object.Name)) {
			list = append(list, m)
		}
	}
	return list
}

// claims lists the volumes that a pod mounts.
func (m *podSlot) claims() []string {
	var names []string
	for _, v := range m.manifest.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// replacePods ends pods with end, reattaches moved if it is not nil, starts the pods again one after another,
// and releases them. A pod that cannot be started again has ended.
func (w *workload) replacePods(ctx context.Context, tr *op.Trace, members []*podSlot, end func() error,
	moved *volume) (err error) {
	w.mu.Lock()
	for _, m := range members {
		m.replacing = true
	}
	w.mu.Unlock()
	defer func() { w.finishReplace(members) }()
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
			return fmt.Errorf("%s was not replaced: %w", m.name, context.Cause(ctx))
		}
		if err := m.launch(ctx, m.n+1, tr); err != nil {
			return err
		}
	}
	mark(ctx, op.Replaced)
	if err := w.probeVolumes(ctx, members); err != nil {
		return err
	}
	return w.release(ctx, w.engine.session.Clock.Now())
}

// finishReplace counts the pods that were ended and not replaced, and reports the instance's end if they were
// the last.
func (w *workload) finishReplace(members []*podSlot) {
	now := w.engine.session.Clock.Now()
	var end *op.InstanceEnd
	w.mu.Lock()
	for _, m := range members {
		m.replacing = false
		if m.live {
			continue
		}
		if last := w.countEnd(m, false, now); last != nil {
			end = last
		}
	}
	w.mu.Unlock()
	if end != nil {
		w.engine.pods.report(w, *end)
	}
}

// probeVolumes makes a first write on the volumes of pods, concurrently.
func (w *workload) probeVolumes(ctx context.Context, members []*podSlot) error {
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
			continue // deleted by another op
		}
		if t, ok := ctx.Value(opTraceKey{}).(opTrace); ok && len(names) > 1 {
			one = withTrace(ctx, t.trace, t.suffix+"/"+name)
		}
		g.Go(func() error { return v.probe(one, false) })
	}
	return g.Wait()
}
