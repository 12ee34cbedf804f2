package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// ErrInterrupted is returned when the user interrupts a study. The same study can continue later.
var ErrInterrupted = errors.New("the study was interrupted; repeat the command to continue it")

// Job is what one run executes.
type Job struct {
	// Set has KEY=VALUE, as --set takes them.
	Set []string
	// Precondition says that it is the Benchmark of the precondition, not the study's.
	Precondition bool
}

// Executor loads and runs the Benchmarks of a study with the values of a cell or a trial.
type Executor interface {
	// Load checks the Benchmark. It prints warnings only if verbose.
	Load(ctx context.Context, j Job, verbose bool) (*plan.Plan, error)
	// Open opens a file that the Benchmark names.
	Open(name string) (io.ReadCloser, error)
	// Run runs a trial into dir and returns the run's exit code. It returns ErrInterrupted for an interrupted trial.
	Run(ctx context.Context, dir string, j Job) (code int, err error)
	// CleanUp removes what the run of a bundle has left on its platform.
	CleanUp(ctx context.Context, dir string) error
	// Interrupted says whether the user has interrupted the study.
	Interrupted() bool
}

// Check loads every cell of the design, with the values that the distributions have in its first block. It adds to the
// design the name, the default responses, and the sources of its trials. each, if not nil, gets the plan of each cell.
func (d *Design) Check(ctx context.Context, x Executor, each func(cell int, p *plan.Plan) error) error {
	for i, c := range d.Cells {
		p, err := d.checkJob(ctx, x, Job{Set: slices.Concat(d.Base, d.firstTrial(i).Set)}, i == 0)
		if err != nil {
			return fmt.Errorf("cell %s: %w", c.Name(), err)
		}
		if i == 0 {
			d.Name = p.Name
			if len(d.Responses) == 0 {
				d.Responses = DefaultResponses(actionsOf(p))
			}
			if len(d.Responses) == 0 {
				return fmt.Errorf("%s: the study has no responses: add metrics, such as findMax(main) of an object workload",
					d.File)
			}
		}
		if err := d.CheckNames(p, c.Without); err != nil {
			return fmt.Errorf("%s: cell %s: %w", d.File, c.Name(), err)
		}
		if each != nil {
			if err := each(i, p); err != nil {
				return err
			}
		}
		if d.Precondition != nil && d.Precondition.Own {
			if p, err = d.checkJob(ctx, x, d.warmUpJob(1, i), i == 0); err != nil {
				return fmt.Errorf("precondition of cell %s: %w", c.Name(), err)
			}
		}
		if d.Precondition != nil && d.Precondition.Response != "" {
			if _, err := responsesIn([]string{d.Precondition.Response}, p.Names); err != nil {
				return fmt.Errorf("%s: precondition of cell %s: %w", d.File, c.Name(), err)
			}
		}
	}
	return d.checkDraws(ctx, x)
}

func (d *Design) checkJob(ctx context.Context, x Executor, j Job, verbose bool) (*plan.Plan, error) {
	p, err := x.Load(ctx, j, verbose)
	if err != nil {
		return nil, err
	}
	return p, d.addSources(p, x.Open)
}

// firstTrial is a cell's trial in the first block.
func (d *Design) firstTrial(cell int) Trial {
	return d.Trials[slices.IndexFunc(d.Trials, func(t Trial) bool { return t.Cell == cell })]
}

// checkDraws loads a trial of each further block of the first occasion, whose distributions have other values.
func (d *Design) checkDraws(ctx context.Context, x Executor) error {
	if len(d.Distributions) == 0 {
		return nil
	}
	for _, t := range d.Trials {
		if t.Cell != 0 || t.Repetition == 1 {
			continue
		}
		if _, err := x.Load(ctx, Job{Set: slices.Concat(d.Base, t.Set)}, false); err != nil {
			return fmt.Errorf("block %d, with %s: %w", t.Block, nameOf(t.Draws), err)
		}
	}
	return nil
}

// addSources adds the traces that a plan replays and the workloads that it creates.
func (d *Design) addSources(p *plan.Plan, open func(string) (io.ReadCloser, error)) error {
	for _, r := range p.Benchmark.Spec.Rates {
		if r.TraceRateSpec == nil {
			continue
		}
		f, err := open(r.TraceRateSpec.Source)
		if err != nil {
			return err
		}
		source, err := SourceFrom(r.TraceRateSpec.Source, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		d.addSource(source)
	}
	for _, w := range run.Workloads(p) {
		d.addSource(Source{Name: "workload " + w.Name + " (" + w.Origin + ")", SHA256: w.SHA256})
	}
	return nil
}

func (d *Design) addSource(s Source) {
	if !slices.Contains(d.Sources, s) {
		d.Sources = append(d.Sources, s)
	}
}

// variables are the settings of variables, which a precondition takes of a cell.
func variables(set []string) []string {
	return slices.DeleteFunc(slices.Clone(set), func(s string) bool { return !strings.HasPrefix(s, "vars.") })
}

// actionsOf describes the actions of a plan for the default responses.
func actionsOf(p *plan.Plan) []Action {
	var list []Action
	for _, a := range p.Actions {
		one := Action{Name: a.Name, Repeated: a.Rate != "" || a.Chained}
		if a.Workload != nil {
			for _, o := range a.Workload.Outputs {
				if o.Parser == "fio" {
					one.IO = []string{"read", "write"}
					continue
				}
				for _, m := range parser.Declared(o.Parser) {
					if m.Kind == metric.Rate && m.Better == metric.Higher && !slices.Contains(one.Rates, m.Name) {
						one.Rates = append(one.Rates, m.Name)
					}
				}
			}
		}
		list = append(list, one)
	}
	return list
}

// Run runs the trials that have no complete bundle, one after another, and returns the exit codes of all. It runs none
// of the occasions before from. Before the first trial of an occasion it runs the precondition. A failed trial does not
// end the study. Run prints progress to log. Begin must have opened the study.
func (d *Dir) Run(ctx context.Context, x Executor, from int, log io.Writer) (codes []int, err error) {
	done := 0
	for _, trials := range d.byOccasion() {
		ready := d.Precondition == nil
		for _, t := range trials {
			done++
			if b := d.Bundle(t); b != nil {
				codes = append(codes, b.Run.ExitCode)
				continue
			}
			if t.Occasion < from {
				continue
			}
			if !ready {
				if err := d.precondition(ctx, x, t.Occasion, log); err != nil {
					return codes, err
				}
				ready = true
			}
			fmt.Fprintf(log, "trial %d of %d: %s\n", done, len(d.Trials), d.describe(t))
			code, err := d.run(ctx, x, t, Job{Set: slices.Concat(d.Base, t.Set)}, log)
			if err != nil {
				return codes, err
			}
			codes = append(codes, code)
		}
	}
	return codes, nil
}

// describe names a trial: its cell and its place.
func (d *Design) describe(t Trial) string {
	text := d.Cells[t.Cell].Name()
	if len(t.Draws) > 0 {
		text += ", drawn " + nameOf(t.Draws)
	}
	if d.OccasionCount() == 1 {
		return fmt.Sprintf("%s, repetition %d", text, t.Repetition)
	}
	return fmt.Sprintf("%s, occasion %d, block %d", text, t.Occasion, t.Block)
}

// run runs one trial, and returns its exit code. An error ends the study.
func (d *Dir) run(ctx context.Context, x Executor, t Trial, j Job, log io.Writer) (code int, err error) {
	if err := d.clear(ctx, x, t, log); err != nil {
		return 0, err
	}
	code, err = x.Run(ctx, d.Of(t), j)
	if errors.Is(err, ErrInterrupted) || x.Interrupted() {
		return code, ErrInterrupted
	}
	if err != nil {
		fmt.Fprintf(log, "trial %s: %v\n", t.Name, err)
		return code, d.recordFailure(t, code, err)
	}
	return code, nil
}

// clear cleans up after a trial that has no complete bundle, and moves what it left out of the way.
func (d *Dir) clear(ctx context.Context, x Executor, t Trial, log io.Writer) error {
	path := d.Of(t)
	if b, err := bundle.Open(path); err == nil && b.Live {
		return fmt.Errorf("trial %s: %w", path, ErrInUse)
	}
	if bundle.CheckBundle(path) == nil {
		if err := x.CleanUp(ctx, path); err != nil {
			return err
		}
	}
	early := d.failedEarly(t)
	to, err := d.SetAside(t)
	switch {
	case err != nil:
		return err
	case early:
		fmt.Fprintf(log, "trial %s is repeated; it failed before it had a bundle\n", t.Name)
	case to != "":
		fmt.Fprintf(log, "trial %s is repeated; its incomplete bundle is now %s\n", t.Name, to)
	}
	return nil
}
