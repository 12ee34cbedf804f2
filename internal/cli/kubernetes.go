package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/version"
)

// The engines by name.
const (
	engineLocal      = "local"
	engineKubernetes = "kubernetes"
)

// clusterFlags say which cluster, as whom, and where the runner is.
type clusterFlags struct {
	kubeconfig string
	context    string
	namespace  string
	runner     string
	listen     string
	advertise  string
	image      string
	delivery   string
	proxies    []string
	metrics    []string
	concurrent bool
	createRBAC bool
	patience   time.Duration // of a runner's pod whose command is gone
	lease      string        // of this runner
	identity   string        // file with that of its run
}

// noProxy has a run follow no CSI proxy.
const noProxy = "none"

// The places of the runner.
const (
	runnerPod   = "pod"
	runnerLocal = "local"
)

// connecting adds the flags that say which cluster.
func (f *clusterFlags) connecting(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.kubeconfig, "kubeconfig", "", "kubernetes: kubeconfig file (default $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount)")
	fl.StringVar(&f.context, "context", "", "kubernetes: context of the kubeconfig")
	fl.StringVarP(&f.namespace, "namespace", "n", "", "kubernetes: namespace of everything that is made (default the context's)")
}

// running adds the flags that say where the runner is.
func (f *clusterFlags) running(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.runner, "runner", runnerPod, "kubernetes: where the runner is: pod, or local where pods can reach this machine")
	fl.StringVar(&f.listen, "listen", "", "kubernetes: HOST:PORT at which the runner listens for agents (default any port)")
	fl.StringVar(&f.advertise, "advertise", os.Getenv("CNSBENCH_ADVERTISE"), "kubernetes: host that pods reach the runner at (default the address with the route to the API server)")
	fl.StringVar(&f.image, "image", defaultImage(), "kubernetes: image of cnsbench, for the runner, the agents and the pods that hold volumes")
	fl.StringArrayVar(&f.proxies, "csi-proxy", nil, "kubernetes: HOST:PORT of a cnsbench csi-proxy whose records to use, with the token in $"+envProxyToken+"; may be repeated (default those that are installed, if the run may follow them; none: not even those)")
	fl.StringArrayVar(&f.metrics, "metrics", nil, "kubernetes: URL, or NAME=URL, of a controller's or sidecar's metrics, to read before and after the run; may be repeated")
	fl.BoolVar(&f.concurrent, "concurrent", false, "kubernetes: run although another run uses the same driver; both records say so")
	fl.BoolVar(&f.createRBAC, "create-rbac", false,
		"kubernetes: make a ServiceAccount and its roles for the runner's pod, and remove them after the run")
	fl.DurationVar(&f.patience, "runner-patience", 5*time.Minute,
		"kubernetes: how long a runner's pod goes on when this command is gone, before it ends the run and cleans up")
	fl.StringVar(&f.lease, "runner-lease", "", "Lease that the command renews which has started this runner")
	fl.StringVar(&f.identity, "run-identity", "",
		"file with the identity of the run, which the command has drawn that started this runner")
	_ = errors.Join(fl.MarkHidden("runner-lease"), fl.MarkHidden("run-identity"))
	fl.StringVar(&f.delivery, "agent", string(podspec.DeliverInit), "kubernetes: how the agent gets into pods: init, image (a volume), or baked")
}

// defaultImage is the product's own of this version; $CNSBENCH_IMAGE overrides.
func defaultImage() string {
	if image := os.Getenv("CNSBENCH_IMAGE"); image != "" {
		return image
	}
	return "cnsbench/cnsbench:" + version.Version
}

// config finds the cluster and the namespace, as kubectl does.
func (f *clusterFlags) config() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("find the cluster: %w; --kubeconfig or $KUBECONFIG names it", err)
	}
	config.UserAgent = "cnsbench/" + version.Version
	namespace := f.namespace
	if namespace == "" {
		if namespace, _, err = loaded.Namespace(); err != nil {
			return nil, "", fmt.Errorf("find the namespace: %w; name it with --namespace", err)
		}
	}
	return config, namespace, nil
}

// cluster is a connection for what is done before and after a run.
type cluster struct {
	config    *rest.Config
	namespace string
	client    *api.Client
	set       clientset.Interface
}

func (f *clusterFlags) connect() (*cluster, error) {
	config, namespace, err := f.config()
	if err != nil {
		return nil, err
	}
	client, err := api.New(config, op.NewClock())
	if err != nil {
		return nil, err
	}
	set, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{config: config, namespace: namespace, client: client, set: set}, nil
}

// identity draws the identity of a run on this cluster.
func (c *cluster) identity(run string) owned.Identity {
	own := owned.New(run)
	own.Namespace, own.Server = c.namespace, c.config.Host
	return own
}

// readIdentity reads the identity of a run that another process has drawn.
func readIdentity(path, run string) (owned.Identity, error) {
	var own owned.Identity
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	if err == nil {
		err = own.OnCluster()
	}
	if err == nil && own.RunID != run {
		err = fmt.Errorf("it is of run %s, and this is %s", own.RunID, run)
	}
	if err != nil {
		return own, fmt.Errorf("--run-identity %s: %w", path, err)
	}
	return own, nil
}

// classes reads what a plan checks its classes against. A kind that may not be
// read is unknown, and nothing is checked against it: the rights that are
// missing are listed later, all at once. A kind that is not served has none.
func (c *cluster) classes(ctx context.Context) (*plan.Classes, error) {
	found := &plan.Classes{}
	list, known, err := c.list(ctx, api.StorageClasses)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's StorageClasses: %w", err)
	}
	if known {
		found.Storage = map[string]storagev1.StorageClass{}
	}
	for _, o := range list {
		found.Storage[o.GetName()] = *o.(*storagev1.StorageClass)
	}
	if found.Snapshot, err = c.snapshotClasses(ctx, api.VolumeSnapshotClasses); err != nil {
		return nil, err
	}
	for _, version := range []string{"v1", "v1beta2", "v1beta1"} {
		if found.GroupSnapshot, err = c.snapshotClasses(ctx, api.VolumeGroupSnapshotClasses(version)); err != nil || len(found.GroupSnapshot) > 0 {
			break
		}
	}
	return found, err
}

func (c *cluster) snapshotClasses(ctx context.Context, kind api.Kind) (map[string]engine.SnapshotClass, error) {
	list, known, err := c.list(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's %ses: %w", kind.Name, err)
	}
	if !known {
		return nil, nil
	}
	found := map[string]engine.SnapshotClass{}
	for _, o := range list {
		s := o.(*api.VolumeSnapshotClass)
		found[s.Name] = engine.SnapshotClass{Name: s.Name, Driver: s.Driver, Parameters: s.Parameters, Retain: s.DeletionPolicy == "Retain",
			Default: s.Annotations["snapshot.storage.kubernetes.io/is-default-class"] == "true"}
	}
	return found, nil
}

// list reads a kind of the whole cluster; known is false where it may not be
// read. A kind that is not served is an empty list.
func (c *cluster) list(ctx context.Context, kind api.Kind) (list []api.Object, known bool, err error) {
	list, _, err = c.client.List(ctx, kind, "", metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, false, nil
	case apierrors.IsNotFound(err):
		return nil, true, nil
	}
	return list, err == nil, err
}

// libraries lists the workloads of a namespace.
func (c *cluster) libraries(ctx context.Context, namespace string) ([]corev1.ConfigMap, error) {
	list, err := c.set.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: "type=workload"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// rights lists every right that the plan needs and whoever runs it lacks, all
// at once, before anything is made.
func (c *cluster) rights(ctx context.Context, p *plan.Plan) error {
	missing, err := c.missing(ctx, p, c.mayI)
	if err != nil {
		return fmt.Errorf("ask which rights there are: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("rights are missing; nothing was made:\n  %s\ndocs/kubernetes.md has a Role that gives them; "+
		"for a runner's pod, --create-rbac makes one for the run", rightsText(missing))
}

// rightsText has a line for each right.
func rightsText(rights []plan.Right) string {
	lines := make([]string, len(rights))
	for i, r := range rights {
		lines[i] = r.String()
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n  ")
}

// missing are the rights that the plan needs and that somebody lacks, with what the
// API server says of kinds that only the file names.
func (c *cluster) missing(ctx context.Context, p *plan.Plan, may accessReview) ([]plan.Right, error) {
	var missing []plan.Right
	for _, r := range plan.Rights(p) {
		if r.Kind != "" {
			kind, err := c.client.Find(ctx, schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
			if err != nil {
				return nil, err
			}
			r.Resource, r.ClusterScoped = kind.Resource, !kind.Namespaced
		}
		namespace := cmp.Or(r.Namespace, c.namespace)
		if r.ClusterScoped {
			namespace = ""
		}
		allowed, err := may(ctx, &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource})
		if err != nil {
			return nil, err
		}
		if !allowed {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// accessReview asks the API server whether somebody may do something.
type accessReview func(context.Context, *authorizationv1.ResourceAttributes) (bool, error)

// mayI asks for the user of this command.
func (c *cluster) mayI(ctx context.Context, what *authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}
	answer, err := c.set.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

// mayAccount asks for a ServiceAccount of the run's namespace.
func (c *cluster) mayAccount(name string) accessReview {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + c.namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + c.namespace, "system:authenticated"},
	}
	return func(ctx context.Context, what *authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		review.Spec.ResourceAttributes = what
		answer, err := c.set.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	}
}

// engine is the engine of a run on this cluster.
func (f *clusterFlags) engine(c *cluster) (*kubernetes.Engine, error) {
	delivery, err := podspec.ParseDelivery(f.delivery)
	if err != nil {
		return nil, err
	}
	o := kubernetes.Options{Config: c.config, Namespace: c.namespace, Listen: f.listen, Advertise: f.advertise,
		Image: f.image, Delivery: delivery, Proxies: f.proxies, ProxyToken: os.Getenv(envProxyToken), ProxyNamespace: config.ProxyNamespace,
		Concurrent: f.concurrent, Metrics: f.metrics}
	if slices.Contains(f.proxies, noProxy) {
		o.Proxies, o.ProxyNamespace = nil, ""
	}
	return kubernetes.New(o), nil
}

// onCluster refuses flags that only make sense on this machine.
func (f *runFlags) onCluster() error {
	for _, flag := range []struct{ name, value string }{{"--csi-endpoint", f.endpoint}, {"--inject", f.inject}} {
		if flag.value != "" {
			return errors.New(flag.name + " is for engine local: on Kubernetes the StorageClass names the driver")
		}
	}
	return nil
}
