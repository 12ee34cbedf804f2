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
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/record"
)

func newCleanup(s *streams) *cobra.Command {
	var storage string
	c := &cobra.Command{
		Use:   "cleanup [BUNDLE]",
		Short: "Remove what a run that was killed has left",
		Long: `Removes what a dead run has left behind: processes, mounts, loop devices,
volumes, snapshots. With a bundle, what its ledger lists; without one,
everything of ours below the storage directory that no living run uses.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if len(args) == 1 {
				return cleanBundle(ctx, s, args[0])
			}
			return cleanStorage(s, storage)
		},
	}
	c.Flags().StringVar(&storage, "storage-dir", storageDir(), "where our drivers keep volumes")
	return c
}

// cleanBundle finishes what the ledger of a bundle still lists.
func cleanBundle(ctx context.Context, s *streams, dir string) error {
	ledger, err := record.OpenLedger(dir)
	if err != nil {
		return err
	}
	open := len(ledger.Open())
	command, err := driverCommand()
	if err != nil {
		return errors.Join(err, ledger.Close())
	}
	err = local.New(local.Options{DriverCommand: command}).Teardown(ctx, ledger)
	if err = errors.Join(err, ledger.Close()); err != nil {
		return failed(fmt.Errorf("not everything could be removed: %w", err))
	}
	fmt.Fprintf(s.out, "%d entries of the ledger removed; nothing is left of this run\n", open)
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
		if err != nil {
			continue // not a run of ours
		}
		for _, b := range backends {
			if !slices.Contains(csidriver.Backends(), b.Name()) {
				continue
			}
			base := filepath.Join(storage, run.Name(), b.Name())
			if err := csidriver.Destroy(csidriver.Options{Backend: b.Name(), BaseDir: base}); err != nil {
				errs = append(errs, err)
				continue
			}
			removed++
			_ = os.Remove(base)
		}
		_ = os.Remove(filepath.Join(storage, run.Name()))
	}
	if err := errors.Join(errs...); err != nil {
		return failed(err)
	}
	fmt.Fprintf(s.out, "%d driver directories below %s removed\n", removed, storage)
	return nil
}
