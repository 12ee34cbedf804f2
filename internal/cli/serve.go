package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	clientset "k8s.io/client-go/kubernetes"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/present/report"
	"github.com/cnsbench/cnsbench/internal/record"
	"github.com/cnsbench/cnsbench/internal/results"
)

type serveFlags struct {
	cluster clusterFlags
	dir     string
	listen  string
	auth    string
	token   string
}

// The ways to tell who may do what at a results service.
const (
	authKubernetes = "kubernetes"
	authToken      = "token"
	authNone       = "none"
)

func newServe(s *streams) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Keep bundles of runs and show them over HTTP",
		Long: `Takes the bundles of runs while they grow, keeps them in a directory, and shows
them: the results service. "cnsbench install" puts it into a cluster.

Who may do what is decided by the cluster (--auth kubernetes: by a token of its,
and the right to benchmarks.cnsbench.dev/results in the run's namespace), by one
token (--auth token), or by nobody (--auth none: only on a loopback address).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			auth, err := f.authenticator()
			if err != nil {
				return err
			}
			return failed(serveResults(ctx, s, &f, auth))
		},
	}
	which(c, &f.cluster)
	fl := c.Flags()
	fl.StringVar(&f.dir, "dir", "results", "directory with the bundles, NAMESPACE/RUN")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "HOST:PORT")
	fl.StringVar(&f.auth, "auth", authNone, "who decides: kubernetes, token or none")
	fl.StringVar(&f.token, "token-file", "", "file with the token of --auth token")
	return c
}

func (f *serveFlags) authenticator() (results.Authenticator, error) {
	switch f.auth {
	case authNone:
		host, _, err := net.SplitHostPort(f.listen)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("--auth none at %s: anybody could read, change and delete results; listen on 127.0.0.1, or choose another --auth", f.listen)
		}
		return results.Anyone{}, nil
	case authToken:
		b, err := os.ReadFile(f.token)
		token := strings.TrimSpace(string(b))
		if err == nil && token == "" {
			err = fmt.Errorf("%s is empty", f.token)
		}
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		return results.Token(token), nil
	case authKubernetes:
		config, _, err := f.cluster.config()
		if err != nil {
			return nil, err
		}
		set, err := clientset.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return results.NewKubernetes(set.AuthenticationV1().TokenReviews(), set.AuthorizationV1().SubjectAccessReviews()), nil
	}
	return nil, fmt.Errorf("--auth %q: there are kubernetes, token and none", f.auth)
}

// serveResults serves until ctx ends, then lets what is on its way arrive.
func serveResults(ctx context.Context, s *streams, f *serveFlags, auth results.Authenticator) error {
	store, err := results.OpenStore(f.dir, results.Limits{})
	if err != nil {
		return err
	}
	h := &results.Handler{Store: store, Auth: auth, Log: func(line string) { fmt.Fprintln(s.err, line) },
		Report: func(w io.Writer, b *record.Bundle) error {
			made, err := summary.Make(b)
			if err != nil {
				return err
			}
			return report.Write(w, b, made)
		},
		Summary: func(b *record.Bundle) (any, error) { return summary.Make(b) },
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	server := &http.Server{Handler: h.Serve(), ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(s.err, "results of %s at http://%s\n", f.dir, listener.Addr())
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	if err = server.Serve(listener); errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, store.Close())
}
