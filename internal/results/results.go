// Package results reaches the results service of a cluster: it finds the service, trusts its certificate by its
// pin, and authenticates with a token.
package results

import (
	"context"
	"fmt"
	"net"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/internal/cluster"
)

// tokenSeconds is the shortest lifetime of a token that the API server issues.
const tokenSeconds int64 = 600

// Options select a results service and how to authenticate there.
type Options struct {
	URL       string // empty: the service in the cluster, through port-forwards
	TokenFile string // empty: a token issued for Account
	Pin       string // empty: the pin that the service has published in the cluster
	Account   string // ServiceAccount in the run's namespace
	Namespace string // of the service
	Cluster   cluster.Options
}

// Service is the results service as one user sees it.
type Service struct {
	*server.Client
	// Issued says that the token was issued for Account.
	Issued bool

	options Options
	config  *rest.Config    // of the cluster with the service
	base    *http.Transport // without a token
}

// Open checks the options. It sends no request; Connect comes next.
func Open(o Options) (*Service, error) {
	base, err := PinnedTransport(o.Pin)
	if err != nil {
		return nil, fmt.Errorf("--results-pin: %w", err)
	}
	s := &Service{options: o, base: base,
		Client: &server.Client{URL: o.URL, HTTP: &http.Client{Transport: base, CheckRedirect: NoRedirect}}}
	if o.TokenFile != "" {
		if InTheClear(o.URL) {
			return nil, fmt.Errorf("--results %s: the token of --results-token-file would cross the network in the "+
				"clear: give an https URL (--results-pin for a certificate of the service's own), or forward a port of "+
				"this machine to the service", o.URL)
		}
		s.HTTP.Transport = &Bearer{File: o.TokenFile, Next: base}
	}
	if o.URL == "" {
		s.config, _, err = o.Cluster.Load()
	}
	return s, err
}

// Connect finds the service in the cluster and gets a token for the runs of a namespace, unless the options have
// them.
func (s *Service) Connect(ctx context.Context, namespace string) error {
	o := &s.options
	if o.URL != "" {
		return nil
	}
	set, err := clientset.NewForConfig(s.config)
	if err != nil {
		return err
	}
	pod, port, err := findPod(ctx, set, o.Namespace)
	if err != nil {
		return err
	}
	on := &cluster.Cluster{Config: s.config, Namespace: o.Namespace, Set: set}
	s.base.Proxy = nil
	s.base.DialContext = func(context.Context, string, string) (net.Conn, error) { return on.Forward(pod, port) }
	if o.Pin == "" {
		if err := s.trustPublished(ctx, set); err != nil {
			return err
		}
	}
	s.URL = "https://" + pod
	if o.TokenFile != "" {
		return nil
	}
	token, err := o.issueToken(ctx, set, namespace)
	if err != nil {
		return err
	}
	s.HTTP.Transport, s.Issued = &Bearer{Token: token, Next: s.base}, true
	return nil
}

// trustPublished trusts the service by the pin that it has published.
func (s *Service) trustPublished(ctx context.Context, set clientset.Interface) error {
	pin, err := ReadPin(ctx, set, s.options.Namespace, PinMap)
	if err == nil {
		s.base.TLSClientConfig, err = server.Pinned(pin)
	}
	if err != nil {
		return fmt.Errorf("%w; install a service that publishes it with cnsbench install, or give it with --results-pin",
			err)
	}
	return nil
}

// issueToken gets a token of the account that only the service accepts. The kubeconfig's own token would let the
// service act as the user.
func (o *Options) issueToken(ctx context.Context, set clientset.Interface, namespace string) (string, error) {
	issued, err := set.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, o.Account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{server.Audience},
			ExpirationSeconds: new(tokenSeconds)},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("issue a token for the results service as ServiceAccount %s/%s: %w; select another with "+
			"--results-account, or give a token with --results-token-file", namespace, o.Account, err)
	}
	return issued.Status.Token, nil
}

// findPod finds a ready pod of the results service, and its port.
func findPod(ctx context.Context, set clientset.Interface, namespace string) (string, int, error) {
	const selector = "app.kubernetes.io/name=cnsbench,app.kubernetes.io/component=results"
	pods, err := set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return "", 0, fmt.Errorf("find the results service: %w", err)
	}
	for _, p := range pods.Items {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && len(p.Spec.Containers[0].Ports) > 0 {
				return p.Name, int(p.Spec.Containers[0].Ports[0].ContainerPort), nil
			}
		}
	}
	return "", 0, fmt.Errorf("namespace %s has no ready results service: install one with cnsbench install, or select "+
		"another with --results-namespace or --results", namespace)
}
