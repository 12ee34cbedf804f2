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
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// life is one pod of a member, or one start of its pod's containers. The pods of
// a member have the same name, as a StatefulSet's have; their UIDs tell them apart.
type life struct {
	n        int // lives before it
	uid      types.UID
	sessions map[string]*agent.Session // by container
	// heir is set, under the member's lock, when an op has begun to replace it.
	heir *heir
}

// heir is what takes the place of a life.
type heir struct {
	settled chan struct{} // closed when the rest is known
	life    *life         // nil: there is none
	spared  bool          // because the life goes on, as if nothing had been asked
	why     error         // else why
}

// abandon lets go of agents that will not come.
func (l *life) abandon(cause error) {
	for _, s := range l.sessions {
		s.Abandon(cause)
	}
}

// replace says that the present life is to end and another to follow. Only one
// op at a time replaces it, and none a member that ends.
func (m *member) replace() (*life, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.life
	switch {
	case m.removed || m.stopping:
		return nil, &engine.Error{Code: "Ended", Message: fmt.Sprintf("pod %s has been told to end", m.name())}
	case l.heir != nil:
		return nil, &engine.Error{Code: "Aborted", Message: fmt.Sprintf("another operation is replacing pod %s", m.name())}
	}
	l.heir = &heir{settled: make(chan struct{})}
	return l, nil
}

// next is the life to follow l, with agents that are expected already: they have
// the tokens of those before them.
func (m *member) next(l *life) (*life, error) {
	n := &life{n: l.n + 1, uid: l.uid, sessions: map[string]*agent.Session{}}
	for container, prev := range l.sessions {
		s, err := m.engine.agents.ExpectRestarted(prev, engine.Restarted(m.within+container, n.n))
		if err != nil {
			n.abandon(err)
			return nil, err
		}
		n.sessions[container] = s
	}
	return n, nil
}

// settle says what follows l: next, or for a reason nothing.
func (m *member) settle(l, next *life, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.heir.life, l.heir.why = next, why
	if next != nil {
		m.life = next
	}
	close(l.heir.settled)
}

// spare lets l go on: it was not replaced after all.
func (m *member) spare(l *life) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.heir.spared = true
	close(l.heir.settled)
	l.heir = nil
}

// current is the life that is there now.
func (m *member) current() *life {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life
}

// await returns how the last life of the pod's main containers ended, and before
// it how those ended that were replaced.
func (m *member) await(ctx context.Context) op.InstanceEnd {
	var before []op.ContainerEnd
	for l := m.current(); ; {
		end := m.awaitLife(ctx, l)
		h := m.heirOf(ctx, l)
		if h == nil || h.spared {
			end.Containers = append(before, end.Containers...)
			return end
		}
		for i := range end.Containers {
			end.Containers[i].Replaced = true
		}
		before = append(before, end.Containers...)
		if h.life == nil {
			lost := op.ContainerEnd{Name: engine.Restarted(m.object, l.n+1), ExitCode: -1, Message: fmt.Sprintf("it was not made again: %v", h.why)}
			return op.InstanceEnd{Instance: m.instance, At: m.engine.session.Clock.Now(), OK: m.isStopping(), Containers: append(before, lost)}
		}
		l = h.life
	}
}

// heirOf returns what has become of the replacement of l, once that is known;
// nil if l was not to be replaced.
func (m *member) heirOf(ctx context.Context, l *life) *heir {
	m.mu.Lock()
	h := l.heir
	m.mu.Unlock()
	if h == nil {
		return nil
	}
	select {
	case <-h.settled:
		return h
	case <-ctx.Done():
	case <-m.engine.closed:
	}
	return nil
}

// stop being followed after this long without word of the API, once an agent
// is lost: the kubelet knows whether it was killed for want of memory.
const kubeletWord = 5 * time.Second

// awaitLife returns how the pod's main containers ended.
func (m *member) awaitLife(ctx context.Context, l *life) op.InstanceEnd {
	end := op.InstanceEnd{Instance: m.instance, At: op.Never, OK: true}
	if len(l.sessions) == 0 {
		m.awaitPlain(ctx, l, &end)
		return end
	}
	for _, name := range m.inOrder(l) {
		if len(m.mains) > 0 && !slices.Contains(m.mains, name) {
			continue
		}
		s := l.sessions[name]
		select {
		case <-s.Done():
		case <-ctx.Done():
			return end
		}
		e := s.End()
		if e.Failure != nil && e.Failure.Code == agent.CodeLost {
			if said, ok := m.kubeletSays(ctx, l, name); ok {
				said.Name = engine.Restarted(m.within+said.Name, l.n)
				e.ContainerEnd = said
			} else if p := m.pod(); p != nil {
				e.Message += fmt.Sprintf("; pod %s is on node %s, whose kubelet has not said that it ended", p.Name, p.Spec.NodeName)
			}
		}
		end.Containers = append(end.Containers, e.ContainerEnd)
		end.At = max(end.At, e.At)
		if !e.OK() && (!e.Asked || !m.isStopping()) {
			end.OK = false
			if len(m.phases) > 0 { // those to come are of no use without it
				m.dismiss(l)
			}
		}
	}
	return end
}

// inOrder lists the containers of a life, those with phases in theirs.
func (m *member) inOrder(l *life) []string {
	phase := func(name string) int {
		return slices.IndexFunc(m.phases, func(p engine.Phase) bool { return p.Container == name })
	}
	return slices.SortedFunc(maps.Keys(l.sessions), func(a, b string) int { return cmp.Or(phase(a)-phase(b), strings.Compare(a, b)) })
}

// dismiss asks what is left of a life to end.
func (m *member) dismiss(l *life) {
	for _, s := range l.sessions {
		_ = s.Signal(syscall.SIGTERM, killAfter) // one that has gone needs none
	}
}

// kubeletSays waits a little for the status of a container whose agent is lost.
func (m *member) kubeletSays(ctx context.Context, l *life, container string) (op.ContainerEnd, bool) {
	ctx, cancel := context.WithTimeout(ctx, kubeletWord)
	defer cancel()
	f := m.engine.tracker.follow(key{pods, m.name()})
	defer f.close()
	for {
		v, err := f.next(ctx)
		if err != nil {
			return op.ContainerEnd{}, false
		}
		p, ok := v.(watch.Event).Object.(*corev1.Pod)
		if !ok || p.UID != l.uid {
			continue
		}
		for _, e := range exits(p) {
			if e.Name == container && !e.Init {
				return e, true
			}
		}
		if reason := p.Status.Reason; reason != "" {
			return op.ContainerEnd{Name: container, ExitCode: -1, Message: reason + ": " + p.Status.Message}, true
		}
	}
}

// awaitPlain follows a pod that nobody of ours is in.
func (m *member) awaitPlain(ctx context.Context, l *life, end *op.InstanceEnd) {
	f := m.engine.tracker.follow(key{pods, m.name()})
	defer f.close()
	for {
		v, err := f.next(ctx)
		if err != nil {
			return
		}
		ev := v.(watch.Event)
		p, ok := ev.Object.(*corev1.Pod)
		if !ok || p.UID != l.uid {
			continue
		}
		over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if !over && ev.Type != watch.Deleted {
			continue
		}
		end.At, end.Containers = ev.At, exits(p)
		end.OK = p.Status.Phase == corev1.PodSucceeded || m.isStopping()
		return
	}
}
