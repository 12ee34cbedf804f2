package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/agent"
	"github.com/cnsbench/cnsbench/internal/engine/agent/wire"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// member is one pod of the run with the agents in it.
type member struct {
	engine   *Engine
	object   string // what the loop would call it
	instance string // under which its agents report
	within   string // before the names of its containers, where the instance has several pods
	service  bool   // does not end by itself
	quiet    bool   // a holder, of whose agent the record hears nothing
	mains    []string

	mu       sync.Mutex
	sessions map[string]*agent.Session // by container
	waits    map[string]bool           // containers that wait at the barrier
	stopping bool
}

func (m *member) name() string { return m.engine.name(m.object) }

// start makes the pod. The containers named in wrapped get the agent in the
// place of their command; b learns when the agents have come.
func (m *member) start(ctx context.Context, pod *corev1.Pod, wrapped []string, options func(container string) agent.Options, b *bringing) error {
	m.sessions, m.waits = map[string]*agent.Session{}, map[string]bool{}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels}, StringData: map[string]string{}}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if !slices.Contains(wrapped, c.Name) {
			continue
		}
		o := options(c.Name)
		m.waits[c.Name] = o.Barrier != ""
		s, err := m.engine.agents.Expect(agent.ID{Instance: m.instance, Container: m.within + c.Name}, o)
		if err != nil {
			return err
		}
		m.sessions[c.Name] = s
		secret.StringData[c.Name] = s.Token()
		public, _ := s.SecretEnv()
		if m.quiet {
			setEnv(c, public, secret.Name)
		} else {
			m.engine.Delivery.wrap(c, public, secret.Name)
		}
	}
	if !m.quiet {
		m.engine.Delivery.deliver(&pod.Spec, m.engine.Image, wrapped)
	}
	lastWords(&pod.Spec)
	b.pod(m.object, len(m.sessions), len(pod.Spec.InitContainers) > 0)
	err := m.create(ctx, pod, secret)
	if err != nil {
		m.abandon(err)
		return err
	}
	for name, s := range m.sessions {
		go m.arrive(ctx, s, m.waits[name], b)
	}
	return nil
}

// lastWords has the kubelet report the end of the log of a container that fails,
// where its author has not decided otherwise.
func lastWords(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if list[i].TerminationMessagePolicy == "" {
				list[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
			}
		}
	}
}

func (m *member) create(ctx context.Context, pod *corev1.Pod, secret *corev1.Secret) error {
	if len(secret.StringData) > 0 {
		if _, err := m.engine.create(ctx, api.Secrets, secret); err != nil {
			return err
		}
	}
	_, err := m.engine.create(ctx, api.Pods, pod)
	return err
}

// setEnv tells a container's agent where the runner is and what its token is.
func setEnv(c *corev1.Container, public []string, secret string) {
	for _, kv := range public {
		k, v, _ := strings.Cut(kv, "=")
		c.Env = append(c.Env, corev1.EnvVar{Name: k, Value: v})
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: wire.EnvToken, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: c.Name}}})
}

// arrive tells b when an agent stands at its barrier, or its command has begun.
func (m *member) arrive(ctx context.Context, s *agent.Session, waits bool, b *bringing) {
	wait := s.Started
	if waits || m.quiet {
		wait = s.Ready
	}
	a := arrived{pod: m.name(), ready: op.Milestone{Source: "agent"}}
	a.ready.At, a.ready.Err, a.failure = wait(ctx)
	if ctx.Err() != nil {
		return
	}
	a.began = a.ready
	if came, ok := s.Arrival(); ok {
		a.began = op.Milestone{At: came.Began, Err: came.Err, Source: "agent"}
	}
	for _, t := range s.Touches() {
		a.touches = append(a.touches, touch{claim: t.Volume, at: t.At, err: t.Err, write: t.Write, failure: t.Failure})
	}
	b.feed.put(a)
}

// abandon lets go of agents that will not come.
func (m *member) abandon(cause error) {
	for _, s := range m.sessions {
		s.Abandon(cause)
	}
}

// release opens the barrier for the containers that wait.
func (m *member) release(ctx context.Context, at op.Time) error {
	var wg sync.WaitGroup
	failed := make(chan error, len(m.sessions))
	for name, s := range m.sessions {
		if m.waits[name] {
			wg.Go(func() { failed <- s.Release(ctx, at) })
		}
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// stop asks the pod to end and returns when it has. A pod without agents is
// deleted, since the API knows no other way to end one.
func (m *member) stop(ctx context.Context, grace time.Duration) error {
	m.mu.Lock()
	m.stopping = true
	m.mu.Unlock()
	if len(m.sessions) == 0 {
		return m.engine.deletePod(ctx, m.name(), grace)
	}
	sig := syscall.SIGTERM
	if grace <= 0 {
		sig = syscall.SIGKILL
	}
	for _, s := range m.sessions {
		if !s.Connected() {
			s.Abandon(fmt.Errorf("pod %s was stopped before its agent had come", m.name()))
			continue
		}
		if err := s.Signal(sig, grace); err != nil {
			s.Abandon(err)
		}
	}
	for _, s := range m.sessions {
		select {
		case <-s.Done():
		case <-time.After(grace + killAfter):
			s.Abandon(fmt.Errorf("pod %s did not end within %v of being asked to", m.name(), grace+killAfter))
			<-s.Done()
		case <-ctx.Done():
			return fmt.Errorf("stop pod %s: %w", m.name(), context.Cause(ctx))
		}
	}
	return nil
}

// killAfter is how long beyond its grace a pod may take to report its end.
const killAfter = 10 * time.Second

func (m *member) isStopping() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopping
}

// stop being followed after this long without word of the API, once an agent
// is lost: the kubelet knows whether it was killed for want of memory.
const kubeletWord = 5 * time.Second

// await returns how the pod's main containers ended.
func (m *member) await(ctx context.Context) op.InstanceEnd {
	end := op.InstanceEnd{Instance: m.instance, At: op.Never, OK: true}
	if len(m.sessions) == 0 {
		m.awaitPlain(ctx, &end)
		return end
	}
	for name, s := range m.sessions {
		if len(m.mains) > 0 && !slices.Contains(m.mains, name) {
			continue
		}
		select {
		case <-s.Done():
		case <-ctx.Done():
			return end
		}
		e := s.End()
		if e.Failure != nil && e.Failure.Code == agent.CodeLost {
			if said, ok := m.kubeletSays(ctx, name); ok {
				said.Name = m.within + said.Name
				e.ContainerEnd = said
			}
		}
		end.Containers = append(end.Containers, e.ContainerEnd)
		end.At = max(end.At, e.At)
		if !e.OK() && (!e.Asked || !m.isStopping()) {
			end.OK = false
		}
	}
	return end
}

// kubeletSays waits a little for the status of a container whose agent is lost.
func (m *member) kubeletSays(ctx context.Context, container string) (op.ContainerEnd, bool) {
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
		if !ok {
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
func (m *member) awaitPlain(ctx context.Context, end *op.InstanceEnd) {
	f := m.engine.tracker.follow(key{pods, m.name()})
	defer f.close()
	for {
		v, err := f.next(ctx)
		if err != nil {
			return
		}
		ev := v.(watch.Event)
		p, ok := ev.Object.(*corev1.Pod)
		if !ok {
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
