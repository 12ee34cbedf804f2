package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	clientset "k8s.io/client-go/kubernetes"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/operator"
	"github.com/cnsbench/cnsbench/internal/results"
)

// serveFlags are those of the results service.
type serveFlags struct {
	dir, listen string
	auth, token string
	cert, key   string
	selfSigned  bool
	publish     string
	insecure    bool
	hosts       []string
	maxGiB      int64
	quotaGiB    int64
	quotaRuns   int
	retainGiB   int64
	retain      server.Retention
	allowRun    bool
	storageDir  string
	image       string
	createRBAC  bool
	cluster     cluster.Options
}

// maxLogLine bounds a line of the service's log, in bytes.
const maxLogLine = 4 << 10

// The values of --auth.
const (
	authKubernetes = "kubernetes"
	authToken      = "token"
	authNone       = "none"
)

func newServe(s *streams) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Show bundles in a browser, or store bundles and serve them over HTTP",
		Long: `serve DIR shows the bundles and studies in and beneath a directory in a browser: a list
of runs, their reports, runs in progress, comparisons and studies, and forms that build a
Benchmark (docs/how-to/web.md). It only reads. The address that it prints has a token,
without which nothing is shown: all users of this machine reach the port. --token-file
gives a token of your own, which a browser takes as a password. Elsewhere than on a
loopback address it needs TLS, too.

With --allow-run the page submits Benchmarks and Studies to a queue, which runs them one
after another, as this user, with results in DIR. Ctrl-C ends the run in progress, too;
serve waits until that has removed what it created.

Without DIR, serve runs the results service: it receives the bundles of runs while they
grow, keeps them in the directory --dir, and serves them. docs/format/results-api.md
describes the requests; "cnsbench install" installs the service in a cluster.

--auth kubernetes authorizes requests by a token of the cluster and the right to get,
list, create, update or delete benchmarks.cnsbench.dev/results in the run's
namespace; --auth token by one token. --auth none authorizes all requests on a
loopback address whose Host and Origin are of this machine or in --allow-host. With
--allow-run it would let every user of this machine run commands as the user of serve:
it needs --insecure then, and is refused for root.`,
		Example: `  cnsbench serve results                              the web interface, on this machine only
  cnsbench serve results --allow-run                  with a queue of runs
  cnsbench serve --dir results                        on this machine only
  cnsbench serve --dir /results --listen :8443 --auth kubernetes --tls-self-signed`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.dir = args[0]
				return f.serveWeb(cmd.Context(), s)
			}
			return f.serve(cmd.Context(), s)
		},
	}
	f.add(c)
	c.PreRunE = f.check
	return c
}

func (f *serveFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.dir, "dir", "results", "directory with the bundles as NAMESPACE/RUN; created if missing")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "HOST:PORT to listen on")
	fl.StringVar(&f.auth, "auth", "", "how to authorize requests: token or none, without DIR also kubernetes (default "+
		"token with DIR, else none)")
	fl.StringVar(&f.token, "token-file", "", "file with the token of --auth token, which only its owner may read "+
		"(default with DIR a new one, in the address that is printed)")
	fl.StringVar(&f.cert, "tls-cert", "", "file with the certificate, in PEM; read again when it is renewed")
	fl.StringVar(&f.key, "tls-key", "", "file with its key, in PEM")
	fl.BoolVar(&f.selfSigned, "tls-self-signed", false, "create a certificate, keep it in DIR/.tls, and print its pin")
	fl.StringVar(&f.publish, "publish-pin", "",
		"ConfigMap in the service's own namespace that receives the pin, for the operator and show --cluster")
	fl.BoolVar(&f.insecure, "insecure", false, "allow --auth none on an address that others can reach; with DIR, "+
		"with --allow-run")
	fl.StringArrayVar(&f.hosts, "allow-host", nil,
		"with --auth none, a host name to accept besides localhost and addresses; may be repeated")
	fl.Int64Var(&f.maxGiB, "max-bundle", 64, "maximum size of a bundle, in GiB")
	fl.Int64Var(&f.quotaGiB, "quota-size", 0, "size of all bundles of a namespace, in GiB, beyond which nothing is "+
		"received (default no limit)")
	fl.IntVar(&f.quotaRuns, "quota-runs", 0, "number of bundles that a namespace may have (default no limit)")
	fl.DurationVar(&f.retain.Age, "retain-for", 0, "remove a bundle when it has been closed for so long, e.g. 720h "+
		"(default never)")
	fl.IntVar(&f.retain.Runs, "retain-runs", 0, "remove the oldest closed bundles of a namespace beyond this number "+
		"(default none)")
	fl.Int64Var(&f.retainGiB, "retain-size", 0, "remove the oldest closed bundles of a namespace beyond this size, in "+
		"GiB (default none)")
	fl.DurationVar(&f.retain.Silence, "lost-after", 24*time.Hour, "close a bundle as that of a lost runner when nothing "+
		"has arrived for so long; 0: never")
	fl.BoolVar(&f.allowRun, "allow-run", false, "with DIR: let the page run Benchmarks and Studies, as this user")
	fl.StringVar(&f.storageDir, "storage-dir", "",
		"with --allow-run: directory for volumes of the built-in drivers (default that of run)")
	fl.StringVar(&f.image, "image", "", "with --allow-run: image of cnsbench for runs in a cluster (default that of run)")
	fl.BoolVar(&f.createRBAC, "create-rbac", false,
		"with --allow-run: give each run in a cluster an account of its own, as run --create-rbac does")
	namespaceFlags(c, &f.cluster, "with --allow-run: namespace for all objects of runs in a cluster that name no other")
}

// check returns an error for a flag that would have no effect, because it is of the other service.
func (f *serveFlags) check(c *cobra.Command, args []string) error {
	if f.auth == "" {
		f.auth = authNone
		if len(args) == 1 {
			f.auth = authToken
		}
	}
	for _, name := range []string{"dir", "publish-pin", "max-bundle", "quota-size", "quota-runs",
		"retain-for", "retain-runs", "retain-size", "lost-after"} {
		if len(args) == 1 && c.Flags().Changed(name) {
			return fmt.Errorf("--%s is for the results service, serve without DIR", name)
		}
	}
	if len(args) == 1 {
		if err := f.checkOpen(os.Geteuid()); err != nil {
			return err
		}
	}
	switch {
	case f.token != "" && f.auth != authToken:
		return errors.New("--token-file is for --auth token")
	case len(args) == 0 && f.allowRun:
		return errors.New("--allow-run is for the web interface: name the directory of its results, serve DIR --allow-run")
	case f.storageDir != "" && !f.allowRun:
		return errors.New("--storage-dir is for the runs of --allow-run")
	case f.cluster.Namespace != "" && !f.allowRun:
		return errors.New("--namespace is for the runs of --allow-run")
	case (f.image != "" || f.createRBAC) && !f.allowRun:
		return errors.New("--image and --create-rbac are for the runs of --allow-run")
	}
	return nil
}

// checkOpen refuses a queue that every user of this machine could use. The port of a loopback address is open to all.
func (f *serveFlags) checkOpen(uid int) error {
	open := f.allowRun && f.auth == authNone
	switch {
	case f.insecure && !open:
		return errors.New("--insecure is for --auth none: with DIR together with --allow-run, else without DIR")
	case open && uid == 0:
		return errors.New("--auth none with --allow-run would let every user of this machine run commands as root: " +
			"leave out --auth none, and open the address with the token")
	case open && !f.insecure:
		return errors.New("--auth none with --allow-run would let every user of this machine run commands as you: " +
			"leave out --auth none and open the address with the token, or use --insecure")
	}
	return nil
}

func (f *serveFlags) serve(ctx context.Context, s *streams) error {
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	if len(f.hosts) > 0 && f.auth != authNone {
		return errors.New("--allow-host is for --auth none only")
	}
	limits, err := f.limits()
	if err != nil {
		return err
	}
	auth, err := f.authenticator()
	if err != nil {
		return err
	}
	conf, scheme, err := f.tls(ctx, s)
	if err != nil {
		return err
	}
	if conf == nil && f.auth != authNone && !results.Loopback(f.listen) {
		fmt.Fprintln(s.err, "warning: tokens cross the network in the clear; use --tls-cert or --tls-self-signed")
	}
	store, err := server.OpenStore(f.dir, limits)
	if err != nil {
		return failed(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return failed(errors.Join(fmt.Errorf("--listen: %w", err), store.Close()))
	}
	fmt.Fprintf(s.err, "results of %s at %s://%s\n", f.dir, scheme, listener.Addr())
	if conf != nil {
		listener = tls.NewListener(listener, conf)
	}
	log := func(line string) { fmt.Fprintln(s.err, bounded.Text(line, maxLogLine)) }
	h := server.Handler{Store: store, Auth: auth, Render: renderApart, Log: log}
	var keeping sync.WaitGroup
	keeping.Go(func() { store.Keep(ctx, f.retain, log) })
	handler := h.Serve()
	if f.auth == authNone {
		handler = server.Guard(handler, f.hosts)
	}
	err = serveUntil(ctx, listener, handler)
	stop()
	keeping.Wait()
	return failed(errors.Join(err, store.Close()))
}

// limits checks the flags about size, number and age of bundles.
func (f *serveFlags) limits() (server.Limits, error) {
	const mostGiB = 1 << 30 // fits into an int64, as bytes
	if f.maxGiB < 1 || f.maxGiB > mostGiB {
		return server.Limits{}, fmt.Errorf("invalid --max-bundle %d: want 1 to %d", f.maxGiB, mostGiB)
	}
	for name, n := range map[string]int64{"quota-size": f.quotaGiB, "quota-runs": int64(f.quotaRuns),
		"retain-runs": int64(f.retain.Runs), "retain-size": f.retainGiB} {
		if n < 0 || n > mostGiB {
			return server.Limits{}, fmt.Errorf("invalid --%s %d: want 0 to %d", name, n, mostGiB)
		}
	}
	if f.retain.Age < 0 {
		return server.Limits{}, fmt.Errorf("invalid --retain-for %v: want 0 or more", f.retain.Age)
	}
	if s := f.retain.Silence; s != 0 && s < time.Hour {
		return server.Limits{}, fmt.Errorf("invalid --lost-after %v: want 0, or an hour or more", s)
	}
	f.retain.Bytes = f.retainGiB << 30
	return server.Limits{RunBytes: f.maxGiB << 30, NamespaceBytes: f.quotaGiB << 30, NamespaceRuns: f.quotaRuns}, nil
}

// serveUntil serves until ctx ends, then lets requests in progress finish.
func serveUntil(ctx context.Context, l net.Listener, h http.Handler) error {
	web := server.Bounded(h)
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if web.Shutdown(ctx) != nil {
		return web.Close() // clients send unacknowledged data again
	}
	return nil
}

func (f *serveFlags) authenticator() (server.Authenticator, error) {
	switch f.auth {
	case authNone:
		if !f.insecure && !results.Loopback(f.listen) {
			return nil, fmt.Errorf("--auth none on %s lets anyone read, change and delete results: listen on 127.0.0.1, "+
				"choose another --auth, or use --insecure", f.listen)
		}
		return server.AllowAll{}, nil
	case authToken:
		token, err := f.readToken()
		return server.Token(token), err
	case authKubernetes:
		config, _, err := f.cluster.Load()
		if err != nil {
			return nil, err
		}
		config.QPS = -1 // the authenticator caches answers, which limits requests
		set, err := clientset.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return server.NewKubernetes(set.AuthenticationV1().TokenReviews(),
			set.AuthorizationV1().SubjectAccessReviews()), nil
	}
	return nil, fmt.Errorf("invalid --auth %q: want kubernetes, token or none", f.auth)
}

func (f *serveFlags) readToken() (string, error) {
	token, err := bounded.ReadPrivate(f.token, results.MaxToken)
	if err == nil && token == "" {
		err = fmt.Errorf("%s is empty", f.token)
	}
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return token, nil
}

// publishPin writes the pin of the service's certificate into a ConfigMap.
func (f *serveFlags) publishPin(ctx context.Context, pin string) error {
	namespace := operator.InClusterNamespace()
	if namespace == "" {
		return errors.New("--publish-pin works in a cluster only: the service's namespace is unknown")
	}
	config, _, err := f.cluster.Load()
	if err != nil {
		return err
	}
	set, err := clientset.NewForConfig(config)
	if err == nil {
		err = results.WritePin(ctx, set, namespace, f.publish, pin)
	}
	if err != nil {
		return fmt.Errorf("--publish-pin: %w", err)
	}
	return nil
}

// tls returns the configuration, nil for plain HTTP, and the scheme of URLs.
func (f *serveFlags) tls(ctx context.Context, s *streams) (*tls.Config, string, error) {
	switch {
	case f.publish != "" && !f.selfSigned:
		return nil, "", errors.New("--publish-pin needs --tls-self-signed")
	case f.selfSigned && f.cert != "":
		return nil, "", errors.New("--tls-self-signed and --tls-cert exclude each other")
	case (f.cert == "") != (f.key == ""):
		return nil, "", errors.New("--tls-cert and --tls-key must be set together")
	case f.selfSigned:
		host, _, _ := net.SplitHostPort(f.listen) // an invalid address fails when listening
		cert, err := server.LoadOrCreateCertificate(filepath.Join(f.dir, ".tls"), []string{host, "localhost"})
		if err != nil {
			return nil, "", failed(err)
		}
		pin := server.Pin(cert.Certificate[0])
		fmt.Fprintf(s.err, "pin: %s\n", pin)
		if f.publish != "" {
			if err := f.publishPin(ctx, pin); err != nil {
				return nil, "", failed(err)
			}
		}
		return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}, "https", nil
	case f.cert != "":
		if _, err := tls.LoadX509KeyPair(f.cert, f.key); err != nil {
			return nil, "", fmt.Errorf("--tls-cert: %w", err)
		}
		// Read for each connection, because the files are renewed.
		get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(f.cert, f.key)
			return &pair, err
		}
		return &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: get}, "https", nil
	}
	return nil, "http", nil
}
