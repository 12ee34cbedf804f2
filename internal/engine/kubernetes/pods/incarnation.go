package pods

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// abandon gives up the agents that have not connected.
func (inc *Incarnation) abandon(cause error) {
	for _, s := range inc.Sessions {
		s.Abandon(cause)
	}
}

// beginReplace starts the replacement of the current incarnation. Only one op at a time may replace it, and none if
// the pod is to end.
func (m *Pod) beginReplace() (*Incarnation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inc := m.Latest
	switch {
	case m.removed || m.stopping:
		return nil, engine.Errorf("Ended", "pod %s is being stopped", m.Name())
	case inc.successor != nil || m.replacing:
		return nil, engine.Errorf("Aborted", "another operation is replacing pod %s", m.Name())
	}
	inc.successor, m.replacing = &successor{known: make(chan struct{})}, true
	return inc, nil
}

// endReplace lets other ops replace the pod. It returns the successor of inc that was begun.
func (m *Pod) endReplace(inc *Incarnation) *successor {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replacing = false
	return inc.successor
}

// nextIncarnation returns the incarnation after inc. Its agents have the same tokens.
func (m *Pod) nextIncarnation(inc *Incarnation) (*Incarnation, error) {
	next := &Incarnation{restarts: inc.restarts + 1, UID: inc.UID, Sessions: map[string]*agent.Session{}}
	for container, prev := range inc.Sessions {
		s, err := m.State.Agents.ExpectRestarted(prev, engine.Restarted(m.ContainerPrefix+container, next.restarts))
		if err != nil {
			next.abandon(err)
			return nil, err
		}
		next.Sessions[container] = s
	}
	return next, nil
}

// finishReplace sets what follows inc: next, or nothing because of err.
func (m *Pod) finishReplace(inc, next *Incarnation, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inc.successor.next, inc.successor.err = next, why
	if next != nil {
		m.Latest = next
	}
	close(inc.successor.known)
}

// cancelReplace lets inc go on.
func (m *Pod) cancelReplace(inc *Incarnation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inc.successor.canceled = true
	close(inc.successor.known)
	inc.successor = nil
}

// Current returns the current incarnation.
func (m *Pod) Current() *Incarnation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Latest
}

// awaitEnd returns how the main containers ended, those of replaced incarnations first.
func (m *Pod) awaitEnd(ctx context.Context) op.InstanceEnd {
	var before []op.ContainerEnd
	for inc := m.Current(); ; {
		end := m.awaitIncarnation(ctx, inc)
		h := m.successorOf(ctx, inc)
		if h == nil || h.canceled {
			end.Containers = append(before, end.Containers...)
			return end
		}
		for i := range end.Containers {
			end.Containers[i].Replaced = true
		}
		before = append(before, end.Containers...)
		if h.next == nil {
			lost := op.ContainerEnd{Name: engine.Restarted(m.Object, inc.restarts+1), ExitCode: -1,
				Message: fmt.Sprintf("it was not created again: %v", h.err)}
			return op.InstanceEnd{Instance: m.Instance, At: m.State.Session.Clock.Now(), OK: m.isStopping(),
				Containers: append(before, lost)}
		}
		inc = h.next
	}
}

// successorOf waits for the outcome of inc's replacement; nil if it is not being replaced.
func (m *Pod) successorOf(ctx context.Context, inc *Incarnation) *successor {
	m.mu.Lock()
	h := inc.successor
	m.mu.Unlock()
	if h == nil {
		return nil
	}
	select {
	case <-h.known:
		return h
	case <-ctx.Done():
	case <-m.State.Closed:
	}
	return nil
}

// kubeletStatusWait is how long to wait for the kubelet's status after an agent is lost. The kubelet knows whether
// the container was OOM-killed.
const kubeletStatusWait = 5 * time.Second

// awaitIncarnation returns how the main containers of an incarnation ended.
func (m *Pod) awaitIncarnation(ctx context.Context, inc *Incarnation) op.InstanceEnd {
	end := op.InstanceEnd{Instance: m.Instance, At: op.Never, OK: true}
	if len(inc.Sessions) == 0 {
		m.awaitUnwrapped(ctx, inc, &end)
		return end
	}
	reason := sync.OnceValue(func() string { return m.terminationReason(ctx, inc) })
	for _, name := range m.containersInOrder(inc) {
		if len(m.MainContainers) > 0 && !slices.Contains(m.MainContainers, name) {
			continue
		}
		s := inc.Sessions[name]
		select {
		case <-s.Done():
		case <-ctx.Done():
			return end
		}
		e := s.End()
		if e.Failure != nil && e.Failure.Code == agent.CodeLost {
			if said, ok := m.containerEnd(ctx, inc, name); ok {
				said.Name = engine.Restarted(m.ContainerPrefix+said.Name, inc.restarts)
				e.ContainerEnd = said
			} else if p := m.Live(); p != nil {
				e.Message += fmt.Sprintf("; pod %s is on node %s, whose kubelet has not said that it ended", p.Name,
					p.Spec.NodeName)
			}
		}
		if m.killedByOthers(inc, &e) {
			e.Message = strings.TrimSpace(reason() + "\n" + e.Message)
		}
		end.Containers = append(end.Containers, e.ContainerEnd)
		end.At = max(end.At, e.At)
		if !e.OK() && (!e.Asked || !m.isStopping()) {
			end.OK = false
			if len(m.Phases) > 0 { // later phases need this one
				m.terminate(inc)
			}
		}
	}
	return end
}

// killedByOthers reports whether a container got a signal by which the cluster ends pods, and not from this run. The
// kubelet's signal reaches the agent, which says that it has asked its command to end.
func (m *Pod) killedByOthers(inc *Incarnation, e *agent.End) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	sent := (e.Signal == "SIGTERM" || e.Signal == "SIGKILL") && !e.OOM && !e.PhaseOver
	return sent && !m.stopping && inc.successor == nil
}

// terminationReason waits for the reason for which the cluster has ended the containers of a pod; empty if it gives
// none.
func (m *Pod) terminationReason(ctx context.Context, inc *Incarnation) (reason string) {
	m.awaitStatus(ctx, inc, func(p *corev1.Pod, deleted bool) bool {
		reason = status.TerminationReason(p)
		return reason != "" || deleted || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	return reason
}

// awaitStatus calls f with each state of an incarnation's pod until it returns true, at most for as long as the
// kubelet may take to report a status.
func (m *Pod) awaitStatus(ctx context.Context, inc *Incarnation, f func(p *corev1.Pod, deleted bool) bool) {
	ctx, cancel := context.WithTimeout(ctx, kubeletStatusWait)
	defer cancel()
	states := m.State.Tracker.Follow(tracker.Pod.Key(m.Name()))
	defer states.Close()
	for {
		v, err := states.Next(ctx)
		if err != nil {
			return
		}
		e := v.(watch.Event)
		if p, ok := e.Object.(*corev1.Pod); ok && p.UID == inc.UID && f(p, e.Type == watch.Deleted) {
			return
		}
	}
}

// containersInOrder lists the containers of an incarnation, in order of their phases.
func (m *Pod) containersInOrder(inc *Incarnation) []string {
	phase := func(name string) int {
		return slices.IndexFunc(m.Phases, func(p engine.Phase) bool { return p.Container == name })
	}
	return slices.SortedFunc(maps.Keys(inc.Sessions),
		func(a, b string) int { return cmp.Or(phase(a)-phase(b), strings.Compare(a, b)) })
}

// terminate asks the remaining containers to end.
func (m *Pod) terminate(inc *Incarnation) {
	for _, s := range inc.Sessions {
		_ = s.Signal(syscall.SIGTERM, endReportTimeout) // fails for ended ones
	}
}

// containerEnd waits for the status of a container whose agent is lost.
func (m *Pod) containerEnd(ctx context.Context, inc *Incarnation, container string) (end op.ContainerEnd, found bool) {
	m.awaitStatus(ctx, inc, func(p *corev1.Pod, _ bool) bool {
		for _, e := range status.ContainerEnds(p) {
			if e.Name == container && !e.Init {
				end, found = e, true
				return true
			}
		}
		if reason := p.Status.Reason; reason != "" {
			end = op.ContainerEnd{Name: container, ExitCode: -1, Message: reason + ": " + p.Status.Message}
			found = true
		}
		return found
	})
	return end, found
}

// awaitUnwrapped follows a pod without agents.
func (m *Pod) awaitUnwrapped(ctx context.Context, inc *Incarnation, end *op.InstanceEnd) {
	f := m.State.Tracker.Follow(tracker.Pod.Key(m.Name()))
	defer f.Close()
	for {
		v, err := f.Next(ctx)
		if err != nil {
			return
		}
		ev := v.(watch.Event)
		p, ok := ev.Object.(*corev1.Pod)
		if !ok || p.UID != inc.UID {
			continue
		}
		over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if !over && ev.Type != watch.Deleted {
			continue
		}
		end.At, end.Containers = ev.At, status.ContainerEnds(p)
		end.OK = p.Status.Phase == corev1.PodSucceeded || m.isStopping()
		return
	}
}
