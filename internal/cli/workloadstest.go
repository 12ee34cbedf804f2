package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/entrycheck"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/plan/validate"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/storagedir"
	"github.com/cnsbench/cnsbench/internal/visible"
)

const (
	// testedAction is the action that makes the instance under test.
	testedAction = "test"
	// testedBackend is the built-in driver of its volumes, and its StorageClass.
	testedBackend = "hostdir"
	// testGrace is the time between SIGTERM and SIGKILL.
	testGrace = 5 * time.Second
	// leastStop is how long a workload must run for a second run that ends it early.
	leastStop = 400 * time.Millisecond
	// mostStop is the longest time after which the second run ends it.
	mostStop = 2 * time.Second
)

// entryFlags are those of cnsbench workloads test.
type entryFlags struct {
	vars                         []string
	timeout                      time.Duration
	library, out, storage, print string
	verbose                      bool
}

func newWorkloadsTest(s *streams) *cobra.Command {
	var f entryFlags
	c := &cobra.Command{
		Use: "test NAME|FILE", Short: "Run a workload at small scale and say what is wrong with it",
		Long: `Runs a workload on this machine, on a volume that is a directory (driver hostdir), and
checks it: its file, variables and programs; that it uses its volume, becomes ready,
waits at the barrier, ends by itself and when it is asked to; that its parser reads its
output, and notices one that is cut; that nothing is left. It is run twice, the second
time to be stopped early. What is wrong is listed with what to do.

NAME is a folder or a file in the folder of your workloads (--library), or a built-in
workload. FILE is a file with a workload (a ConfigMap with the label type: workload), or
the folder of one.

Variables have the values of the annotations cnsbench.test.VAR, else their defaults,
unless --vars sets them.

Exit status: 0 no check failed, 1 the arguments are wrong, 2 a check failed, 130
interrupted.`,
		Example: `  cnsbench workloads test append
  cnsbench workloads test append.yaml --vars lines=100 --output json
  cnsbench workloads test fio --vars rw=randread --out fio-test`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.execute(cmd.Context(), s, args[0]) },
	}
	fl := c.Flags()
	fl.StringArrayVar(&f.vars, "vars", nil, "VAR=VALUE: value of a variable; may be repeated")
	fl.DurationVar(&f.timeout, "timeout", time.Minute, "how long the workload may take to become ready, and to end by "+
		"itself")
	fl.StringVar(&f.library, "library", ownLibrary, "folder of your workloads")
	fl.StringVarP(&f.out, "out", "o", "", "directory for the bundles of the runs; must not exist or be empty "+
		"(default they are removed)")
	fl.StringVar(&f.storage, "storage-dir", storagedir.Default(), "directory for the volumes")
	fl.BoolVar(&f.verbose, "verbose", false, "print the progress and summary of each run")
	outputFlag(c, &f.print, "csv")
	return c
}

// entryTest runs one workload.
type entryTest struct {
	*streams
	flags   *entryFlags
	entry   *foundEntry
	dir     string // of the bundles
	facts   entrycheck.Facts
	signals chan os.Signal
}

func (f *entryFlags) execute(ctx context.Context, s *streams, name string) error {
	if f.timeout < time.Second {
		return fmt.Errorf("invalid --timeout %v: want at least 1s", f.timeout)
	}
	found, err := findEntry(name, f.library)
	if err != nil {
		return err
	}
	t := &entryTest{streams: s, flags: f, entry: found, signals: make(chan os.Signal, 1)}
	if err := t.setVars(); err != nil {
		return err
	}
	if f.out != "" {
		if err := emptyDir(f.out); err != nil {
			return err
		}
	}
	defer listen(t.signals)()
	if err := t.inDir(ctx); err != nil {
		return err
	}
	report := entrycheck.Judge(&t.facts)
	report.Bundles = f.out
	return t.show(&report)
}

// inDir makes the runs with their bundles in --out, or in a directory that is removed.
func (t *entryTest) inDir(ctx context.Context) (err error) {
	if t.dir = t.flags.out; t.dir != "" {
		return t.run(ctx)
	}
	if t.dir, err = os.MkdirTemp("", "cnsbench-test-"); err != nil {
		return failed(err)
	}
	err = t.run(ctx)
	if gone := os.RemoveAll(t.dir); err == nil {
		err = failed(gone)
	}
	return err
}

// show prints the report, and returns an error with the exit code.
func (t *entryTest) show(report *entrycheck.Report) error {
	if report.Entry == "" {
		report.Entry, report.Origin = t.entry.name, t.entry.origin
	}
	if err := t.streams.print(t.flags.print, report, func() *table.Table { return checkTable(report) }, func() error {
		return report.Text(&visible.Writer{To: t.out})
	}); err != nil {
		return err
	}
	if report.Failed > 0 {
		return &exit{code: exitFailed}
	}
	return nil
}

// checkTable has a row for each check, and for each metric that the parser found.
func checkTable(r *entrycheck.Report) *table.Table {
	var rows [][]any
	for _, c := range r.Checks {
		rows = append(rows, []any{"check", c.Name, string(c.Status), c.Message, c.Do, nil, nil, nil, nil, nil})
	}
	for _, m := range r.Metrics {
		rows = append(rows, []any{"metric", m.Name, nil, nil, nil, m.Unit, m.Kind, m.Better, m.Total, int64(m.Points)})
	}
	return tableOf(rows, "kind", "name", "status", "message", "do", "unit", "metric_kind", "better", "total", "points")
}

// setVars chooses the values of the variables, and refuses those of --vars that the entry cannot have.
func (t *entryTest) setVars() error {
	given := map[string]string{}
	for _, one := range t.flags.vars {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return fmt.Errorf("invalid --vars %q: want VAR=VALUE", one)
		}
		given[name] = value
	}
	values := map[string]string{}
	t.facts.Entry, t.facts.Problems, t.facts.Vars = t.entry.entry, t.entry.problems, values
	t.facts.Timeout, t.facts.Grace = t.flags.timeout, testGrace
	e := t.entry.entry
	if e == nil || len(t.entry.problems) > 0 {
		return nil
	}
	if _, wrong := e.Resolve(given); len(given) > 0 {
		for _, w := range wrong {
			if w.Var != "" {
				return fmt.Errorf("invalid --vars %s=%s: %s", w.Var, given[w.Var], describeVar(w))
			}
		}
	}
	for _, name := range e.Variables() {
		class := name == "storageClass" || e.Types[name].String() == "storageClass"
		if value, ok := e.Tests[name]; ok {
			values[name] = value
		} else if class {
			values[name] = testedBackend
		}
		if other := given[name]; class && other != "" && other != testedBackend {
			return fmt.Errorf("invalid --vars %s=%s: the volumes of a test are of driver %s", name, other, testedBackend)
		}
	}
	maps.Copy(values, given)
	for _, name := range e.Variables() {
		if _, ok := e.Defaults[name]; !ok && values[name] == "" {
			t.facts.Problems = append(t.facts.Problems, entrycheck.Problem{
				Message: fmt.Sprintf("variable %q has neither a default nor a value for this test", name),
				Hint:    fmt.Sprintf("--vars %s=VALUE, or the annotation cnsbench.test.%s in the entry", name, name)})
		}
	}
	return nil
}

// run makes the runs as far as they can be made. The error is one of this machine, or an interrupt.
func (t *entryTest) run(ctx context.Context) error {
	if len(t.facts.Problems) > 0 {
		return nil
	}
	p, files, err := t.load(ctx, t.flags.timeout)
	if err != nil || len(t.facts.Problems) > 0 {
		return err
	}
	w := p.Actions[0].Workload
	if t.facts.Instance, err = w.Render("test", 0); err != nil {
		return failed(err)
	}
	t.facts.Outputs = w.Outputs
	if t.facts.Missing = t.missing(); len(t.facts.Missing) > 0 {
		return nil
	}
	what := fmt.Sprintf("until it ends by itself, for at most %v", t.flags.timeout)
	if t.facts.Full, err = t.once(ctx, "full", what, p, files); err != nil {
		return err
	}
	if err := t.stopEarly(ctx); err != nil {
		return err
	}
	return t.damage(ctx, p, files)
}

// stopEarly makes the second run.
func (t *entryTest) stopEarly(ctx context.Context) error {
	full := t.facts.Full
	lasted := t.facts.Timeout
	if end := full.Instance.End; full.Run.BarrierAt.Known() && end != nil {
		lasted = min(lasted, time.Duration(end.At-full.Run.BarrierAt))
	}
	if !full.Run.BarrierAt.Known() || lasted < leastStop && !t.facts.Endless() {
		return nil
	}
	t.facts.StopAfter = min(max(lasted/2, leastStop/2), mostStop)
	p, files, err := t.load(ctx, t.facts.StopAfter)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("again, to be stopped after %v", t.facts.StopAfter.Round(time.Millisecond))
	t.facts.Stopped, err = t.once(ctx, "stopped", what, p, files)
	return err
}

// missing lists the programs that the workload needs and that this machine lacks.
func (t *entryTest) missing() (list []string) {
	for i := range t.facts.Instance.Pods {
		for _, m := range pod.Missing(&t.facts.Instance.Pods[i].Pod) {
			list = append(list, m.String())
		}
	}
	for _, o := range t.facts.Outputs {
		if o.Script == "" {
			continue
		}
		program := engine.Script{Text: o.Script}.Interpreter()
		if _, err := exec.LookPath(program); err != nil {
			list = append(list, fmt.Sprintf("parser %s: there is no program %q; %s", o.Parser, program,
				pod.Hint("there is no program "+program)))
		}
	}
	return list
}

// runFlags are those of one run.
func (t *entryTest) runFlags(name string) *runFlags {
	return &runFlags{Flags: runflags.Flags{Engine: engineLocal, StorageDir: t.flags.storage, RunID: newRunID(),
		Out: filepath.Join(t.dir, name)}, library: t.entry.library}
}

// load makes the Benchmark of a run and resolves it. Problems become facts.
func (t *entryTest) load(ctx context.Context, runtime time.Duration) (*plan.Plan, []plan.File, error) {
	spec := map[string]any{
		"runtime": runtime.String(), "gracePeriod": testGrace.String(),
		"actions": []any{map[string]any{"name": testedAction, "timeout": t.flags.timeout.String(),
			"createObjSpec": map[string]any{"workload": t.entry.entry.Name, "vars": t.facts.Vars}}},
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": validate.APIVersion, "kind": "Benchmark",
		"metadata": map[string]any{"name": "workload-test"}, "spec": spec})
	if err != nil {
		return nil, nil, failed(err)
	}
	files := append([]plan.File{{Name: "workload-test.yaml", Data: text}}, t.entry.configs...)
	quiet := &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	p, _, err := loadFiles(ctx, quiet, t.runFlags(""), []string{"workload-test.yaml"}, files)
	var wrong *problemsError
	if errors.As(err, &wrong) {
		for _, one := range wrong.problems {
			t.facts.Problems = append(t.facts.Problems, entrycheck.Problem{Message: one.Message, Hint: one.Hint})
		}
		return nil, nil, nil
	}
	return p, files, err
}

// once makes a run and reads its bundle.
func (t *entryTest) once(ctx context.Context, name, what string, p *plan.Plan, files []plan.File) (
	*entrycheck.Run, error) {
	fmt.Fprintf(t.err, "running %s %s\n", t.entry.name, what)
	f := t.runFlags(name)
	e, err := engineOf(f.Engine)
	if err != nil {
		return nil, err
	}
	to := &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	if t.flags.verbose {
		to.out, to.err = t.err, t.err
	}
	volumes := csidriver.HostdirVolumes(filepath.Join(t.flags.storage, f.RunID, testedBackend))
	var last entrycheck.Usage // also of a workload that ended between two looks
	f.removing = func() { last = usageOf(volumes) }
	watched := watchVolumes(volumes)
	failure := e.run(ctx, to, f, nil, p, files)
	used := watched()
	raise(&used, last)
	if codeOf(failure) == exitInterrupted || len(t.signals) > 0 {
		return nil, &exit{exitInterrupted, errors.New("interrupted: the workload is stopped and its volumes are removed")}
	}
	run, err := entrycheck.Read(f.Out)
	if err != nil {
		return nil, failed(cmp.Or(failure, err)) // without a bundle the run did not begin
	}
	run.Err, run.Volume = failure, used
	left, err := leftOf(f.RunID, t.flags.storage)
	run.Left = append(run.Left, left...)
	return run, failed(err)
}
