package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
)

// ErrInterrupted is returned when the user interrupts a study. The same study can continue later.
var ErrInterrupted = errors.New("the study was interrupted; repeat the command to continue it")

// ErrInUse is returned when another process runs a trial of the study.
var ErrInUse = errors.New("another process is running it")

// Executor loads and runs the Benchmark of a study with the values of a cell or a trial: KEY=VALUE, as --set takes
// them.
type Executor interface {
	// Load checks the Benchmark. It prints warnings only if verbose.
	Load(ctx context.Context, set []string, verbose bool) (*plan.Plan, error)
	// Open opens a file that the Benchmark names.
	Open(name string) (io.ReadCloser, error)
	// Run runs a trial into dir and returns the run's exit code. It returns ErrInterrupted for an interrupted trial.
	Run(ctx context.Context, dir string, set []string) (code int, err error)
	// CleanUp removes what the run of a bundle has left on its platform; open is the number of entries in its ledger.
	CleanUp(ctx context.Context, dir string, open int) error
	// Interrupted says whether the user has interrupted the study.
	Interrupted() bool
}

// Check loads every cell of the design. It adds to the design the name, the default responses, and the sources of
// its trials. each, if not nil, gets the plan of each cell.
func (d *Design) Check(ctx context.Context, x Executor, each func(cell int, p *plan.Plan) error) error {
	for i, c := range d.Cells {
		p, err := x.Load(ctx, slices.Concat(d.Base, c.Set), i == 0)
		if err != nil {
			return fmt.Errorf("cell %s: %w", c.Name(), err)
		}
		if err := d.addSources(p, x.Open); err != nil {
			return err
		}
		if i == 0 {
			d.Name = p.Name
			if len(d.Responses) == 0 {
				d.Responses = DefaultResponses(actionsOf(p))
			}
		}
		if each != nil {
			if err := each(i, p); err != nil {
				return err
			}
		}
	}
	_, err := Responses(d.Responses)
	return err
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

// actionsOf describes the actions of a plan for the default responses.
func actionsOf(p *plan.Plan) []Action {
	var list []Action
	for _, a := range p.Actions {
		one := Action{Name: a.Name, Repeated: a.Rate != "" || a.Chained}
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

// Run runs the trials that have no complete bundle, and returns the exit codes of all. A failed trial does not end
// the study. Run prints progress to log.
func (d *Dir) Run(ctx context.Context, x Executor, log io.Writer) (codes []int, err error) {
	for i, t := range d.Trials {
		if b := d.Bundle(t); b != nil {
			codes = append(codes, b.Run.ExitCode)
			continue
		}
		if err := d.clear(ctx, x, t, log); err != nil {
			return codes, err
		}
		fmt.Fprintf(log, "trial %d of %d: %s, repetition %d\n", i+1, len(d.Trials), d.Cells[t.Cell].Name(),
			t.Repetition)
		code, err := x.Run(ctx, d.Of(t), slices.Concat(d.Base, t.Set))
		if errors.Is(err, ErrInterrupted) || x.Interrupted() {
			return codes, ErrInterrupted
		}
		if err != nil {
			fmt.Fprintf(log, "trial %s: %v\n", t.Name, err)
		}
		codes = append(codes, code)
	}
	return codes, nil
}

// clear cleans up after a trial that has no complete bundle, and moves what it left out of the way.
func (d *Dir) clear(ctx context.Context, x Executor, t Trial, log io.Writer) error {
	path := d.Of(t)
	if b, err := bundle.Open(path); err == nil && b.Live {
		return fmt.Errorf("trial %s: %w", t.Name, ErrInUse)
	}
	if ledger, err := bundle.OpenLedger(path); err == nil {
		open := len(ledger.Open())
		if err := ledger.Close(); err != nil {
			return err
		}
		if err := x.CleanUp(ctx, path, open); err != nil {
			return err
		}
	}
	to, err := d.SetAside(t)
	if err != nil {
		return err
	}
	if to != "" {
		fmt.Fprintf(log, "trial %s is repeated; its incomplete bundle is now %s\n", t.Name, to)
	}
	return nil
}
