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

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/runner/podrunner"
)

func newCleanup(s *streams) *cobra.Command {
	var storage, platform, run string
	var dryRun bool
	var on cleanupFlags
	c := &cobra.Command{
		Use:   "cleanup [BUNDLE]",
		Short: "Remove what a run that was killed has left",
		Long: `Removes what a dead run has left behind: processes, mounts, loop devices,
volumes, snapshots. With a bundle, what its ledger lists, here or on its
cluster, whose runner is ended first; without one, everything of ours below the
storage directory that no living run uses. With --engine kubernetes and --run,
what carries that run's label in a namespace, and the volumes and contents
behind it, whoever labelled it.

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
				return cleanCluster(ctx, s, &on.Options, run)
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
	c.Flags().BoolVar(&on.sameCluster, "same-cluster", false,
		"with a bundle: the kubeconfig's cluster is the run's, though its address is another")
	namespaceFlags(c, &on.Options, "kubernetes: namespace of the run")
	return c
}

// cleanupFlags say on which cluster a bundle's run was.
type cleanupFlags struct {
	cluster.Options
	sameCluster bool
}

// cleanCluster removes what carries a run's label.
func cleanCluster(ctx context.Context, s *streams, f *cluster.Options, run string) error {
	if err := owned.CheckRunID(run); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	on, err := f.Connect()
	if err != nil {
		return failed(err)
	}
	if err := (podrunner.Owner{Run: run}).Stop(ctx, on, s.err); err != nil {
		return failed(err)
	}
	if err := podrunner.Teardown(ctx, on, run, owned.Identity{}); err != nil {
		return failed(fmt.Errorf("not everything could be removed: %w", err))
	}
	fmt.Fprintf(s.out, "nothing is left of run %s in namespace %s\n", run, on.Namespace)
	return nil
}

// cleaner removes what a dead run has left on its platform.
type cleaner interface {
	// check says why an entry of the ledger would be left alone.
	check(ctx context.Context, entry op.LedgerEntry) error
	// further lists what would be removed beside what the ledger lists; the error
	// lists what would be left alone.
	further(ctx context.Context) ([]string, error)
	teardown(ctx context.Context, ledger *bundle.Ledger) error
}

// cleaner is that of the engine that run.json names. Without run.json nothing can
// be proved, whichever engine it was.
func (f *cleanupFlags) cleaner(s *streams, dir string) (cleaner, error) {
	run, err := bundle.ReadRun(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &localCleaner{}, nil
	case err != nil:
		return nil, err
	}
	own := run.Identity
	if own.RunID != run.ID {
		own = owned.Identity{}
	}
	if run.Engine == engineKubernetes {
		return f.onCluster(s, run.ID, own)
	}
	return &localCleaner{own}, nil
}

// localCleaner cleans up on this machine.
type localCleaner struct{ own owned.Identity }

func (h *localCleaner) check(_ context.Context, entry op.LedgerEntry) error {
	return local.New(local.Options{Identity: h.own}).Check(entry)
}

func (h *localCleaner) further(context.Context) ([]string, error) { return nil, nil }

func (h *localCleaner) teardown(ctx context.Context, ledger *bundle.Ledger) error {
	command, err := driverCommand()
	if err != nil {
		return err
	}
	return local.New(local.Options{DriverCommand: command, Identity: h.own}).Teardown(ctx, ledger)
}

// clusterCleaner cleans up on a cluster.
type clusterCleaner struct {
	*streams
	on     *cluster.Cluster
	own    owned.Identity
	engine *kubernetes.Engine
}

// onCluster connects to the cluster that an identity names.
func (f *cleanupFlags) onCluster(s *streams, run string, own owned.Identity) (cleaner, error) {
	if err := own.OnCluster(); err != nil {
		return unprovable{fmt.Errorf("%w%s", err, byHand(run))}, nil
	}
	if f.Namespace != "" && f.Namespace != own.Namespace {
		return nil, fmt.Errorf("--namespace %s: run %s was in namespace %s", f.Namespace, own.RunID, own.Namespace)
	}
	f.Namespace = own.Namespace
	on, err := f.Connect()
	if err != nil {
		return nil, failed(err)
	}
	o := kubernetes.Options{Config: on.Config, Namespace: on.Namespace, Identity: own}
	switch {
	case f.sameCluster:
		o.Server = own.Server
	case own.Server != on.Config.Host:
		return nil, failed(fmt.Errorf("run %s was on the cluster at %s, and the kubeconfig's is at %s: choose that "+
			"cluster by --kubeconfig or --context, or say --same-cluster if it is the same by another address",
			own.RunID, own.Server, on.Config.Host))
	}
	return &clusterCleaner{s, on, own, kubernetes.New(o)}, nil
}

// byHand says how to find the objects of a run that cannot be proved to be its own.
func byHand(run string) string {
	if owned.CheckRunID(run) != nil {
		return ""
	}
	return fmt.Sprintf("; kubectl get pods,services,configmaps,secrets,leases,persistentvolumeclaims "+
		"--all-namespaces -l %s=%s lists what carries the run's label, and cnsbench cleanup --engine kubernetes "+
		"--namespace NAMESPACE --run %s removes it", kubernetes.LabelRun, run, run)
}

// unprovable leaves all alone that a run has left, and says why.
type unprovable struct{ why error }

func (u unprovable) check(context.Context, op.LedgerEntry) error {
	return owned.Refuse("it cannot be proved to be the run's")
}

func (u unprovable) further(context.Context) ([]string, error) { return nil, u.why }

func (u unprovable) teardown(_ context.Context, ledger *bundle.Ledger) error {
	errs := []error{u.why}
	for _, entry := range ledger.Open() {
		errs = append(errs, fmt.Errorf("%s %s is left alone", entry.Kind, entry.Name))
	}
	return errors.Join(errs...)
}

func (t *clusterCleaner) check(ctx context.Context, entry op.LedgerEntry) error {
	return t.engine.Check(ctx, entry)
}

func (t *clusterCleaner) further(ctx context.Context) ([]string, error) {
	pods, refused, err := t.runner().Pods(ctx, t.on)
	if err != nil {
		return nil, err
	}
	list, left := t.engine.Owed(ctx)
	for _, name := range pods {
		list = append(list, "runner pod "+name)
	}
	return list, errors.Join(left, refused)
}

func (t *clusterCleaner) runner() podrunner.Owner {
	return podrunner.Owner{Run: t.own.RunID, Proof: t.own.Proof()}
}

func (t *clusterCleaner) teardown(ctx context.Context, ledger *bundle.Ledger) error {
	if err := t.runner().Stop(ctx, t.on, t.err); err != nil {
		return err
	}
	return t.engine.Teardown(ctx, ledger)
}

// cleanBundle removes what the run of a bundle has left.
func cleanBundle(ctx context.Context, s *streams, f *cleanupFlags, dir string, dryRun bool) error {
	if err := bundle.CheckBundle(dir); err != nil {
		return err
	}
	ledger, err := bundle.OpenLedger(dir)
	if err != nil {
		return err
	}
	if err := bundle.VerifyLedger(dir); err != nil {
		return failed(errors.Join(err, ledger.Close()))
	}
	c, err := f.cleaner(s, dir)
	if err != nil {
		return errors.Join(err, ledger.Close())
	}
	if dryRun {
		return errors.Join(listOwed(ctx, s, ledger, c), ledger.Close())
	}
	open := len(ledger.Open())
	err = c.teardown(ctx, ledger)
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

// listOwed says what a clean-up would remove, and what it would leave alone.
func listOwed(ctx context.Context, s *streams, ledger *bundle.Ledger, c cleaner) error {
	left := 0
	listed := map[string]bool{}
	for _, entry := range ledger.Open() {
		listed[entry.Kind+" "+entry.Name] = true
		if err := c.check(ctx, entry); err != nil {
			left++
			fmt.Fprintf(s.out, "%s %s: %v\n", entry.Kind, entry.Name, err)
			continue
		}
		fmt.Fprintf(s.out, "%s %s: would be removed\n", entry.Kind, entry.Name)
	}
	further, err := c.further(ctx)
	for _, what := range further {
		if !listed[what] {
			fmt.Fprintf(s.out, "%s: would be removed\n", what)
		}
	}
	if err != nil {
		return failed(err)
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
