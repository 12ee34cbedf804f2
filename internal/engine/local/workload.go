package local

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
)

// createWorkload creates the volumes concurrently, then starts the pods and waits until they are ready.
func (e *Engine) createWorkload(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	w := &workload{engine: e, name: r.Name, request: r.Workload, barrier: op.Never, samples: map[string]op.Sample{},
		end: op.InstanceEnd{Instance: r.Name, At: op.Never, OK: true}}
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

// workloadVolumes creates and attaches the claims. With several claims their milestones have the claim's name
// as suffix; milestones without suffix are those of the last.
func (e *Engine) workloadVolumes(ctx context.Context, w *workload, r engine.Request, tr *op.Trace) ([]engine.Object,
	error) {
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
			err = e.provisionAndAttach(withTrace(ctx, tr, suffix), v)
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

// provisionAndAttach provisions and attaches a volume and probes it.
func (e *Engine) provisionAndAttach(ctx context.Context, v *volume) error {
	if err := e.provision(ctx, v); err != nil {
		return err
	}
	if err := v.attach(ctx); err != nil {
		return err
	}
	return v.probe(ctx, false)
}

// start runs the pods concurrently, as on a cluster, and waits until all are ready, since one may wait for
// another. The first failure ends the wait.
func (w *workload) start(ctx context.Context, r engine.Request, tr *op.Trace) error {
	for i := range r.Workload.Pods {
		p := &r.Workload.Pods[i]
		m := &podSlot{workload: w, manifest: p, name: w.name, service: p.Service}
		if len(r.Workload.Pods) > 1 {
			m.name = fmt.Sprintf("%s.%s", w.name, p.Name)
		}
		w.mu.Lock()
		w.members = append(w.members, m)
		if !m.service {
			w.pending++
		}
		w.mu.Unlock()
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, m := range w.all() {
		all.Go(func() error { return m.launch(ctx, 0, tr) })
	}
	return all.Wait()
}

// launch starts the n-th pod of the slot and waits until it is ready.
func (m *podSlot) launch(ctx context.Context, n int, tr *op.Trace) error {
	w := m.workload
	claims, err := w.claims(&m.manifest.Pod)
	if err != nil {
		return err
	}
	configs := map[string]corev1.ConfigMap{}
	for _, c := range w.request.ConfigMaps {
		configs[c.Name] = c
	}
	name := engine.Restarted(m.name, n)
	w.engine.pods.owns(name, incarnation{m, n})
	w.mu.Lock()
	m.n, m.live, m.replacing, m.released = n, true, false, false
	w.mu.Unlock()
	running, err := w.engine.host.Start(ctx, pod.Spec{
		Instance: name, Pod: *m.manifest, Claims: claims, ConfigMaps: configs,
		Dir:     filepath.Join(w.engine.session.Dir, "pods", name),
		Barrier: w.request.SyncGroup, Canary: w.request.Canary, MaxOutput: w.engine.session.MaxOutput,
		Limit: w.request.Limit,
	}, tr)
	w.mu.Lock()
	if err != nil {
		m.live = false
		w.mu.Unlock()
		return err
	}
	m.pod = running
	w.mu.Unlock()
	return running.Ready(ctx)
}

// claims resolves the volumes that a pod mounts.
func (w *workload) claims(p *corev1.Pod) (map[string]pod.Claim, error) {
	claims := map[string]pod.Claim{}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		vol := w.engine.findVolume(name)
		if vol == nil {
			return nil, &engine.Error{Code: "NotFound",
				Message: fmt.Sprintf("pod %s mounts claim %s, which the workload does not define", p.Name, name)}
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

// release opens the barrier for the pods that are not released yet, including replaced ones.
func (w *workload) release(ctx context.Context, at op.Time) error {
	w.mu.Lock()
	again, barrier := w.barrier.Known(), w.barrier
	if !again {
		w.barrier = at
	}
	var waiting []*podSlot
	for _, m := range w.members {
		if !m.released {
			m.released = true
			waiting = append(waiting, m)
		}
	}
	volumes := slices.Clone(w.volumes)
	w.mu.Unlock()
	if !again {
		if err := w.engine.stillPublished(volumes); err != nil {
			return err
		}
	}
	return eachPod(waiting, func(p *pod.Pod) error {
		if again {
			return p.ReleaseRestarted(ctx, barrier)
		}
		return p.Release(ctx, at)
	})
}

// stillPublished checks the volumes that a driver has published: it may have unmounted one since.
func (e *Engine) stillPublished(volumes []string) error {
	for _, name := range volumes {
		if v := e.findVolume(name); v != nil && v.is(&v.published) {
			if err := v.checkPublished(); err != nil {
				return err
			}
		}
	}
	return nil
}

// stop ends the pods, after cancelling an op that would replace them.
func (w *workload) stop(ctx context.Context, grace time.Duration) error {
	w.ops.shut(ctx)
	return eachPod(w.all(), func(p *pod.Pod) error { return p.Stop(ctx, grace) })
}

// sumSamples stores a pod's sample and returns the sum over the instance's pods, ended ones included.
func (w *workload) sumSamples(p op.Sample) op.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples[p.Instance] = p
	return op.SumSamples(w.name, p.At, w.samples)
}

// ended records the end of a pod, and returns the instance's end if this was the last. A failed server also
// ends its instance.
func (w *workload) ended(i incarnation, e op.InstanceEnd) *op.InstanceEnd {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.samples[e.Instance]; ok {
		s.RSSBytes = 0
		w.samples[e.Instance] = s
	}
	i.live = false
	if i.replacing && i.podSlot.n == i.n {
		for k := range e.Containers {
			e.Containers[k].Replaced = true
		}
		w.end.Containers = append(w.end.Containers, e.Containers...)
		return nil
	}
	w.end.Containers = append(w.end.Containers, e.Containers...)
	return w.countEnd(i.podSlot, e.OK, e.At)
}

// countEnd counts the end of a pod, and returns the instance's end if it was the last pending one. The caller
// holds mu.
func (w *workload) countEnd(m *podSlot, ok bool, at op.Time) *op.InstanceEnd {
	if m.counted {
		return nil
	}
	m.counted = true
	if !m.service {
		w.pending--
		w.end.At = max(w.end.At, at)
	}
	w.end.OK = w.end.OK && ok
	last := !m.service && w.pending == 0 || m.service && !ok && w.pending > 0
	if w.endReported || !last {
		return nil
	}
	w.endReported = true
	end := w.end
	if !end.At.Known() {
		end.At = at
	}
	return &end
}

// deleteWorkload ends the pods, then removes the volumes.
func (e *Engine) deleteWorkload(ctx context.Context, name string) error {
	w := e.workload(name)
	if w == nil {
		return notFoundError(engine.Object{Kind: engine.WorkloadObject, Name: name})
	}
	if err := w.stop(ctx, deleteGrace); err != nil {
		return err
	}
	mark(ctx, "podGone")
	quiet := context.WithValue(ctx, opTraceKey{}, nil)
	if len(w.volumes) == 1 {
		quiet = ctx
	}
	for _, v := range w.volumes {
		if e.findVolume(v) == nil {
			continue // deleted by another op
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

// deleteGrace is Kubernetes' default terminationGracePeriodSeconds.
const deleteGrace = 30 * time.Second
