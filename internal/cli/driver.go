package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/version"
)

func newCSI(s *streams) *cobra.Command {
	c := &cobra.Command{Use: "csi", Short: "Serve a built-in CSI driver, or record the RPCs of a driver"}
	c.AddCommand(newDriver(), newProxy(s))
	return c
}

func newDriver() *cobra.Command {
	var o csidriver.Options
	var socket string
	var destroy bool
	c := &cobra.Command{
		Use:   "driver",
		Short: "Serve a built-in CSI driver on a unix socket",
		Long: `Serves a built-in CSI driver on a unix socket until SIGTERM or SIGINT. "cnsbench
run" starts the drivers that it needs; use this command to run a driver for another
orchestrator or with --csi-endpoint.`,
		Example: `  cnsbench csi driver --backend loopfile --socket /run/csi.sock --base-dir /var/lib/csi
  cnsbench csi driver --backend loopfile --base-dir /var/lib/csi --destroy`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(csidriver.Backends(), o.Backend) {
				return fmt.Errorf("--backend %q: there are %s", o.Backend, strings.Join(csidriver.Backends(), ", "))
			}
			o.Version = version.Version
			if destroy {
				if o.BaseDir == "" {
					return errors.New("--destroy needs --base-dir")
				}
				return failed(csidriver.Destroy(o))
			}
			if socket == "" {
				return errors.New("--socket must be set: the unix socket to listen on")
			}
			return failed(serveDriver(cmd.Context(), o, socket))
		},
	}
	f := c.Flags()
	f.StringVar(&o.Backend, "backend", "", "driver: "+strings.Join(csidriver.Backends(), ", "))
	f.StringVar(&socket, "socket", "", "unix socket to listen on")
	f.StringVar(&o.BaseDir, "base-dir", "", "directory for the data of the driver")
	f.StringVar(&o.NodeID, "node-id", "", "name of this node (default \"local\")")
	f.StringToStringVar(&o.Nodes, "node", nil,
		"NAME=SOCKET: a further node on this machine, and its socket; may be repeated")
	f.Var((*size)(&o.Capacity), "capacity", "limit on the sum of the volumes' sizes, e.g. 10Gi")
	f.Var((*size)(&o.PoolSize), "pool-size", "size of the sparse pool image (default 16Gi)")
	f.Var((*size)(&o.RoundTo), "round-to", "granularity of sizes, which are rounded up")
	f.StringVar(&o.FSType, "fstype", "", "file system of volumes whose request has none (default ext4)")
	f.StringVar(&o.Inject, "inject", "", "file with delays, stalls and errors to inject, or its YAML text")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of injected faults")
	f.StringVar(&o.TruthLog, "truth-log", "", "file for a log of the RPCs, one JSON line each")
	f.BoolVar(&destroy, "destroy", false, "remove everything below --base-dir and exit")
	f.StringArrayVar(&o.Below, "below", nil,
		"with --destroy: leave targets of volumes alone that are neither below this directory nor below --base-dir; may be "+
			"repeated")
	for _, name := range []string{"node-id", "truth-log", "below"} { // of the engine and of tests
		f.Lookup(name).Hidden = true
	}
	_ = c.MarkFlagRequired("backend")
	return c
}

func serveDriver(ctx context.Context, o csidriver.Options, socket string) error {
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	server, err := csidriver.New(o)
	if err != nil {
		return err
	}
	return errors.Join(server.Serve(ctx, socket), server.Close())
}

// failed gives an error the exit code of a failure, rather than of wrong usage.
func failed(err error) error {
	var coded *exit
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return &exit{exitFailed, err}
}
