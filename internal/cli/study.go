package cli

import (
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
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/runner/inputs"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/study"
)

func newStudy(s *streams) *cobra.Command {
	c := &cobra.Command{Use: "study", Short: "Repeat a Benchmark: factors, repetitions, a table"}
	c.AddCommand(newStudyRun(s), newStudyShow(s), newStudyReport(s))
	return c
}

// studyFlags are those of study run beside run's.
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
		Short: "Carry out every trial of a study",
		Long: `Carries a Study out: every combination of its factors' values, so many times,
each trial into a bundle of its own in DIR. FILE is a Study, a Benchmark (with
--factor and --repetitions), or a built-in one: suite:NAME. Every cell is checked
before the first trial begins.

The same command again goes on where it was interrupted: a trial without a
complete bundle is repeated, what it left is cleaned up and set aside. A trial
that fails does not end the study.

Exit status: as of run, of the worst trial; 130 as soon as one is interrupted.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("repetitions") && f.repetitions < 1 {
				return fmt.Errorf("--repetitions %d: it must be at least 1", f.repetitions)
			}
			return f.carryOut(cmd.Context(), s, args)
		},
	}
	f.run.addRunFlags(c, runflags.Study)
	fl := c.Flags()
	fl.Lookup("out").Usage = "directory of the study (default cnsbench-study-NAME)"
	fl.Lookup("dry-run").Usage = "check every cell and list the trials; create nothing"
	fl.StringVar(&f.scale, "scale", "", "edition of the study: one of its scales; empty: in full")
	fl.Int32Var(&f.repetitions, "repetitions", 0, "trials of each cell, instead of the study's number")
	fl.StringArrayVar(&f.factors, "factor", nil, "KEY=VALUE,VALUE…: other values of a factor, or one more; KEY as of --set; may be repeated")
	fl.BoolVar(&f.verbose, "verbose", false, "show each trial's progress and summary")
	return c
}

func (f *studyFlags) carryOut(ctx context.Context, s *streams, args []string) error {
	d, rooms, err := f.design(ctx, s, args)
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
	worst, err := f.trials(ctx, s, dir, args)
	if err != nil {
		return err
	}
	if err := f.show(s, dir); err != nil {
		return err
	}
	page := filepath.Join(dir.Path, bundle.ReportFile)
	if err := reportStudy(dir, page); err != nil {
		return failed(err)
	}
	fmt.Fprintf(s.err, "study: %s\nreport: %s\n", dir.Path, page)
	if worst == exitOK {
		return nil
	}
	return &exit{worst, errors.New("not every trial ended well; the same command repeats those that did not come to their end")}
}

// design reads the study and checks every cell of it. rooms say, of each cell,
// where its volumes will be.
func (f *studyFlags) design(ctx context.Context, s *streams, args []string) (
	d *study.Design, rooms []*storageRoom, err error) {
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
	for i := range d.Cells {
		room, err := f.cell(ctx, s, d, i, args)
		if err != nil && i == 0 && spec.Spec.Description != "" {
			fmt.Fprintf(s.err, "%s: %s\n", args[0], spec.Spec.Description) // a suite says in it what to give
		}
		if err != nil {
			return nil, nil, err
		}
		rooms = append(rooms, room)
	}
	_, err = study.Responses(d.Responses)
	return d, rooms, err
}

// cell checks one cell, and adds to the design what its trials are made of.
func (f *studyFlags) cell(ctx context.Context, s *streams, d *study.Design, i int, args []string) (
	*storageRoom, error) {
	c := d.Cells[i]
	one := f.run
	one.Set, one.trial = slices.Concat(d.Base, c.Set), true
	quiet := &streams{in: strings.NewReader(""), out: io.Discard, err: s.err}
	if i > 0 {
		quiet.err = io.Discard // what is said of one cell is said of all
	}
	p, _, _, err := load(ctx, quiet, &one, args)
	if err != nil {
		return nil, fmt.Errorf("cell %s: %w", c.Name(), err)
	}
	if d.Sources, err = traces(d.Sources, p, args[0]); err != nil {
		return nil, err
	}
	for _, w := range workloads(p) {
		source := study.Source{Name: "workload " + w.Name + " (" + w.Origin + ")", SHA256: w.SHA256}
		if !slices.Contains(d.Sources, source) {
			d.Sources = append(d.Sources, source)
		}
	}
	if i == 0 {
		d.Name = p.Name
		if len(d.Responses) == 0 {
			d.Responses = study.DefaultResponses(actionsOf(p))
		}
	}
	if !f.run.DryRun {
		return nil, nil
	}
	room, err := one.room(p)
	return room, failed(err)
}

// flags are those that all trials share and that the design does not have.
func (f *studyFlags) flags() (list []string, err error) {
	shared := f.run.Flags
	if shared.Engine != engineLocal {
		shared.StorageDir = ""
	} else if shared.StorageDir, err = filepath.Abs(shared.StorageDir); err != nil {
		return nil, err
	}
	shared.Inject, err = f.run.injection()
	return shared.Args(runflags.Trial), err
}

// traces adds those that a plan replays to what trials are made of.
func traces(to []study.Source, p *plan.Plan, main string) ([]study.Source, error) {
	for _, r := range p.Benchmark.Spec.Rates {
		if r.TraceRateSpec == nil {
			continue
		}
		f, err := inputs.Open(main, r.TraceRateSpec.Source)
		if err != nil {
			return nil, err
		}
		source, err := study.SourceFrom(r.TraceRateSpec.Source, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if !slices.Contains(to, source) {
			to = append(to, source)
		}
	}
	return to, nil
}

// firstCell sets what the first cell of a Study does, where a command asks for
// one Benchmark and the file is a Study.
func firstCell(s *streams, files []plan.File, own []string) ([]string, error) {
	spec, problems := plan.LoadStudy(files)
	if spec == nil || len(problems) > 0 {
		return own, nil // no study, or one whose problems the caller finds
	}
	d, err := study.New(spec, study.Options{})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(s.err, "warning: this is a Study; taken is its first cell, %s (cnsbench study run carries out all %s)\n", d.Cells[0].Name(), count(len(d.Trials), "trial"))
	return append(slices.Clone(d.Cells[0].Set), own...), nil
}

// factorValues reads --factor.
func (f *studyFlags) factorValues() (map[string][]v1alpha1.Var, error) {
	factors := map[string][]v1alpha1.Var{}
	for _, text := range f.factors {
		key, values, ok := strings.Cut(text, "=")
		if !ok || key == "" || values == "" {
			return nil, fmt.Errorf("--factor %s: not of the form KEY=VALUE,VALUE…", text)
		}
		for v := range strings.SplitSeq(values, ",") {
			factors[key] = append(factors[key], v1alpha1.Var(v))
		}
	}
	return factors, nil
}

// actionsOf says what can be read of a plan's actions.
func actionsOf(p *plan.Plan) []study.Action {
	var list []study.Action
	for _, a := range p.Actions {
		one := study.Action{Name: a.Name, Repeated: a.Rate != "" || a.Chained}
		if a.Workload != nil {
			for _, o := range a.Workload.Outputs {
				if o.Parser == "fio" {
					one.IO = []string{"read", "write"}
				}
			}
		}
		list = append(list, one)
	}
	return list
}

// trials carries out those that are not done, and returns the worst exit code.
func (f *studyFlags) trials(ctx context.Context, s *streams, dir *study.Dir, args []string) (worst int, err error) {
	// Each trial listens for itself; this is for the time between them.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	for i, t := range dir.Trials {
		if b := dir.Bundle(t); b != nil {
			worst = worse(worst, b.Run.ExitCode)
			continue
		}
		if err := f.clear(ctx, s, dir, t); err != nil {
			return worst, err
		}
		fmt.Fprintf(s.err, "trial %d of %d: %s, repetition %d\n", i+1, len(dir.Trials), dir.Cells[t.Cell].Name(), t.Repetition)
		err := f.trial(ctx, s, dir, t, args)
		code := codeOf(err)
		if code == exitInterrupted || len(signals) > 0 {
			return exitInterrupted, &exit{exitInterrupted, errors.New("the study was interrupted; the same command goes on with it")}
		}
		if err != nil {
			fmt.Fprintf(s.err, "trial %s: %v\n", t.Name, err)
		}
		worst = worse(worst, code)
	}
	return worst, nil
}

// worse orders exit codes: a run that failed before a figure that is doubtful
// before an objective that was missed.
func worse(a, b int) int {
	rank := map[int]int{exitOK: 0, exitSLO: 1, exitInvalid: 2, exitFailed: 3, exitUsage: 4, exitInterrupted: 5}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

func (f *studyFlags) trial(ctx context.Context, s *streams, dir *study.Dir, t study.Trial, args []string) error {
	one := f.run
	one.Out = dir.Of(t)
	one.Set, one.trial = slices.Concat(dir.Base, t.Set), true
	one.output = ""
	to := s
	if !f.verbose {
		to = &streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	}
	return runBenchmark(ctx, to, &one, args)
}

// clear cleans up after a trial that did not come to its end.
func (f *studyFlags) clear(ctx context.Context, s *streams, dir *study.Dir, t study.Trial) error {
	path := dir.Of(t)
	if b, err := bundle.Open(path); err == nil && b.Live {
		return fmt.Errorf("trial %s is being carried out by another process", t.Name)
	}
	if ledger, err := bundle.OpenLedger(path); err == nil {
		open := len(ledger.Open())
		if err := ledger.Close(); err != nil {
			return failed(err)
		}
		if run, err := bundle.ReadRun(path); open > 0 || err == nil && run.Engine == engineKubernetes {
			if err := cleanBundle(ctx, s, &cleanupFlags{Options: cluster.Options(f.run.Cluster)}, path, false); err != nil {
				return err
			}
		}
	}
	to, err := dir.SetAside(t)
	if err != nil {
		return failed(err)
	}
	if to != "" {
		fmt.Fprintf(s.err, "trial %s is repeated; what it left is in %s\n", t.Name, to)
	}
	return nil
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

// writeSentences prints what the study shows of where each series saturates.
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
	c := &cobra.Command{Use: "report DIR", Short: "Write a study's figures as one page: distributions, rates, states over time, limits", Args: cobra.ExactArgs(1),
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
	c.Flags().StringVar(&out, "out", "", "the page's file (default DIR/report.html)")
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
		page.Rows = append(page.Rows, html.StudyRow{Cells: cellsOf(r)})
	}
	return writeFile(path, func(w io.Writer) error { return html.WriteStudy(w, page) })
}

// cellsOf are a row's texts: its levels, its trials, its values.
func cellsOf(r study.Row) []string {
	var cells []string
	for _, l := range r.Levels {
		cells = append(cells, l.Value)
	}
	n := fmt.Sprint(r.Done)
	if r.Done < r.Of {
		n = fmt.Sprintf("%d of %d", r.Done, r.Of)
	}
	cells = append(cells, n)
	for _, v := range r.Values {
		cells = append(cells, v.String())
	}
	return cells
}

func newStudyShow(s *streams) *cobra.Command {
	var f studyFlags
	c := &cobra.Command{Use: "show DIR", Short: "Show a study: a row for each cell", Args: cobra.ExactArgs(1),
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

// writeTable prints a row for each cell: its levels, its trials, and of each
// response the median and the range.
func writeTable(out io.Writer, t *study.Table) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n", strings.Join(slices.Concat(t.Factors, []string{"n"}, t.Responses), "\t"))
	for _, r := range t.Rows {
		fmt.Fprintf(w, "%s\n", strings.Join(cellsOf(r), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "the median of the trials, and their range\norder of trials: %v\n%s\n", t.Order, t.Note)
	return err
}
