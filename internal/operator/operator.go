// Package operator runs the Benchmarks that are applied to a cluster. It creates one runner Job for each, under the
// Benchmark's ServiceAccount, and maintains the Benchmark's status, Events and clean-up.
//
// With its own rights the operator creates only a ConfigMap and Jobs in the Benchmark's namespace. Everything else is
// done with the rights of the Benchmark's ServiceAccount. See docs/design/rbac.md.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
)

// Run runs the operator until ctx is done.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	if o.Image == "" {
		return errors.New("--image must be set: the image of runners")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	clock := &serverClock{}
	config = rest.CopyConfig(config)
	config.Wrap(clock.wrap)
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	if err := checkRights(ctx, direct, &o); err != nil {
		return err
	}
	m, err := manager.New(config, manager.Options{
		Scheme: scheme, Logger: o.Logger,
		LeaderElection: o.LeaderElect, LeaderElectionID: "cnsbench-operator", LeaderElectionNamespace: o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
		Cache:                         cacheOptions(o.Watch),
	})
	if err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	if err := errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("cache", synced(m))); err != nil {
		return err
	}
	r := &reconciler{Client: m.GetClient(), api: m.GetAPIReader(), config: &o.Config, results: o.Results,
		events: m.GetEventRecorder("cnsbench-operator"), now: clock.now}
	if err := r.register(m); err != nil {
		return err
	}
	return m.Start(ctx)
}

// cacheOptions limits the cache to the operator's own Jobs and pods, to Leases of runs, and to namespaces; none: all.
func cacheOptions(watch []string) cache.Options {
	managed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{labelManaged: managedBy})}
	ofRun, err := labels.Parse(names.LabelRun) // exists
	if err != nil {
		panic(err)
	}
	o := cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: managed, &batchv1.Job{}: managed,
		&coordinationv1.Lease{}: {Label: ofRun}}}
	for _, ns := range watch {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[ns] = cache.Config{}
	}
	return o
}

// register registers the reconciler and its watches of Benchmarks and of the objects that the operator creates.
func (r *reconciler) register(m manager.Manager) error {
	return builder.ControllerManagedBy(m).Named("benchmark").
		For(&v1alpha1.Benchmark{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(benchmarkOf)).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(r.waiting),
			builder.WithPredicates(comesOrGoes)).
		// Concurrent, because a reconciliation may wait for the results service.
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

// benchmarkOf maps a pod to a reconcile request for its Benchmark.
func benchmarkOf(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetAnnotations()[annotationBenchmark]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// synced returns a check that succeeds when the cache is synchronized.
func synced(m manager.Manager) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !m.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not synchronized yet")
		}
		return nil
	}
}

// InClusterNamespace returns the namespace of this process's pod. It is empty outside a cluster.
func InClusterNamespace() string {
	b, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
