// Package install installs CNSBench in a cluster, waits until it is ready, and uninstalls it. The objects come from
// package config.
package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// fieldManager owns the fields that an installation sets.
const fieldManager = "cnsbench-install"

// pollInterval is between two requests for the state of an object.
const pollInterval = 500 * time.Millisecond

// Installer works on one cluster. It is not for concurrent use.
type Installer struct {
	dynamic dynamic.Interface
	mapper  meta.ResettableRESTMapper
	// Say reports each step.
	Say func(format string, args ...any)
}

// New makes an Installer for a cluster.
func New(config *rest.Config, say func(format string, args ...any)) (*Installer, error) {
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	k, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(k.Discovery()))
	return &Installer{dynamic: d, mapper: mapper, Say: say}, nil
}

// resource finds the endpoint of an object.
func (i *Installer) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	m, err := i.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", describe(u), err)
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return i.dynamic.Resource(m.Resource).Namespace(u.GetNamespace()), nil
	}
	return i.dynamic.Resource(m.Resource), nil
}

// Apply applies the objects in their order. With dryRun the API server only checks them; it cannot check objects in a
// namespace that does not exist yet.
func (i *Installer) Apply(ctx context.Context, objects []*unstructured.Unstructured, dryRun bool) error {
	opts := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	verb := "applied"
	if dryRun {
		opts.DryRun, verb = []string{metav1.DryRunAll}, "would apply"
	}
	for _, u := range objects {
		r, err := i.resource(u)
		if err != nil {
			return err
		}
		if leave, err := i.leave(ctx, r, u); err != nil {
			return err
		} else if leave {
			i.Say("unchanged: %s", describe(u))
			continue
		}
		_, err = r.Apply(ctx, u.GetName(), u, opts)
		if dryRun && apierrors.IsNotFound(err) && u.GetNamespace() != "" {
			i.Say("%s %s (unchecked: its namespace does not exist yet)", verb, describe(u))
			continue
		}
		if err != nil {
			return explain(u, err)
		}
		i.Say("%s %s", verb, describe(u))
	}
	return nil
}

// leave says whether Apply leaves an existing object unchanged: a namespace that install has not created, and a Secret,
// whose token is in use.
func (i *Installer) leave(ctx context.Context, r dynamic.ResourceInterface, u *unstructured.Unstructured) (
	bool, error) {
	if u.GetKind() != "Secret" {
		return i.theirs(ctx, r, u)
	}
	_, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", describe(u), err)
	}
	return true, nil
}

var (
	classes = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	volumes = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
)

// defaultClass marks the class of claims without one.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// CheckClasses refuses claims that would stay pending: without a class, or with one that does not exist.
func (i *Installer) CheckClasses(ctx context.Context, objects []*unstructured.Unstructured) error {
	list, err := i.dynamic.Resource(classes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil //nolint:nilerr // without the right to list classes, the claim shows the problem
	}
	for _, u := range objects {
		if u.GetKind() != "PersistentVolumeClaim" {
			continue
		}
		r, err := i.resource(u)
		if err != nil {
			return err
		}
		if _, err := r.Get(ctx, u.GetName(), metav1.GetOptions{}); err == nil {
			continue // it has its class
		}
		class, _, _ := unstructured.NestedString(u.Object, "spec", "storageClassName")
		if err := among(class, list.Items); err != nil && (class != "" || !i.waiting(ctx)) {
			return fmt.Errorf("%s: %w", describe(u), err)
		}
	}
	return nil
}

// waiting says whether a volume without a class is available for a claim without one.
func (i *Installer) waiting(ctx context.Context) bool {
	list, err := i.dynamic.Resource(volumes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list.Items, func(v unstructured.Unstructured) bool {
		class, _, _ := unstructured.NestedString(v.Object, "spec", "storageClassName")
		phase, _, _ := unstructured.NestedString(v.Object, "status", "phase")
		return class == "" && phase == "Available"
	})
}

// among returns an error unless the class, or a default one, is in the list.
func among(class string, list []unstructured.Unstructured) error {
	var names []string
	for _, c := range list {
		if c.GetName() == class || class == "" && c.GetAnnotations()[defaultClass] == "true" {
			return nil
		}
		names = append(names, c.GetName())
	}
	if class == "" {
		return fmt.Errorf("the cluster has no default StorageClass; it has %s", strings.Join(names, ", "))
	}
	return fmt.Errorf("StorageClass %q not found: the cluster has %s", class, strings.Join(names, ", "))
}

// theirs says whether an object is a namespace that install has not created, and must not change or delete.
func (i *Installer) theirs(ctx context.Context, r dynamic.ResourceInterface, u *unstructured.Unstructured) (
	bool, error) {
	if u.GetKind() != "Namespace" {
		return false, nil
	}
	there, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", describe(u), err)
	}
	const mark = "app.kubernetes.io/name"
	return there.GetLabels()[mark] != u.GetLabels()[mark], nil
}

// explain adds a hint to an error of applying an object.
func explain(u *unstructured.Unstructured, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w; use the rights of a cluster administrator", describe(u), err)
	case apierrors.IsInvalid(err) && u.GetKind() == "PersistentVolumeClaim":
		return fmt.Errorf("%s: %w; an existing claim keeps its class: uninstall --delete-results removes it, "+
			"with all bundles", describe(u), err)
	}
	return fmt.Errorf("%s: %w", describe(u), err)
}

// Wait waits until the definitions are established, the Deployments available and the DaemonSets on all their
// nodes. Its error says what is missing.
func (i *Installer) Wait(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		condition := map[string]string{"CustomResourceDefinition": "Established", "Deployment": "Available",
			"DaemonSet": "on all its nodes"}[u.GetKind()]
		if condition == "" {
			continue
		}
		r, err := i.resource(u)
		if err != nil {
			return err
		}
		i.Say("waiting for %s", describe(u))
		if err := i.until(ctx, r, u, condition); err != nil {
			return err
		}
	}
	return nil
}

// until waits until an object has reached a condition.
func (i *Installer) until(ctx context.Context, r dynamic.ResourceInterface, u *unstructured.Unstructured,
	condition string) error {
	state := "its state is unknown"
	for {
		now, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
		if err == nil {
			var ok bool
			if ok, state = reached(now, condition); ok {
				return nil
			}
		} else if !transient(err) {
			return fmt.Errorf("%s: %w", describe(u), err)
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return fmt.Errorf("%s is not %s: %s%s", describe(u), condition, state,
				i.pods(context.WithoutCancel(ctx), u))
		}
	}
}

func transient(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// reached says whether a condition is true for the present generation. A Deployment must also have replaced all pods of
// the former one.
func reached(u *unstructured.Unstructured, condition string) (ok bool, state string) {
	observed, known, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if known && observed < u.GetGeneration() {
		return false, "its controller has not observed it yet"
	}
	if u.GetKind() == "DaemonSet" {
		return everywhere(u)
	}
	if u.GetKind() == "Deployment" {
		want, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		updated, _, _ := unstructured.NestedInt64(u.Object, "status", "updatedReplicas")
		total, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
		if updated < want || total > updated {
			return false, fmt.Sprintf("%d of %d pods have the new version", updated, want)
		}
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] == condition {
			return m["status"] == "True", fmt.Sprintf("%v: %v", m["reason"], m["message"])
		}
	}
	return false, "it has no condition " + condition
}

// everywhere says whether the pods of a DaemonSet have its present version and are available on all its nodes.
func everywhere(u *unstructured.Unstructured) (ok bool, state string) {
	count := func(name string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, "status", name)
		return n
	}
	if _, seen, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); !seen {
		return false, "its controller has not observed it yet"
	}
	want := count("desiredNumberScheduled")
	return count("updatedNumberScheduled") >= want && count("numberAvailable") >= want,
		fmt.Sprintf("%d of %d nodes have it (a node without the driver's socket cannot: check its name, or select "+
			"nodes by their labels)", count("numberAvailable"), want)
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// pods says why the pods of a Deployment are not ready. It has a timeout of its own.
func (i *Installer) pods(ctx context.Context, u *unstructured.Unstructured) string {
	labels, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	if labels == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
	list, err := i.dynamic.Resource(pods).Namespace(u.GetNamespace()).List(ctx,
		metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range list.Items {
		for _, text := range troubles(&p) {
			fmt.Fprintf(&b, "; pod %s: %s", p.GetName(), text)
		}
	}
	return b.String()
}

// troubles are the reasons why a pod is not ready.
func troubles(p *unstructured.Unstructured) []string {
	var all []string
	conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == "PodScheduled" && m["status"] == "False" {
			all = append(all, fmt.Sprint(m["message"]))
		}
	}
	containers, _, _ := unstructured.NestedSlice(p.Object, "status", "containerStatuses")
	for _, c := range containers {
		m, _ := c.(map[string]any)
		for _, path := range [][]string{{"state", "waiting"}, {"lastState", "terminated"}} {
			s, found, _ := unstructured.NestedMap(m, path...)
			if found {
				all = append(all, strings.TrimSpace(fmt.Sprintf("%v %v", s["reason"], or(s["message"], ""))))
			}
		}
	}
	return all
}

func or(v any, otherwise string) any {
	if v == nil {
		return otherwise
	}
	return v
}

// HasSnapshots says whether the cluster has VolumeSnapshots.
func (i *Installer) HasSnapshots() (bool, error) {
	_, err := i.mapper.RESTMapping(schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"})
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// Benchmarks lists the Benchmarks of the cluster.
func (i *Installer) Benchmarks(ctx context.Context) ([]*unstructured.Unstructured, error) {
	list, err := i.dynamic.Resource(v1alpha1.GroupVersion.WithResource("benchmarks")).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list Benchmarks: %w", err)
	}
	var all []*unstructured.Unstructured
	for k := range list.Items {
		all = append(all, &list.Items[k])
	}
	return all, nil
}

// Remove deletes the objects in reverse order, except those that keep selects, and waits until they are gone.
func (i *Installer) Remove(ctx context.Context, objects []*unstructured.Unstructured,
	keep func(*unstructured.Unstructured) bool) error {
	var errs []error
	for _, u := range slices.Backward(objects) {
		if keep(u) {
			i.Say("kept %s", describe(u))
			continue
		}
		errs = append(errs, i.remove(ctx, u))
	}
	return errors.Join(errs...)
}

func (i *Installer) remove(ctx context.Context, u *unstructured.Unstructured) error {
	r, err := i.resource(u)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if theirs, err := i.theirs(ctx, r, u); err != nil {
		return err
	} else if theirs {
		i.Say("unchanged: %s", describe(u))
		return nil
	}
	policy := metav1.DeletePropagationForeground
	err = r.Delete(ctx, u.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", describe(u), err)
	}
	for {
		left, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			i.Say("deleted %s", describe(u))
			return nil
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return fmt.Errorf("%s still exists: finalizers %v (%w)", describe(u), finalizers(left),
				errors.Join(ctx.Err(), err))
		}
	}
}

func finalizers(u *unstructured.Unstructured) []string {
	if u == nil {
		return nil
	}
	return u.GetFinalizers()
}

func describe(u *unstructured.Unstructured) string {
	name := u.GetName()
	if u.GetNamespace() != "" {
		name = u.GetNamespace() + "/" + name
	}
	return u.GetKind() + " " + name
}
