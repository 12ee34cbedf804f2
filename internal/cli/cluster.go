package cli

import (
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/version"
)

// The values of --runner.
const (
	runnerPod   = "pod"
	runnerLocal = "local"
)

// noProxy is the value of --csi-proxy for a run that uses no CSI proxy.
const noProxy = "none"

// clusterFlags adds the flags that select a cluster.
func clusterFlags(c *cobra.Command, o *cluster.Options) {
	c.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "",
		"kubeconfig file (default $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount)")
	c.Flags().StringVar(&o.Context, "context", "", "context of the kubeconfig")
}

// namespaceFlags adds the flags that select a cluster and a namespace.
func namespaceFlags(c *cobra.Command, o *cluster.Options, usage string) {
	clusterFlags(c, o)
	c.Flags().StringVarP(&o.Namespace, "namespace", "n", "", usage+" (default the context's)")
}

// defaultImage is the published image of this version; $CNSBENCH_IMAGE overrides it.
func defaultImage() string {
	if image := os.Getenv("CNSBENCH_IMAGE"); image != "" {
		return image
	}
	return "cnsbench/cnsbench:" + version.Version
}

// kubernetesEngine is the engine of a run on a cluster.
func (f *runFlags) kubernetesEngine(on *cluster.Cluster) (*kubernetes.Engine, error) {
	delivery, err := podspec.ParseDelivery(f.Delivery)
	if err != nil {
		return nil, err
	}
	o := kubernetes.Options{Config: on.Config, Namespace: on.Namespace, Listen: f.Listen, Advertise: f.Advertise,
		Image: f.Image, Delivery: delivery, Proxies: f.Proxies, ProxyToken: os.Getenv(envProxyToken),
		ProxyNamespace: config.ProxyNamespace, Metrics: f.Metrics, PutOnce: putOnce}
	if slices.Contains(f.Proxies, noProxy) {
		o.Proxies, o.ProxyNamespace = nil, ""
	}
	return kubernetes.New(o), nil
}

// checkKubernetes refuses flags that are for engine local only.
func (f *runFlags) checkKubernetes() error {
	const local = " is for engine local: on Kubernetes the StorageClass names the driver"
	switch {
	case len(f.Endpoints) > 0:
		return errors.New("--csi-endpoint" + local)
	case f.Inject != "":
		return errors.New("--inject" + local)
	}
	return nil
}

// queue is what a run does while another run uses one of its drivers.
func (f *runFlags) queue(p *plan.Plan) engine.Queue {
	q := p.Queue
	if f.Concurrent {
		q.Policy = v1alpha1.QueueShare
	}
	q.Operated = f.InCluster
	return q
}
