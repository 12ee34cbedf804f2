package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// manifest is the state of an object from a manifest, or of an existing object.
type manifest struct {
	engine    *Engine
	object    engine.Object
	kind      api.Kind
	namespace string // empty: cluster-scoped
	name      string // in the cluster
	foreign   bool
	hasPods   bool  // its controller creates pods with the run's labels
	templates []any // earlier pod templates, for undo
}

func (m *manifest) key() tracker.Key { return tracker.ObjectKey(m.kind, m.namespace, m.name) }

func (e *Engine) manifest(object string) *manifest {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.manifests[object]
}

// manifestOf finds the target of an action.
func (e *Engine) manifestOf(ctx context.Context, o engine.Object) (*manifest, error) {
	if o.Ref == nil {
		m := e.manifest(o.Name)
		if m == nil {
			return nil, notFound(o)
		}
		return m, nil
	}
	kind, err := e.findKind(ctx, schema.FromAPIVersionAndKind(o.Ref.APIVersion, o.Ref.Kind))
	if err != nil {
		return nil, err
	}
	m := &manifest{engine: e, object: o, kind: kind, name: o.Ref.Name, foreign: true}
	if kind.Namespaced {
		m.namespace = cmp.Or(o.Ref.Namespace, e.Namespace)
	}
	e.Mu.Lock() // rollouts of an object need its earlier templates
	defer e.Mu.Unlock()
	id := names.Raw + string(m.key().Subject) + " " + m.key().Name
	if e.manifests[id] == nil {
		e.manifests[id] = m
	}
	return e.manifests[id], nil
}

// findKind looks up each kind once.
func (e *Engine) findKind(ctx context.Context, gvk schema.GroupVersionKind) (api.Kind, error) {
	e.Mu.Lock()
	k, known := e.kinds[gvk]
	e.Mu.Unlock()
	if known {
		return k, nil
	}
	k, err := e.Client.Find(ctx, gvk)
	if err != nil {
		return k, core.APIError(ctx, err)
	}
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.kinds[gvk] = k
	return k, nil
}

// watchObject opens the watch of an object: one for all objects of the run of a kind, one for each
// existing object.
func (e *Engine) watchObject(ctx context.Context, m *manifest) error {
	src := watch.Source{Kind: m.kind, Namespace: m.namespace, LabelSelector: e.Selector()}
	if m.foreign {
		src.LabelSelector, src.FieldSelector = "", "metadata.name="+m.name
	}
	id := src.String() + " " + src.Namespace + " " + src.FieldSelector
	e.openingMu.Lock()
	defer e.openingMu.Unlock()
	e.watchesMu.Lock()
	there := e.manifestWatches[id] != nil
	e.watchesMu.Unlock()
	if there {
		return nil
	}
	w, err := watch.Open(context.WithoutCancel(ctx), watch.Config{Host: e.Config, Clock: e.Session.Clock, Sources: []watch.Source{src}, Gap: e.logGap,
		Handler: func(ev watch.Event) {
			e.Tracker.SeeObject(tracker.ObjectKey(m.kind, ev.Object.GetNamespace(), ev.Object.GetName()), ev)
		}})
	if err != nil {
		return core.APIError(ctx, err)
	}
	e.watchesMu.Lock()
	defer e.watchesMu.Unlock()
	e.manifestWatches[id] = w
	return nil
}

// sending and wrote pass the run's writes to the watches, which measure their lag by them.
func (e *Engine) sending(c api.Call) { e.eachWatch(func(w *watch.Watches) { w.Sending(c) }) }
func (e *Engine) wrote(c api.Call)   { e.eachWatch(func(w *watch.Watches) { w.Wrote(c) }) }

func (e *Engine) eachWatch(do func(*watch.Watches)) {
	if e.watches == nil {
		return // not open
	}
	do(e.watches)
	e.watchesMu.Lock()
	defer e.watchesMu.Unlock()
	for _, w := range e.manifestWatches {
		do(w)
	}
}

// refineMilestones sets the errors of an op's milestones, which depend on later events too.
func (e *Engine) refineMilestones(tr *op.Trace) {
	tr.Refine(func(m *op.Milestone) {
		if m.Source == "watch" {
			e.eachWatch(func(w *watch.Watches) { m.Err = w.Settled(m.At, m.Err) })
		}
	})
}

// prepareManifest looks up the kind of a manifest, adds the object to the ledger and opens its
// watch.
func (e *Engine) prepareManifest(r engine.Request) error {
	ctx, cancel := context.WithTimeout(e.Ctx, core.RequestTimeout)
	defer cancel()
	m, err := e.newManifest(ctx, r)
	if err != nil {
		return err
	}
	err = e.Session.Ledger.Add(op.LedgerEntry{Kind: m.kind.String(), Name: m.name, Data: map[string]string{
		"namespace": m.namespace, "server": e.ID.Server, "run": e.Session.RunID,
		"version": m.kind.Version, "group": m.kind.Group, "resource": m.kind.Resource, "kind": m.kind.Name}})
	return errors.Join(err, e.watchObject(ctx, m))
}

func (e *Engine) newManifest(ctx context.Context, r engine.Request) (*manifest, error) {
	gvk := r.Manifest.Object.GroupVersionKind()
	kind, err := e.findKind(ctx, gvk)
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", r.Action, err)
	}
	m := &manifest{engine: e, kind: kind, name: e.Name(r.Name),
		object: engine.Object{Kind: engine.ManifestObject, Name: r.Name, Action: r.Action, Labels: r.Manifest.Object.GetLabels()}}
	if kind.Namespaced {
		m.namespace = e.Namespace
	}
	return m, nil
}

// createManifest creates an object and waits until it is ready, if readiness is known for its
// kind.
func (e *Engine) createManifest(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	m, err := e.newManifest(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := e.watchObject(ctx, m); err != nil {
		return nil, err
	}
	o := &api.Any{Unstructured: *r.Manifest.Object.DeepCopy()}
	m.hasPods = e.adopt(&o.Unstructured, m, r)
	f := e.Tracker.Follow(m.key())
	defer f.Close()
	call, err := e.Client.Create(ctx, m.kind, m.namespace, o, o)
	if err != nil {
		return nil, core.APIError(ctx, err)
	}
	tr.MarkAt(op.Acked, call.Answered, 0, "runner")
	e.Mu.Lock()
	e.manifests[r.Name] = m
	e.Mu.Unlock()
	made := []engine.Object{m.object}
	if _, known := status.Ready(m.kind.GVK(), &o.Unstructured); !known {
		pods.MarkReady(tr, op.Milestone{At: call.Answered, Source: "runner"})
		return made, nil
	}
	return made, m.waitReady(ctx, f, tr, call, o.GetGeneration())
}

// adopt sets the name and labels of a manifest, and the labels of the pods and claims that its
// controller creates. It returns true if the controller creates pods.
func (e *Engine) adopt(o *unstructured.Unstructured, m *manifest, r engine.Request) bool {
	o.SetName(m.name)
	o.SetGenerateName("")
	o.SetNamespace(m.namespace)
	o.SetLabels(e.Labels(o.GetLabels(), r.Action, r.Name))
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	label := func(template any) bool {
		t, ok := template.(map[string]any)
		if !ok || t["spec"] == nil {
			return false
		}
		given, _, err := unstructured.NestedStringMap(t, "metadata", "labels")
		return err == nil && unstructured.SetNestedStringMap(t, e.Labels(given, r.Action, r.Name), "metadata", "labels") == nil
	}
	spec, _ := o.Object["spec"].(map[string]any)
	if job, ok := spec["jobTemplate"].(map[string]any); ok && label(job) {
		spec, _ = job["spec"].(map[string]any)
	}
	if claims, ok := spec["volumeClaimTemplates"].([]any); ok {
		for _, c := range claims {
			label(c)
		}
	}
	return label(spec["template"])
}

// waitReady waits until an object of at least a generation is ready. If it was ready before the
// request, the answer's time counts.
func (m *manifest) waitReady(ctx context.Context, f *tracker.Feed, tr *op.Trace, request api.Call, generation int64) error {
	var last *unstructured.Unstructured
	for {
		v, err := f.Next(ctx)
		if err != nil {
			return &engine.Error{Code: "Waiting", Message: fmt.Sprintf("%s %s is not ready: %s", m.kind.Name, m.name, status.Conditions(last)), Err: err}
		}
		ev, ok := v.(watch.Event)
		if !ok {
			continue
		}
		o, ok := ev.Object.(*api.Any)
		if !ok || o.GetUID() != request.UID {
			continue
		}
		if ev.Type == watch.Deleted {
			return &engine.Error{Code: "Deleted", Message: fmt.Sprintf("%s %s was deleted before it was ready", m.kind.Name, m.name)}
		}
		last = &o.Unstructured
		if o.GetGeneration() < generation {
			continue
		}
		done, _ := status.Ready(m.kind.GVK(), last)
		if err := status.ObjectError(m.kind.GVK(), last); err != nil {
			return err
		}
		if done {
			at := tracker.MilestoneOf(ev)
			if at.At < request.Sent {
				at = op.Milestone{At: request.Answered, Source: "runner"}
			}
			pods.MarkReady(tr, at)
			return nil
		}
	}
}

// deleteManifest deletes an object with its dependents and the claims of its controller, and waits
// until all are gone with their volumes.
func (e *Engine) deleteManifest(ctx context.Context, target engine.Object, tr *op.Trace) error {
	m, err := e.manifestOf(ctx, target)
	if err != nil {
		return err
	}
	if err := e.watchObject(ctx, m); err != nil {
		return err
	}
	r := e.NewRemoval()
	defer r.Feed.Close()
	defer func() { r.Milestones.Fill(tr, r.ObjectsOf) }()
	there := new(api.Any)
	if _, err := e.Client.Get(ctx, m.kind, m.namespace, m.name, there); err != nil {
		return core.APIError(ctx, err)
	}
	r.Manifests[m.key().Name] = pods.PendingDeletion{Object: m.name, UID: there.GetUID()}
	r.ObjectsOf[pods.ObjectGone] = []string{m.name}
	r.Feed.Add(m.key())
	var claims []*pods.Volume
	if !m.foreign {
		for _, c := range e.Tracker.ClaimsOfObject(target.Name, m.name) {
			x := &pods.Volume{Name: c.Name, Object: engine.Object{Kind: engine.VolumeObject, Name: c.Name}}
			claims = append(claims, x)
			r.AddClaim(x)
		}
	}
	uid, foreground := there.GetUID(), metav1.DeletePropagationForeground
	opts := metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &uid}}
	if _, err := e.Client.Delete(ctx, m.kind, m.namespace, m.name, opts); err != nil && !apierrors.IsNotFound(err) {
		return core.APIError(ctx, err)
	}
	for _, x := range claims {
		if err := e.Delete(ctx, api.PersistentVolumeClaims, x.Name); err != nil {
			return err
		}
	}
	tr.Mark(op.Acked, "runner")
	if err := r.Wait(ctx); err != nil {
		return err
	}
	end := r.Milestones.Last(pods.ObjectGone, pods.ClaimGone, op.Detached, pods.VolumeGone)
	tr.EndedAt(end)
	tr.MarkAt(op.Gone, end, 0, "watch")
	e.Mu.Lock()
	delete(e.manifests, target.Name)
	e.Mu.Unlock()
	if m.foreign {
		return nil
	}
	return e.LedgerDone(m.kind, m.name)
}
