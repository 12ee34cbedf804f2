package operator

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &v1alpha1.Benchmark{}
	if err := r.Get(ctx, req.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	o, err := r.observe(ctx, b)
	if f := (*foreign)(nil); errors.As(err, &f) && b.DeletionTimestamp == nil {
		return r.write(ctx, b, r.config.stuck(o, err))
	} else if err != nil && f == nil {
		return reconcile.Result{}, err
	}
	if o.progressError != nil {
		log.FromContext(ctx).Info("read the progress of the run from the results service", "error",
			o.progressError.Error())
	}
	d := r.config.decide(o)
	if err := r.apply(ctx, b, &d); err != nil {
		if !refused(err) {
			return reconcile.Result{}, err
		}
		d = r.config.stuck(o, err)
	}
	return r.write(ctx, b, d)
}

// apply creates and deletes objects. Every step is idempotent.
func (r *reconciler) apply(ctx context.Context, b *v1alpha1.Benchmark, d *decision) error {
	if d.addFinalizer {
		if err := r.finalizer(ctx, b, controllerutil.AddFinalizer); err != nil {
			return err
		}
	}
	if d.createRunner {
		if err := r.startRunner(ctx, b); err != nil {
			return err
		}
		d.status.RunID, d.status.Bundle = RunID(b), r.config.bundle(b)
	}
	if d.giveTurn {
		if err := r.create(ctx, b, turnMap(b), &corev1.ConfigMap{}); err != nil {
			return err
		}
	}
	if d.createCleanup {
		if err := client.IgnoreAlreadyExists(r.Create(ctx, r.config.cleanupJob(b))); err != nil {
			return err
		}
	}
	for name, yes := range map[string]bool{runnerName(b): d.deleteRunner, cleanupName(b): d.deleteCleanup} {
		if yes {
			if err := r.deleteJob(ctx, b, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// startRunner creates the ConfigMap and the Job. It asks the API server whether the run was started, because the cache
// may predate a Job that was created and deleted.
func (r *reconciler) startRunner(ctx context.Context, b *v1alpha1.Benchmark) error {
	var current v1alpha1.Benchmark
	if err := r.api.Get(ctx, client.ObjectKeyFromObject(b), &current); err != nil {
		return err
	}
	if current.UID != b.UID || current.Status.RunID != "" || current.DeletionTimestamp != nil {
		return apierrors.NewConflict(batchv1.Resource("jobs"), runnerName(b),
			errors.New("the Benchmark has changed since it was read"))
	}
	cm, err := configMap(b)
	if err != nil {
		return err
	}
	if err := r.create(ctx, b, cm, &corev1.ConfigMap{}); err != nil {
		return fmt.Errorf("ConfigMap %s: %w", cm.Name, err)
	}
	conf := *r.config
	if conf.PublishedPin != nil {
		if conf.ResultsPin, err = conf.PublishedPin(ctx); err != nil {
			return err // the results service has not published its pin yet
		}
	}
	job := conf.runnerJob(b)
	if err := r.create(ctx, b, job, &batchv1.Job{}); err != nil {
		return fmt.Errorf("Job %s: %w", job.Name, err)
	}
	return nil
}

// create creates an object. If the object exists, it must belong to the Benchmark.
func (r *reconciler) create(ctx context.Context, b *v1alpha1.Benchmark, o, there client.Object) error {
	err := r.Create(ctx, o)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := r.api.Get(ctx, client.ObjectKeyFromObject(o), there); err != nil {
		return err
	}
	if !metav1.IsControlledBy(there, b) {
		return &foreign{o.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(o)}
	}
	if want, ok := o.(*corev1.ConfigMap); ok && !equality.Semantic.DeepEqual(want.Data,
		there.(*corev1.ConfigMap).Data) {
		return &foreign{"ConfigMap", client.ObjectKeyFromObject(o)}
	}
	return nil
}

func (r *reconciler) deleteJob(ctx context.Context, b *v1alpha1.Benchmark, name string) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
	// Foreground propagation keeps the Job until its pods are gone.
	return client.IgnoreNotFound(r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)))
}

// finalizer adds or removes the operator's finalizer.
func (r *reconciler) finalizer(ctx context.Context, b *v1alpha1.Benchmark,
	change func(client.Object, string) bool) error {
	before := b.DeepCopy()
	if !change(b, Finalizer) {
		return nil
	}
	return r.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// write reports a lost runner to the results service, writes the status and the Events, and then removes the finalizer.
func (r *reconciler) write(ctx context.Context, b *v1alpha1.Benchmark, d decision) (reconcile.Result, error) {
	if d.lost != "" && r.results != nil {
		if err := r.results.Lost(ctx, b.Namespace, RunID(b), d.lost); err != nil {
			log.FromContext(ctx).Error(err, "report the lost runner to the results service")
			r.events.Eventf(b, nil, corev1.EventTypeWarning, "ResultsUnreachable", "Lose", "%s",
				truncated(err.Error(), 1000))
		}
	}
	before := b.Status
	if !equality.Semantic.DeepEqual(before, d.status) {
		after := b.DeepCopy()
		after.Status = d.status
		if err := r.Status().Update(ctx, after); err != nil {
			return reconcile.Result{}, fmt.Errorf("status: %w", err)
		}
		b.ResourceVersion = after.ResourceVersion
		for _, t := range transitions(before.Conditions, d.status.Conditions) {
			r.events.Eventf(b, nil, t.kind, t.reason, "Reconcile", "%s", truncated(t.message, 1000))
		}
	}
	if d.leftBehind != "" {
		log.FromContext(ctx).Info("may be left", "what", d.leftBehind)
		// An Event of the Benchmark would be deleted with the namespace; one of the Namespace is not.
		ns := &corev1.Namespace{}
		ns.Name = b.Namespace
		ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		r.events.Eventf(ns, nil, corev1.EventTypeWarning, "MayBeLeft", "Finalize", "%s", truncated(d.leftBehind, 1000))
	}
	if d.removeFinalizer {
		return reconcile.Result{}, client.IgnoreNotFound(r.finalizer(ctx, b, controllerutil.RemoveFinalizer))
	}
	return reconcile.Result{RequeueAfter: d.after}, nil
}

// refused reports whether the API server or a foreign object prevents the creation of a Job. Such an error is reported
// and retried.
func refused(err error) bool {
	f := (*foreign)(nil)
	return errors.As(err, &f) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// stuck returns the decision for a refused Job: report the error and retry. A runner is retried until its start
// timeout, a clean-up without limit.
func (c *Config) stuck(o observed, err error) decision {
	d := decision{status: *o.benchmark.Status.DeepCopy(), after: poll}
	d.status.ObservedGeneration = o.benchmark.Generation
	d.begin()
	if d.ended() || o.benchmark.DeletionTimestamp != nil {
		d.set(v1alpha1.ConditionClean, metav1.ConditionFalse, reasonCleanFailed, err.Error())
		return d
	}
	if o.now.Sub(o.benchmark.CreationTimestamp.Time) > c.StartTimeout {
		d.fail(o.now, reasonCreate, fmt.Sprintf("the runner could not be created within %v: %v", c.StartTimeout, err))
		d.set(v1alpha1.ConditionClean, metav1.ConditionTrue, reasonNothing, "")
		return d
	}
	d.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reasonCreate, err.Error())
	d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reasonPending, err.Error())
	return d
}
