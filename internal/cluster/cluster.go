// Package cluster connects a command to a Kubernetes cluster: it finds the cluster, reads what a plan needs of it,
// asks for rights, and forwards ports.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/version"
)

// Options name a cluster. Empty fields mean what kubectl takes.
type Options struct {
	Kubeconfig, Context, Namespace string
}

// Load finds the cluster and the namespace, as kubectl does.
func (o Options) Load() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.Context})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", o.explain(rules.GetLoadingPrecedence(), loaded, err)
	}
	config.UserAgent = "cnsbench/" + version.Version
	namespace := o.Namespace
	if namespace == "" {
		if namespace, _, err = loaded.Namespace(); err != nil {
			return nil, "", fmt.Errorf("find the namespace: %w; name it with --namespace", err)
		}
	}
	return config, namespace, nil
}

// explain says why the kubeconfig files name no cluster, and what to do.
func (o Options) explain(files []string, loaded clientcmd.ClientConfig, err error) error {
	if o.Kubeconfig != "" {
		files = []string{o.Kubeconfig}
	}
	where := strings.Join(files, ", ")
	raw, unreadable := loaded.RawConfig()
	name := cmp.Or(o.Context, raw.CurrentContext)
	switch {
	case unreadable != nil:
		return fmt.Errorf("read kubeconfig %s: %w; name another with --kubeconfig or $KUBECONFIG", where, unreadable)
	case len(raw.Contexts) == 0:
		return fmt.Errorf("no cluster: kubeconfig %s does not exist or has no context; name another with --kubeconfig or "+
			"$KUBECONFIG", where)
	case raw.Contexts[name] == nil:
		return fmt.Errorf("kubeconfig %s has no context %q; select one of these with --context: %s", where, name,
			strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	}
	return fmt.Errorf("context %q of kubeconfig %s: %w; correct it, or name another with --context or --kubeconfig", name,
		where, err)
}

// Answers checks that the API server answers, and that it accepts the user.
func Answers(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	err = client.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	if apierrors.IsForbidden(err) {
		return nil
	}
	return Explain(config, err)
}

// Explain adds to the error of a request what to do if the API server does not answer, or does not accept the user.
func Explain(config *rest.Config, err error) error {
	switch {
	case errors.As(err, new(*url.Error)):
		return fmt.Errorf("the cluster at %s does not answer: %w; start it, or name another with --kubeconfig, $KUBECONFIG "+
			"or --context", config.Host, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster at %s does not accept the user of the kubeconfig: %w; renew its credentials, or name "+
			"another with --kubeconfig, $KUBECONFIG or --context", config.Host, err)
	}
	return err
}

// Cluster is a connection for what a command does before and after a run. The engine has its own.
type Cluster struct {
	Config    *rest.Config
	Namespace string // of the run
	Client    *api.Client
	Set       clientset.Interface
}

// Connect finds the cluster and makes its clients. It sends no request.
func (o Options) Connect() (*Cluster, error) {
	config, namespace, err := o.Load()
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
	return &Cluster{Config: config, Namespace: namespace, Client: client, Set: set}, nil
}

// NewIdentity draws the identity of a run on this cluster.
func (c *Cluster) NewIdentity(run string) owned.Identity {
	own := owned.New(run)
	own.Namespace, own.Server = c.Namespace, c.Config.Host
	return own
}

// Classes reads the classes that a plan refers to. A kind that the user may not read is nil, and the plan checks
// nothing against it: missing rights are listed later, all at once. A kind that the server does not have is empty.
func (c *Cluster) Classes(ctx context.Context) (*plan.Classes, error) {
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
		found.GroupSnapshot, err = c.snapshotClasses(ctx, api.VolumeGroupSnapshotClasses(version))
		if err != nil || len(found.GroupSnapshot) > 0 {
			break
		}
	}
	return found, err
}

func (c *Cluster) snapshotClasses(ctx context.Context, kind api.Kind) (map[string]engine.SnapshotClass, error) {
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
		found[s.Name] = engine.SnapshotClass{Name: s.Name, Driver: s.Driver, Parameters: s.Parameters,
			Retain:  s.DeletionPolicy == "Retain",
			Default: s.Annotations["snapshot.storage.kubernetes.io/is-default-class"] == "true"}
	}
	return found, nil
}

// list reads a kind of the whole cluster; known is false where the user may not read it. A kind that the server
// does not have is an empty list.
func (c *Cluster) list(ctx context.Context, kind api.Kind) (list []api.Object, known bool, err error) {
	list, _, err = c.Client.List(ctx, kind, "", metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, false, nil
	case apierrors.IsNotFound(err):
		return nil, true, nil
	}
	return list, err == nil, err
}

// Libraries lists the workloads of a namespace.
func (c *Cluster) Libraries(ctx context.Context, namespace string) ([]corev1.ConfigMap, error) {
	list, err := c.Set.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: "type=workload"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
