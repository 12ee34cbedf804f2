package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// reproduceFlags are the flags of reproduce. The embedded ones say where and how to run.
type reproduceFlags struct {
	runFlags
	runs    int
	inputs  string // directory of the files that the Benchmark names
	verbose bool
	with    []string // later bundles, instead of runs
	set     *pflag.FlagSet
}

const (
	// maxReproductions bounds --runs.
	maxReproductions = 1000
	// resultFile is beside the bundles of the runs.
	resultFile = "reproduction.json"
)

func newReproduce(s *streams) *cobra.Command {
	var f reproduceFlags
	c := &cobra.Command{
		Use: "reproduce BUNDLE [EARLIER…]", Short: "Run the Benchmark of a bundle again and report each difference",
		Long: `Runs the Benchmark of a bundle again: the recorded text, variables, seed, faults, engine
and flags. It then compares the two runs: each recorded fact that differs, the plans
and schedules, the figures, validity flags and objectives.

One run against one run cannot show that results differ. --runs runs the Benchmark
several times, and further EARLIER bundles of the same Benchmark are more values of
the earlier side; cnsbench compare's verdicts are then part of the answer.

A bundle has no files that the Benchmark names (traces, folders of workloads) and no
secrets. They are looked for beside the Benchmark's file or in --inputs; what is
missing, or is not the recorded file, is an error before anything is created.

--dry-run compares only the facts that can be read without a run. --with compares with
existing later bundles and runs nothing. --output csv has a row for each difference,
figure, verdict, validity flag and objective.

Exit status: 0 the runs are compared, whatever differs; 1 the bundle or a flag is
wrong, or an input is missing; 2 a bundle is damaged, or a run failed; 130
interrupted.`,
		Example: `  cnsbench reproduce cnsbench-quickstart-20260301-120000
  cnsbench reproduce --runs 6 --out again run-1 run-2 run-3
  cnsbench reproduce --dry-run --output json run-1
  cnsbench reproduce run-1 --with run-2`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.set = cmd.Flags()
			return f.execute(cmd.Context(), s, args)
		},
	}
	f.Flags = runflags.Flags{Runner: runnerPod, Advertise: os.Getenv("CNSBENCH_ADVERTISE"), Image: defaultImage(),
		Delivery: string(podspec.DeliverAuto), Patience: 5 * time.Minute, SendWithin: 20 * time.Second}
	f.Add(c.Flags(), runflags.Reproduce)
	fl := c.Flags()
	fl.StringVarP(&f.Out, "out", "o", "", "directory for the bundles run-1, run-2, … and reproduction.json; must not "+
		"exist or be empty (default cnsbench-reproduce-NAME-TIME)")
	fl.IntVar(&f.runs, "runs", 1, "number of runs")
	fl.BoolVar(&f.DryRun, "dry-run", false, "compare only facts that can be read without a run; create nothing")
	fl.StringVar(&f.inputs, "inputs", "", "directory with the files that the Benchmark names (default that of its "+
		"recorded file)")
	fl.StringArrayVar(&f.with, "with", nil, "compare with this later bundle instead of a new run; may be repeated")
	fl.BoolVar(&f.verbose, "verbose", false, "print the summary of each run")
	outputFlag(c, &f.output, "csv")
	return c
}

func (f *reproduceFlags) execute(ctx context.Context, s *streams, args []string) error {
	if f.runs < 1 || f.runs > maxReproductions {
		return fmt.Errorf("invalid --runs %d: want 1 to %d", f.runs, maxReproductions)
	}
	if fi, err := os.Stat(f.inputs); f.inputs != "" && (err != nil || !fi.IsDir()) {
		return fmt.Errorf("--inputs %s is not a directory", f.inputs)
	}
	then, err := openEarlier(args)
	if err != nil {
		return err
	}
	if len(f.with) > 0 {
		return f.compareWith(s, then)
	}
	first := then[0]
	if err := f.takeOver(first); err != nil {
		return err
	}
	files, names := f.source(first)
	quiet := &streams{in: s.in, out: io.Discard, err: s.err, terminal: s.terminal}
	p, on, err := loadFiles(ctx, quiet, &f.runFlags, names, files)
	if err != nil {
		return err
	}
	if err := sameInputs(&first.Run, p); err != nil {
		return err
	}
	if err := givenAgain(p); err != nil {
		return err
	}
	if f.DryRun {
		return f.preview(ctx, s, first, p, files, on)
	}
	f.defaultReproduction(p.Name)
	if err := emptyDir(f.Out); err != nil {
		return err
	}
	now, err := f.repeat(ctx, s, names, files)
	if err != nil {
		return err
	}
	return f.answer(s, then, now)
}

func (f *reproduceFlags) defaultReproduction(name string) {
	if f.Out == "" {
		f.Out = fmt.Sprintf("cnsbench-reproduce-%s-%s", name, time.Now().Format("20060102-150405"))
	}
}

// emptyDir reports a directory that has files.
func emptyDir(dir string) error {
	entries, err := bounded.Dir(dir).ReadDir(".")
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--out: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("--out %s is not empty: choose another", dir)
	}
	return nil
}

// repeat runs the Benchmark. Each run has a bundle of its own. An objective that is missed is a result like others.
func (f *reproduceFlags) repeat(ctx context.Context, s *streams, names []string, files []plan.File) (
	now []*bundle.Bundle, err error) {
	if err := os.MkdirAll(f.Out, 0o755); err != nil {
		return nil, failed(err)
	}
	for i := 1; i <= f.runs; i++ {
		one := f.runFlags
		one.Out, one.output = filepath.Join(f.Out, fmt.Sprintf("run-%d", i)), ""
		visible.Fprintf(s.err, "run %d of %d: %s\n", i, f.runs, one.Out)
		to := &streams{in: strings.NewReader(""), out: io.Discard, err: s.err}
		if f.verbose {
			to.out = s.err
		}
		p, on, err := loadFiles(ctx, &streams{in: to.in, out: io.Discard, err: io.Discard}, &one, names, files)
		if err != nil {
			return nil, err
		}
		e, err := engineOf(one.Engine)
		if err != nil {
			return nil, err
		}
		err = e.run(ctx, to, &one, on, p, files)
		if code := codeOf(err); code != exitOK && code != exitSLO {
			return nil, err
		}
		b, err := bundle.Open(one.Out)
		if err != nil {
			return nil, failed(err)
		}
		now = append(now, b)
	}
	return now, nil
}

// answer compares the runs, keeps the result beside the bundles, and prints it.
func (f *reproduceFlags) answer(s *streams, then, now []*bundle.Bundle) error {
	r, err := reproduction.Compare(then, now)
	if err != nil {
		return failed(err)
	}
	path := filepath.Join(f.Out, resultFile)
	err = bounded.Dir(f.Out).Replace(resultFile, func(w io.Writer) error { return writeJSON(w, r) })
	if err != nil {
		return failed(err)
	}
	if err := f.print(s, r); err != nil || f.output != "text" {
		return err
	}
	visible.Fprintf(s.out, "\nresult: %s\n", path)
	return nil
}

// print prints a result in the format of --output.
func (f *reproduceFlags) print(s *streams, r *reproduction.Result) error {
	switch f.output {
	case "json":
		return quietPipe(writeJSON(s.out, r))
	case "csv":
		return writeCSV(s.out, reproductionTable(r))
	}
	return quietPipe(terminal.WriteReproduction(s.out, r, terminalOptions(s.out)))
}

// compareWith compares with later bundles and runs nothing.
func (f *reproduceFlags) compareWith(s *streams, then []*bundle.Bundle) error {
	if f.DryRun || f.set.Changed("runs") || f.Out != "" {
		return errors.New("--with runs nothing: it excludes --runs, --out and --dry-run")
	}
	var now []*bundle.Bundle
	for _, dir := range f.with {
		b, err := bundle.Open(dir)
		if err != nil {
			return fmt.Errorf("--with: %w", err)
		}
		now = append(now, b)
	}
	if err := distinct(now); err != nil {
		return fmt.Errorf("--with: %w", err)
	}
	r, err := reproduction.Compare(then, now)
	if err != nil {
		return failed(err)
	}
	return f.print(s, r)
}
