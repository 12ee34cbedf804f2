package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Start creates the pod. The containers in wrapped run under the agent; pr is notified when the agents are ready.
func (m *Pod) Start(ctx context.Context, pod *corev1.Pod, wrapped []string,
	options func(container string) agent.Options, pr *Provision) error {
	inc := &Incarnation{Sessions: map[string]*agent.Session{}}
	m.Latest, m.waits = inc, map[string]bool{}
	delivery := m.State.Delivery.For(&pod.Spec, m.State.Image, wrapped)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace,
		Labels: pod.Labels}, StringData: map[string]string{}}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if !slices.Contains(wrapped, c.Name) {
			continue
		}
		o := options(c.Name)
		m.waits[c.Name] = o.Barrier != ""
		s, err := m.State.Agents.Expect(agent.ID{Instance: m.Instance, Container: m.ContainerPrefix + c.Name}, o)
		if err != nil {
			return err
		}
		inc.Sessions[c.Name] = s
		secret.StringData[c.Name] = s.Token()
		public, _ := s.SecretEnv()
		if m.Holder {
			podspec.SetAgentEnv(c, public, secret.Name)
		} else {
			delivery.Wrap(c, public, secret.Name)
		}
	}
	if !m.Holder {
		delivery.Deliver(&pod.Spec, m.State.Image, wrapped)
	}
	podspec.SetTerminationMessages(&pod.Spec)
	if err := errors.Join(m.State.Session.PodTemplate.Apply(pod), m.Extra.Apply(pod)); err != nil {
		return err
	}
	m.Template = pod.DeepCopy()
	err := m.createSecret(ctx, secret)
	if err == nil {
		err = m.create(ctx, pod, inc, nil, pr)
	}
	if err != nil {
		inc.abandon(err)
	}
	return err
}

func (m *Pod) createSecret(ctx context.Context, secret *corev1.Secret) error {
	if len(secret.StringData) == 0 {
		return nil
	}
	_, err := m.State.Create(ctx, api.Secrets, secret)
	return err
}

// create creates the pod of an incarnation in place of prev, if any, unless the pod is to end. pr is notified when
// its agents are ready.
func (m *Pod) create(ctx context.Context, pod *corev1.Pod, inc, prev *Incarnation, pr *Provision) error {
	m.createMu.Lock()
	defer m.createMu.Unlock()
	m.mu.Lock()
	over := m.removed || m.stopping
	m.mu.Unlock()
	if over {
		return engine.Errorf("Deleted", "pod %s was stopped before it was created", m.Name())
	}
	state := pr.AddPod(m.Object, len(inc.Sessions), pod.Spec.InitContainers)
	call, err := m.State.Client.Create(ctx, api.Pods, m.State.Namespace, pod, nil)
	inc.UID, state.uid = call.UID, call.UID
	if err != nil {
		return core.APIError(ctx, err)
	}
	if prev != nil {
		m.finishReplace(prev, inc, nil)
	}
	m.awaitAgents(ctx, inc, pr)
	return nil
}

// forbidCreation prevents that the pod is created again.
func (m *Pod) forbidCreation() {
	m.createMu.Lock()
	defer m.createMu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removed, m.stopping = true, true
}

// awaitAgents notifies pr of the agents of an incarnation.
func (m *Pod) awaitAgents(ctx context.Context, inc *Incarnation, pr *Provision) {
	for name, s := range inc.Sessions {
		go func() {
			m.awaitAgent(ctx, s, m.waits[name], pr)
			m.mu.Lock()
			late, barrier := m.released && inc.restarts > 0 && m.waits[name], m.barrier
			m.mu.Unlock()
			if late {
				_ = s.ReleaseRestarted(ctx, barrier) // fails if the agent has ended, which is handled elsewhere
			}
		}()
	}
}

// awaitAgent notifies pr when an agent has reached its barrier or started its command.
func (m *Pod) awaitAgent(ctx context.Context, s *agent.Session, waits bool, pr *Provision) {
	wait := s.Started
	if waits || m.Holder {
		wait = s.Ready
	}
	a := AgentReady{Pod: m.Name(), Ready: op.Milestone{Source: "agent"}}
	a.Ready.At, a.Ready.Err, a.Failure = wait(ctx)
	if ctx.Err() != nil {
		return
	}
	a.Started = a.Ready
	if came, ok := s.Arrival(); ok {
		a.Started = op.Milestone{At: came.Began, Err: came.Err, Source: "agent"}
	}
	for _, t := range s.VolumeProbes() {
		a.firstIO = append(a.firstIO,
			firstIO{claim: t.Volume, at: t.At, err: t.Err, write: t.Write, failure: t.Failure})
	}
	pr.Feed.Put(a)
}

// release opens the barrier for the containers that wait.
func (m *Pod) release(ctx context.Context, at op.Time) error {
	m.mu.Lock()
	if !m.released {
		m.released, m.barrier = true, at
	}
	inc, replaced := m.Latest, m.Latest.successor != nil
	m.mu.Unlock()
	if replaced {
		return nil // the next incarnation does not wait
	}
	return m.openBarrier(ctx, inc, at)
}

// openBarrier opens the barrier for an incarnation.
func (m *Pod) openBarrier(ctx context.Context, inc *Incarnation, at op.Time) error {
	var wg sync.WaitGroup
	failed := make(chan error, len(inc.Sessions))
	for name, s := range inc.Sessions {
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

// stop ends the pod and returns when it has ended. A pod without agents is deleted.
func (m *Pod) stop(ctx context.Context, grace time.Duration) error {
	m.mu.Lock()
	m.stopping = true
	sessions := m.Latest.Sessions
	m.mu.Unlock()
	if len(sessions) == 0 {
		return m.State.DeletePod(ctx, m.Name(), grace)
	}
	sig := syscall.SIGTERM
	if grace <= 0 {
		sig = syscall.SIGKILL
	}
	for _, s := range sessions {
		if !s.Connected() {
			s.Abandon(fmt.Errorf("pod %s was stopped before its agent connected", m.Name()))
			continue
		}
		if err := s.Signal(sig, grace); err != nil {
			s.Abandon(err)
		}
	}
	for _, s := range sessions {
		select {
		case <-s.Done():
		case <-time.After(grace + endReportTimeout):
			s.Abandon(fmt.Errorf("pod %s did not end within %v of the request", m.Name(), grace+endReportTimeout))
			<-s.Done()
		case <-ctx.Done():
			return fmt.Errorf("stop pod %s: %w", m.Name(), context.Cause(ctx))
		}
	}
	return nil
}

// endReportTimeout is how long after its grace period a pod may take to report its end.
const endReportTimeout = 10 * time.Second

func (m *Pod) isStopping() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopping
}

// Live returns the last state of the current pod; nil if it is gone.
func (m *Pod) Live() *corev1.Pod {
	p, ok := m.State.Tracker.Latest(tracker.Pod.Key(m.Name())).(*corev1.Pod)
	if !ok || p.UID != m.Current().UID {
		return nil
	}
	return p
}

// checkRunning returns an error if the pod has ended or is gone.
func (m *Pod) checkRunning() error {
	switch p := m.Live(); {
	case m.isStopping():
		return engine.Errorf("Ended", "pod %s is being stopped", m.Name())
	case p == nil:
		return engine.Errorf("FailedPrecondition", "pod %s is gone", m.Name())
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return engine.Errorf("Ended", "pod %s has ended (%s): its volumes are not in use", m.Name(), p.Status.Phase)
	}
	return nil
}

// CheckAllRunning is checkRunning for several pods.
func CheckAllRunning(pods []*Pod) error {
	var errs []error
	for _, m := range pods {
		errs = append(errs, m.checkRunning())
	}
	return errors.Join(errs...)
}

// CheckAgents returns an error if no signal can be sent to a pod.
func (m *Pod) CheckAgents() error {
	sessions := m.Current().Sessions
	if len(sessions) == 0 {
		return engine.Errorf("FailedPrecondition",
			"pod %s has no agent to send a signal, since its containers have no command: delete the pod instead "+
				"(deletePodSpec)", m.Name())
	}
	for _, s := range sessions {
		if !s.Connected() {
			return engine.Errorf("FailedPrecondition", "the agent of %s is not connected", s.ID())
		}
	}
	return nil
}

// AnnotateTemplate sets an annotation of later incarnations.
func (m *Pod) AnnotateTemplate(key, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.Template.DeepCopy()
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[key] = value
	m.Template = t
}
