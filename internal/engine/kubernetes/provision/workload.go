package provision

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
)

// CreateWorkload creates all objects of an instance and waits until its pods are ready.
func (e *Provisioner) CreateWorkload(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	w := &pods.Workload{State: e.State, Name: r.Name}
	e.Mu.Lock()
	e.Workloads[w.Name] = w
	e.Mu.Unlock()
	pr := e.NewProvision()
	states := map[string]*pods.ClaimState{}
	err := e.createObjects(ctx, w, r, pr, states)
	tr.Mark(op.Acked, "runner")
	if err == nil {
		err = pr.Wait(ctx, tr)
	} else {
		pr.Feed.Close()
	}
	made := []engine.Object{{Kind: engine.WorkloadObject, Name: w.Name, Action: r.Action}}
	for _, name := range w.Volumes {
		v := e.Volume(name)
		v.Object.Handle, v.Object.Bytes = states[name].Handle, states[name].Bytes
		e.StoreVolume(v)
		made = append(made, v.Object)
	}
	if err != nil {
		return made, err
	}
	go w.Follow(context.WithoutCancel(ctx))
	return made, nil
}

// createObjects creates everything, referenced objects before pods.
func (e *Provisioner) createObjects(ctx context.Context, w *pods.Workload, r engine.Request, pr *pods.Provision,
	states map[string]*pods.ClaimState) error {
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
		states[object] = pr.AddClaim(object, mounted[object])
		if _, err := e.Create(ctx, api.PersistentVolumeClaims, claim); err != nil {
			return err
		}
		w.AddClaim(claim, object, r.Action)
	}
	for i := range r.Workload.Pods {
		p := &r.Workload.Pods[i]
		for _, claim := range e.ephemeral(p, r.Action) {
			object := p.Name + "-" + claim.Name
			claim.Name = e.Name(object)
			states[object] = pr.AddClaim(object, true)
			w.AddClaim(claim, object, r.Action)
		}
		m, err := e.createPod(ctx, w, r, p, pr, refs)
		if m != nil {
			w.Pods = append(w.Pods, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ephemeral lists the claims that the cluster creates for a pod, each by the name of its volume, and labels their
// templates.
func (e *Provisioner) ephemeral(p *engine.Pod, action string) []*corev1.PersistentVolumeClaim {
	var list []*corev1.PersistentVolumeClaim
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		t := v.Ephemeral.VolumeClaimTemplate
		t.Labels = e.Metadata().TemplateLabels(t.Labels, action, p.Name+"-"+v.Name)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
		claim.Name = v.Name
		list = append(list, claim)
	}
	return list
}

// createReferenced creates the objects that pods refer to by name, except claims.
func (e *Provisioner) createReferenced(ctx context.Context, w *pods.Workload, r engine.Request) (*names.References,
	error) {
	refs := &names.References{Claims: map[string]string{}, ConfigMaps: map[string]string{},
		Secrets: map[string]string{}, Services: map[string]string{}}
	create := func(kind api.Kind, o api.Object, meta *metav1.ObjectMeta, names map[string]string) error {
		object := meta.Name
		*meta = e.Meta(*meta, r.Action, object)
		names[object] = meta.Name
		if _, err := e.Create(ctx, kind, o); err != nil {
			return err
		}
		w.Objects = append(w.Objects, pods.NamedObject{Kind: kind, Name: meta.Name})
		return nil
	}
	for i := range r.Workload.ConfigMaps {
		c := r.Workload.ConfigMaps[i].DeepCopy()
		if err := create(api.ConfigMaps, c, &c.ObjectMeta, refs.ConfigMaps); err != nil {
			return nil, err
		}
	}
	for i := range r.Workload.Secrets {
		c := r.Workload.Secrets[i].DeepCopy()
		if err := create(api.Secrets, c, &c.ObjectMeta, refs.Secrets); err != nil {
			return nil, err
		}
	}
	for i := range r.Workload.Services {
		c := r.Workload.Services[i].DeepCopy()
		if err := create(core.Services, c, &c.ObjectMeta, refs.Services); err != nil {
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
func (e *Provisioner) createPod(ctx context.Context, w *pods.Workload, r engine.Request, p *engine.Pod,
	pr *pods.Provision, refs *names.References) (*pods.Pod, error) {
	pod := p.Pod.DeepCopy()
	plan := e.planAgents(p, r.Workload)
	pod.ObjectMeta = e.Meta(pod.ObjectMeta, r.Action, p.Name)
	pod.Status = corev1.PodStatus{}
	refs.Apply(&pod.Spec)
	podspec.Colocate(pod, refs.Colocated[p.Name])
	podspec.LimitOutput(&pod.Spec, p, e.Session.MaxOutput)
	m := &pods.Pod{State: e.State, Object: p.Name, Instance: w.Name, Service: p.Service, MainContainers: p.Sync,
		Phases: p.Phases, Extra: r.PodTemplate}
	if len(r.Workload.Pods) > 1 {
		m.ContainerPrefix = strings.TrimPrefix(p.Name, w.Name+"-") + "."
	}
	return m, m.Start(ctx, pod, plan.wrapped, plan.options, pr)
}

// DeleteWorkload deletes all objects of an instance.
func (e *Provisioner) DeleteWorkload(ctx context.Context, name string, tr *op.Trace) error {
	w := e.Workload(name)
	if w == nil {
		return core.NotFound(engine.Object{Kind: engine.WorkloadObject, Name: name})
	}
	var volumes []*pods.Volume
	for _, n := range w.Volumes {
		if v := e.Volume(n); v != nil {
			volumes = append(volumes, v)
		}
	}
	others := slices.Clone(w.Objects)
	for _, m := range w.Pods {
		if len(m.Current().Sessions) > 0 {
			others = append(others, pods.NamedObject{Kind: api.Secrets, Name: m.Name()})
		}
	}
	if err := e.DeleteAndWait(ctx, tr, w.Pods, volumes, others); err != nil {
		return err
	}
	e.Mu.Lock()
	delete(e.Workloads, name)
	e.Mu.Unlock()
	e.Agents.Forget(name)
	return nil
}
