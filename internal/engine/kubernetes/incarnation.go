package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// incarnation is one pod of a managedPod, or one start of its containers. All have the same name,
// as in a StatefulSet; the UIDs differ.
type incarnation struct {
	restarts int // earlier incarnations
	uid      types.UID
	sessions map[string]*agent.Session // by container
	// successor is set, under the pod's lock, when an op begins to replace the incarnation.
	successor *successor
}

// successor is the outcome of a replacement.
type successor struct {
	known    chan struct{} // closed when the outcome is known
	next     *incarnation  // nil: none
	canceled bool          // the incarnation goes on
	err      error         // why there is no next
}

// abandon gives up the agents that have not connected.
func (inc *incarnation) abandon(cause error) {
	for _, s := range inc.sessions {
		s.Abandon(cause)
	}
}

// beginReplace starts the replacement of the current incarnation. Only one op at a time may
// replace it, and none if the pod is to end.
func (m *managedPod) beginReplace() (*incarnation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inc := m.latest
	switch {
	case m.removed || m.stopping:
		return nil, &engine.Error{Code: "Ended", Message: fmt.Sprintf("pod %s is being stopped", m.name())}
	case inc.successor != nil:
		return nil, &engine.Error{Code: "Aborted", Message: fmt.Sprintf("another operation is replacing pod %s", m.name())}
	}
	inc.successor = &successor{known: make(chan struct{})}
	return inc, nil
}

// nextIncarnation returns the incarnation after inc. Its agents have the same tokens.
func (m *managedPod) nextIncarnation(inc *incarnation) (*incarnation, error) {
	next := &incarnation{restarts: inc.restarts + 1, uid: inc.uid, sessions: map[string]*agent.Session{}}
	for container, prev := range inc.sessions {
		s, err := m.engine.agents.Again(prev, engine.Restarted(m.containerPrefix+container, next.restarts))
		if err != nil {
			next.abandon(err)
			return nil, err
		}
		next.sessions[container] = s
	}
	return next, nil
}

// finishReplace sets what follows inc: next, or nothing because of err.
func (m *managedPod) finishReplace(inc, next *incarnation, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inc.successor.next, inc.successor.err = next, why
	if next != nil {
		m.latest = next
	}
	close(inc.successor.known)
}

// cancelReplace lets inc go on.
func (m *managedPod) cancelReplace(inc *incarnation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inc.successor.canceled = true
	close(inc.successor.known)
	inc.successor = nil
}

func (m *managedPod) current() *incarnation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest
}

// awaitEnd returns how the main containers ended, those of replaced incarnations first.
func (m *managedPod) awaitEnd(ctx context.Context) op.InstanceEnd {
	var before []op.ContainerEnd
	for inc := m.current(); ; {
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
			lost := op.ContainerEnd{Name: engine.Restarted(m.object, inc.restarts+1), ExitCode: -1, Message: fmt.Sprintf("it was not created again: %v", h.err)}
			return op.InstanceEnd{Instance: m.instance, At: m.engine.Session.Clock.Now(), OK: m.isStopping(), Containers: append(before, lost)}
		}
		inc = h.next
	}
}

// successorOf waits for the outcome of inc's replacement; nil if it is not being replaced.
func (m *managedPod) successorOf(ctx context.Context, inc *incarnation) *successor {
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
	case <-m.engine.closed:
	}
	return nil
}

// kubeletStatusWait is how long to wait for the kubelet's status after an agent is lost. The
// kubelet knows whether the container was OOM-killed.
const kubeletStatusWait = 5 * time.Second

// awaitIncarnation returns how the main containers of an incarnation ended.
func (m *managedPod) awaitIncarnation(ctx context.Context, inc *incarnation) op.InstanceEnd {
	end := op.InstanceEnd{Instance: m.instance, At: op.Never, OK: true}
	if len(inc.sessions) == 0 {
		m.awaitUnwrapped(ctx, inc, &end)
		return end
	}
	for _, name := range m.containersInOrder(inc) {
		if len(m.mainContainers) > 0 && !slices.Contains(m.mainContainers, name) {
			continue
		}
		s := inc.sessions[name]
		select {
		case <-s.Done():
		case <-ctx.Done():
			return end
		}
		e := s.End()
		if e.Failure != nil && e.Failure.Code == agent.CodeLost {
			if said, ok := m.containerEnd(ctx, inc, name); ok {
				said.Name = engine.Restarted(m.containerPrefix+said.Name, inc.restarts)
				e.ContainerEnd = said
			} else if p := m.livePod(); p != nil {
				e.Message += fmt.Sprintf("; pod %s is on node %s, whose kubelet has not said that it ended", p.Name, p.Spec.NodeName)
			}
		}
		end.Containers = append(end.Containers, e.ContainerEnd)
		end.At = max(end.At, e.At)
		if !e.OK() && (!e.Asked || !m.isStopping()) {
			end.OK = false
			if len(m.phases) > 0 { // later phases need this one
				m.terminate(inc)
			}
		}
	}
	return end
}

// containersInOrder lists the containers of an incarnation, in order of their phases.
func (m *managedPod) containersInOrder(inc *incarnation) []string {
	phase := func(name string) int {
		return slices.IndexFunc(m.phases, func(p engine.Phase) bool { return p.Container == name })
	}
	return slices.SortedFunc(maps.Keys(inc.sessions), func(a, b string) int { return cmp.Or(phase(a)-phase(b), strings.Compare(a, b)) })
}

// terminate asks the remaining containers to end.
func (m *managedPod) terminate(inc *incarnation) {
	for _, s := range inc.sessions {
		_ = s.Signal(syscall.SIGTERM, endReportTimeout) // fails for ended ones
	}
}

// containerEnd waits for the status of a container whose agent is lost.
func (m *managedPod) containerEnd(ctx context.Context, inc *incarnation, container string) (op.ContainerEnd, bool) {
	ctx, cancel := context.WithTimeout(ctx, kubeletStatusWait)
	defer cancel()
	f := m.engine.tracker.Follow(tracker.Pod.Key(m.name()))
	defer f.Close()
	for {
		v, err := f.Next(ctx)
		if err != nil {
			return op.ContainerEnd{}, false
		}
		p, ok := v.(watch.Event).Object.(*corev1.Pod)
		if !ok || p.UID != inc.uid {
			continue
		}
		for _, e := range status.ContainerEnds(p) {
			if e.Name == container && !e.Init {
				return e, true
			}
		}
		if reason := p.Status.Reason; reason != "" {
			return op.ContainerEnd{Name: container, ExitCode: -1, Message: reason + ": " + p.Status.Message}, true
		}
	}
}

// awaitUnwrapped follows a pod without agents.
func (m *managedPod) awaitUnwrapped(ctx context.Context, inc *incarnation, end *op.InstanceEnd) {
	f := m.engine.tracker.Follow(tracker.Pod.Key(m.name()))
	defer f.Close()
	for {
		v, err := f.Next(ctx)
		if err != nil {
			return
		}
		ev := v.(watch.Event)
		p, ok := ev.Object.(*corev1.Pod)
		if !ok || p.UID != inc.uid {
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
