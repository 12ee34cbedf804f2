package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/internal/engine/csidriver"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/record"
)

func newCleanup(s *streams) *cobra.Command {
	var storage, platform, run string
	var dryRun bool
	var on clusterFlags
	c := &cobra.Command{
		Use:   "cleanup [BUNDLE]",
		Short: "Remove what a run that was killed has left",
		Long: `Removes what a dead run has left behind: processes, mounts, loop devices,
volumes, snapshots. With a bundle, what its ledger lists, here or on its
cluster; without one, everything of ours below the storage directory that no
living run uses. With --engine kubernetes and --run, what carries that run's
label in a namespace, and the volumes and contents behind it.

What does not carry the identity that the run gave to its things, or belongs to
another user, is listed and left alone; the exit status is 2 then.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			switch {
			case dryRun && len(args) == 0:
				return errors.New("--dry-run needs a BUNDLE")
			case len(args) == 1:
				return cleanBundle(ctx, s, &on, args[0], dryRun)
			case platform == engineKubernetes && run != "":
				return cleanCluster(ctx, s, &on, run)
			case platform == engineKubernetes:
				return errors.New("--run names the run to remove from the cluster; its label is cnsbench.dev/run")
			}
			return cleanStorage(s, storage)
		},
	}
	c.Flags().StringVar(&storage, "storage-dir", storageDir(), "where our drivers keep volumes")
	c.Flags().StringVar(&platform, "engine", defaultEngine(), "local or kubernetes")
	c.Flags().StringVar(&run, "run", "", "kubernetes: id of the run")
	c.Flags().BoolVar(&dryRun, "dry-run", false,
		"with a bundle: say what would be removed, and what left alone; remove nothing")
	on.connecting(c)
	return c
}

// cleanCluster removes what carries a run's label.
func cleanCluster(ctx context.Context, s *streams, f *clusterFlags, run string) error {
	on, err := f.connect()
	if err != nil {
		return failed(err)
	}
	if err := endRunner(ctx, s, on, run); err != nil {
		return failed(err)
	}
	if err := cleanRun(ctx, on, run); err != nil {
		return failed(fmt.Errorf("not everything could be removed: %w", err))
	}
	fmt.Fprintf(s.out, "nothing is left of run %s in namespace %s\n", run, on.namespace)
	return nil
}

func cleanRun(ctx context.Context, on *cluster, run string) error {
	return kubernetes.New(kubernetes.Options{Config: on.config, Namespace: on.namespace}).TeardownRun(ctx, run)
}

// teardown is the engine that made what a ledger lists.
func (f *clusterFlags) teardown(ctx context.Context, s *streams, ledger *record.Ledger, own owned.Identity) error {
	namespace, run := "", ""
	for _, entry := range ledger.Open() {
		if entry.Data["run"] != "" {
			namespace, run = entry.Data["namespace"], entry.Data["run"]
		}
	}
	if namespace == "" {
		command, err := driverCommand()
		if err != nil {
			return err
		}
		return local.New(local.Options{DriverCommand: command, Identity: own}).Teardown(ctx, ledger)
	}
	if f.namespace == "" {
		f.namespace = namespace
	}
	on, err := f.connect()
	if err != nil {
		return err
	}
	if err := endRunner(ctx, s, on, run); err != nil {
		return err
	}
	return kubernetes.New(kubernetes.Options{Config: on.config, Namespace: on.namespace}).Teardown(ctx, ledger)
}

// cleanBundle finishes what the ledger of a bundle still lists.
func cleanBundle(ctx context.Context, s *streams, f *clusterFlags, dir string, dryRun bool) error {
	if err := record.CheckBundle(dir); err != nil {
		return err
	}
	ledger, err := record.OpenLedger(dir)
	if err != nil {
		return err
	}
	if err := record.VerifyLedger(dir); err != nil {
		return failed(errors.Join(err, ledger.Close()))
	}
	own := identityOf(dir)
	if dryRun {
		return errors.Join(listOwed(s, ledger, own), ledger.Close())
	}
	open := len(ledger.Open())
	err = f.teardown(ctx, s, ledger, own)
	if err = errors.Join(err, ledger.Close()); err != nil {
		return failed(fmt.Errorf("not everything could be removed: %w", err))
	}
	left := "nothing is left of this run"
	if elsewhere := madeContainers(dir); elsewhere != "" {
		left = elsewhere
	}
	fmt.Fprintf(s.out, "%d entries of the ledger removed; %s\n", open, left)
	return nil
}

// identityOf is what the run of a bundle marked its things with; none: nothing can
// be proved to be its own.
func identityOf(dir string) owned.Identity {
	b, err := record.Open(dir)
	if err != nil || b.Run.Identity.RunID != b.Run.ID {
		return owned.Identity{}
	}
	return b.Run.Identity
}

// listOwed says what a clean-up on this machine would remove, and what it would
// leave alone.
func listOwed(s *streams, ledger *record.Ledger, own owned.Identity) error {
	e := local.New(local.Options{Identity: own})
	left := 0
	for _, entry := range ledger.Open() {
		if entry.Data["run"] != "" {
			fmt.Fprintf(s.out, "%s %s: on its cluster\n", entry.Kind, entry.Name)
			continue
		}
		if err := e.Check(entry); err != nil {
			left++
			fmt.Fprintf(s.out, "%s %s: %v\n", entry.Kind, entry.Name, err)
			continue
		}
		fmt.Fprintf(s.out, "%s %s: would be removed\n", entry.Kind, entry.Name)
	}
	if left > 0 {
		return failed(fmt.Errorf("%s would be left alone", count(left, "entry")))
	}
	return nil
}

// cleanStorage clears the directories of dead runs. A living driver holds a
// lock on its own, which Destroy respects.
func cleanStorage(s *streams, storage string) error {
	runs, err := os.ReadDir(storage)
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(s.out, "%s does not exist: nothing to remove\n", storage)
		return nil
	}
	if err != nil {
		return failed(err)
	}
	var errs []error
	removed := 0
	for _, run := range runs {
		backends, err := os.ReadDir(filepath.Join(storage, run.Name()))
		if err != nil || !slices.ContainsFunc(backends, isBackend) {
			continue // not a run of ours
		}
		if err := owned.Marked(filepath.Join(storage, run.Name()), run.Name()); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, b := range backends {
			if !isBackend(b) {
				continue
			}
			base := filepath.Join(storage, run.Name(), b.Name())
			err := csidriver.Destroy(csidriver.Options{Backend: b.Name(), BaseDir: base})
			if errors.Is(err, csidriver.ErrInUse) {
				fmt.Fprintf(s.out, "%s is left alone: a driver is serving from it\n", base)
				continue
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			removed++
			_ = os.Remove(base)
		}
		_ = owned.RemoveMarked(filepath.Join(storage, run.Name()))
	}
	if err := errors.Join(errs...); err != nil {
		return failed(err)
	}
	fmt.Fprintf(s.out, "%d driver directories below %s removed\n", removed, storage)
	return nil
}

func isBackend(e os.DirEntry) bool {
	return e.IsDir() && slices.Contains(csidriver.Backends(), e.Name())
}
