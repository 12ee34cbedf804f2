// Package operator makes Benchmarks that are applied to a cluster run: one
// runner Job for each, under the ServiceAccount that the Benchmark names, and
// its status, Events and clean-up.
//
// With its own rights the operator makes nothing but that ConfigMap and those
// Jobs in the Benchmark's namespace; all that a Benchmark does is done with the
// rights of its ServiceAccount. See docs/design/rbac.md.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
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
)

// Config says how runners are made.
type Config struct {
	Image      string // of runners and clean-ups
	ResultsURL string // where runners push their bundles; empty: nowhere
	ResultsPin string // sha256:… of its certificate; empty: as the system trusts
	// PublishedPin gives the pin where it may change; nil: it is ResultsPin.
	PublishedPin  func(context.Context) (string, error)
	PriorityClass string // of runners; empty: the cluster's default
	// AvoidNodes is the label of nodes that runners keep away from where they
	// can: those that are measured. Without a value any value counts.
	AvoidNodes struct{ Key, Value string }
	Resources  corev1.ResourceRequirements // of runners
	// StartTimeout is how long a runner may take to start, from the creation of
	// its Benchmark.
	StartTimeout time.Duration
}

// Options are those of the operator's process.
type Options struct {
	Config
	Namespace      string // of the operator itself: its lease
	LeaderElect    bool
	MetricsAddress string  // "0": none
	HealthAddress  string  // "0": none
	Results        Results // nil: none
	Logger         logr.Logger
}

// DefaultStartTimeout is long enough for a node to be added and an image to be
// pulled.
const DefaultStartTimeout = 10 * time.Minute

// bundle says where the bundle of a run lies.
func (c *Config) bundle(b *v1alpha1.Benchmark) string {
	if c.ResultsURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/v1/runs/%s/%s", strings.TrimRight(c.ResultsURL, "/"), b.Namespace, RunID(b))
}

// Run runs the operator until ctx ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	if o.Image == "" {
		return errors.New("the operator must know the image of its runners: --image")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	if err := checkRights(ctx, direct, o.Namespace, o.LeaderElect); err != nil {
		return err
	}
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{labelManaged: managedBy})}
	m, err := manager.New(config, manager.Options{
		Scheme: scheme, Logger: o.Logger,
		LeaderElection: o.LeaderElect, LeaderElectionID: "cnsbench-operator", LeaderElectionNamespace: o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
		Cache:                         cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: ours, &batchv1.Job{}: ours}},
	})
	if err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	if err := errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("cache", synced(m))); err != nil {
		return err
	}
	r := &reconciler{Client: m.GetClient(), api: m.GetAPIReader(), config: &o.Config, results: o.Results,
		events: m.GetEventRecorder("cnsbench-operator"), now: time.Now}
	if err := r.register(m); err != nil {
		return err
	}
	return m.Start(ctx)
}

// register watches Benchmarks and what the operator makes for them.
func (r *reconciler) register(m manager.Manager) error {
	return builder.ControllerManagedBy(m).Named("benchmark").
		For(&v1alpha1.Benchmark{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			name := o.GetAnnotations()[annotationBenchmark]
			if name == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
		})).
		// Several at once: each may wait for the results service.
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

// synced is ready once the cache is: a manager that cannot list is not.
func synced(m manager.Manager) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !m.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache has not been filled yet")
		}
		return nil
	}
}

// InClusterNamespace is the namespace of the pod that this process runs in;
// empty outside of a cluster.
func InClusterNamespace() string {
	b, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
