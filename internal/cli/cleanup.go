package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/cleanup"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/storagedir"
)

func newCleanup(s *streams) *cobra.Command {
	var storage, on, run string
	var secrets []string
	var dryRun bool
	o := cleanup.Options{Driver: driverCommand, Log: s.err}
	o.ReadSecrets = func(file string) (engine.Secrets, error) { return readSecrets(s, []string{file}) }
	c := &cobra.Command{
		Use:   "cleanup [BUNDLE]",
		Short: "Remove what a killed run has left",
		Long: `Removes what a dead run has left: processes, mounts, loop devices, volumes,
snapshots. With a bundle, it removes what the bundle's ledger lists, on this machine
or on the run's cluster, and ends the runner first. Without one, it removes the
directories of built-in drivers below the storage directory that no run uses. With
--engine kubernetes and --run, it removes every object with that run's label in a
namespace, and the volumes and contents behind them, whoever set the label.

CSI drivers that need Secrets get them from the files with which the run was
started here, or from --secrets: a bundle has none.

It lists and leaves alone what lacks the identity of the run, or belongs to another
user; the exit status is 2 then.`,
		Example: `  cnsbench cleanup cnsbench-quickstart-20260301-120000
  cnsbench cleanup --dry-run cnsbench-quickstart-20260301-120000
  cnsbench cleanup --engine kubernetes -n bench --run 1a2b3c4d`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			e, err := engineOf(on)
			if err == nil {
				o.Secrets, err = readSecrets(s, secrets)
			}
			onCluster := e.capabilities.Cluster
			switch {
			case err != nil:
				return err
			case dryRun && len(args) == 0:
				return errors.New("--dry-run needs a BUNDLE")
			case len(args) == 1:
				return cleanBundle(ctx, s, o, args[0], dryRun)
			case onCluster && run != "":
				return cleanCluster(ctx, s, o.Cluster, run)
			case onCluster:
				return errors.New("--engine kubernetes needs --run, the value of label cnsbench.dev/run")
			}
			return cleanStorage(s, storage)
		},
	}
	c.Flags().StringVar(&storage, "storage-dir", storagedir.Default(), "directory for volumes of the built-in drivers")
	c.Flags().StringVar(&on, "engine", defaultEngine(), "local or kubernetes")
	c.Flags().StringVar(&run, "run", "", "kubernetes: ID of the run")
	c.Flags().StringArrayVar(&secrets, "secrets", nil,
		"with a bundle: file with the Secrets that the run's CSI drivers need; may be repeated")
	c.Flags().BoolVar(&dryRun, "dry-run", false,
		"with a bundle: print what would be removed and what would be left alone; remove nothing")
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
func cleanCluster(ctx context.Context, s *streams, o cluster.Options, run string) error {
	if err := owned.CheckRunID(run); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	on, err := o.Connect()
	if err == nil {
		err = cleanup.Run(ctx, on, run, s.err)
	}
	if err != nil {
		return failed(err)
	}
	fmt.Fprintf(s.out, "nothing is left of run %s in namespace %s\n", run, on.Namespace)
	return nil
}

// cleanBundle removes what the run of a bundle has left.
func cleanBundle(ctx context.Context, s *streams, o cleanup.Options, dir string, dryRun bool) error {
	b, err := cleanup.Open(dir, o)
	if err != nil {
		return err
	}
	if dryRun {
		return failed(b.List(ctx, s.out))
	}
	n, err := b.Remove(ctx)
	if err != nil {
		return failed(err)
	}
	left := "nothing is left of this run"
	if elsewhere := madeContainers(dir); elsewhere != "" {
		left = elsewhere
	}
	fmt.Fprintf(s.out, "%d entries of the ledger removed; %s\n", n, left)
	return nil
}

// cleanStorage removes the directories of drivers that no run uses.
func cleanStorage(s *streams, dir string) error {
	removed, inUse, err := cleanup.Storage(dir)
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(s.out, "%s does not exist: nothing to remove\n", dir)
		return nil
	}
	for _, base := range inUse {
		fmt.Fprintf(s.out, "%s is left alone: a driver uses it\n", base)
	}
	if err != nil {
		return failed(err)
	}
	fmt.Fprintf(s.out, "%d driver directories below %s removed\n", removed, dir)
	return nil
}
