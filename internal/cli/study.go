package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/sweep"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cleanup"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/runner/inputs"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/storagedir"
	"github.com/cnsbench/cnsbench/internal/study"
)

func newStudy(s *streams) *cobra.Command {
	c := &cobra.Command{Use: "study", Short: "Repeat a Benchmark with factors and repetitions"}
	c.AddCommand(newStudyRun(s), newStudyShow(s), newStudyReport(s))
	return c
}

// studyFlags are the flags of study run.
type studyFlags struct {
	run         runFlags
	scale       string
	repetitions int32
	factors     []string
	verbose     bool
}

func newStudyRun(s *streams) *cobra.Command {
	var f studyFlags
	c := &cobra.Command{
		Use:   "run FILE [FILE…] --out DIR",
		Short: "Run every trial of a study",
		Long: `Runs a Study: every combination of the values of its factors, repeated, with a bundle
in DIR for each trial. FILE is a Study, a Benchmark (with --factor and
--repetitions), or a built-in suite: suite:NAME. It checks every cell before the
first trial.

Repeat the command to continue an interrupted study: it cleans up after a trial
without a complete bundle, moves its files aside, and repeats it. A failed trial does
not end the study.

Exit status: that of run for the worst trial; 130 if the study was interrupted.`,
		Example: `  cnsbench study run --factor fio.bs=4k,64k --repetitions 5 --out study examples/quickstart.yaml
  cnsbench study run suite:attach-new --factor vars.storageClass=standard --out study`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("repetitions") && f.repetitions < 1 {
				return fmt.Errorf("invalid --repetitions %d: want at least 1", f.repetitions)
			}
			return f.execute(cmd.Context(), s, args)
		},
	}
	f.run.addRunFlags(c, runflags.Study)
	fl := c.Flags()
	fl.Lookup("out").Usage = "directory of the study (default cnsbench-study-NAME)"
	fl.Lookup("dry-run").Usage = "check every cell and list the trials; create nothing"
	fl.StringVar(&f.scale, "scale", "", "one of the scales of the study (default the full study)")
	fl.Int32Var(&f.repetitions, "repetitions", 0, "trials of each cell (default the study's number)")
	fl.StringArrayVar(&f.factors, "factor", nil,
		"KEY=VALUE,VALUE…: values of a factor of the study, or of a new one; KEY as in --set; may be repeated")
	fl.BoolVar(&f.verbose, "verbose", false, "print the progress and summary of each trial")
	return c
}

func (f *studyFlags) execute(ctx context.Context, s *streams, args []string) error {
	x := &trialRunner{streams: s, flags: f, args: args, signals: make(chan os.Signal, 1)}
	d, rooms, err := f.design(ctx, x)
	if err != nil {
		return err
	}
	if f.run.Out == "" {
		f.run.Out = "cnsbench-study-" + d.Name
	}
	if f.run.DryRun {
		return f.preview(s, d, rooms)
	}
	dir, err := study.Begin(f.run.Out, d)
	if err != nil {
		return err
	}
	// Each trial has a listener of its own; this one is for the time between trials.
	signal.Notify(x.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(x.signals)
	codes, err := dir.Run(ctx, x, s.err)
	switch {
	case errors.Is(err, study.ErrInterrupted):
		return &exit{exitInterrupted, err}
	case errors.Is(err, study.ErrInUse) || errors.As(err, new(*exit)):
		return err
	case err != nil:
		return failed(err)
	}
	return f.conclude(s, dir, codes)
}

// conclude prints the table and writes the report.
func (f *studyFlags) conclude(s *streams, dir *study.Dir, codes []int) error {
	if err := f.show(s, dir); err != nil {
		return err
	}
	page := filepath.Join(dir.Path, bundle.ReportFile)
	if err := reportStudy(dir, page); err != nil {
		return failed(err)
	}
	fmt.Fprintf(s.err, "study: %s\nreport: %s\n", dir.Path, page)
	if worst := worstOf(codes); worst != exitOK {
		return &exit{worst, errors.New("not every trial succeeded; repeat the command to rerun the incomplete ones")}
	}
	return nil
}

// worstOf is the exit code of a study: a failed run ranks above a doubtful figure, and that above a missed SLO.
func worstOf(codes []int) int {
	rank := []int{exitOK, exitSLO, exitInvalid, exitFailed, exitUsage}
	return slices.MaxFunc(append(codes, exitOK), func(a, b int) int {
		return cmp.Compare(slices.Index(rank, a), slices.Index(rank, b))
	})
}

// design reads the study and checks every cell of it. rooms says where the volumes of each cell will be.
func (f *studyFlags) design(ctx context.Context, x *trialRunner) (
	d *study.Design, rooms []*storagedir.Room, err error) {
	s, args := x.streams, x.args
	files, err := readFiles(s, args)
	if err != nil {
		return nil, nil, err
	}
	spec, problems := plan.LoadStudy(files)
	if len(problems) > 0 {
		fmt.Fprint(s.err, lines(problems))
		return nil, nil, fmt.Errorf("%s: %s", strings.Join(args, ", "), count(len(problems), "problem"))
	}
	if spec == nil {
		spec = &plan.Study{}
	}
	factors, err := f.factorValues()
	if err != nil {
		return nil, nil, err
	}
	d, err = study.New(spec, study.Options{Scale: f.scale, Repetitions: f.repetitions, Factors: factors, Set: f.run.Set,
		Seed: int64(drawSeed())})
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		d.Sources = append(d.Sources, study.SourceOf(file.Name, file.Data))
	}
	if d.Flags, err = f.flags(); err != nil {
		return nil, nil, err
	}
	err = d.Check(ctx, x, func(_ int, p *plan.Plan) error {
		if !f.run.DryRun {
			return nil
		}
		room, err := f.run.room(p)
		rooms = append(rooms, room)
		return failed(err)
	})
	if err != nil && x.loaded == 0 && spec.Spec.Description != "" {
		fmt.Fprintf(s.err, "%s: %s\n", args[0], spec.Spec.Description) // a suite says here which factors to give
	}
	return d, rooms, err
}

// trialRunner implements study.Executor with the flags of the command.
type trialRunner struct {
	*streams
	flags   *studyFlags
	args    []string // the files
	signals chan os.Signal
	loaded  int // cells
}

// Load implements study.Executor.
func (x *trialRunner) Load(ctx context.Context, set []string, verbose bool) (*plan.Plan, error) {
	one := x.flags.run
	one.Set, one.trial = set, true
	s := &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	if verbose {
		s.err = x.err
	}
	p, _, _, err := load(ctx, s, &one, x.args)
	if err == nil {
		x.loaded++
	}
	return p, err
}

// Open implements study.Executor.
func (x *trialRunner) Open(name string) (io.ReadCloser, error) { return inputs.Open(x.args[0], name) }

// Run implements study.Executor.
func (x *trialRunner) Run(ctx context.Context, dir string, set []string) (code int, err error) {
	one := x.flags.run
	one.Out, one.Set, one.trial, one.output = dir, set, true, ""
	s := x.streams
	if !x.flags.verbose {
		s = &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	}
	err = runBenchmark(ctx, s, &one, x.args)
	if code = codeOf(err); code == exitInterrupted {
		return code, study.ErrInterrupted
	}
	return code, err
}

// CleanUp implements study.Executor. A run on a cluster may have left more than its ledger lists.
func (x *trialRunner) CleanUp(ctx context.Context, dir string, open int) error {
	run, err := bundle.ReadRun(dir)
	if onCluster := err == nil && run.OnCluster(); open == 0 && !onCluster {
		return nil
	}
	return cleanBundle(ctx, x.streams, cleanup.Options{Cluster: cluster.Options(x.flags.run.Cluster),
		Driver: driverCommand, Log: x.err}, dir, false)
}

// Interrupted implements study.Executor.
func (x *trialRunner) Interrupted() bool { return len(x.signals) > 0 }

// flags are the flags that all trials share.
func (f *studyFlags) flags() (list []string, err error) {
	shared := f.run.Flags
	if !engines()[shared.Engine].capabilities.BuiltInDrivers {
		shared.StorageDir = ""
	} else if shared.StorageDir, err = filepath.Abs(shared.StorageDir); err != nil {
		return nil, err
	}
	shared.Inject, err = f.run.injection()
	return shared.Args(runflags.Trial), err
}

// firstCell adds the values of a Study's first cell, for a command that takes one Benchmark.
func firstCell(s *streams, files []plan.File, own []string) ([]string, error) {
	spec, problems := plan.LoadStudy(files)
	if spec == nil || len(problems) > 0 {
		return own, nil // not a study, or the caller reports its problems
	}
	d, err := study.New(spec, study.Options{})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.err, "warning: this is a Study; using its first cell, %s (cnsbench study run runs all %s)\n",
		d.Cells[0].Name(), count(len(d.Trials), "trial"))
	return append(slices.Clone(d.Cells[0].Set), own...), nil
}

// factorValues reads --factor.
func (f *studyFlags) factorValues() (map[string][]v1alpha1.Var, error) {
	factors := map[string][]v1alpha1.Var{}
	for _, text := range f.factors {
		key, values, ok := strings.Cut(text, "=")
		if !ok || key == "" || values == "" {
			return nil, fmt.Errorf("invalid --factor %q: want KEY=VALUE,VALUE…", text)
		}
		for v := range strings.SplitSeq(values, ",") {
			factors[key] = append(factors[key], v1alpha1.Var(v))
		}
	}
	return factors, nil
}

func (f *studyFlags) show(s *streams, dir *study.Dir) error {
	t, err := dir.Table()
	if err != nil {
		return failed(err)
	}
	sweeps, err := dir.Sweeps()
	if err != nil {
		return failed(err)
	}
	if f.run.output == "json" {
		return quietPipe(writeJSON(s.out, struct {
			*study.Table
			SweepNote string        `json:"sweepNote"`
			Sweeps    []sweep.Sweep `json:"sweeps"`
		}{t, sweep.Note, sweeps}))
	}
	if err := writeTable(s.out, t); err != nil {
		return quietPipe(err)
	}
	return quietPipe(writeSentences(s.out, sweeps))
}

// writeSentences prints where each series saturates.
func writeSentences(out io.Writer, sweeps []sweep.Sweep) error {
	if len(sweeps) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(out, "\n%s\n", sweep.Note); err != nil {
		return err
	}
	for _, w := range sweeps {
		for _, series := range w.Series {
			if _, err := fmt.Fprintf(out, "\n%s, %s\n", w.Action, series.Name); err != nil {
				return err
			}
			for _, p := range series.Points {
				fmt.Fprintf(out, "• %s\n", p.Sentence)
			}
		}
	}
	return nil
}

func newStudyReport(s *streams) *cobra.Command {
	var out string
	c := &cobra.Command{Use: "report DIR", Short: "Write the HTML report of a study", Args: cobra.ExactArgs(1),
		Example: "  cnsbench study report --out study.html cnsbench-study-attach-new",
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := study.Open(args[0])
			if err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join(dir.Path, bundle.ReportFile)
			}
			if err := reportStudy(dir, out); err != nil {
				return failed(err)
			}
			fmt.Fprintf(s.out, "report: %s\n", out)
			return nil
		}}
	c.Flags().StringVar(&out, "out", "", "file of the report (default DIR/report.html)")
	return c
}

func reportStudy(dir *study.Dir, path string) error {
	t, err := dir.Table()
	if err != nil {
		return err
	}
	sweeps, err := dir.Sweeps()
	if err != nil {
		return err
	}
	page := &html.Study{Name: t.Name, Factors: t.Factors, Responses: t.Responses,
		Order: t.Order.String(), Note: t.Note, Sweeps: sweeps}
	for _, r := range t.Rows {
		page.Rows = append(page.Rows, html.StudyRow{Cells: r.Cells()})
	}
	return writeFile(path, func(w io.Writer) error { return html.WriteStudy(w, page) })
}

func newStudyShow(s *streams) *cobra.Command {
	var f studyFlags
	c := &cobra.Command{Use: "show DIR", Short: "Show the table of a study, a row for each cell",
		Args:    cobra.ExactArgs(1),
		Example: "  cnsbench study show cnsbench-study-attach-new",
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := study.Open(args[0])
			if err != nil {
				return err
			}
			return f.show(s, dir)
		}}
	outputFlag(c, &f.run.output)
	return c
}

// writeTable prints a row for each cell: its levels, its trials, and the median and range of each response.
func writeTable(out io.Writer, t *study.Table) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n", strings.Join(slices.Concat(t.Factors, []string{"n"}, t.Responses), "\t"))
	for _, r := range t.Rows {
		fmt.Fprintf(w, "%s\n", strings.Join(r.Cells(), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "the median of the trials, and their range\norder of trials: %v\n%s\n", t.Order, t.Note)
	return err
}
