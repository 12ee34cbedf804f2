package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/install"
)

type installFlags struct {
	cluster clusterFlags
	options config.Options
	timeout time.Duration
	dryRun  bool
	force   bool
	results bool
}

func (f *installFlags) add(c *cobra.Command) {
	which(c, &f.cluster)
	c.Flags().StringVar(&f.options.Namespace, "namespace", config.DefaultNamespace, "namespace of operator and results service")
	c.Flags().DurationVar(&f.timeout, "timeout", 3*time.Minute, "how long to wait")
}

// start makes what both commands need. The context ends with the timeout.
func (f *installFlags) start(cmd *cobra.Command, s *streams) (context.Context, context.CancelFunc, *install.Installer, []*unstructured.Unstructured, error) {
	objects, err := config.Objects(f.options)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	rest, _, err := f.cluster.config()
	if err != nil {
		return nil, nil, nil, nil, err
	}
	i, err := install.New(rest, func(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) })
	if err != nil {
		return nil, nil, nil, nil, err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	return ctx, func() { cancel(); stop() }, i, objects, nil
}

func newInstall(s *streams) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "install",
		Short: "Install the operator and the results service in a cluster",
		Long: `Applies the definitions, the operator, the results service and their roles, and
waits until they work. It can be repeated: what is there is brought up to date.
"cnsbench run --engine kubernetes" needs none of this.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, done, i, objects, err := f.start(cmd, s)
			if err != nil {
				return err
			}
			defer done()
			if err := i.Apply(ctx, objects, f.dryRun); err != nil {
				return failed(err)
			}
			if f.dryRun {
				return nil
			}
			if err := i.Wait(ctx, objects); err != nil {
				return failed(fmt.Errorf("installed, but not working after %v: %w", f.timeout, err))
			}
			if snapshots, err := i.HasSnapshots(); err == nil && !snapshots {
				fmt.Fprintln(s.out, "note: this cluster has no VolumeSnapshots (CustomResourceDefinitions and controller of external-snapshotter): Benchmarks without snapshots will run")
			}
			fmt.Fprintf(s.out, "installed in namespace %s; a Benchmark's ServiceAccount needs rights of its own, see docs/kubernetes.md\n", f.options.Namespace)
			return nil
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.options.Image, "image", defaultImage(), "image of operator, results service and runners")
	c.Flags().StringVar(&f.options.ResultsStorageClass, "results-storage-class", "", "class of the volume with the bundles: not the one under test (default the cluster's)")
	c.Flags().StringVar(&f.options.ResultsSize, "results-size", "", "size of that volume (default 10Gi)")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "let the server check everything, and keep nothing")
	return c
}

func newUninstall(s *streams) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove what install has installed",
		Long: `Removes the operator, the results service, their roles and the definitions. The
volume with the bundles, and its namespace, are kept unless --delete-results.
While there are Benchmarks it refuses; with --force it deletes them first, while
the operator can still clean up after them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, done, i, objects, err := f.start(cmd, s)
			if err != nil {
				return err
			}
			defer done()
			if err := f.benchmarks(ctx, i); err != nil {
				return failed(err)
			}
			keep := func(u *unstructured.Unstructured) bool {
				return !f.results && (u.GetKind() == "PersistentVolumeClaim" || u.GetKind() == "Namespace")
			}
			if err := i.Remove(ctx, objects, keep); err != nil {
				return failed(err)
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.force, "force", false, "delete all Benchmarks first")
	c.Flags().BoolVar(&f.results, "delete-results", false, "delete the bundles too, and the namespace")
	return c
}

// benchmarks refuses while there are Benchmarks, or deletes them.
func (f *installFlags) benchmarks(ctx context.Context, i *install.Installer) error {
	all, err := i.Benchmarks(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	if !f.force {
		var names []string
		for _, b := range all {
			names = append(names, b.GetNamespace()+"/"+b.GetName())
		}
		return fmt.Errorf("there are Benchmarks, which would be deleted: %s; delete them, or use --force", strings.Join(names, ", "))
	}
	return i.Remove(ctx, all, func(*unstructured.Unstructured) bool { return false })
}
