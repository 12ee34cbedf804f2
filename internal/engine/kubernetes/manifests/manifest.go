// Package manifests creates, follows and deletes objects from manifests, of any kind.
package manifests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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

// Manifests has the objects of manifests and their watches.
type Manifests struct {
	*pods.State
	// Watches are those of the engine's own kinds; nil: not open.
	Watches *watch.Watches
	// LogGap logs a gap of a watch.
	LogGap func(watch.Gap)

	objects map[string]*Manifest
	kinds   map[schema.GroupVersionKind]api.Kind

	openingMu sync.Mutex                // held while a further watch is opened
	watchesMu sync.Mutex                // guards further; not held during requests
	further   map[string]*watch.Watches // by kind of manifest
}

// New returns Manifests without objects.
func New(s *pods.State, logGap func(watch.Gap)) *Manifests {
	return &Manifests{State: s, LogGap: logGap, objects: map[string]*Manifest{},
		kinds: map[schema.GroupVersionKind]api.Kind{}, further: map[string]*watch.Watches{}}
}

// Manifest is the state of an object from a manifest, or of an existing object.
type Manifest struct {
	manifests *Manifests
	Object    engine.Object
	Kind      api.Kind
	Namespace string // empty: cluster-scoped
	Name      string // in the cluster
	foreign   bool
	HasPods   bool  // its controller creates pods with the run's labels
	templates []any // earlier pod templates, for undo
}

// Key returns the key of the object's events.
func (m *Manifest) Key() tracker.Key { return tracker.ObjectKey(m.Kind, m.Namespace, m.Name) }

// Get returns an object by its name in the run; nil if there is none.
func (e *Manifests) Get(object string) *Manifest {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.objects[object]
}

// Target finds the target of an action.
func (e *Manifests) Target(ctx context.Context, o engine.Object) (*Manifest, error) {
	if o.Ref == nil {
		m := e.Get(o.Name)
		if m == nil {
			return nil, core.NotFound(o)
		}
		return m, nil
	}
	kind, err := e.findKind(ctx, schema.FromAPIVersionAndKind(o.Ref.APIVersion, o.Ref.Kind))
	if err != nil {
		return nil, err
	}
	m := &Manifest{manifests: e, Object: o, Kind: kind, Name: o.Ref.Name, foreign: true}
	if kind.Namespaced {
		m.Namespace = cmp.Or(o.Ref.Namespace, e.Namespace)
	}
	e.Mu.Lock() // rollouts of an object need its earlier templates
	defer e.Mu.Unlock()
	id := names.Raw + string(m.Key().Subject) + " " + m.Key().Name
	if e.objects[id] == nil {
		e.objects[id] = m
	}
	return e.objects[id], nil
}

// findKind looks up each kind once.
func (e *Manifests) findKind(ctx context.Context, gvk schema.GroupVersionKind) (api.Kind, error) {
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

// Prepare looks up the kind of a manifest, adds the object to the ledger and opens its watch.
func (e *Manifests) Prepare(r engine.Request) error {
	ctx, cancel := context.WithTimeout(e.Ctx, core.RequestTimeout)
	defer cancel()
	m, err := e.newManifest(ctx, r)
	if err != nil {
		return err
	}
	err = e.LedgerAddManifest(m.Kind, m.Name)
	if e.isFollowed(m.Kind) {
		err = errors.Join(err, e.Watch(ctx, m))
	}
	return err
}

// isFollowed says whether an op of the run may wait for changes of the run's objects of a kind. Objects that nothing
// waits for are not watched, because each event takes CPU time of the API server and of the runner.
func (e *Manifests) isFollowed(k api.Kind) bool {
	needs := e.Session.Needs.Kinds
	return status.HasReadiness(k.GVK()) || needs[op.Delete] || needs[op.Rollout]
}

func (e *Manifests) newManifest(ctx context.Context, r engine.Request) (*Manifest, error) {
	gvk := r.Manifest.Object.GroupVersionKind()
	kind, err := e.findKind(ctx, gvk)
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", r.Action, err)
	}
	m := &Manifest{manifests: e, Kind: kind, Name: e.Name(r.Name),
		Object: engine.Object{Kind: engine.ManifestObject, Name: r.Name, Action: r.Action,
			Labels: r.Manifest.Object.GetLabels()}}
	if kind.Namespaced {
		m.Namespace = e.Namespace
	}
	return m, nil
}

// CreateObject creates an object and waits until it is ready, if its kind has readiness.
func (e *Manifests) CreateObject(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	m, err := e.newManifest(ctx, r)
	if err != nil {
		return nil, err
	}
	if e.isFollowed(m.Kind) {
		if err := e.Watch(ctx, m); err != nil {
			return nil, err
		}
	}
	o := &api.Any{Unstructured: r.Manifest.Object}
	m.HasPods = e.adopt(&o.Unstructured, m, r)
	awaited := status.HasReadiness(m.Kind.GVK())
	var f *tracker.Feed
	var into api.Object // nil: the answer's metadata are enough
	if awaited {
		f, into = e.Tracker.Follow(m.Key()), o
		defer f.Close()
	}
	call, err := e.Client.Create(ctx, m.Kind, m.Namespace, o, into)
	if err != nil {
		return nil, core.APIError(ctx, err)
	}
	tr.MarkAt(op.Acked, call.Answered, 0, "runner")
	e.Mu.Lock()
	e.objects[r.Name] = m
	e.Mu.Unlock()
	made := []engine.Object{m.Object}
	if !awaited {
		pods.MarkReady(tr, op.Milestone{At: call.Answered, Source: "runner"})
		return made, nil
	}
	if !wantsFirstPut(&o.Unstructured) {
		return made, m.WaitReady(ctx, f, tr, call, o.GetGeneration())
	}
	at, err := m.awaitReady(ctx, f, call, o.GetGeneration())
	if err != nil {
		return made, err
	}
	tr.MarkAt(op.ObjectReady, at.At, at.Err, at.Source)
	return made, firstPut(ctx, e.Run, &o.Unstructured, tr)
}

// adopt sets the name and labels of a manifest, and the labels of the pods and claims that its controller creates.
// It returns true if the controller creates pods.
func (e *Manifests) adopt(o *unstructured.Unstructured, m *Manifest, r engine.Request) bool {
	o.SetName(m.Name)
	o.SetGenerateName("")
	o.SetNamespace(m.Namespace)
	o.SetLabels(e.Labels(o.GetLabels(), r.Action))
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields",
		"selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	label := func(template any) bool {
		t, ok := template.(map[string]any)
		if !ok || t["spec"] == nil {
			return false
		}
		given, _, err := unstructured.NestedStringMap(t, "metadata", "labels")
		return err == nil && unstructured.SetNestedStringMap(t,
			e.Metadata().TemplateLabels(given, r.Action, r.Name), "metadata", "labels") == nil
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

// WaitReady waits until an object of at least a generation is ready. If it was ready before the request, the
// answer's time counts.
func (m *Manifest) WaitReady(ctx context.Context, f *tracker.Feed, tr *op.Trace, request api.Call,
	generation int64) error {
	at, err := m.awaitReady(ctx, f, request, generation)
	if err == nil {
		pods.MarkReady(tr, at)
	}
	return err
}

func (m *Manifest) awaitReady(ctx context.Context, f *tracker.Feed, request api.Call, generation int64) (
	at op.Milestone, err error) {
	var last *unstructured.Unstructured
	for {
		v, err := f.Next(ctx)
		if err != nil {
			return at, engine.Errorf("Waiting", "%s %s is not ready: %s", m.Kind.Name, m.Name,
				status.Conditions(last)).Wrap(err)
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
			return at, engine.Errorf("Deleted", "%s %s was deleted before it was ready", m.Kind.Name, m.Name)
		}
		last = &o.Unstructured
		if o.GetGeneration() < generation {
			continue
		}
		done, _ := status.Ready(m.Kind.GVK(), last)
		if err := status.ObjectError(m.Kind.GVK(), last); err != nil {
			return at, err
		}
		if done {
			at = tracker.MilestoneOf(ev)
			if at.At < request.Sent {
				at = op.Milestone{At: request.Answered, Source: "runner"}
			}
			return at, nil
		}
	}
}

// DeleteObject deletes an object with its dependents and the claims of its controller, and waits until all are gone
// with their volumes.
func (e *Manifests) DeleteObject(ctx context.Context, target engine.Object, tr *op.Trace) error {
	m, err := e.Target(ctx, target)
	if err != nil {
		return err
	}
	if err := e.Watch(ctx, m); err != nil {
		return err
	}
	r := e.NewRemoval()
	defer r.Feed.Close()
	defer func() { r.Milestones.Fill(tr, r.ObjectsOf) }()
	there := new(api.Any)
	if _, err := e.Client.Get(ctx, m.Kind, m.Namespace, m.Name, there); err != nil {
		return core.APIError(ctx, err)
	}
	r.Manifests[m.Key().Name] = pods.PendingDeletion{Object: m.Name, UID: there.GetUID()}
	r.ObjectsOf[pods.ObjectGone] = []string{m.Name}
	r.Feed.Add(m.Key())
	var claims []*pods.Volume
	if !m.foreign {
		for _, c := range e.Tracker.ClaimsOfObject(target.Name, m.Name) {
			x := &pods.Volume{Name: c.Name, Object: engine.Object{Kind: engine.VolumeObject, Name: c.Name}}
			claims = append(claims, x)
			r.AddClaim(x)
		}
	}
	uid := there.GetUID()
	opts := metav1.DeleteOptions{PropagationPolicy: core.Propagation(m.Kind),
		Preconditions: &metav1.Preconditions{UID: &uid}}
	if _, err := e.Client.Delete(ctx, m.Kind, m.Namespace, m.Name, opts); err != nil && !apierrors.IsNotFound(err) {
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
	delete(e.objects, target.Name)
	e.Mu.Unlock()
	if m.foreign {
		return nil
	}
	return e.LedgerDone(m.Kind, m.Name)
}

// AwaitReplicas polls the scale subresource until it has want replicas and as many pods of its selector are ready.
func (m *Manifest) AwaitReplicas(ctx context.Context, want int32, tr *op.Trace) error {
	clock := m.manifests.Session.Clock
	for before, now := clock.Now(), clock.Now(); ; before, now = now, clock.Now() {
		s, err := m.manifests.Client.Scale(ctx, m.Kind, m.Namespace, m.Name)
		if err != nil {
			return core.APIError(ctx, err)
		}
		there, ready := s.Status.Replicas, s.Status.Replicas
		if s.Status.Selector != "" {
			list, _, err := m.manifests.Client.List(ctx, api.Pods, m.Namespace,
				metav1.ListOptions{LabelSelector: s.Status.Selector})
			if err != nil {
				return core.APIError(ctx, err)
			}
			set := pods.Set{Pods: map[types.UID]*corev1.Pod{}}
			for _, p := range list {
				set.Pods[p.GetUID()] = p.(*corev1.Pod)
			}
			there, ready = int32(len(list)), int32(set.ReadyCount())
		}
		if s.Status.Replicas == want && there == want && ready == want {
			between := time.Duration(clock.Now() - before)
			tr.MarkPolled(op.ObjectReady, "list", between)
			tr.MarkPolled(op.Ready, "list", between)
			return nil
		}
		select {
		case <-time.After(replicasPollInterval):
		case <-ctx.Done():
			return engine.Errorf("Waiting", "%s %s has %d replicas, %d of them ready, of %d", m.Kind.Name, m.Name,
				there, ready, want).Wrap(ctx.Err())
		}
	}
}

// replicasPollInterval is the poll interval for an object whose pods are not watched.
const replicasPollInterval = 200 * time.Millisecond

// RolloutPatch returns the patch of a rollout and keeps the current template, or the patch of an undo.
func (m *Manifest) RolloutPatch(template any, undo bool) (types.PatchType, []byte, error) {
	m.manifests.Mu.Lock()
	defer m.manifests.Mu.Unlock()
	if !undo {
		m.templates = append(m.templates, template)
		body := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, RestartedAt,
			time.Now().Format(time.RFC3339Nano))
		return types.MergePatchType, body, nil
	}
	last := len(m.templates) - 1
	if last < 0 {
		return "", nil, engine.Errorf("FailedPrecondition", "there is no rollout of %s %s to undo", m.Kind.Name, m.Name)
	}
	body, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": m.templates[last]}})
	m.templates = m.templates[:last]
	return types.JSONPatchType, body, err
}

// RestartedAt is the annotation of kubectl rollout restart.
const RestartedAt = "kubectl.kubernetes.io/restartedAt"
