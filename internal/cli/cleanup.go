package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cleanup"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/registry"
	"github.com/cnsbench/cnsbench/internal/visible"
)

func newCleanup(s *streams) *cobra.Command {
	var on, run string
	var secrets []string
	var dryRun bool
	o := cleanup.Options{Driver: driverCommand, Log: s.err}
	o.ReadSecrets = func(file string) (engine.Secrets, error) { return readSecrets(s, []string{file}) }
	c := &cobra.Command{
		Use:   "cleanup [BUNDLE]",
		Short: "Remove what killed runs have left",
		Long: `Removes what a dead run has left: processes, mounts, loop devices, volumes,
snapshots.

On this machine, CNSBench registers each run of a user until nothing of it is left,
and a clean-up removes only what is registered: of a BUNDLE it takes the ID of the
run, and nothing else. Without BUNDLE and --run it cleans up after all dead runs that
this user has started here. CSI drivers that need Secrets get them from the files
with which the run was started, or from --secrets.

On a cluster, the run's labels decide, from any host. With --engine kubernetes and
--run, it removes every object with that run's label in a namespace, and the volumes
and contents behind them, whoever set the label.

It lists and leaves alone what is not proved to be the run's; the exit status is 2
then.`,
		Example: `  cnsbench cleanup
  cnsbench cleanup cnsbench-quickstart-20260301-120000
  cnsbench cleanup --dry-run --run 1a2b3c4d
  cnsbench cleanup --engine kubernetes -n bench --run 1a2b3c4d`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			e, err := engineOf(on)
			if err == nil {
				o.Secrets, err = readSecrets(s, secrets)
			}
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if run != "" {
					return errors.New("give a BUNDLE or --run, not both")
				}
				return cleanBundle(ctx, s, o, args[0], dryRun)
			}
			if e.capabilities.Cluster {
				return cleanCluster(ctx, s, o.Cluster, run, dryRun)
			}
			return cleanMachine(ctx, s, o, run, dryRun)
		},
	}
	c.Flags().StringVar(&on, "engine", defaultEngine(), "local or kubernetes")
	c.Flags().StringVar(&run, "run", "", "ID of the run, in place of a BUNDLE")
	c.Flags().StringArrayVar(&secrets, "secrets", nil,
		"file with the Secrets that the run's CSI drivers need; may be repeated")
	c.Flags().BoolVar(&dryRun, "dry-run", false,
		"print what would be removed and what would be left alone; change nothing")
	c.Flags().BoolVar(&o.SameCluster, "same-cluster", false,
		"with a bundle: the kubeconfig's cluster is the run's, although its address differs")
	namespaceFlags(c, &o.Cluster, "kubernetes: namespace of the run")
	return c
}

// readSecrets reads the Secrets in files.
func readSecrets(s *streams, names []string) (engine.Secrets, error) {
	if len(names) == 0 {
		return nil, nil
	}
	files, err := readFiles(s, names)
	if err != nil {
		return nil, err
	}
	secrets, problems := plan.Secrets(files)
	if len(problems) > 0 {
		return nil, &problemsError{strings.Join(names, ", "), problems}
	}
	return secrets, nil
}

// cleanCluster removes what carries a run's label.
func cleanCluster(ctx context.Context, s *streams, o cluster.Options, run string, dryRun bool) error {
	switch {
	case run == "":
		return errors.New("--engine kubernetes needs --run, the value of label cnsbench.dev/run, or a BUNDLE")
	case dryRun:
		return errors.New("--dry-run with --engine kubernetes needs a BUNDLE")
	}
	if err := owned.CheckRunID(run); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	on, err := o.Connect()
	if err == nil {
		err = cleanup.Labelled(ctx, on, run, s.err)
	}
	if err != nil {
		return failed(err)
	}
	visible.Fprintf(s.out, "nothing is left of run %s in namespace %s\n", run, on.Namespace)
	return nil
}

// cleanBundle removes what the run of a bundle has left.
func cleanBundle(ctx context.Context, s *streams, o cleanup.Options, dir string, dryRun bool) error {
	run, err := cleanup.OfBundle(dir, o, dryRun)
	if elsewhere := (*cleanup.Elsewhere)(nil); errors.As(err, &elsewhere) {
		return failed(fmt.Errorf("%s: %s", dir, visible.Line(elsewhere.Error()))) // it has the machine's name in the bundle
	}
	if errors.Is(err, registry.ErrUnknown) {
		left := "nothing is left of this run"
		if madeContainers(dir) {
			left = mayBeLeft(shellWord(dir))
		}
		visible.Fprintf(s.out, "the run is not registered for this user on this machine; %s\n", left)
		return nil
	}
	if err != nil {
		return err
	}
	return cleanRun(ctx, s, run, dir, dryRun)
}

// mayBeLeft says what removes the containers of a run.
func mayBeLeft(run string) string {
	return "containers that it made may be left, which are not among them: cnsbench object cleanup " + run
}

// cleanRun removes what a run has left; dir is its bundle.
func cleanRun(ctx context.Context, s *streams, run *cleanup.Run, dir string, dryRun bool) error {
	if dryRun {
		return failed(run.List(ctx, s.out))
	}
	n, err := run.Remove(ctx)
	if err != nil {
		return failed(err)
	}
	left := "nothing is left of this run"
	switch {
	case run.MadeContainers() && bundle.CheckBundle(dir) != nil:
		left = mayBeLeft("--run " + run.ID())
	case run.MadeContainers() || run.ID() == "" && madeContainers(dir):
		left = mayBeLeft(shellWord(dir))
	}
	visible.Fprintf(s.out, "%s removed; %s\n", count(n, "object"), left)
	return nil
}

// cleanMachine cleans up after a run of this user on this machine; without its ID, after all that are dead.
func cleanMachine(ctx context.Context, s *streams, o cleanup.Options, id string, dryRun bool) error {
	if id != "" {
		run, err := cleanup.OfID(id, o, dryRun)
		if err != nil {
			return err
		}
		return cleanRun(ctx, s, run, run.Bundle(), dryRun)
	}
	ids, err := registry.List()
	if err != nil {
		return failed(err)
	}
	var all error
	dead := 0
	for _, id := range ids {
		run, err := cleanup.OfID(id, o, dryRun)
		if errors.Is(err, registry.ErrAlive) {
			visible.Fprintf(s.out, "run %s is left alone: it is alive\n", id)
			continue
		}
		if err == nil {
			dead++
			visible.Fprintf(s.out, "run %s (%s):\n", id, run.Bundle())
			err = cleanRun(ctx, s, run, run.Bundle(), dryRun)
		}
		if err != nil && !errors.Is(err, registry.ErrUnknown) { // ended meanwhile
			all = errors.Join(all, fmt.Errorf("run %s: %w", id, err))
		}
	}
	if all != nil {
		return failed(all)
	}
	if dead == 0 {
		visible.Fprintln(s.out, "no dead run is registered for this user on this machine: nothing to remove")
	}
	return nil
}
