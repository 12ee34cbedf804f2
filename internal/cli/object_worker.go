package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/heap"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/capacity"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	"github.com/cnsbench/cnsbench/internal/object/footprint"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/version"
)

// envObjectToken has the token without --token-file.
const envObjectToken = "CNSBENCH_OBJECT_TOKEN"

func newObjectWorker(s *streams) *cobra.Command {
	var listen, tokenFile string
	c := &cobra.Command{
		Use: "worker", Short: "Serve as one of several hosts that run object workloads",
		Long: `Waits for "cnsbench object run --hosts" and runs its stages, for one controller
at a time, over TLS 1.3. Both sides need the same token and the same version. The
token lets a controller send requests, and read and write files, as the user of
this command.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := objectToken(tokenFile)
			if err != nil {
				return err
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			return failed(runObjectWorker(ctx, s, listen, token))
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "HOST:PORT for controllers; port 0: any, which is printed")
	tokenFlag(c.Flags(), &tokenFile)
	_ = c.MarkFlagRequired("listen") // it exists
	return c
}

func tokenFlag(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, "token-file", "", "file with the token of all hosts, in place of $"+envObjectToken)
}

// objectToken is the shared secret of hosts and controller.
func objectToken(file string) (string, error) {
	token, err := tokenOf(file, envObjectToken)
	if err == nil && token == "" && file == "" {
		err = fmt.Errorf("no token: give the token of all hosts by --token-file or $%s", envObjectToken)
	}
	return token, err
}

func runObjectWorker(ctx context.Context, s *streams, listen, token string) error {
	about, err := json.Marshal(bundle.CollectEnvironment(ctx))
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, l.Addr())
	defer heap.SetGrowth(growthOfLoad)()
	if err := footprint.Shrink(); err != nil {
		fmt.Fprintln(s.err, "warning:", err)
	}
	clock := op.NewClock()
	return coordinator.Serve(ctx, l, coordinator.ServeOptions{
		Token: token, Version: version.Version, Clock: clock, Sleep: run.PreciseSleep, About: about,
		Instead: capacity.NullServer(childNullServer).Instead,
		Enough: func(stage *model.Stage) error {
			return checkOpenFiles(&model.Workload{Stages: []model.Stage{*stage}}, 1)
		},
		Say: func(line string) { fmt.Fprintln(s.err, "worker:", line) },
		Open: func(own bool) func(*model.Store) (client.Store, error) {
			opener := backend.Opener{Clock: clock, Getenv: func(string) string { return "" }}
			if own {
				opener.Getenv = os.Getenv
			}
			return opener.Store
		},
	})
}

// hostFlags are those of object run that have other hosts do it.
type hostFlags struct {
	hosts          string
	tokenFile      string
	ownCredentials bool
}

func (f *hostFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.hosts, "hosts", "", "[NAME=]HOST:PORT,… of cnsbench object worker: they run the "+
		"workload, this process coordinates")
	tokenFlag(fl, &f.tokenFile)
	fl.BoolVar(&f.ownCredentials, "host-credentials", false,
		"send no credentials to hosts: each uses its environment, or the file that the setting credentials names")
}

// parse returns the hosts and their names; nil: this process runs the workload.
func (f *hostFlags) parse() (hosts []coordinator.Host, names []string, err error) {
	if f.hosts == "" {
		if f.tokenFile != "" || f.ownCredentials {
			err = errors.New("--token-file and --host-credentials need --hosts")
		}
		return nil, nil, err
	}
	if hosts, err = coordinator.ParseHosts(f.hosts); err != nil {
		return nil, nil, fmt.Errorf("--hosts: %w", err)
	}
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return hosts, names, nil
}

// dial reaches the hosts of a run, before anything is begun.
func (r *objectRun) dial(ctx context.Context, hosts []coordinator.Host) error {
	token, err := objectToken(r.flags.hosts.tokenFile)
	if err != nil {
		return err
	}
	w := r.workload
	if !r.flags.hosts.ownCredentials {
		if w, err = withSecrets(w, &backend.Opener{Clock: r.clock, Getenv: os.Getenv}); err != nil {
			return err
		}
	}
	r.controller, err = coordinator.Dial(ctx, coordinator.Config{Workload: w, Hosts: hosts, Token: token,
		Version: version.Version, Clock: r.clock, RunID: r.id,
		Seed: r.flags.seed, Grace: r.flags.grace, OwnCredentials: r.flags.hosts.ownCredentials,
		Sleep: run.PreciseSleep})
	return failed(err)
}

// withSecrets is the workload with the credentials that hosts receive, without the files of this machine that they
// come from.
func withSecrets(w *model.Workload, opener *backend.Opener) (*model.Workload, error) {
	all := *w
	all.Stages = slices.Clone(w.Stages)
	for i := range all.Stages {
		works := slices.Clone(all.Stages[i].Works)
		for j := range works {
			s := &works[j].Store
			secrets, err := opener.Secrets(s)
			if err != nil {
				return nil, err
			}
			s.Secrets, s.Settings, s.Auth = secrets, maps.Clone(s.Settings), maps.Clone(s.Auth)
			delete(s.Settings, "credentials")
			delete(s.Auth, "credentials")
		}
		all.Stages[i].Works = works
	}
	return &all, nil
}

// environment is that of this machine, and of the hosts that do the work: what
// they are, and how far their clocks were from the run's.
func (r *objectRun) environment(ctx context.Context) bundle.Environment {
	e := bundle.CollectEnvironment(ctx, bundle.Place{Role: bundle.BundleRole, Path: r.writer.Dir()})
	if r.controller == nil {
		return e
	}
	offsets, errs := r.controller.Offsets()
	var hosts []map[string]any
	for i, about := range r.controller.About() {
		h := r.controller.Hosts[i]
		hosts = append(hosts, map[string]any{"name": h.Name, "address": h.Address, "clockOffsetNs": offsets[i],
			"clockErrNs": errs[i], "environment": about})
	}
	e.Engine = map[string]any{"hosts": hosts}
	return e
}
