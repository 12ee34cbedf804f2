package kubernetes

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
)

// createWorkload creates all objects of an instance and waits until its pods are ready.
func (e *Engine) createWorkload(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	w := &workload{engine: e.State, name: r.Name}
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
	m := &managedPod{engine: e.State, object: p.Name, instance: w.name, service: p.Service, mainContainers: p.Sync, phases: p.Phases}
	if len(r.Workload.Pods) > 1 {
		m.containerPrefix = strings.TrimPrefix(p.Name, w.name+"-") + "."
	}
	return m, m.start(ctx, pod, plan.wrapped, plan.options, pr)
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
