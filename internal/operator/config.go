package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// Config configures the runners.
type Config struct {
	Image      string // image of runners and clean-up Jobs
	ResultsURL string // URL to which runners push their bundles; empty: bundles are not pushed
	ResultsPin string // sha256:… of the service's certificate; empty: verified with the system's CAs
	// PublishedPin returns a pin that may change. If it is nil, the pin is ResultsPin.
	PublishedPin  func(context.Context) (string, error)
	PriorityClass string // priority class of runners; empty: the cluster's default
	// AvoidNodes is the label of the measured nodes. Runners avoid these nodes if possible. An empty value matches
	// every value.
	AvoidNodes struct{ Key, Value string }
	// StartTimeout is the time limit from the creation of a Benchmark to the start of its runner.
	StartTimeout time.Duration
}

// Options configures the operator's process.
type Options struct {
	Config
	Namespace string // namespace of the operator, for its Lease
	// Watch lists the namespaces whose Benchmarks are run; empty: all. The rights are needed only there.
	Watch          []string
	LeaderElect    bool
	MetricsAddress string  // "0": disabled
	HealthAddress  string  // "0": disabled
	Results        Results // nil: no results service
	Logger         logr.Logger
}

// DefaultStartTimeout is long enough to add a node to the cluster and to pull an image.
const DefaultStartTimeout = 10 * time.Minute

// bundle returns the URL of a run's bundle, or an empty string if bundles are not pushed.
func (c *Config) bundle(b *v1alpha1.Benchmark) string {
	if c.ResultsURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/v1/runs/%s/%s", strings.TrimRight(c.ResultsURL, "/"), b.Namespace, RunID(b))
}

// reconciler reconciles Benchmarks. It observes a Benchmark, decides, and applies the decision.
type reconciler struct {
	client.Client               // reads from the cache
	api           client.Reader // reads from the API server
	config        *Config
	results       Results // nil: no results service
	events        events.EventRecorder
	now           func() time.Time // by the API server's clock
}

func hasFinalizer(b *v1alpha1.Benchmark) bool { return controllerutil.ContainsFinalizer(b, Finalizer) }
