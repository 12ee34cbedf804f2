package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/table"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/visible"
	"github.com/cnsbench/cnsbench/internal/web"
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
and flags. It then lists each recorded fact that differs, and compares the runs as
cnsbench compare does.

One run against one run cannot show that results differ. --runs runs the Benchmark
several times, and further EARLIER bundles of the same Benchmark are more values of
the earlier side.

A bundle has no files that the Benchmark names (traces, folders of workloads) and no
secrets. They are looked for beside the Benchmark's file or in --inputs; what is
missing, or is not the recorded file, is an error before anything is created.

--dry-run compares only the facts that can be read without a run. --with compares with
existing later bundles and runs nothing. --output csv has a row for each fact that
differs.

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
	f.Flags = defaultRunFlags()
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
		return f.compareWith(ctx, s, then)
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
	f.defaultOut("reproduce-" + p.Name)
	if err := emptyDir(f.Out); err != nil {
		return err
	}
	now, err := f.repeat(ctx, s, names, files)
	if err != nil {
		return err
	}
	return f.answer(ctx, s, then, now)
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
func (f *reproduceFlags) answer(ctx context.Context, s *streams, then, now []*bundle.Bundle) error {
	r, err := comparedRuns(ctx, then, now)
	if err == nil {
		err = bounded.Dir(f.Out).Replace(resultFile, func(w io.Writer) error { return writeJSON(w, r) })
	}
	if err != nil {
		return failed(err)
	}
	return f.print(s, r, "result: "+filepath.Join(f.Out, resultFile))
}

// comparedRuns compares the facts of runs, and their figures as compare does.
func comparedRuns(ctx context.Context, then, now []*bundle.Bundle) (*reproduction.Result, error) {
	r, err := reproduction.Compare(then, now)
	if err != nil {
		return nil, err
	}
	var runs []web.Labelled
	for i, b := range slices.Concat(then, now) {
		label := reproduction.Then
		if i >= len(then) {
			label = reproduction.Now
		}
		runs = append(runs, web.Labelled{Label: label, Dir: b.Dir})
	}
	r.Comparison, err = compareRuns(ctx, runs)
	return r, err
}

// print prints a result in the format of --output; as text with a last line.
func (f *reproduceFlags) print(s *streams, r *reproduction.Result, last string) error {
	return s.print(f.output, r, func() *table.Table { return differenceTable(r) }, func() error {
		err := terminal.WriteReproduction(s.out, r, terminalOptions(s.out))
		if err == nil && last != "" {
			_, err = visible.Fprintf(s.out, "\n%s\n", last)
		}
		return err
	})
}

// differenceTable has a row for each fact that differs.
func differenceTable(r *reproduction.Result) *table.Table {
	var rows [][]any
	for i, list := range [][]reproduction.Difference{r.Facts.Differences, r.Changed} {
		for _, d := range list {
			rows = append(rows, []any{[]string{"fact", "changed within a side"}[i], d.Fact, string(d.Group), known(d.Then),
				known(d.Now)})
		}
	}
	return tableOf(rows, "kind", "name", "group", "then", "now")
}

// compareWith compares with later bundles and runs nothing.
func (f *reproduceFlags) compareWith(ctx context.Context, s *streams, then []*bundle.Bundle) error {
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
	if err := distinct(slices.Concat(then, now)); err != nil {
		return fmt.Errorf("--with: %w", err)
	}
	r, err := comparedRuns(ctx, then, now)
	if err != nil {
		return failed(err)
	}
	return f.print(s, r, "")
}
