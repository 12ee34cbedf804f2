package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/install"
)

type installFlags struct {
	proxies []string
	nodes   string
	cluster cluster.Options
	options config.Options
	timeout time.Duration
	dryRun  bool
	force   bool
	results bool
}

func (f *installFlags) add(c *cobra.Command) {
	clusterFlags(c, &f.cluster)
	c.Flags().StringVar(&f.options.Namespace, "namespace", config.DefaultNamespace, "namespace of operator and results service")
	c.Flags().DurationVar(&f.timeout, "timeout", 3*time.Minute, "how long to wait")
}

// start makes what both commands need. The context ends with the timeout.
func (f *installFlags) start(cmd *cobra.Command, s *streams) (context.Context, context.CancelFunc, *install.Installer, []*unstructured.Unstructured, error) {
	if err := f.csiProxy(); err != nil {
		return nil, nil, nil, nil, err
	}
	objects, err := config.Objects(f.options)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	rest, _, err := f.cluster.Load()
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

// csiProxy reads the flags about CSI proxies. Their token is made, and left as
// it is where there is one.
func (f *installFlags) csiProxy() error {
	if len(f.proxies) == 0 {
		return nil
	}
	p := &config.CSIProxy{Token: rand.Text()}
	for _, text := range f.proxies {
		d, err := config.ParseCSIDriver(text)
		if err != nil {
			return fmt.Errorf("--csi-proxy: %w", err)
		}
		p.Drivers = append(p.Drivers, d)
	}
	if f.nodes != "" {
		nodes, err := labels.ConvertSelectorToLabelsMap(f.nodes)
		if err != nil {
			return fmt.Errorf("--csi-proxy-nodes: %w", err)
		}
		p.NodeSelector = nodes
	}
	f.options.CSIProxy = p
	return nil
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
			if err := i.CheckClasses(ctx, objects); err != nil {
				return failed(fmt.Errorf("%w; --results-storage-class names the class of the volume with the bundles", err))
			}
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
	c.Flags().StringArrayVar(&f.proxies, "csi-proxy", nil, "DRIVER or DRIVER=SOCKET: put a CSI proxy on the socket of the driver on each node, so that runs see when volumes were staged and published; may be repeated")
	c.Flags().StringVar(&f.nodes, "csi-proxy-nodes", "", "LABEL=VALUE,…: on these nodes only")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "let the server check everything, and keep nothing")
	return c
}

func newUninstall(s *streams) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove what install has installed",
		Long: `Removes the operator, the results service, the CSI proxies, their roles and the
definitions. Drivers get their sockets back. The volume with the bundles, and its namespace, are kept unless --delete-results.
While there are Benchmarks it refuses; with --force it deletes them first, while
the operator can still clean up after them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.options.CSIProxy = &config.CSIProxy{} // whatever is in its namespace
			ctx, done, i, objects, err := f.start(cmd, s)
			if err != nil {
				return err
			}
			defer done()
			if err := f.benchmarks(ctx, i); err != nil {
				return failed(err)
			}
			keep := func(u *unstructured.Unstructured) bool {
				return !f.results && (u.GetKind() == "PersistentVolumeClaim" || u.GetKind() == "Namespace" && u.GetName() == f.options.Namespace)
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
