package kubernetes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
)

// workload is one instance: its claims, its pods and what they refer to.
type workload struct {
	engine  *Engine
	name    string
	volumes []string
	pods    []*managedPod
	objects []namedObject
	// rollouts counts the rollouts; revision is the current one, revisions are the earlier ones
	// for undo.
	rollouts, revision int
	revisions          []int
}

// namedObject is a further object of an instance.
type namedObject struct {
	kind api.Kind
	name string // in the cluster
}

// createWorkload creates all objects of an instance and waits until its pods are ready.
func (e *Engine) createWorkload(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	w := &workload{engine: e, name: r.Name}
	e.mu.Lock()
	e.workloads[w.name] = w
	e.mu.Unlock()
	pr := e.newProvision()
	states := map[string]*claimState{}
	err := e.createObjects(ctx, w, r, pr, states)
	tr.Mark(op.Acked, "runner")
	if err == nil {
		err = pr.wait(ctx, tr)
	} else {
		pr.Feed.Close()
	}
	made := []engine.Object{{Kind: engine.WorkloadObject, Name: w.name, Action: r.Action}}
	for _, name := range w.volumes {
		v := e.volume(name)
		v.object.Handle, v.object.Bytes = states[name].handle, states[name].bytes
		e.storeVolume(v)
		made = append(made, v.object)
	}
	if err != nil {
		return made, err
	}
	go w.follow(context.WithoutCancel(ctx))
	return made, nil
}

// createObjects creates everything, referenced objects before pods.
func (e *Engine) createObjects(ctx context.Context, w *workload, r engine.Request, pr *provision, states map[string]*claimState) error {
	refs, err := e.createReferenced(ctx, w, r)
	if err != nil {
		return err
	}
	refs.Colocated = podspec.Colocation(r.Workload)
	mounted := mountedClaims(r.Workload)
	for i := range r.Workload.Claims {
		object := r.Workload.Claims[i].Name
		claim := r.Workload.Claims[i].DeepCopy()
		claim.ObjectMeta = e.Meta(claim.ObjectMeta, r.Action, object)
		refs.Claims[object] = claim.Name
		states[object] = pr.addClaim(object, mounted[object])
		if _, err := e.Create(ctx, api.PersistentVolumeClaims, claim); err != nil {
			return err
		}
		w.addClaim(claim, object, r.Action)
	}
	for i := range r.Workload.Pods {
		p := &r.Workload.Pods[i]
		for _, claim := range e.ephemeral(p, r.Action) {
			object := p.Name + "-" + claim.Name
			claim.Name = e.Name(object)
			states[object] = pr.addClaim(object, true)
			w.addClaim(claim, object, r.Action)
		}
		m, err := e.createPod(ctx, w, r, p, pr, refs)
		if m != nil {
			w.pods = append(w.pods, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addClaim adds a claim to the instance.
func (w *workload) addClaim(claim *corev1.PersistentVolumeClaim, object, action string) {
	v := &volume{name: claim.Name, readOnly: readOnly(claim), block: isBlock(claim),
		object: engine.Object{Kind: engine.VolumeObject, Name: object, Action: action, Owner: w.name, Labels: claim.Labels}}
	if claim.Spec.StorageClassName != nil {
		v.object.Class = *claim.Spec.StorageClassName
	}
	w.engine.storeVolume(v)
	w.volumes = append(w.volumes, object)
}

// ephemeral lists the claims that the cluster creates for a pod, each by the name of its volume,
// and labels their templates.
func (e *Engine) ephemeral(p *engine.Pod, action string) []*corev1.PersistentVolumeClaim {
	var list []*corev1.PersistentVolumeClaim
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		t := v.Ephemeral.VolumeClaimTemplate
		t.Labels = e.Labels(t.Labels, action, p.Name+"-"+v.Name)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
		claim.Name = v.Name
		list = append(list, claim)
	}
	return list
}

// createReferenced creates the objects that pods refer to by name, except claims.
func (e *Engine) createReferenced(ctx context.Context, w *workload, r engine.Request) (*names.References, error) {
	refs := &names.References{Claims: map[string]string{}, ConfigMaps: map[string]string{}, Secrets: map[string]string{}, Services: map[string]string{}}
	send := func(kind api.Kind, o api.Object, names map[string]string, object string) error {
		names[object] = o.GetName()
		if _, err := e.Create(ctx, kind, o); err != nil {
			return err
		}
		w.objects = append(w.objects, namedObject{kind, o.GetName()})
		return nil
	}
	for i := range r.Workload.ConfigMaps {
		c := r.Workload.ConfigMaps[i].DeepCopy()
		object := c.Name
		c.ObjectMeta = e.Meta(c.ObjectMeta, r.Action, object)
		if err := send(api.ConfigMaps, c, refs.ConfigMaps, object); err != nil {
			return nil, err
		}
	}
	for i := range r.Workload.Secrets {
		c := r.Workload.Secrets[i].DeepCopy()
		object := c.Name
		c.ObjectMeta = e.Meta(c.ObjectMeta, r.Action, object)
		if err := send(api.Secrets, c, refs.Secrets, object); err != nil {
			return nil, err
		}
	}
	for i := range r.Workload.Services {
		c := r.Workload.Services[i].DeepCopy()
		object := c.Name
		c.ObjectMeta = e.Meta(c.ObjectMeta, r.Action, object)
		if err := send(core.Services, c, refs.Services, object); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

func mountedClaims(w *engine.Workload) map[string]bool {
	mounted := map[string]bool{}
	for _, p := range w.Pods {
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				mounted[v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	return mounted
}

// createPod creates one pod with its agents.
func (e *Engine) createPod(ctx context.Context, w *workload, r engine.Request, p *engine.Pod, pr *provision, refs *names.References) (*managedPod, error) {
	pod := p.Pod.DeepCopy()
	plan := e.planAgents(p, r.Workload)
	pod.ObjectMeta = e.Meta(pod.ObjectMeta, r.Action, p.Name)
	pod.Status = corev1.PodStatus{}
	refs.Apply(&pod.Spec)
	podspec.Colocate(pod, refs.Colocated[p.Name])
	podspec.LimitOutput(&pod.Spec, p, e.Session.MaxOutput)
	m := &managedPod{engine: e, object: p.Name, instance: w.name, service: p.Service, mainContainers: p.Sync, phases: p.Phases}
	if len(r.Workload.Pods) > 1 {
		m.containerPrefix = strings.TrimPrefix(p.Name, w.name+"-") + "."
	}
	return m, m.start(ctx, pod, plan.wrapped, plan.options, pr)
}

// agentPlan has the options of a pod's agents.
type agentPlan struct {
	wrapped     []string
	byContainer map[string]agent.Options
}

func (w agentPlan) options(container string) agent.Options { return w.byContainer[container] }

// planAgents returns what each agent of a pod does. A container without a command cannot be
// wrapped.
func (e *Engine) planAgents(p *engine.Pod, w *engine.Workload) agentPlan {
	plan := agentPlan{byContainer: map[string]agent.Options{}}
	claimOf := map[string]string{} // volume of the pod to the claim's name in the run
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			claimOf[v.Name] = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			claimOf[v.Name] = p.Name + "-" + v.Name
		}
	}
	touched, canaried := map[int]map[string]bool{}, map[int]map[string]bool{} // by phase
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if len(c.Command) == 0 {
			continue
		}
		plan.wrapped = append(plan.wrapped, c.Name)
		o := agent.Options{MaxOutput: e.Session.MaxOutput}
		main := len(p.Sync) == 0 || slices.Contains(p.Sync, c.Name)
		if main {
			o.Outputs = p.Outputs
			if w.SyncGroup != "" && slices.Contains(p.Sync, c.Name) {
				o.Barrier, o.Meets = w.SyncGroup, p.Meets
				o.Phase, _ = p.Phase(c.Name)
			}
			if w.Canary != nil {
				o.Canary = canary(w.Canary, c, claimOf, phaseSet(canaried, o.Phase.Number))
			}
		}
		// The agent of a later phase repeats the first write on request.
		o.Touch, o.TouchLater = e.firstIOSpecs(c, claimOf, phaseSet(touched, o.Phase.Number)), o.Phase.Number > 0
		plan.byContainer[c.Name] = o
	}
	return plan
}

// phaseSet returns the set of a phase.
func phaseSet(sets map[int]map[string]bool, phase int) map[string]bool {
	if sets[phase] == nil {
		sets[phase] = map[string]bool{}
	}
	return sets[phase]
}

// firstIOSpecs requests a first write or read on each claim without one.
func (e *Engine) firstIOSpecs(c *corev1.Container, claimOf map[string]string, done map[string]bool) []protocol.TouchSpec {
	var list []protocol.TouchSpec
	for _, m := range c.VolumeMounts {
		claim := claimOf[m.Name]
		if claim == "" || done[claim] || m.SubPath != "" || m.SubPathExpr != "" {
			continue
		}
		done[claim] = true
		list = append(list, protocol.TouchSpec{Volume: e.Name(claim), Path: m.MountPath, Write: !m.ReadOnly, Read: m.ReadOnly})
	}
	for _, d := range c.VolumeDevices {
		if claim := claimOf[d.Name]; claim != "" && !done[claim] {
			done[claim] = true
			list = append(list, protocol.TouchSpec{Volume: e.Name(claim), Path: d.DevicePath, Read: true, Device: true})
		}
	}
	return list
}

// canary returns the canaries of one container: one for each claim without one.
func canary(want *engine.Canary, c *corev1.Container, claimOf map[string]string, done map[string]bool) *protocol.CanarySpec {
	spec := &protocol.CanarySpec{IntervalNanos: int64(want.Interval), Size: want.Size, Read: want.Read, Write: want.Write}
	if spec.Size == 0 {
		spec.Size = 4096
	}
	add := func(volume, path string, readOnly bool) {
		if claim := claimOf[volume]; claim != "" && !done[claim] && !readOnly {
			done[claim] = true
			spec.Volumes = append(spec.Volumes, protocol.CanaryVolume{Name: claim, Path: path})
		}
	}
	for _, m := range c.VolumeMounts {
		add(m.Name, m.MountPath, m.ReadOnly)
	}
	for _, d := range c.VolumeDevices {
		add(d.Name, d.DevicePath, false)
	}
	if len(spec.Volumes) == 0 {
		return nil
	}
	return spec
}

// holderAgent returns the options of a holder's agent: one first write, or a first read of
// existing data.
func (e *Engine) holderAgent(v *volume) func(string) agent.Options {
	t := protocol.TouchSpec{Volume: v.name, Path: holderDir, Write: true}
	if v.block {
		t = protocol.TouchSpec{Volume: v.name, Path: holderDevice, Read: true, Device: true}
	} else if v.readOnly || v.object.Source != "" {
		t.Write, t.Read = false, true
	}
	return func(string) agent.Options { return agent.Options{Touch: []protocol.TouchSpec{t}, Sample: -1} }
}

// follow reports the end of the instance: that of its last pod that is not a server, or of the
// first server that fails.
func (w *workload) follow(ctx context.Context) {
	var mu sync.Mutex
	end := op.InstanceEnd{Instance: w.name, At: op.Never, OK: true}
	take := func(e op.InstanceEnd) {
		mu.Lock()
		defer mu.Unlock()
		end.Containers = append(end.Containers, e.Containers...)
		end.At, end.OK = max(end.At, e.At), end.OK && e.OK
	}
	failed := make(chan struct{}, len(w.pods))
	var mains sync.WaitGroup
	waits := 0
	for _, m := range w.pods {
		if m.service {
			go func() {
				if e := m.awaitEnd(ctx); !e.OK {
					take(e)
					failed <- struct{}{}
				}
			}()
			continue
		}
		waits++
		mains.Go(func() { take(m.awaitEnd(ctx)) })
	}
	var over chan struct{} // nil with servers only: they end when stopped or failed
	if waits > 0 {
		over = make(chan struct{})
		go func() { mains.Wait(); close(over) }()
	}
	select {
	case <-over:
	case <-failed:
	case <-w.engine.closed:
		return
	}
	mu.Lock()
	defer mu.Unlock()
	if !end.At.Known() {
		end.At = w.engine.Session.Clock.Now()
	}
	w.engine.Session.Sink.Ended(end)
}

func (w *workload) eachPod(f func(*managedPod) error) error {
	failed := make([]error, len(w.pods))
	var wg sync.WaitGroup
	for i, m := range w.pods {
		wg.Go(func() { failed[i] = f(m) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// Release opens the barrier for the given instances.
func (e *Engine) Release(ctx context.Context, _ string, instances []string, at op.Time) error {
	return e.eachWorkload(instances, func(w *workload) error {
		return w.eachPod(func(m *managedPod) error { return m.release(ctx, at) })
	})
}

// Stop ends the given instances.
func (e *Engine) Stop(ctx context.Context, instances []string, grace time.Duration) error {
	return e.eachWorkload(instances, func(w *workload) error {
		return w.eachPod(func(m *managedPod) error { return m.stop(ctx, grace) })
	})
}

func (e *Engine) eachWorkload(names []string, f func(*workload) error) error {
	failed := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		if w := e.workload(name); w != nil { // else deleted
			wg.Go(func() { failed[i] = f(w) })
		}
	}
	wg.Wait()
	return errors.Join(failed...)
}

func (e *Engine) workload(name string) *workload {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.workloads[name]
}

// deleteWorkload deletes all objects of an instance.
func (e *Engine) deleteWorkload(ctx context.Context, name string, tr *op.Trace) error {
	w := e.workload(name)
	if w == nil {
		return notFound(engine.Object{Kind: engine.WorkloadObject, Name: name})
	}
	var volumes []*volume
	for _, n := range w.volumes {
		if v := e.volume(n); v != nil {
			volumes = append(volumes, v)
		}
	}
	others := slices.Clone(w.objects)
	for _, m := range w.pods {
		if len(m.current().sessions) > 0 {
			others = append(others, namedObject{api.Secrets, m.name()})
		}
	}
	if err := e.deleteAndWait(ctx, tr, w.pods, volumes, others); err != nil {
		return err
	}
	e.mu.Lock()
	delete(e.workloads, name)
	e.mu.Unlock()
	e.agents.Forget(name)
	return nil
}
