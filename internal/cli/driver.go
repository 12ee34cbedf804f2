package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/version"
)

func newDriver() *cobra.Command {
	var o csidriver.Options
	var socket, capacity, poolSize, roundTo string
	var destroy bool
	c := &cobra.Command{
		Use:   "csi-driver",
		Short: "Serve one of our CSI drivers on a unix socket",
		Long: `Serves one of our CSI drivers on a unix socket until it is told to end.
` + "`cnsbench run`" + ` starts the drivers it needs by itself; this command is for running
one by hand, for another orchestrator, or with --csi-endpoint.

  cnsbench csi-driver --backend loopfile --socket /run/csi.sock --base-dir /var/lib/csi
  cnsbench csi-driver --backend loopfile --base-dir /var/lib/csi --destroy`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(csidriver.Backends(), o.Backend) {
				return fmt.Errorf("--backend %q: there are %s", o.Backend, strings.Join(csidriver.Backends(), ", "))
			}
			for _, q := range []struct {
				text string
				to   *int64
				flag string
			}{{capacity, &o.Capacity, "capacity"}, {poolSize, &o.PoolSize, "pool-size"}, {roundTo, &o.RoundTo, "round-to"}} {
				if q.text == "" {
					continue
				}
				v, err := resource.ParseQuantity(q.text)
				if err != nil {
					return fmt.Errorf("--%s %q: %w", q.flag, q.text, err)
				}
				*q.to = v.Value()
			}
			o.Version = version.Version
			if destroy {
				if o.BaseDir == "" {
					return errors.New("--destroy needs --base-dir")
				}
				return failed(csidriver.Destroy(o))
			}
			if socket == "" {
				return errors.New("--socket says where to listen; give it")
			}
			return failed(serveDriver(cmd.Context(), o, socket))
		},
	}
	f := c.Flags()
	f.StringVar(&o.Backend, "backend", "", "which driver: "+strings.Join(csidriver.Backends(), ", "))
	f.StringVar(&socket, "socket", "", "unix socket to listen on")
	f.StringVar(&o.BaseDir, "base-dir", "", "directory that holds everything the driver keeps")
	f.StringVar(&o.NodeID, "node-id", "", "name of this node (default \"local\")")
	f.StringToStringVar(&o.Nodes, "node", nil, "a further node on this machine and the socket on which to answer as it: NAME=SOCKET; repeatable")
	f.StringVar(&capacity, "capacity", "", "limit on the sum of the volumes' sizes, e.g. 10Gi")
	f.StringVar(&poolSize, "pool-size", "", "size of the sparse pool image (default 16Gi)")
	f.StringVar(&roundTo, "round-to", "", "granularity to which sizes are rounded up")
	f.StringVar(&o.FSType, "fstype", "", "file system of volumes whose request names none (default ext4)")
	f.StringVar(&o.Inject, "inject", "", "file with delays, stalls and errors to inject, or its YAML itself")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of what is injected")
	f.StringVar(&o.TruthLog, "truth-log", "", "file for one JSON line per RPC: what the driver really did")
	f.BoolVar(&destroy, "destroy", false, "remove everything under --base-dir and end")
	_ = c.MarkFlagRequired("backend")
	return c
}

func serveDriver(ctx context.Context, o csidriver.Options, socket string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server, err := csidriver.New(o)
	if err != nil {
		return err
	}
	return errors.Join(server.Serve(ctx, socket), server.Close())
}

// failed marks an error that is no fault of the command line.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &exit{exitFailed, err}
}
