package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/operator"
	"github.com/cnsbench/cnsbench/internal/results"
)

type operatorFlags struct {
	cluster   cluster.Options
	options   operator.Options
	avoid     string
	tokenFile string
	pinFrom   string
}

func newOperator(s *streams) *cobra.Command {
	var f operatorFlags
	c := &cobra.Command{
		Use:   "operator",
		Short: "Run the Benchmarks that are applied to a cluster",
		Long: `Watches Benchmarks in all namespaces, or those of --watch-namespace, and creates one
runner Job for each, under the ServiceAccount of the Benchmark. It runs in the cluster, where "cnsbench install"
installs it, or anywhere with a kubeconfig.`,
		Example: "  cnsbench operator --image cnsbench/cnsbench:latest --results-url http://127.0.0.1:8080",
		Args:    cobra.NoArgs, Hidden: true, // of the chart
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			config, _, err := f.cluster.Load()
			if err != nil {
				return err
			}
			if err := f.complete(ctx, config, s.err); err != nil {
				return err
			}
			if err := operator.Run(ctx, config, f.options); err != nil {
				return failed(err)
			}
			return nil
		},
	}
	clusterFlags(c, &f.cluster)
	o, fl := &f.options, c.Flags()
	fl.StringVar(&o.Image, "image", os.Getenv("CNSBENCH_IMAGE"), "image of runners (default $CNSBENCH_IMAGE)")
	fl.StringVar(&o.ResultsURL, "results-url", "", "results service that runners push their bundles to")
	fl.StringVar(&o.ResultsPin, "results-pin", "",
		"sha256:… pin of the results service's certificate, if no known authority has signed it")
	fl.StringVar(&f.pinFrom, "results-pin-from", "",
		"ConfigMap in the operator's namespace with the pin, instead of --results-pin")
	fl.StringVar(&f.tokenFile, "results-token-file", "", "file with the operator's token for the results service")
	fl.StringVar(&f.avoid, "avoid-nodes", "",
		"label (KEY or KEY=VALUE) of measured nodes, which runners avoid if possible")
	fl.StringVar(&o.PriorityClass, "priority-class", "", "PriorityClass of runners")
	fl.DurationVar(&o.StartTimeout, "start-timeout", operator.DefaultStartTimeout,
		"how long a runner may take to start")
	fl.StringVar(&o.Namespace, "namespace", operator.InClusterNamespace(),
		"the operator's own namespace, for its Lease")
	fl.StringArrayVar(&o.Watch, "watch-namespace", nil,
		"namespace whose Benchmarks to run; may be repeated (default all)")
	fl.BoolVar(&o.LeaderElect, "leader-elect", false, "elect a leader among several operators")
	fl.StringVar(&o.MetricsAddress, "metrics-address", "0", "address of the metrics, e.g. :8080; 0: none")
	fl.StringVar(&o.HealthAddress, "health-address", "0", "address of /healthz and /readyz; 0: none")
	return c
}

// transport trusts the results service by the given or published pin.
func (f *operatorFlags) transport(ctx context.Context, config *rest.Config) (http.RoundTripper, error) {
	o := &f.options
	if f.pinFrom == "" {
		t, err := results.PinnedTransport(o.ResultsPin)
		if err != nil {
			return nil, fmt.Errorf("--results-pin: %w", err)
		}
		return t, nil
	}
	if o.ResultsPin != "" || o.Namespace == "" {
		return nil, errors.New("--results-pin-from needs --namespace outside of a cluster, and no --results-pin")
	}
	set, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	published := &results.PublishedPin{Set: set, Namespace: o.Namespace, Name: f.pinFrom}
	o.PublishedPin = published.Current
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = server.PinnedBy(func() (string, error) { return published.Current(ctx) })
	return t, nil
}

// complete checks the flags and completes the options.
func (f *operatorFlags) complete(ctx context.Context, config *rest.Config, logs io.Writer) error {
	o := &f.options
	if o.LeaderElect && o.Namespace == "" {
		return errors.New("--leader-elect needs --namespace outside of a cluster, for its Lease")
	}
	if o.StartTimeout <= 0 {
		return fmt.Errorf("invalid --start-timeout %v: want more than 0", o.StartTimeout)
	}
	for _, ns := range o.Watch {
		if problems := validation.IsDNS1123Label(ns); problems != nil {
			return fmt.Errorf("--watch-namespace %q: %s", ns, strings.Join(problems, ", "))
		}
	}
	o.AvoidNodes.Key, o.AvoidNodes.Value, _ = strings.Cut(f.avoid, "=")
	if o.ResultsURL != "" {
		if f.tokenFile != "" && results.InTheClear(o.ResultsURL) {
			return fmt.Errorf("--results-url %s: the token of --results-token-file would cross the network in the clear: "+
				"give an https URL", o.ResultsURL)
		}
		transport, err := f.transport(ctx, config)
		if err != nil {
			return err
		}
		o.Results = &operator.HTTPResults{URL: o.ResultsURL, TokenFile: f.tokenFile,
			Client: &http.Client{Timeout: 5 * time.Second, Transport: transport, CheckRedirect: results.NoRedirect}}
	}
	o.Logger = logr.FromSlogHandler(slog.NewJSONHandler(logs, nil))
	ctrllog.SetLogger(o.Logger)
	klog.SetLogger(o.Logger)
	return nil
}
