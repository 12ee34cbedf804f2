package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
)

// workload is one instance: its volumes and its pods.
type workload struct {
	engine  *Engine
	name    string
	volumes []string

	mu      sync.Mutex
	pods    []*pod.Pod
	waits   int // pods whose end is the instance's end
	end     op.InstanceEnd
	servers []*pod.Pod
}

// createWorkload makes the volumes, all at once, then starts the pods and
// waits until they are ready.
func (e *Engine) createWorkload(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	w := &workload{engine: e, name: r.Name, end: op.InstanceEnd{Instance: r.Name, At: op.Never, OK: true}}
	e.mu.Lock()
	e.workloads[w.name] = w
	e.mu.Unlock()
	made := []engine.Object{{Kind: engine.WorkloadObject, Name: w.name, Action: r.Action}}
	volumes, err := e.workloadVolumes(ctx, w, r, tr)
	made = append(made, volumes...)
	if err != nil {
		return made, err
	}
	if err := w.start(ctx, r, tr); err != nil {
		return made, err
	}
	tr.Mark(op.Ready, "runner")
	return made, nil
}

// workloadVolumes makes and attaches the claims. With several their
// milestones carry the claim's name; those without are when the last is there.
func (e *Engine) workloadVolumes(ctx context.Context, w *workload, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	claims := r.Workload.Claims
	made := make([]engine.Object, len(claims))
	var g errgroup.Group
	for i := range claims {
		claim := &claims[i]
		suffix := ""
		if len(claims) > 1 {
			suffix = "/" + claim.Name
		}
		g.Go(func() error {
			v, err := e.newVolume(claim.Name, claim)
			if err != nil {
				return err
			}
			v.object.Action, v.object.Owner = r.Action, w.name
			err = e.bring(withTrace(ctx, tr, suffix), v)
			if v.id != "" {
				made[i] = v.object
				w.mu.Lock()
				w.volumes = append(w.volumes, v.object.Name)
				w.mu.Unlock()
			}
			return err
		})
	}
	err := g.Wait()
	var there []engine.Object
	for _, o := range made {
		if o.Name != "" {
			there = append(there, o)
		}
	}
	if err == nil && len(claims) > 1 {
		tr.Mark(op.Published, "runner")
	}
	return there, err
}

// bring provisions and attaches a volume and proves that it can be written.
func (e *Engine) bring(ctx context.Context, v *volume) error {
	if err := e.provision(ctx, v); err != nil {
		return err
	}
	if err := v.attach(ctx); err != nil {
		return err
	}
	return v.touch(ctx, false)
}

// start runs the pods and waits until all are ready.
func (w *workload) start(ctx context.Context, r engine.Request, tr *op.Trace) error {
	configs := map[string]corev1.ConfigMap{}
	for _, c := range r.Workload.ConfigMaps {
		configs[c.Name] = c
	}
	for _, p := range r.Workload.Pods {
		if !p.Service {
			w.waits++
		}
	}
	for i := range r.Workload.Pods {
		p := &r.Workload.Pods[i]
		claims, err := w.claims(&p.Pod)
		if err != nil {
			return err
		}
		name := w.name
		if len(r.Workload.Pods) > 1 {
			name = fmt.Sprintf("%s.%s", w.name, p.Name)
		}
		w.engine.pods.owns(name, w, p.Service)
		running, err := w.engine.host.Start(ctx, pod.Spec{
			Instance: name, Pod: *p, Claims: claims, ConfigMaps: configs,
			Dir:     filepath.Join(w.engine.session.Dir, "pods", name),
			Barrier: r.Workload.SyncGroup, Canary: r.Workload.Canary,
		}, tr)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.pods = append(w.pods, running)
		if p.Service {
			w.servers = append(w.servers, running)
		}
		w.mu.Unlock()
		if err := running.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// claims finds the volumes that a pod mounts.
func (w *workload) claims(p *corev1.Pod) (map[string]pod.Claim, error) {
	claims := map[string]pod.Claim{}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		vol := w.engine.findVolume(name)
		if vol == nil {
			return nil, &engine.Error{Code: "NotFound", Message: fmt.Sprintf("pod %s mounts claim %s, which the workload does not make", p.Name, name)}
		}
		c := pod.Claim{ReadOnly: v.PersistentVolumeClaim.ReadOnly}
		path, err := filepath.EvalSymlinks(vol.targetPath)
		if err != nil {
			return nil, err
		}
		if vol.block() {
			c.Device = path
		} else {
			c.Path = path
		}
		claims[name] = c
	}
	return claims, nil
}

func (w *workload) all() []*pod.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*pod.Pod(nil), w.pods...)
}

// each calls f for every pod at once.
func (w *workload) each(f func(*pod.Pod) error) error {
	pods := w.all()
	failed := make([]error, len(pods))
	var wg sync.WaitGroup
	for i, p := range pods {
		wg.Go(func() { failed[i] = f(p) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

func (w *workload) release(ctx context.Context, at op.Time) error {
	return w.each(func(p *pod.Pod) error { return p.Release(ctx, at) })
}

func (w *workload) stop(ctx context.Context, grace time.Duration) error {
	return w.each(func(p *pod.Pod) error { return p.Stop(ctx, grace) })
}

// deleteWorkload ends the pods, then removes the volumes.
func (e *Engine) deleteWorkload(ctx context.Context, name string) error {
	w := e.workload(name)
	if w == nil {
		return gone(engine.Object{Kind: engine.WorkloadObject, Name: name})
	}
	if err := w.stop(ctx, deleteGrace); err != nil {
		return err
	}
	mark(ctx, "podGone")
	quiet := context.WithValue(ctx, tracedKey{}, nil)
	if len(w.volumes) == 1 {
		quiet = ctx
	}
	for _, v := range w.volumes {
		if e.findVolume(v) == nil {
			continue // an op of its own deleted it
		}
		if err := e.deleteVolume(quiet, v); err != nil {
			return err
		}
	}
	if len(w.volumes) != 1 {
		mark(ctx, op.Gone)
	}
	e.mu.Lock()
	delete(e.workloads, name)
	e.mu.Unlock()
	return nil
}

// deleteGrace is Kubernetes' terminationGracePeriodSeconds.
const deleteGrace = 30 * time.Second

// podSink reports what pods say under the name of their workload instance,
// whose end is that of the last pod that is no server.
type podSink struct {
	engine.Sink
	mu     sync.Mutex
	owners map[string]podOwner
}

type podOwner struct {
	workload *workload
	service  bool
}

func (s *podSink) owns(pod string, w *workload, service bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[pod] = podOwner{w, service}
}

func (s *podSink) owner(pod string) podOwner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[pod]
}

func (s *podSink) name(pod string) string {
	if o := s.owner(pod); o.workload != nil {
		return o.workload.name
	}
	return pod
}

// container is what the record calls a container of a pod: by its own name, or
// where the instance has several pods with the pod's before it.
func (s *podSink) container(pod, container string) string {
	return containerOf(s.owner(pod).workload, pod, container)
}

func containerOf(w *workload, pod, container string) string {
	if w == nil || pod == w.name {
		return container
	}
	return strings.TrimPrefix(strings.TrimPrefix(pod, w.name+"."), w.name+"-") + "." + container
}

func (s *podSink) Started(e op.InstanceStart) {
	e.Instance, e.Container = s.name(e.Instance), s.container(e.Instance, e.Container)
	s.Sink.Started(e)
}

func (s *podSink) Sample(p op.Sample) {
	p.Instance = s.name(p.Instance)
	s.Sink.Sample(p)
}

func (s *podSink) Canary(pod, volume string, ios []op.CanaryIO) {
	s.Sink.Canary(s.name(pod), volume, ios)
}

func (s *podSink) Output(pod, container, file string, data []byte) {
	s.Sink.Output(s.name(pod), s.container(pod, container), file, data)
}

// Ended gathers the ends of an instance's pods.
func (s *podSink) Ended(e op.InstanceEnd) {
	o := s.owner(e.Instance)
	s.mu.Lock()
	delete(s.owners, e.Instance)
	s.mu.Unlock()
	w := o.workload
	if w == nil {
		return
	}
	for i := range e.Containers {
		e.Containers[i].Name = containerOf(w, e.Instance, e.Containers[i].Name)
	}
	w.mu.Lock()
	w.end.Containers = append(w.end.Containers, e.Containers...)
	failed := !e.OK
	if !o.service {
		w.waits--
		w.end.At = max(w.end.At, e.At)
	}
	w.end.OK = w.end.OK && !failed
	// A server that fails ends its instance as well.
	over := w.waits == 0 && !o.service || failed && o.service && w.waits > 0
	if over {
		w.waits = 0
	}
	end, servers := w.end, w.servers
	if !end.At.Known() {
		end.At = e.At
	}
	w.mu.Unlock()
	if !over {
		return
	}
	for _, p := range servers {
		go func() { _ = p.Stop(context.WithoutCancel(w.engine.ctx), deleteGrace) }()
	}
	s.Sink.Ended(end)
}
