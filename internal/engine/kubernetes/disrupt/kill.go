// Package disrupt executes the actions that disturb the workloads of a run: kill, drain, reattach, rollout and
// scale.
package disrupt

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/manifests"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Disruptor executes the actions that disturb a run's workloads.
type Disruptor struct {
	*pods.State
	Manifests *manifests.Manifests

	drains   map[int64]string // nodes of prepared drains, by request
	cordoned map[string]bool  // cordoned by the run
	accepted []string         // at most two nodes that accept pods, as last listed
}

// New returns a Disruptor.
func New(s *pods.State, m *manifests.Manifests) *Disruptor {
	return &Disruptor{State: s, Manifests: m, drains: map[int64]string{}, cordoned: map[string]bool{}}
}

// signals are the signals that a Benchmark can send.
var signals = map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "SIGTERM": syscall.SIGTERM,
	"SIGINT": syscall.SIGINT, "SIGSTOP": syscall.SIGSTOP}

// Kill ends or pauses the processes of a workload, or deletes its pods, and waits until they are usable again.
func (e *Disruptor) Kill(ctx context.Context, r engine.Request, tr *op.Trace) error {
	k := r.Kill
	if r.Target.Kind == engine.ManifestObject {
		return e.killPods(ctx, r, tr)
	}
	w := e.Workload(r.Target.Name)
	if w == nil {
		return core.NotFound(r.Target)
	}
	if err := pods.CheckAllRunning(w.Pods); err != nil {
		return err
	}
	tr.On("", r.Target.Name)
	if k.Signal == "" {
		return e.killByDeletion(ctx, w, k, tr)
	}
	sig, ok := signals[k.Signal]
	if !ok {
		return engine.Errorf("InvalidArgument", "unknown signal %q: want SIGKILL, SIGTERM, SIGINT or SIGSTOP", k.Signal)
	}
	for _, m := range w.Pods {
		if err := m.CheckAgents(); err != nil {
			return err
		}
	}
	if sig == syscall.SIGSTOP {
		return e.pauseProcesses(ctx, w, k.StopFor, tr)
	}
	return e.killBySignal(ctx, w, sig, tr)
}

// killByDeletion deletes all pods at once and creates each again when it is gone.
func (e *Disruptor) killByDeletion(ctx context.Context, w *pods.Workload, k *engine.Kill, tr *op.Trace) error {
	grace := int64((k.Grace + time.Second - 1) / time.Second)
	replacements, err := e.ReplaceEach(w.Pods, func(rp *pods.Replacement) error {
		if err := rp.RemoveOld(ctx, rp.ByDeletion(ctx, op.Signalled, &grace)); err != nil {
			return err
		}
		return rp.Recreate(ctx, tr, nil)
	})
	pods.RecordReplacements(tr, w.Name, nil, replacements...)
	return err
}

// killBySignal sends a signal to the processes of all containers. Pods that the kubelet does not restart are
// deleted and created again.
func (e *Disruptor) killBySignal(ctx context.Context, w *pods.Workload, sig syscall.Signal, tr *op.Trace) error {
	replacements, err := e.ReplaceEach(w.Pods, func(rp *pods.Replacement) error {
		m := rp.Pods[0]
		if pods.Restarts(m.Template) {
			return rp.Restart(ctx, m, sig, tr)
		}
		if err := rp.Signal(ctx, m, sig); err != nil {
			return err
		}
		if err := rp.RemoveOld(ctx, rp.ByDeletion(ctx, op.Acked, nil)); err != nil {
			return err
		}
		return rp.Recreate(ctx, tr, nil)
	})
	pods.RecordReplacements(tr, w.Name, nil, replacements...)
	return err
}

// pauseProcesses stops all processes for a while. They are resumed even if the op's time is over.
func (e *Disruptor) pauseProcesses(ctx context.Context, w *pods.Workload, d time.Duration, tr *op.Trace) error {
	var all []*agent.Session
	for _, m := range w.Pods {
		for _, s := range m.Current().Sessions {
			select {
			case <-s.Done(): // a phase that has ended
			default:
				all = append(all, s)
			}
		}
	}
	send := func(sig syscall.Signal) error {
		var errs []error
		for _, s := range all {
			errs = append(errs, s.Signal(sig, 0))
		}
		return errors.Join(errs...)
	}
	err := send(syscall.SIGSTOP)
	tr.Mark(op.Signalled, "runner")
	if err == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	err = errors.Join(err, send(syscall.SIGCONT))
	tr.Mark(op.Resumed, "runner")
	if err != nil {
		return engine.Errorf("Canceled", "%s was not stopped for %v: %v", w.Name, d, err).Wrap(err)
	}
	return e.repeatFirstIO(ctx, all, tr)
}

// phaseOver says whether a session has ended with its phase. The agent's last message may still be in flight.
func phaseOver(s *agent.Session) bool {
	select {
	case <-s.Done():
		return s.End().PhaseOver
	case <-time.After(5 * time.Second):
		return false
	}
}

// repeatFirstIO has the agents repeat their first writes and reads.
func (e *Disruptor) repeatFirstIO(ctx context.Context, all []*agent.Session, tr *op.Trace) error {
	seen, ids := tracker.Milestones{}, map[string][]string{}
	for _, s := range all {
		touches, err := s.ProbeVolumes(ctx)
		if err != nil && phaseOver(s) {
			continue
		}
		if err != nil {
			return engine.Errorf("Waiting", "%s", err.Error()).Wrap(err)
		}
		for _, t := range touches {
			name := op.FirstRead
			if t.Write {
				name = op.FirstWrite
			}
			if t.Failure != "" {
				return engine.Errorf("IO", "%s on %s: %s", name, t.Volume, t.Failure)
			}
			object := t.Volume
			if v := e.VolumeOfClaim(t.Volume); v != nil {
				object = v.Object.Name
			}
			ids[name] = append(ids[name], object)
			seen.Set(name, object, op.Milestone{At: t.At, Err: t.Err, Source: "agent"})
		}
	}
	seen.Fill(tr, ids)
	if at := seen.Last(op.FirstWrite, op.FirstRead); at.Known() {
		tr.EndedAt(at)
	}
	return nil
}
