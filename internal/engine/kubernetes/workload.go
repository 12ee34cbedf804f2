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
	"github.com/cnsbench/cnsbench/internal/op"
)

// workload is one instance: its claims, its pods and what they refer to.
type workload struct {
	engine  *Engine
	name    string
	volumes []string
	members []*member
	others  []other
	// rollouts counts those of its pods; revision is the present one, revisions
	// are those before that can be gone back to.
	rollouts, revision int
	revisions          []int
}

// other is an object that goes with an instance.
type other struct {
	kind api.Kind
	name string // in the cluster
}

// createWorkload makes all objects of an instance and waits until its pods are
// ready.
func (e *Engine) createWorkload(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	w := &workload{engine: e, name: r.Name}
	e.mu.Lock()
	e.workloads[w.name] = w
	e.mu.Unlock()
	b := e.bring()
	states := map[string]*claimState{}
	err := e.makeObjects(ctx, w, r, b, states)
	tr.Mark(op.Acked, "runner")
	if err == nil {
		err = b.await(ctx, tr)
	} else {
		b.feed.close()
	}
	made := []engine.Object{{Kind: engine.WorkloadObject, Name: w.name, Action: r.Action}}
	for _, name := range w.volumes {
		v := e.volume(name)
		v.object.Handle, v.object.Bytes = states[name].handle, states[name].bytes
		e.keepVolume(v)
		made = append(made, v.object)
	}
	if err != nil {
		return made, err
	}
	go w.follow(context.WithoutCancel(ctx))
	return made, nil
}

// makeObjects sends everything to the API server: what pods refer to first.
func (e *Engine) makeObjects(ctx context.Context, w *workload, r engine.Request, b *bringing, states map[string]*claimState) error {
	refs, err := e.makeReferred(ctx, w, r)
	if err != nil {
		return err
	}
	refs.groups = together(r.Workload)
	mounted := mountedClaims(r.Workload)
	for i := range r.Workload.Claims {
		object := r.Workload.Claims[i].Name
		claim := r.Workload.Claims[i].DeepCopy()
		claim.ObjectMeta = e.meta(claim.ObjectMeta, r.Action, object)
		refs.claims[object] = claim.Name
		states[object] = b.claim(object, mounted[object])
		if _, err := e.create(ctx, api.PersistentVolumeClaims, claim); err != nil {
			return err
		}
		w.owns(claim, object, r.Action)
	}
	for i := range r.Workload.Pods {
		p := &r.Workload.Pods[i]
		for _, claim := range e.ephemeral(p, r.Action) {
			object := p.Name + "-" + claim.Name
			claim.Name = e.name(object)
			states[object] = b.claim(object, true)
			w.owns(claim, object, r.Action)
		}
		m, err := e.makePod(ctx, w, r, p, b, refs)
		if m != nil {
			w.members = append(w.members, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// owns takes a claim into the instance.
func (w *workload) owns(claim *corev1.PersistentVolumeClaim, object, action string) {
	v := &volume{name: claim.Name, readOnly: readOnly(claim), block: isBlock(claim),
		object: engine.Object{Kind: engine.VolumeObject, Name: object, Action: action, Owner: w.name, Labels: claim.Labels}}
	if claim.Spec.StorageClassName != nil {
		v.object.Class = *claim.Spec.StorageClassName
	}
	w.engine.keepVolume(v)
	w.volumes = append(w.volumes, object)
}

// ephemeral lists the claims that the cluster will make for a pod, each by the
// name of its volume, and labels their templates.
func (e *Engine) ephemeral(p *engine.Pod, action string) []*corev1.PersistentVolumeClaim {
	var list []*corev1.PersistentVolumeClaim
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		t := v.Ephemeral.VolumeClaimTemplate
		t.Labels = e.labels(t.Labels, action, p.Name+"-"+v.Name)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
		claim.Name = v.Name
		list = append(list, claim)
	}
	return list
}

// makeReferred makes what pods refer to by name, apart from claims.
func (e *Engine) makeReferred(ctx context.Context, w *workload, r engine.Request) (*references, error) {
	refs := &references{claims: map[string]string{}, configs: map[string]string{}, secrets: map[string]string{}, services: map[string]string{}}
	send := func(kind api.Kind, o api.Object, names map[string]string, object string) error {
		names[object] = o.GetName()
		if _, err := e.create(ctx, kind, o); err != nil {
			return err
		}
		w.others = append(w.others, other{kind, o.GetName()})
		return nil
	}
	for i := range r.Workload.ConfigMaps {
		c := r.Workload.ConfigMaps[i].DeepCopy()
		object := c.Name
		c.ObjectMeta = e.meta(c.ObjectMeta, r.Action, object)
		if err := send(api.ConfigMaps, c, refs.configs, object); err != nil {
			return nil, err
		}
	}
	for i := range r.Workload.Secrets {
		c := r.Workload.Secrets[i].DeepCopy()
		object := c.Name
		c.ObjectMeta = e.meta(c.ObjectMeta, r.Action, object)
		if err := send(api.Secrets, c, refs.secrets, object); err != nil {
			return nil, err
		}
	}
	for i := range r.Workload.Services {
		c := r.Workload.Services[i].DeepCopy()
		object := c.Name
		c.ObjectMeta = e.meta(c.ObjectMeta, r.Action, object)
		if err := send(services, c, refs.services, object); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// services is the kind Service.
var services = api.Kind{Version: "v1", Resource: "services", Name: "Service", Namespaced: true, New: func() api.Object { return new(corev1.Service) }}

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

// makePod makes one pod with its agents, where its group is if it has one.
func (e *Engine) makePod(ctx context.Context, w *workload, r engine.Request, p *engine.Pod, b *bringing, refs *references) (*member, error) {
	pod := p.Pod.DeepCopy()
	plan := e.plan(p, r.Workload)
	pod.ObjectMeta = e.meta(pod.ObjectMeta, r.Action, p.Name)
	pod.Status = corev1.PodStatus{}
	refs.rename(&pod.Spec)
	place(pod, refs.groups[p.Name])
	boundOutput(&pod.Spec, p, e.session.MaxOutput)
	m := &member{engine: e, object: p.Name, instance: w.name, service: p.Service, mains: p.Sync, phases: p.Phases}
	if len(r.Workload.Pods) > 1 {
		m.within = strings.TrimPrefix(p.Name, w.name+"-") + "."
	}
	return m, m.start(ctx, pod, plan.wrapped, plan.options, b)
}

// watched is what the agents of a pod are to do.
type watched struct {
	wrapped []string
	by      map[string]agent.Options
}

func (w watched) options(container string) agent.Options { return w.by[container] }

// plan decides what each agent of a pod does. Containers that leave their
// command to the image cannot be wrapped.
func (e *Engine) plan(p *engine.Pod, w *engine.Workload) watched {
	plan := watched{by: map[string]agent.Options{}}
	claimOf := map[string]string{} // volume of the pod → claim of the loop
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
		o := agent.Options{MaxOutput: e.session.MaxOutput}
		main := len(p.Sync) == 0 || slices.Contains(p.Sync, c.Name)
		if main {
			o.Outputs = p.Outputs
			if w.SyncGroup != "" && slices.Contains(p.Sync, c.Name) {
				o.Barrier, o.Rendezvous = w.SyncGroup, p.Rendezvous
				o.Phase, _ = p.Phase(c.Name)
			}
			if w.Canary != nil {
				o.Canary = canary(w.Canary, c, claimOf, of(canaried, o.Phase.Number))
			}
		}
		// That of a later phase writes when it is asked to, in place of the first.
		o.Probes, o.ProbeLater = e.touches(c, claimOf, of(touched, o.Phase.Number)), o.Phase.Number > 0
		plan.by[c.Name] = o
	}
	return plan
}

// of is the set of a phase.
func of(sets map[int]map[string]bool, phase int) map[string]bool {
	if sets[phase] == nil {
		sets[phase] = map[string]bool{}
	}
	return sets[phase]
}

// touches asks for a first write or read of each claim that no container
// before has.
func (e *Engine) touches(c *corev1.Container, claimOf map[string]string, done map[string]bool) []protocol.VolumeProbeSpec {
	var list []protocol.VolumeProbeSpec
	for _, m := range c.VolumeMounts {
		claim := claimOf[m.Name]
		if claim == "" || done[claim] || m.SubPath != "" || m.SubPathExpr != "" {
			continue
		}
		done[claim] = true
		list = append(list, protocol.VolumeProbeSpec{Volume: e.name(claim), Path: m.MountPath, Write: !m.ReadOnly, Read: m.ReadOnly})
	}
	for _, d := range c.VolumeDevices {
		if claim := claimOf[d.Name]; claim != "" && !done[claim] {
			done[claim] = true
			list = append(list, protocol.VolumeProbeSpec{Volume: e.name(claim), Path: d.DevicePath, Read: true, Device: true})
		}
	}
	return list
}

// canary is the order for the canaries of one container: one for each of its
// claims that no container before it has.
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

// holderAgent is what the agent of a holder does: one first write, or a read
// of what is there already.
func (e *Engine) holderAgent(v *volume) func(string) agent.Options {
	t := protocol.VolumeProbeSpec{Volume: v.name, Path: holderDir, Write: true}
	if v.block {
		t = protocol.VolumeProbeSpec{Volume: v.name, Path: holderDevice, Read: true, Device: true}
	} else if v.readOnly || v.object.Source != "" {
		t.Write, t.Read = false, true
	}
	return func(string) agent.Options { return agent.Options{Probes: []protocol.VolumeProbeSpec{t}, Sample: -1} }
}

// follow reports the end of the instance: that of its last pod that is no
// server, or of the first server that fails.
func (w *workload) follow(ctx context.Context) {
	var mu sync.Mutex
	end := op.InstanceEnd{Instance: w.name, At: op.Never, OK: true}
	take := func(e op.InstanceEnd) {
		mu.Lock()
		defer mu.Unlock()
		end.Containers = append(end.Containers, e.Containers...)
		end.At, end.OK = max(end.At, e.At), end.OK && e.OK
	}
	failed := make(chan struct{}, len(w.members))
	var mains sync.WaitGroup
	waits := 0
	for _, m := range w.members {
		if m.service {
			go func() {
				if e := m.await(ctx); !e.OK {
					take(e)
					failed <- struct{}{}
				}
			}()
			continue
		}
		waits++
		mains.Go(func() { take(m.await(ctx)) })
	}
	var over chan struct{} // nil of servers only: they end when they are stopped or one fails
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
		end.At = w.engine.session.Clock.Now()
	}
	w.engine.session.Sink.Ended(end)
}

func (w *workload) each(f func(*member) error) error {
	failed := make([]error, len(w.members))
	var wg sync.WaitGroup
	for i, m := range w.members {
		wg.Go(func() { failed[i] = f(m) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// Release opens the barrier for the given instances.
func (e *Engine) Release(ctx context.Context, _ string, instances []string, at op.Time) error {
	return e.eachWorkload(instances, func(w *workload) error {
		return w.each(func(m *member) error { return m.release(ctx, at) })
	})
}

// Stop ends the given instances.
func (e *Engine) Stop(ctx context.Context, instances []string, grace time.Duration) error {
	return e.eachWorkload(instances, func(w *workload) error {
		return w.each(func(m *member) error { return m.stop(ctx, grace) })
	})
}

func (e *Engine) eachWorkload(names []string, f func(*workload) error) error {
	failed := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		if w := e.workload(name); w != nil { // else it is deleted already
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

// deleteWorkload deletes all that an instance is made of.
func (e *Engine) deleteWorkload(ctx context.Context, name string, tr *op.Trace) error {
	w := e.workload(name)
	if w == nil {
		return gone(engine.Object{Kind: engine.WorkloadObject, Name: name})
	}
	var volumes []*volume
	for _, n := range w.volumes {
		if v := e.volume(n); v != nil {
			volumes = append(volumes, v)
		}
	}
	others := slices.Clone(w.others)
	for _, m := range w.members {
		if len(m.current().sessions) > 0 {
			others = append(others, other{api.Secrets, m.name()})
		}
	}
	if err := e.remove(ctx, tr, w.members, volumes, others); err != nil {
		return err
	}
	e.mu.Lock()
	delete(e.workloads, name)
	e.mu.Unlock()
	e.agents.Forget(name)
	return nil
}
