package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

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
	output  string
	force   bool
	results bool
}

func (f *installFlags) add(c *cobra.Command) {
	clusterFlags(c, &f.cluster)
	c.Flags().StringVar(&f.options.Namespace, "namespace", config.DefaultNamespace,
		"namespace of the operator and the results service")
	c.Flags().DurationVar(&f.timeout, "timeout", 3*time.Minute, "how long the command may take")
}

// objects are those that the flags describe, in the order in which they are applied.
func (f *installFlags) objects() ([]*unstructured.Unstructured, error) {
	if err := f.csiProxy(); err != nil {
		return nil, err
	}
	return config.Objects(f.options)
}

// print writes the objects as YAML documents, for kubectl or a deployment tool.
func (f *installFlags) print(w io.Writer) error {
	objects, err := f.objects()
	if err != nil {
		return err
	}
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// start makes what both commands need. The context ends with the timeout.
func (f *installFlags) start(cmd *cobra.Command, s *streams) (
	context.Context, context.CancelFunc, *install.Installer, []*unstructured.Unstructured, error) {
	objects, err := f.objects()
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
	ctx, stop := untilInterrupt(cmd.Context())
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	done := func() { cancel(); stop() }
	if err := cluster.Answers(ctx, rest); err != nil {
		done()
		return nil, nil, nil, nil, failed(err)
	}
	return ctx, done, i, objects, nil
}

// csiProxy reads the flags about CSI proxies. It draws a token, which an existing one overrides.
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
		Short: "Install the operator and the results service",
		Long: `Applies the custom resource definitions, the operator, the results service and their
roles to a cluster, and waits until they are ready. Repeat it to update an
installation. "cnsbench run --engine kubernetes" needs no installation.`,
		Example: `  cnsbench install --dry-run
  cnsbench install --output yaml | kubectl apply --server-side -f -
  cnsbench install --results-storage-class standard --csi-proxy hostpath.csi.k8s.io
  cnsbench install --namespaced --benchmark-namespace measure`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.install(cmd, s) },
	}
	f.addInstall(c)
	return c
}

func (f *installFlags) addInstall(c *cobra.Command) {
	f.add(c)
	c.Flags().StringVar(&f.options.Image, "image", defaultImage(), "image of operator, results service and runners")
	c.Flags().StringVar(&f.options.ResultsStorageClass, "results-storage-class", "",
		"StorageClass of the volume for bundles: not the one under test (default the cluster's)")
	c.Flags().StringVar(&f.options.ResultsSize, "results-size", "", "size of that volume (default 10Gi)")
	c.Flags().StringArrayVar(&f.options.ResultsArgs, "results-arg", nil, "--FLAG=VALUE for the results service, for "+
		"example --retain-for=720h (cnsbench serve --help); may be repeated")
	c.Flags().StringArrayVar(&f.proxies, "csi-proxy", nil, "DRIVER or DRIVER=SOCKET: put a CSI proxy on the driver's "+
		"socket on each node, so that runs record when volumes are staged and published; may be repeated")
	c.Flags().StringVar(&f.nodes, "csi-proxy-nodes", "", "LABEL=VALUE,…: nodes for CSI proxies (default all)")
	c.Flags().StringArrayVar(&f.options.BenchmarkNamespaces, "benchmark-namespace", nil,
		"existing namespace for Benchmarks, which gets NetworkPolicies for runners and agents; may be repeated")
	c.Flags().BoolVar(&f.options.Namespaced, "namespaced", false, "let the operator watch, and have rights in, the "+
		"namespaces of --benchmark-namespace only")
	c.Flags().BoolVar(&f.options.NoNetworkPolicies, "no-network-policies", false,
		"install no NetworkPolicies: tokens and TLS alone protect the ports")
	c.Flags().IntSliceVar(&f.options.APIServerPorts, "api-server-port", nil,
		"TCP ports on which pods reach the API server, for the NetworkPolicies (default 443,6443)")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "let the API server check the objects; change nothing")
	c.Flags().StringVar(&f.output, "output", "", "yaml: print the objects; needs no cluster, and changes nothing")
	setValues(c.Flags().Lookup("output"), "yaml")
	c.Flags().StringVarP(&f.output, "output-format", "o", "", "the former short form of --output")
	c.Flags().Lookup("output-format").Hidden = true
}

func (f *installFlags) install(cmd *cobra.Command, s *streams) error {
	switch f.output {
	case "":
	case "yaml":
		return f.print(s.out)
	default:
		return fmt.Errorf("invalid --output %q: want yaml", f.output)
	}
	ctx, done, i, objects, err := f.start(cmd, s)
	if err != nil {
		return err
	}
	defer done()
	if err := i.CheckClasses(ctx, objects); err != nil {
		return failed(fmt.Errorf("%w; select the class of the volume for bundles with --results-storage-class",
			err))
	}
	if err := f.orphans(ctx, i); err != nil {
		return failed(err)
	}
	if err := i.Apply(ctx, objects, f.dryRun); err != nil {
		return failed(err)
	}
	if err := i.Prune(ctx, objects, f.dryRun); err != nil {
		return failed(err)
	}
	if f.dryRun {
		return nil
	}
	if err := i.Wait(ctx, objects); err != nil {
		return failed(fmt.Errorf("installed, but not ready after %v: %w", f.timeout, err))
	}
	if snapshots, err := i.HasSnapshots(); err == nil && !snapshots {
		fmt.Fprintln(s.out, "note: this cluster has no VolumeSnapshots (definitions and controller of "+
			"external-snapshotter): only Benchmarks without snapshots run")
	}
	fmt.Fprintf(s.out, "installed in namespace %s; grant a Benchmark's ServiceAccount its rights: "+
		"docs/how-to/kubernetes.md\n",
		f.options.Namespace)
	return nil
}

func newUninstall(s *streams) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the operator and the results service",
		Long: `Removes the operator, the results service, the CSI proxies, their roles and the
definitions, and restores the sockets of drivers. It keeps the volume with the
bundles and its namespace, unless --delete-results is set. It refuses while
Benchmarks exist; --force deletes them first, while the operator can still clean up
after them.`,
		Example: "  cnsbench uninstall --force --delete-results",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.options.CSIProxy = &config.CSIProxy{} // all objects in its namespace
			ctx, done, i, objects, err := f.start(cmd, s)
			if err != nil {
				return err
			}
			defer done()
			if err := f.benchmarks(ctx, i); err != nil {
				return failed(err)
			}
			keep := func(u *unstructured.Unstructured) bool {
				return !f.results && (u.GetKind() == "PersistentVolumeClaim" ||
					u.GetKind() == "Namespace" && u.GetName() == f.options.Namespace)
			}
			if err := i.Remove(ctx, objects, keep); err != nil {
				return failed(err)
			}
			if err := i.Prune(ctx, nil, false); err != nil {
				return failed(err)
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.force, "force", false, "delete all Benchmarks first")
	c.Flags().BoolVar(&f.results, "delete-results", false, "delete the bundles and the namespace, too")
	return c
}

// orphans refuses to limit the operator to namespaces while it has Benchmarks in others: their finalizer, which it would
// no longer remove, would keep them and their namespaces from being deleted.
func (f *installFlags) orphans(ctx context.Context, i *install.Installer) error {
	if !f.options.Namespaced {
		return nil
	}
	all, err := i.Benchmarks(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, b := range all {
		if len(b.GetFinalizers()) > 0 && !slices.Contains(f.options.BenchmarkNamespaces, b.GetNamespace()) {
			names = append(names, b.GetNamespace()+"/"+b.GetName())
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("the operator would no longer see these Benchmarks, nor let them be deleted: %s; delete them "+
		"first, or add their namespaces with --benchmark-namespace", strings.Join(names, ", "))
}

// benchmarks refuses while Benchmarks exist, or deletes them with --force.
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
		return fmt.Errorf("these Benchmarks exist: %s; delete them, or use --force",
			strings.Join(names, ", "))
	}
	return i.Remove(ctx, all, func(*unstructured.Unstructured) bool { return false })
}
