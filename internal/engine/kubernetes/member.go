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

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// member is one pod of the run with the agents in it, over all its lives.
type member struct {
	engine   *Engine
	object   string // what the loop would call it
	instance string // under which its agents report
	within   string // before the names of its containers, where the instance has several pods
	service  bool   // does not end by itself
	quiet    bool   // a holder, of whose agent the record hears nothing
	mains    []string
	phases   []engine.Phase
	template *corev1.Pod     // as it was sent first
	waits    map[string]bool // containers that wait at the barrier

	making sync.Mutex // held while its pod is made, or called off for good
	mu     sync.Mutex
	life   *life
	// released says that the barrier has been opened for it, at barrier: what
	// comes after it does not wait.
	released bool
	barrier  op.Time
	stopping bool
	removed  bool
}

func (m *member) name() string { return m.engine.name(m.object) }

// start makes the pod. The containers named in wrapped get the agent in the
// place of their command; b learns when the agents have come.
func (m *member) start(ctx context.Context, pod *corev1.Pod, wrapped []string, options func(container string) agent.Options, b *bringing) error {
	l := &life{sessions: map[string]*agent.Session{}}
	m.life, m.waits = l, map[string]bool{}
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
		l.sessions[c.Name] = s
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
	m.template = pod.DeepCopy()
	err := m.createSecret(ctx, secret)
	if err == nil {
		err = m.create(ctx, pod, l, nil, b)
	}
	if err != nil {
		l.abandon(err)
	}
	return err
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

func (m *member) createSecret(ctx context.Context, secret *corev1.Secret) error {
	if len(secret.StringData) == 0 {
		return nil
	}
	_, err := m.engine.create(ctx, api.Secrets, secret)
	return err
}

// create makes the pod of a life, in place of prev if there was one, unless the
// member is to end; b learns when its agents have come.
func (m *member) create(ctx context.Context, pod *corev1.Pod, l, prev *life, b *bringing) error {
	m.making.Lock()
	defer m.making.Unlock()
	m.mu.Lock()
	over := m.removed || m.stopping
	m.mu.Unlock()
	if over {
		return &engine.Error{Code: "Deleted", Message: fmt.Sprintf("pod %s was to end meanwhile", m.name())}
	}
	state := b.pod(m.object, len(l.sessions), len(pod.Spec.InitContainers) > 0)
	call, err := m.engine.client.Create(ctx, api.Pods, m.engine.Namespace, pod, nil)
	l.uid, state.uid = call.UID, call.UID
	if err != nil {
		return apiError(ctx, err)
	}
	if prev != nil {
		m.settle(prev, l, nil)
	}
	m.expect(ctx, l, b)
	return nil
}

// callOff says that the pod is not to be made again.
func (m *member) callOff() {
	m.making.Lock()
	defer m.making.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removed, m.stopping = true, true
}

// setEnv tells a container's agent where the runner is and what its token is.
func setEnv(c *corev1.Container, public []string, secret string) {
	for _, kv := range public {
		k, v, _ := strings.Cut(kv, "=")
		c.Env = append(c.Env, corev1.EnvVar{Name: k, Value: v})
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: protocol.EnvToken, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: c.Name}}})
}

// expect has b learn when the agents of a life have come.
func (m *member) expect(ctx context.Context, l *life, b *bringing) {
	for name, s := range l.sessions {
		go func() {
			m.arrive(ctx, s, m.waits[name], b)
			m.mu.Lock()
			late, barrier := m.released && l.n > 0 && m.waits[name], m.barrier
			m.mu.Unlock()
			if late {
				_ = s.ReleaseRestarted(ctx, barrier) // it fails where the agent has ended, which is followed
			}
		}()
	}
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
	for _, t := range s.VolumeProbes() {
		a.touches = append(a.touches, touch{claim: t.Volume, at: t.At, err: t.Err, write: t.Write, failure: t.Failure})
	}
	b.feed.put(a)
}

// release opens the barrier for the containers that wait.
func (m *member) release(ctx context.Context, at op.Time) error {
	m.mu.Lock()
	if !m.released {
		m.released, m.barrier = true, at
	}
	l, replaced := m.life, m.life.heir != nil
	m.mu.Unlock()
	if replaced {
		return nil // what takes its place does not wait
	}
	return m.open(ctx, l, at)
}

// open opens the barrier for the containers of one life.
func (m *member) open(ctx context.Context, l *life, at op.Time) error {
	var wg sync.WaitGroup
	failed := make(chan error, len(l.sessions))
	for name, s := range l.sessions {
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
	sessions := m.life.sessions
	m.mu.Unlock()
	if len(sessions) == 0 {
		return m.engine.deletePod(ctx, m.name(), grace)
	}
	sig := syscall.SIGTERM
	if grace <= 0 {
		sig = syscall.SIGKILL
	}
	for _, s := range sessions {
		if !s.Connected() {
			s.Abandon(fmt.Errorf("pod %s was stopped before its agent had come", m.name()))
			continue
		}
		if err := s.Signal(sig, grace); err != nil {
			s.Abandon(err)
		}
	}
	for _, s := range sessions {
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
