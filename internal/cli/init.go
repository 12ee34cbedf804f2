package cli

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/visible"
	"github.com/cnsbench/cnsbench/internal/workload"
)

//go:embed benchmark.tmpl
var benchmarkTemplate string

// initFlags are the flags of init. What is not given is asked for on a terminal.
type initFlags struct {
	run          runFlags
	file         string
	storageClass string
	account      string
	workload     string
	count        int
	runtime      time.Duration
	every        time.Duration
	yes          bool
}

func newInit(s *streams) *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use: "init [FILE]", Short: "Write a Benchmark for this machine or cluster",
		Long: `Writes a Benchmark with comments to FILE (default benchmark.yaml; - for the standard
output): a workload on volumes of a StorageClass of this machine or, with --engine
kubernetes, of the cluster, and snapshots of the volumes if the class can have them.

On a terminal it asks for what no flag gives. The Benchmark is validated before it is
written. It overwrites nothing.`,
		Example: `  cnsbench init
  cnsbench init --yes --storage-class hostdir --runtime 10s first.yaml
  cnsbench init --yes --engine kubernetes --storage-class standard --service-account bench - |
    kubectl apply -f -`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.file = "benchmark.yaml"
			if len(args) > 0 {
				f.file = args[0]
			}
			return f.execute(cmd, s)
		},
	}
	f.run.addPlanFlags(c)
	fl := c.Flags()
	fl.Lookup("set").Hidden, fl.Lookup("csi-endpoint").Hidden = true, true
	fl.StringVar(&f.storageClass, "storage-class", "",
		"StorageClass under test (default the cluster's, or a built-in one)")
	fl.StringVar(&f.account, "service-account", "",
		"ServiceAccount of the runner on a cluster, with the rights of a runner (docs/how-to/kubernetes.md)")
	fl.StringVar(&f.workload, "workload", "fio", "workload of the library, with a variable storageClass")
	fl.IntVar(&f.count, "count", 3, "instances of the workload")
	fl.DurationVar(&f.runtime, "runtime", 30*time.Second, "length of the measurement")
	fl.DurationVar(&f.every, "snapshot-every", 5*time.Second, "interval of snapshots; 0: none")
	fl.BoolVarP(&f.yes, "yes", "y", false, "ask nothing")
	return c
}

func (f *initFlags) execute(cmd *cobra.Command, s *streams) error {
	ctx := cmd.Context()
	if _, err := os.Lstat(f.file); err == nil && f.file != "-" {
		return fmt.Errorf("%s exists and is not overwritten: name another file", f.file)
	}
	classes, err := f.classes(ctx, s)
	if err != nil {
		return err
	}
	library, err := plan.BuiltIn()
	if err != nil {
		return err
	}
	if !f.yes && s.atTerminal() {
		f.ask(cmd, s, classes, library)
	}
	class := cmp.Or(f.storageClass, classes.usual)
	snapshots, known := classes.snapshots[class]
	known = known || classes.unknown
	entry, ok := library.Get(f.workload)
	switch {
	case class == "" && classes.unknown:
		return errors.New("the StorageClasses of the cluster may not be read: name one with --storage-class")
	case class == "":
		return errors.New("the cluster has no default StorageClass: name one with --storage-class (" +
			strings.Join(classes.names(), ", ") + ")")
	case !known:
		return oneOf("--storage-class", class, classes.names())
	case !ok || !slices.Contains(entry.Variables(), "storageClass"):
		return oneOf("--workload", f.workload, withStorage(library))
	}
	if err := f.checkValues(); err != nil {
		return err
	}
	text, err := f.benchmark(entry, class, snapshots)
	if err != nil {
		return err
	}
	name := f.file
	if name == "-" {
		name = "<stdout>"
	}
	f.run.offline = true
	if _, _, err := loadFiles(ctx, s, &f.run, []string{f.file}, []plan.File{{Name: name, Data: text}}); err != nil {
		return fmt.Errorf("nothing is written: %w", err)
	}
	if f.file == "-" {
		_, err := s.out.Write(text)
		return err
	}
	if err := writeNew(f.file, text); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s\n\nnext: cnsbench run %s%s\n", f.file, f.run.engineFlag(), f.file)
	return nil
}

// checkValues checks the flags that no class and no workload restricts.
func (f *initFlags) checkValues() error {
	switch {
	case f.account != "" && !engines()[f.run.Engine].capabilities.Cluster:
		return fmt.Errorf("--service-account: engine %s has no ServiceAccounts", f.run.Engine)
	case f.account != "" && len(validation.IsDNS1123Subdomain(f.account)) > 0:
		return fmt.Errorf("invalid --service-account %q: %s", f.account, validation.IsDNS1123Subdomain(f.account)[0])
	case f.count < 1:
		return fmt.Errorf("invalid --count %d: want at least 1", f.count)
	case f.runtime < time.Second:
		return fmt.Errorf("invalid --runtime %v: want at least 1s", f.runtime)
	case f.every < 0:
		return fmt.Errorf("invalid --snapshot-every %v: want 0, or more", f.every)
	}
	return nil
}

// engineFlag are the flags that select the engine and the cluster, if they are not the default ones.
func (f *runFlags) engineFlag() string {
	if f.Engine == defaultEngine() {
		return ""
	}
	flags := "--engine " + f.Engine + " "
	for _, o := range []struct{ flag, value string }{
		{"--kubeconfig", f.Kubeconfig}, {"--context", f.Context}, {"-n", f.Namespace},
	} {
		if o.value != "" {
			flags += o.flag + " " + shellWord(o.value) + " "
		}
	}
	return flags
}

// initClasses are the StorageClasses that a new Benchmark can name.
type initClasses struct {
	snapshots map[string]string // class of snapshots, by StorageClass; empty: there is none
	usual     string            // default; empty: none
	unknown   bool              // they may not be read: any name may be right
}

func (c *initClasses) names() []string { return slices.Sorted(maps.Keys(c.snapshots)) }

// classes are those of the cluster, or of the built-in drivers that this machine can run.
func (f *initFlags) classes(ctx context.Context, s *streams) (*initClasses, error) {
	if !engines()[f.run.Engine].capabilities.Cluster {
		if _, err := engineOf(f.run.Engine); err != nil {
			return nil, err
		}
		return builtInClasses(), nil
	}
	found := &initClasses{snapshots: map[string]string{}}
	var in plan.Input
	if _, err := f.run.planOn(ctx, s, &in); err != nil {
		return nil, err
	}
	if found.unknown = in.Classes.Storage == nil; found.unknown && f.storageClass != "" {
		visible.Fprintf(s.err, "warning: StorageClass %s is not checked, and no snapshots are taken, because the classes of the "+
			"cluster may not be read\n", f.storageClass)
	}
	for name, class := range in.Classes.Storage {
		found.snapshots[name] = ""
		for snapshot, of := range in.Classes.Snapshot {
			if of.Driver == class.Provisioner && (found.snapshots[name] == "" || snapshot < found.snapshots[name]) {
				found.snapshots[name] = snapshot
			}
		}
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			found.usual = name
		}
	}
	if len(found.snapshots) < 2 { // the only one
		found.usual = cmp.Or(found.usual, strings.Join(found.names(), ""))
	}
	return found, nil
}

// builtInClasses are those of the built-in drivers that this machine can run.
func builtInClasses() *initClasses {
	found := &initClasses{snapshots: map[string]string{}, usual: "hostdir"}
	for _, class := range plan.BuiltInClasses() {
		if driverFinding(strings.TrimSuffix(class, "-xfs")).OK {
			found.snapshots[class] = class
		}
	}
	if _, ok := found.snapshots["loopfile"]; ok {
		found.usual = "loopfile"
	}
	return found
}

// withStorage are the names of the workloads whose storage can be chosen and which need nothing else.
func withStorage(library *workload.Library) (names []string) {
	for _, name := range library.Names() {
		e, _ := library.Get(name)
		needs := slices.DeleteFunc(slices.Clone(e.Variables()), func(v string) bool {
			_, ok := e.Defaults[v]
			return ok
		})
		if slices.Equal(needs, []string{"storageClass"}) {
			names = append(names, name)
		}
	}
	return names
}

// ask asks for what no flag gives. The end of the input stands for the defaults.
func (f *initFlags) ask(cmd *cobra.Command, s *streams, classes *initClasses, library *workload.Library) {
	in := bufio.NewReader(s.in)
	question := func(flag, what string, check func(string) error, set func(string)) {
		for !cmd.Flags().Changed(flag) {
			fmt.Fprint(s.err, what)
			line, err := in.ReadString('\n')
			answer := strings.TrimSpace(line)
			if answer == "" {
				return
			}
			wrong := check(answer)
			if wrong == nil {
				set(answer)
				return
			}
			fmt.Fprintln(s.err, wrong)
			if err != nil {
				return
			}
		}
	}
	list := func(names []string) func(string) error {
		return func(answer string) error {
			if !slices.Contains(names, answer) {
				return fmt.Errorf("want one of %s", strings.Join(names, ", "))
			}
			return nil
		}
	}
	question("storage-class", fmt.Sprintf("StorageClass: %s [%s] ", strings.Join(classes.names(), ", "), classes.usual),
		list(classes.names()), func(answer string) { f.storageClass = answer })
	question("workload", fmt.Sprintf("workload: %s [%s] ", strings.Join(withStorage(library), ", "), f.workload),
		list(withStorage(library)), func(answer string) { f.workload = answer })
	length := func(answer string) error { _, err := time.ParseDuration(answer); return err }
	question("runtime", fmt.Sprintf("length of the measurement [%v] ", f.runtime), length,
		func(answer string) { f.runtime, _ = time.ParseDuration(answer) })
	question("snapshot-every", fmt.Sprintf("interval of snapshots; 0s: none [%v] ", f.every), length,
		func(answer string) { f.every, _ = time.ParseDuration(answer) })
}

// benchmark fills the template in.
func (f *initFlags) benchmark(entry *workload.Entry, class, snapshots string) ([]byte, error) {
	t, err := template.New("benchmark").Parse(benchmarkTemplate)
	if err != nil {
		return nil, err
	}
	var variables []string
	for _, v := range entry.Variables() {
		if value, ok := entry.Defaults[v]; ok && v != "runtime" && !strings.ContainsAny(value, "\n{") {
			variables = append(variables, strings.TrimSpace(fmt.Sprintf("%s: %q", v, value)))
		}
	}
	file := f.file
	if file == "-" {
		file = "FILE"
	}
	var out strings.Builder
	err = t.Execute(&out, map[string]any{
		"File": file, "Flags": f.run.engineFlag(), "Name": entry.Name, "Workload": entry.Name, "Count": f.count,
		"StorageClass": class, "SnapshotClass": snapshots, "Snapshots": snapshots != "" && f.every > 0, "Every": f.every,
		"Runtime": f.runtime, "Seconds": max(1, int(f.runtime.Seconds())), "Variables": variables,
		"Cluster": engines()[f.run.Engine].capabilities.Cluster, "Account": f.account,
		"Ends": slices.Contains(entry.Variables(), "runtime"),
	})
	return []byte(out.String()), err
}
