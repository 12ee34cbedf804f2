package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
	ratesearch "github.com/cnsbench/cnsbench/internal/stats/search"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// findFlags are those of run that search the highest rate of an action. They have the names of those of object run.
type findFlags struct {
	study.Search
	verbose bool
	flags   *pflag.FlagSet
}

func (f *findFlags) add(fl *pflag.FlagSet) {
	f.flags = fl
	fl.StringVar(&f.Condition, "find-max", "", "search the highest rate of an action at which this holds, such as "+
		"'p99(snapshots) < 5s && iops(fio.write) >= 0.9 * baseline(iops(fio.write))'")
	fl.StringVar(&f.Action, "action", "", "action whose rate --find-max changes (default the only one with a constant "+
		"or Poisson rate)")
	fl.Float64Var(&f.From, "find-from", 0, "first rate of the search, per second (default the action's)")
	fl.Float64Var(&f.Least, "find-least", 0, "least rate that is searched (default the least at which a step has "+
		"enough operations for the condition)")
	fl.Float64Var(&f.Most, "find-most", 1000, "greatest rate that is searched")
	fl.Float64Var(&f.Resolution, "find-resolution", 0.05, "how wide the bracket may be in the end, as a share")
	fl.DurationVar(&f.Window, "window", 0, "how long each step lasts, from the start of the rate (default the "+
		"Benchmark's runtime, or 30s); up to ten times longer where the condition needs more operations")
	fl.BoolVar(&f.verbose, "verbose", false, "with --find-max: print the progress and summary of each step")
}

// check refuses flags that have no effect without --find-max, and those that a search cannot have.
func (f *findFlags) check(run *runFlags, files []string) error {
	if f.Condition == "" {
		for _, name := range []string{"action", "find-from", "find-least", "find-most", "find-resolution", "window",
			"verbose"} {
			if f.flags.Changed(name) {
				return fmt.Errorf("--%s has no effect without --find-max", name)
			}
		}
		if f.flags.Changed("find-max") {
			return errors.New("--find-max is empty: want a condition, such as 'p99(snapshots) < 5s'")
		}
		return nil
	}
	switch {
	case isObjectWorkload(files):
		return errors.New("an object workload is searched by cnsbench object run --find-max")
	case run.Keep:
		return errors.New("--keep and --find-max exclude each other: each step starts with fresh volumes")
	case f.From < 0 || f.Least < 0 || f.Window < 0:
		return errors.New("--find-from, --find-least and --window cannot be negative")
	}
	return nil
}

// execute runs the search, or continues it.
func (f *findFlags) execute(ctx context.Context, s *streams, run *runFlags, args []string) error {
	x := newTrialRunner(s, &studyFlags{run: *run, verbose: f.verbose}, args)
	d, err := f.design(ctx, x)
	if err != nil {
		return err
	}
	if run.Out == "" {
		run.Out = "cnsbench-find-max-" + d.Name
	}
	if run.DryRun {
		return f.preview(ctx, x, d)
	}
	dir, err := study.Begin(run.Out, d, study.Occasion{Number: 1, Begun: time.Now()})
	if err != nil {
		return err
	}
	var found *summary.FindMax
	if err := x.during(dir, func() (err error) {
		if found, err = dir.Find(ctx, x, s.err); found != nil {
			err = errors.Join(err, showFindMax(s, run.output, found))
			visible.Fprintf(s.err, "steps: %s\n", dir.Path)
		}
		return err
	}); err != nil {
		return err
	}
	return findMaxError(found, run.Strict)
}

// design reads the Benchmark and checks the search.
func (f *findFlags) design(ctx context.Context, x *trialRunner) (*study.Design, error) {
	files, err := readFiles(x.streams, x.args)
	if err != nil {
		return nil, err
	}
	run := &x.flags.run
	p, err := x.Load(ctx, study.Job{Set: run.Set}, true)
	if err != nil {
		return nil, err
	}
	d, err := study.NewSearch(p, &f.Search, run.Set)
	if err != nil {
		return nil, fmt.Errorf("--find-max: %w", err)
	}
	for _, file := range files {
		d.Sources = append(d.Sources, study.SourceOf(file.Name, file.Data))
	}
	if d.Flags, err = x.flags.flags(); err != nil {
		return nil, err
	}
	_, err = d.CheckSearch(ctx, x, d.Search.From, false)
	return d, err
}

// preview prints the budget of the first step.
func (f *findFlags) preview(ctx context.Context, x *trialRunner, d *study.Design) error {
	p, err := d.CheckSearch(ctx, x, d.Search.From, false)
	if err != nil {
		return err
	}
	if !forPrograms(x.flags.run.output) {
		visible.Fprintf(x.out, "a search of the highest rate of %s at which %s: from %s, between %g and %g per second\n"+
			"each step is a run; their number and rates are not known in advance, at rate r a step does r/%g as many "+
			"operations as the first one:\n", d.Search.Action, d.Search.Condition, summary.PerSecond(d.Search.From),
			d.Search.Least, d.Search.Most, d.Search.From)
	}
	return x.flags.run.printBudget(x.streams, p)
}

// showFindMax prints the result of a search and its steps.
func showFindMax(s *streams, output string, m *summary.FindMax) error {
	value := struct {
		FindMax *summary.FindMax `json:"findMax"`
	}{m}
	steps := listTable(m.Steps, func(x *summary.FindStep) []any {
		return []any{x.Stage, x.PerSecond, x.OfferedPerSecond, x.AchievedPerSecond, x.WindowNs, x.Held, x.Undecided, x.Bound,
			x.Evidence}
	}, "step", "per_second", "offered_per_second", "achieved_per_second", "window_ns", "held", "undecided", "bound",
		"evidence")
	return s.print(output, value, steps, func() error { return terminal.WriteFindMax(s.out, m, terminalOptions(s.out)) })
}

// findMaxError has the exit status of a search: 3 if it found no rate, with strict 4 if the rate is this client's.
func findMaxError(m *summary.FindMax, strict bool) error {
	switch ratesearch.Verdict(m.Verdict) {
	case ratesearch.Never, ratesearch.Undecided:
		return &exit{code: exitSLO}
	case ratesearch.Interrupted:
		return failed(errors.New(m.Message + "; repeat the command to continue"))
	}
	if strict && (m.Bound == study.ClientBound || m.Bound == study.WorkerBound) {
		return &exit{code: exitInvalid}
	}
	return nil
}
