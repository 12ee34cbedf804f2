package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// observe gathers the input of a decision. It asks the API server for a Job that is not in the cache.
func (r *reconciler) observe(ctx context.Context, b *v1alpha1.Benchmark) (o observed, err error) {
	o = observed{now: r.now(), benchmark: b}
	if o.runner, err = r.work(ctx, b, runnerName(b), roleRunner); err != nil {
		return o, err
	}
	if o.cleanup, err = r.work(ctx, b, cleanupName(b), roleCleanup); err != nil {
		return o, err
	}
	if b.DeletionTimestamp != nil {
		var ns corev1.Namespace
		if err := r.api.Get(ctx, types.NamespacedName{Name: b.Namespace}, &ns); err != nil {
			return o, client.IgnoreNotFound(err)
		}
		o.closing = ns.DeletionTimestamp != nil
	}
	if runs(o.runner.pod) && !(&decision{status: b.Status}).is(v1alpha1.ConditionInitialized) {
		if o.queue, err = r.queue(ctx, b); err != nil {
			return o, err
		}
	}
	if r.results != nil && runs(o.runner.pod) {
		o.progress, o.progressError = r.results.Progress(ctx, b.Namespace, RunID(b))
	}
	return o, nil
}

func (r *reconciler) work(ctx context.Context, b *v1alpha1.Benchmark, name, role string) (w work, err error) {
	job := &batchv1.Job{}
	key := types.NamespacedName{Namespace: b.Namespace, Name: name}
	err = r.Get(ctx, key, job)
	if apierrors.IsNotFound(err) {
		err = r.api.Get(ctx, key, job)
	}
	if client.IgnoreNotFound(err) != nil {
		return w, fmt.Errorf("Job %s: %w", key, err)
	}
	if err == nil {
		if !metav1.IsControlledBy(job, b) {
			return w, &foreign{"Job", key}
		}
		w.job = job
	}
	if w.pod, err = r.newestPod(ctx, b, role); err != nil || w.job == nil || started(w.pod) || finished(w.job) != nil {
		return w, err
	}
	w.trouble, err = r.newestWarning(ctx, w)
	return w, err
}

// newestPod returns the newest pod of a role of the run, even if its Job is gone. It returns nil if there is none.
func (r *reconciler) newestPod(ctx context.Context, b *v1alpha1.Benchmark, role string) (*corev1.Pod, error) {
	var pods corev1.PodList
	err := r.List(ctx, &pods, client.InNamespace(b.Namespace),
		client.MatchingLabels{labelManaged: managedBy, labelRunner: RunID(b), labelRole: role})
	if err != nil || len(pods.Items) == 0 {
		return nil, err
	}
	newest := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return &newest, nil
}

// newestWarning returns the newest warning Event about the Job or its pod. Only Events say why a Job has no pod, or why
// the volumes of a pod cannot be mounted.
func (r *reconciler) newestWarning(ctx context.Context, w work) (string, error) {
	of := w.job.UID
	if w.pod != nil {
		of = w.pod.UID
	}
	var events corev1.EventList
	err := r.api.List(ctx, &events, client.InNamespace(w.job.Namespace), client.MatchingFieldsSelector{
		Selector: fields.Set{"involvedObject.uid": string(of), "type": corev1.EventTypeWarning}.AsSelector()})
	if err != nil || len(events.Items) == 0 {
		return "", err
	}
	e := slices.MaxFunc(events.Items, func(a, b corev1.Event) int { return seen(a).Compare(seen(b)) })
	return fmt.Sprintf("%s: %s", e.Reason, e.Message), nil
}

func seen(e corev1.Event) time.Time {
	latest := e.LastTimestamp.Time
	for _, t := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if t.After(latest) {
			latest = t
		}
	}
	return latest
}
