package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"

	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/internal/cluster"
)

// remoteFlags say that a bundle lies at a results service, and at which.
type remoteFlags struct {
	run       string // NAMESPACE/RUN; empty: the bundle is a directory here
	url       string
	tokenFile string
	pin       string
	account   string
	at        string // namespace of the service
	borrowed  bool   // the token is one made for the account
	cluster   cluster.Options
}

func (f *remoteFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.run, "cluster", "", "NAMESPACE/RUN of a bundle at the cluster's results service, in place of a directory")
	fl.StringVar(&f.url, "results", "", "URL of the results service (default found in the cluster and reached by a port-forward)")
	fl.StringVar(&f.tokenFile, "results-token-file", "",
		"file with a token for the results service (default one made for --results-account)")
	fl.StringVar(&f.pin, "results-pin", "",
		"pin (sha256:…) of the service's certificate (default the one it has published in the cluster)")
	fl.StringVar(&f.account, "results-account", "default",
		"ServiceAccount in the run's namespace to read as: a token for the results service alone is made for it")
	fl.StringVar(&f.at, "results-namespace", config.DefaultNamespace, "namespace of the results service")
	clusterFlags(c, &f.cluster)
}

// args is how many arguments the command has: the directory, unless --cluster
// stands for it.
func (f *remoteFlags) args(c *cobra.Command, args []string) error {
	if f.run != "" {
		return cobra.NoArgs(c, args)
	}
	return cobra.ExactArgs(1)(c, args)
}

// bundle gives the directory of the bundle that is meant, and copies it from the
// results service if it lies there; done removes such a copy. The tools' own
// files come only where all is wanted.
func (f *remoteFlags) bundle(ctx context.Context, args []string, all bool) (dir string, done func(), err error) {
	if f.run == "" {
		return args[0], func() {}, nil
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	namespace, id, ok := strings.Cut(f.run, "/")
	if !ok {
		return "", nil, fmt.Errorf("--cluster %q: it is NAMESPACE/RUN", f.run)
	}
	client, err := f.client(ctx, namespace)
	if err != nil {
		return "", nil, err
	}
	remote, err := client.Run(namespace, id)
	if err != nil {
		return "", nil, fmt.Errorf("--cluster: %w", err)
	}
	tmp, err := os.MkdirTemp("", "cnsbench-copy-")
	if err != nil {
		return "", nil, failed(err)
	}
	done = func() { _ = os.RemoveAll(tmp) } // nobody else knows of it
	o := server.Options{}
	if !all {
		o.Skip = func(name string) bool { return strings.HasPrefix(name, "raw/") }
	}
	copied := filepath.Join(tmp, id)
	info, err := server.Fetch(ctx, remote, copied, o)
	if err == nil && info.Closed == server.Complete && !all {
		// Without the tools' files it cannot be verified, but it is all there.
		err = fetchManifest(ctx, remote, copied)
	}
	if err != nil {
		done()
		return "", nil, failed(fmt.Errorf("copy %s: %w%s", f.run, err, f.asWhom(err)))
	}
	if info.Closed != "" {
		return copied, done, nil
	}
	return live(copied, done)
}

// asWhom says how to read as another ServiceAccount, where this one may not.
func (f *remoteFlags) asWhom(err error) string {
	var status *server.StatusError
	if !f.borrowed || !errors.As(err, &status) || status.Status != http.StatusForbidden {
		return ""
	}
	return fmt.Sprintf("; ServiceAccount %s may not read it: --results-account names another of the run's namespace, "+
		"such as the run's own", f.account)
}

// live marks the copy of a run that goes on as such.
func live(dir string, remove func()) (string, func(), error) {
	folder, err := server.OpenFolder(dir, server.Limits{})
	if err == nil {
		err = folder.Lock()
	}
	if err != nil {
		remove()
		return "", nil, failed(err)
	}
	return dir, func() {
		_ = folder.Close() // only a mark
		remove()
	}, nil
}

func fetchManifest(ctx context.Context, from *server.Remote, dir string) error {
	r, err := from.Read(ctx, "manifest.json", 0)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), b, 0o644)
}

// client reaches the service: by its URL, or by port-forwards to its pod.
func (f *remoteFlags) client(ctx context.Context, namespace string) (*server.Client, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	if f.pin != "" {
		conf, err := server.Pinned(f.pin)
		if err != nil {
			return nil, fmt.Errorf("--results-pin: %w", err)
		}
		base.TLSClientConfig = conf
	}
	client := &server.Client{URL: f.url, HTTP: &http.Client{Transport: base, CheckRedirect: noRedirect}}
	if f.tokenFile != "" {
		if inTheClear(f.url) {
			return nil, fmt.Errorf("--results %s: the token of --results-token-file would cross the network in the clear: "+
				"give an https URL (--results-pin for a certificate of the service's own), or forward a port of this "+
				"machine to the service", f.url)
		}
		client.HTTP.Transport = &bearer{file: f.tokenFile, next: base}
	}
	if f.url != "" {
		return client, nil
	}
	conf, _, err := f.cluster.Load()
	if err != nil {
		return nil, err
	}
	set, err := clientset.NewForConfig(conf)
	if err != nil {
		return nil, failed(err)
	}
	pod, port, err := resultsPod(ctx, set, f.at)
	if err != nil {
		return nil, failed(err)
	}
	on := &cluster.Cluster{Config: conf, Namespace: f.at, Set: set}
	base.Proxy, base.DialContext = nil, func(context.Context, string, string) (net.Conn, error) { return on.Forward(pod, port) }
	if f.pin == "" {
		if err := f.published(ctx, set, base); err != nil {
			return nil, failed(err)
		}
	}
	client.URL = "https://" + pod
	if f.tokenFile == "" {
		if client.HTTP.Transport, err = f.credentials(ctx, set, namespace, base); err != nil {
			return nil, failed(err)
		}
	}
	return client, nil
}

// noRedirect takes an answer that redirects for what it is: the service has none,
// and a token must not follow one.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// inTheClear says whether a token for a URL could be read on its way: by plain
// HTTP that leaves this machine. Nothing can be sent to what is no URL.
func inTheClear(target string) bool {
	u, err := url.Parse(target)
	return err == nil && strings.EqualFold(u.Scheme, "http") && !loopback(net.JoinHostPort(u.Hostname(), u.Port()))
}

// published trusts the service by the pin that it has published.
func (f *remoteFlags) published(ctx context.Context, set clientset.Interface, base *http.Transport) error {
	pin, err := readPin(ctx, set, f.at, pinMap)
	if err == nil {
		base.TLSClientConfig, err = server.Pinned(pin)
	}
	if err != nil {
		return fmt.Errorf("%w; cnsbench install brings a service that publishes it, --results-pin gives it", err)
	}
	return nil
}

// credentials show the service who asks: a ServiceAccount, by a token made for
// the service alone. The kubeconfig's own would let the service, and whoever
// stands in its place, act as its owner.
func (f *remoteFlags) credentials(ctx context.Context, set clientset.Interface, namespace string,
	base http.RoundTripper) (http.RoundTripper, error) {
	soon := int64(600) // the shortest there is
	made, err := set.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, f.account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{server.Audience}, ExpirationSeconds: &soon}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token for the results service as ServiceAccount %s/%s (--results-account names another, "+
			"--results-token-file has one that was made): %w", namespace, f.account, err)
	}
	f.borrowed = true
	return &bearer{token: made.Status.Token, next: base}, nil
}

// resultsPod finds a pod of the results service that is ready, and its port.
func resultsPod(ctx context.Context, set clientset.Interface, namespace string) (string, int, error) {
	pods, err := set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=cnsbench,app.kubernetes.io/component=results"})
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
	return "", 0, fmt.Errorf("namespace %s has no results service that is ready: cnsbench install makes one, --results-namespace or --results names another", namespace)
}

// maxToken is more than a file with a token, or with a key, has.
const maxToken = 1 << 20

// bearer shows a token: one that is given, or that of a file, which is read for
// each request since it is renewed.
type bearer struct {
	file, token string
	next        http.RoundTripper
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token := b.token
	if b.file != "" {
		text, err := bounded.ReadFile(nil, b.file, maxToken)
		if err != nil {
			return nil, fmt.Errorf("token for the results service: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(r)
}
