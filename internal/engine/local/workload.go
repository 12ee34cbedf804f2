package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	request *engine.Workload

	mu      sync.Mutex
	volumes []string
	members []*member
	barrier op.Time // when it opened; Never: not yet
	waits   int     // pods whose end is the instance's end
	end     op.InstanceEnd
	over    bool                 // the end was reported
	samples map[string]op.Sample // the last of each pod that there was
	ops     disturbances
}

// member is one pod of an instance, through all of its incarnations.
type member struct {
	workload *workload
	manifest *engine.Pod
	base     string // what its first incarnation is called
	service  bool

	// These are guarded by the workload's mutex.
	pod      *pod.Pod // the present one
	n        int      // how many there were before it
	live     bool
	ending   bool // an op ends this incarnation, to make it again
	over     bool // its end is counted into the instance's
	released bool // from its barrier
}

// createWorkload makes the volumes, all at once, then starts the pods and
// waits until they are ready.
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

// start runs the pods, all at once as on a cluster, and waits until all are ready:
// one may wait for another. When one fails the others are no longer waited for.
func (w *workload) start(ctx context.Context, r engine.Request, tr *op.Trace) error {
	for i := range r.Workload.Pods {
		p := &r.Workload.Pods[i]
		m := &member{workload: w, manifest: p, base: w.name, service: p.Service}
		if len(r.Workload.Pods) > 1 {
			m.base = fmt.Sprintf("%s.%s", w.name, p.Name)
		}
		w.mu.Lock()
		w.members = append(w.members, m)
		if !m.service {
			w.waits++
		}
		w.mu.Unlock()
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, m := range w.all() {
		all.Go(func() error { return m.launch(ctx, 0, tr) })
	}
	return all.Wait()
}

// launch runs the n-th incarnation of a pod and waits until it is ready.
func (m *member) launch(ctx context.Context, n int, tr *op.Trace) error {
	w := m.workload
	claims, err := w.claims(&m.manifest.Pod)
	if err != nil {
		return err
	}
	configs := map[string]corev1.ConfigMap{}
	for _, c := range w.request.ConfigMaps {
		configs[c.Name] = c
	}
	name := engine.Restarted(m.base, n)
	w.engine.pods.owns(name, incarnation{m, n})
	w.mu.Lock()
	m.n, m.live, m.ending, m.released = n, true, false, false
	w.mu.Unlock()
	running, err := w.engine.host.Start(ctx, pod.Spec{
		Instance: name, Pod: *m.manifest, Claims: claims, ConfigMaps: configs,
		Dir:     filepath.Join(w.engine.session.Dir, "pods", name),
		Barrier: w.request.SyncGroup, Canary: w.request.Canary, MaxOutput: w.engine.session.MaxOutput,
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

func (w *workload) all() []*member {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.members)
}

// each calls f for every pod at once.
func each(members []*member, f func(*pod.Pod) error) error {
	failed := make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		m.workload.mu.Lock()
		p := m.pod
		m.workload.mu.Unlock()
		if p != nil {
			wg.Go(func() { failed[i] = f(p) })
		}
	}
	wg.Wait()
	return errors.Join(failed...)
}

// release opens the barrier for the pods that were not released yet; those that
// were made again since join in.
func (w *workload) release(ctx context.Context, at op.Time) error {
	w.mu.Lock()
	again, barrier := w.barrier.Known(), w.barrier
	if !again {
		w.barrier = at
	}
	var waiting []*member
	for _, m := range w.members {
		if !m.released {
			m.released = true
			waiting = append(waiting, m)
		}
	}
	w.mu.Unlock()
	return each(waiting, func(p *pod.Pod) error {
		if again {
			return p.Rejoin(ctx, barrier)
		}
		return p.Release(ctx, at)
	})
}

// stop ends the pods, and before them an op that would make them again.
func (w *workload) stop(ctx context.Context, grace time.Duration) error {
	w.ops.forbid(ctx)
	return each(w.all(), func(p *pod.Pod) error { return p.Stop(ctx, grace) })
}

// sum takes a pod's reading and gives the instance's: counters go on where an
// incarnation takes over from another.
func (w *workload) sum(p op.Sample) op.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples[p.Instance] = p
	all := op.Sample{Instance: w.name, At: p.At}
	for _, s := range w.samples {
		all.ReadBytes += s.ReadBytes
		all.WriteBytes += s.WriteBytes
		all.ReadOps += s.ReadOps
		all.WriteOps += s.WriteOps
		all.CPUNanos += s.CPUNanos
		all.RSSBytes += s.RSSBytes
	}
	return all
}

// ended takes the end of a pod, and returns the instance's when that is it. A
// server that fails ends its instance as well.
func (w *workload) ended(i incarnation, e op.InstanceEnd) *op.InstanceEnd {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.samples[e.Instance]; ok {
		s.RSSBytes = 0
		w.samples[e.Instance] = s
	}
	i.live = false
	if i.ending && i.member.n == i.n {
		for k := range e.Containers {
			e.Containers[k].Replaced = true
		}
		w.end.Containers = append(w.end.Containers, e.Containers...)
		return nil
	}
	w.end.Containers = append(w.end.Containers, e.Containers...)
	return w.without(i.member, e.OK, e.At)
}

// without counts a pod out, and returns the instance's end when it was the last
// that it waits for. Call it with mu held.
func (w *workload) without(m *member, ok bool, at op.Time) *op.InstanceEnd {
	if m.over {
		return nil
	}
	m.over = true
	if !m.service {
		w.waits--
		w.end.At = max(w.end.At, at)
	}
	w.end.OK = w.end.OK && ok
	last := !m.service && w.waits == 0 || m.service && !ok && w.waits > 0
	if w.over || !last {
		return nil
	}
	w.over = true
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
