// Package pod runs a Kubernetes pod template as processes of this machine: each container under an agent in
// its own mount and PID namespaces, with its volumes at their mount paths, init containers first. Programs
// are the host's; images are not used.
//
// Fields without a local meaning are refused if the workload would behave differently without them (secrets,
// downward API), otherwise ignored with a log line (resource limits, probes).
package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// killAfter is how long after SIGTERM and grace an agent may take to report before it is killed.
const killAfter = 5 * time.Second

// Pod is a running pod. Its methods are safe for concurrent use.
type Pod struct {
	host  *Host
	spec  Spec
	plan  *plan
	ready chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	procs   map[*container]*process
	stopped bool
	err     error // why it did not become ready
	end     op.InstanceEnd
}

// Start starts the pod and returns at once; milestones go to tr as they happen. ctx bounds the preparation
// only: the pod runs until it ends, is stopped, or its Host is closed. A pod that cannot run here is refused
// with an *engine.Error that lists every reason.
func (h *Host) Start(ctx context.Context, s Spec, tr *op.Trace) (*Pod, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-h.quit:
		return nil, errors.New("the run is over: no pod is started")
	default:
	}
	plan, err := h.prepare(s)
	if err != nil {
		return nil, err
	}
	if s.Sink == nil {
		s.Sink = h.Sink
	}
	if err := h.limit(&s, plan); err != nil {
		plan.removeGroup(h)
		plan.cleanup(h)
		return nil, err
	}
	for _, line := range plan.ignored {
		s.Sink.Log(s.Instance, line)
	}
	p := &Pod{
		host: h, spec: s, plan: plan, procs: map[*container]*process{},
		ready: make(chan struct{}), done: make(chan struct{}),
	}
	h.wg.Go(func() { p.run(h.ctx, tr) })
	return p, nil
}

// Ready returns when the init containers are done, the containers in Pod.Sync wait at their barrier and the
// others have started. If that does not happen, the error is an *engine.Error.
func (p *Pod) Ready(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pod %s is not ready: %w", p.spec.Instance, context.Cause(ctx))
	case <-p.done:
	}
	select {
	case <-p.ready: // ready first, then ended
		return nil
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Release opens the barrier for the waiting containers at an instant of the run. It returns when all have
// acknowledged it.
func (p *Pod) Release(ctx context.Context, at op.Time) error {
	return p.release(ctx, func(s *agent.Session) error { return s.Release(ctx, at) })
}

// ReleaseRestarted is Release for a replacement pod after the barrier opened: its containers start at once,
// those with phases at their phases.
func (p *Pod) ReleaseRestarted(ctx context.Context, barrier op.Time) error {
	return p.release(ctx, func(s *agent.Session) error { return s.ReleaseRestarted(ctx, barrier) })
}

func (p *Pod) release(ctx context.Context, open func(*agent.Session) error) error {
	if err := p.Ready(ctx); err != nil {
		return err
	}
	var all errgroup.Group
	for _, c := range p.plan.containers {
		if c.waits {
			session := p.process(c).session
			all.Go(func() error { return open(session) })
		}
	}
	return all.Wait()
}

// Stop sends SIGTERM to every container, SIGKILL after grace (at once if it is zero), and returns when the
// pod has ended and its outputs are complete. It is idempotent.
func (p *Pod) Stop(ctx context.Context, grace time.Duration) error {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	procs := p.processes()
	for _, proc := range procs {
		proc.stop(grace)
	}
	force := time.NewTimer(grace + killAfter)
	defer force.Stop()
	for {
		select {
		case <-p.done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("stop pod %s: %w", p.spec.Instance, context.Cause(ctx))
		case <-force.C:
			for _, proc := range procs {
				proc.kill()
			}
		}
	}
}

// Signal sends sig to the command of every running container, and SIGSTOP and SIGCONT to all its processes.
func (p *Pod) Signal(sig syscall.Signal) error {
	procs := p.processes()
	var errs []error
	for _, proc := range procs {
		errs = append(errs, proc.session.Signal(sig, 0))
	}
	return errors.Join(errs...)
}

// Grace is the time between SIGTERM and SIGKILL of the pod's containers.
func (p *Pod) Grace() time.Duration { return p.plan.grace }

// Kill kills every process of the pod, agents included; unreported results are lost.
func (p *Pod) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, proc := range p.procs {
		proc.kill()
	}
}

// Done returns a channel that is closed when the pod has ended and its outputs are complete.
func (p *Pod) Done() <-chan struct{} { return p.done }

// End returns how it ended; valid once Done is closed.
func (p *Pod) End() op.InstanceEnd {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end
}

// run runs the pod to its end.
func (p *Pod) run(ctx context.Context, tr *op.Trace) {
	err := p.start(ctx, tr)
	if err == nil {
		close(p.ready)
		for _, c := range p.plan.containers {
			if c.main {
				session := p.process(c).session
				<-session.Done()
				if c.phased && !session.End().OK() {
					break // a phase failed: end the pod
				}
			}
		}
	}
	// Stop servers and, after a failure, all containers.
	procs := p.processes()
	for _, proc := range procs {
		proc.stop(p.plan.grace)
	}
	for _, proc := range procs {
		proc.wait(p.plan.grace + killAfter)
	}
	p.finish(err)
}

// start starts the containers and waits until the pod is ready.
func (p *Pod) start(ctx context.Context, tr *op.Trace) error {
	if err := p.initialize(ctx, tr); err != nil {
		return err
	}
	tr.Mark(Agents, "runner")
	for _, c := range p.plan.containers {
		if err := p.launch(ctx, c); err != nil {
			return err
		}
	}
	running, plusMinus := op.Never, int64(0)
	for _, c := range p.plan.containers {
		wait := p.process(c).session.Started
		if c.waits {
			wait = p.process(c).session.Ready
		}
		at, err, failed := wait(ctx)
		if failed != nil {
			return p.explain(failed)
		}
		if at > running {
			running, plusMinus = at, err
		}
	}
	tr.MarkAt(op.Running, running, plusMinus, "agent")
	return nil
}

// initialize runs the init containers in order. One with restartPolicy Always (a native sidecar) is only
// started.
func (p *Pod) initialize(ctx context.Context, tr *op.Trace) error {
	if len(p.plan.init) == 0 {
		return nil
	}
	for i, c := range p.plan.init {
		if err := p.launch(ctx, c); err != nil {
			return err
		}
		s := p.process(c).session
		at, plusMinus, err := s.Started(ctx)
		if err != nil {
			return p.explain(err)
		}
		if !c.sidecar {
			<-s.Done()
			end := s.End()
			if !end.OK() {
				return p.explain(initFailure(p.spec.Instance, c.name, end.ContainerEnd, end.Failure))
			}
			at, plusMinus = end.At, end.Err
		}
		if i == len(p.plan.init)-1 {
			tr.MarkAt(op.Initialized, at, plusMinus, "agent")
		}
	}
	return nil
}

// initFailure returns the error of a failed init container.
func initFailure(instance, name string, end op.ContainerEnd, failure *engine.Error) error {
	if failure != nil {
		return failure
	}
	what := fmt.Sprintf("ended with exit code %d", end.ExitCode)
	if end.Signal != "" {
		what = "ended by " + end.Signal
	}
	return &engine.Error{Code: "InitFailed", Message: fmt.Sprintf("init container %s/%s %s: %s", instance, name, what,
		end.Message)}
}

// explain adds the package of a missing program to a failure.
func (p *Pod) explain(err error) error {
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if stopped {
		return &engine.Error{Code: "Stopped", Message: fmt.Sprintf("pod %s was stopped before it was ready",
			p.spec.Instance), Err: err}
	}
	var e *engine.Error
	if !errors.As(err, &e) {
		return &engine.Error{Code: "ProcessFailed", Message: err.Error(), Err: err}
	}
	if hint := Hint(e.Message); hint != "" {
		return &engine.Error{Code: e.Code, Message: e.Message + "; " + hint, Err: e}
	}
	return e
}

// launch starts a container's agent unless the pod is being stopped.
func (p *Pod) launch(ctx context.Context, c *container) error {
	release, err := p.host.acquireStart(ctx)
	if err != nil {
		return err
	}
	proc, err := p.startUnlessStopped(c)
	release(proc)
	return err
}

func (p *Pod) startUnlessStopped(c *container) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, &engine.Error{Code: "Stopped",
			Message: fmt.Sprintf("pod %s was stopped before it was ready", p.spec.Instance)}
	}
	proc, err := p.host.launch(p.spec.Instance, c)
	if err != nil {
		return nil, &engine.Error{Code: "ProcessFailed",
			Message: fmt.Sprintf("container %s/%s: %v", p.spec.Instance, c.name, err), Err: err}
	}
	p.procs[c] = proc
	return proc, nil
}

// processes returns the processes started so far.
func (p *Pod) processes() []*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.procs))
}

func (p *Pod) process(c *container) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.procs[c]
}

// finish records and reports how the pod ended.
func (p *Pod) finish(err error) {
	end := op.InstanceEnd{Instance: p.spec.Instance, At: op.Never, OK: err == nil}
	for _, c := range slices.Concat(p.plan.init, p.plan.containers) {
		proc := p.process(c)
		if proc == nil {
			continue
		}
		e := proc.session.End()
		e.Init = c.init
		if hint := Hint(e.Message); hint != "" && !e.OK() {
			e.Message += "\n" + hint
		}
		end.Containers = append(end.Containers, e.ContainerEnd)
		if c.main || c.init && !c.sidecar {
			end.At = max(end.At, e.At)
		}
		if c.main && !e.OK() && (!e.Asked || !p.wasStopped()) {
			end.OK = false
		}
	}
	if !end.At.Known() {
		end.At = p.host.Clock.Now()
	}
	p.plan.removeGroup(p.host)
	p.plan.cleanup(p.host)
	p.host.Server.Forget(p.spec.Instance)
	p.mu.Lock()
	p.end, p.err = end, err
	p.mu.Unlock()
	p.spec.Sink.Ended(end)
	close(p.done)
}

func (p *Pod) wasStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// stop asks a process to end.
func (p *process) stop(grace time.Duration) {
	sig := syscall.SIGTERM
	if grace <= 0 {
		sig = syscall.SIGKILL
	}
	if !p.session.Connected() {
		p.kill() // no connection yet
		return
	}
	if err := p.session.Signal(sig, grace); err != nil {
		p.kill()
	}
}

// wait returns when the session has ended; after the given time the process is killed.
func (p *process) wait(within time.Duration) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		select {
		case <-p.session.Done():
			<-p.reaped
			return
		case <-timer.C:
			p.kill()
		}
	}
}
