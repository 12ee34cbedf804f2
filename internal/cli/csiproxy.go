package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/results"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// The environment of the proxy.
const (
	envProxyToken   = runflags.ProxyTokenVariable
	envProxyGuarded = "CNSBENCH_CSI_PROXY_GUARDED" // set for a process that a guard watches
)

// proxyFlags are the flags of csi proxy.
type proxyFlags struct {
	csiproxy.Options
	serve, tokenFile, restore string
	log                       bool
}

func newProxy(s *streams) *cobra.Command {
	var p proxyFlags
	c := &cobra.Command{
		Use:   "proxy",
		Short: "Record the RPCs on a CSI driver's socket",
		Long: `Forwards every byte between a CSI driver's unix socket and its clients, and
records when each RPC begins and ends. With --serve, runners with the token read the
records; with --log they go to standard output.

--take-over replaces the driver's socket, and restores it at the end. The token is
in $` + envProxyToken + `, or in a file.`,
		Example: `  cnsbench csi proxy --take-over /csi/csi.sock --serve :9443
  cnsbench csi proxy --upstream /csi/csi.sock --listen /csi/proxied.sock --log
  cnsbench csi proxy --restore /csi/csi.sock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			if p.restore != "" {
				return failed(csiproxy.Restore(ctx, p.restore))
			}
			p.Log = func(line string) { fmt.Fprintln(s.err, "csi-proxy:", line) }
			proxy, err := csiproxy.New(p.Options)
			if err != nil {
				return err
			}
			token, err := tokenOf(p.tokenFile, envProxyToken)
			if err != nil {
				return err
			}
			if p.serve != "" && token == "" {
				return fmt.Errorf("--serve needs the token of the runner: set $%s or --token-file", envProxyToken)
			}
			if p.TakeOver != "" && os.Getenv(envProxyGuarded) == "" {
				return failed(guardProxy(ctx, s, p.TakeOver))
			}
			return failed(runProxy(ctx, s.out, proxy, p, token))
		},
	}
	f := c.Flags()
	f.StringVar(&p.Upstream, "upstream", "", "the driver's socket")
	f.StringVar(&p.Listen, "listen", "", "socket for clients, instead of the driver's")
	f.StringVar(&p.TakeOver, "take-over", "", "the driver's socket, which the proxy replaces until it ends")
	f.StringVar(&p.restore, "restore", "", "restore the driver's socket after a killed proxy, and exit")
	f.StringVar(&p.serve, "serve", "", "HOST:PORT where runners read the records (TLS 1.3)")
	f.StringVar(&p.tokenFile, "token-file", "", "file with the token, instead of $"+envProxyToken)
	f.StringVar(&p.Driver, "driver", "", "name of the driver (default asked from it)")
	f.StringVar(&p.Node, "node", os.Getenv("NODE_NAME"), "node of the socket (default $NODE_NAME)")
	f.BoolVar(&p.log, "log", false, "write the records to standard output, one JSON object per line")
	return c
}

// guardProxy runs this command in a child process, and restores the driver's socket if the child dies.
func guardProxy(ctx context.Context, s *streams, socket string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, os.Args[1:]...) //nolint:noctx // csiproxy.Guard ends it with a signal
	cmd.Env = append(os.Environ(), envProxyGuarded+"=1")
	cmd.Stdout, cmd.Stderr = visible.Raw(s.out), visible.Raw(s.err) // no pipe: it outlives this process
	return csiproxy.Guard(ctx, socket, cmd)
}

// tokenOf reads a token from a file, or without one from an environment variable; empty: there is none.
func tokenOf(file, variable string) (string, error) {
	if file == "" {
		return os.Getenv(variable), nil
	}
	return bounded.ReadPrivate(file, results.MaxToken)
}

// runProxy proxies, serves and logs until one of them fails or ctx ends.
func runProxy(ctx context.Context, out io.Writer, proxy *csiproxy.Proxy, p proxyFlags, token string) error {
	all, ctx := errgroup.WithContext(ctx)
	if p.serve != "" {
		all.Go(func() error { return serveRecords(ctx, proxy, p.serve, token) })
	}
	if p.log {
		all.Go(func() error { return logCalls(ctx, out, proxy) })
	}
	all.Go(func() error { return proxy.Run(ctx) })
	return all.Wait()
}

// serveRecords opens its port once the proxy is in place, which the port's readiness shows.
func serveRecords(ctx context.Context, proxy *csiproxy.Proxy, address, token string) error {
	select {
	case <-proxy.Ready():
	case <-ctx.Done():
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return proxy.Serve(ctx, listener, token)
}

func logCalls(ctx context.Context, out io.Writer, proxy *csiproxy.Proxy) error {
	to := newEncoder(out)
	err := proxy.Follow(ctx, func(r csiproxy.Record, lost int64) error {
		if lost > 0 {
			if err := to.Encode(map[string]int64{"lost": lost}); err != nil {
				return err
			}
		}
		return to.Encode(r)
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
