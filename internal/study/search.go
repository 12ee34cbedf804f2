package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/stats/search"
)

// searchFactor is the factor of a search: the rate of a step, or noRate for the baseline.
const (
	searchFactor = "perSecond"
	noRate       = "none"
)

// NewSearch is the design of a search, without steps. It completes s, whose rates and window are as the command line
// gave them, from the plan of the Benchmark: the rate of the action, and how many operations a step needs.
func NewSearch(plan *plan.Plan, s *Search, set []string) (*Design, error) {
	if err := s.of(plan); err != nil {
		return nil, err
	}
	p, err := s.compile(plan)
	if err != nil {
		return nil, err
	}
	if err := s.limits(p); err != nil {
		return nil, err
	}
	d := &Design{Name: plan.Name, Base: set, Factors: []string{searchFactor}, Blocks: 1, Planned: 1, Search: s,
		Order: &Order{Kind: orderSearch}, Cells: []Cell{}, Trials: []Trial{}}
	for _, q := range p.Queries() {
		q.Baseline = false
		if text := q.String(); !slices.Contains(d.Responses, text) {
			d.Responses = append(d.Responses, text)
		}
	}
	return d, nil
}

// CheckSearch loads a step at a rate, and adds to the design the sources of its trials.
func (d *Design) CheckSearch(ctx context.Context, x Executor, perSecond float64, verbose bool) (*plan.Plan, error) {
	return d.checkJob(ctx, x, Job{Set: slices.Concat(d.Base, d.Search.Set(perSecond))}, verbose)
}

// compile reads the condition. Its actions are checked if there is a plan.
func (s *Search) compile(p *plan.Plan) (*expr.Program, error) {
	env := expr.Env{Baseline: true}
	if p != nil {
		env.Actions = map[string][]string{}
		for _, a := range p.Actions {
			env.Actions[a.Name] = nil
		}
	}
	program, err := expr.CompileShort(s.Condition, env)
	if err != nil {
		return nil, fmt.Errorf("the condition %s: %w", s.Condition, err)
	}
	return program, nil
}

// window is the length of a step at a rate.
func (s *Search) window(perSecond float64) time.Duration {
	if perSecond == 0 {
		return s.Window
	}
	long := min(s.expected()/perSecond, search.Longest*s.Window.Seconds())
	return max(s.Window, time.Duration(math.Ceil(long*10))*time.Second/10)
}

// expected is the number of operations for which a window is sized, so that at least Needs begin in it. A constant rate
// gets one more, because its last operation may fall after the end of the window.
func (s *Search) expected() float64 {
	if s.Schedule == Poisson {
		return search.Enough(s.Needs)
	}
	return float64(s.Needs) + 1
}

// Set has the settings of a step; perSecond 0: of the baseline, in which the rate never triggers.
func (s *Search) Set(perSecond float64) []string {
	window, drain := s.window(perSecond), time.Duration(0)
	if s.Places > 0 { // what still waits for a place at the end of the window is not dropped
		drain = max(window/4, time.Second)
	}
	set := []string{"spec.runtime=" + (s.StartAfter + window + drain).String()}
	if perSecond == 0 {
		return append(set, fmt.Sprintf("spec.rates.%s.startAfter=%v", s.Rate, s.StartAfter+window+time.Hour))
	}
	return append(set, fmt.Sprintf("spec.rates.%s.duration=%v", s.Rate, window), fmt.Sprintf(
		"spec.rates.%s.%s={perSecond: %s}", s.Rate, s.Schedule, strconv.FormatFloat(perSecond, 'f', -1, 64)))
}

// searching is a search in progress.
type searching struct {
	dir     *Dir
	program *expr.Program
	pure    search.Search
	base    map[string]expr.Value // of the baseline's queries
	hasBase bool                  // the baseline is done, or none is needed
	result  summary.FindMax
}

// Find runs the steps of the search that are not done, one after another, until it ends. An error other than
// ErrInterrupted is one of the directory or of a bundle; a step that failed ends the search with the verdict
// interrupted.
func (d *Dir) Find(ctx context.Context, x Executor, log io.Writer) (*summary.FindMax, error) {
	return d.find(log, func(t Trial) error {
		_, err := d.run(ctx, x, t, Job{Set: slices.Concat(d.Base, t.Set)}, log)
		return err
	})
}

// Found is the result of the steps that are done. It runs none.
func (d *Dir) Found() (*summary.FindMax, error) { return d.find(io.Discard, nil) }

func (d *Dir) find(log io.Writer, run func(Trial) error) (*summary.FindMax, error) {
	f := &searching{dir: d}
	if err := f.begin(); err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		rate, verdict := f.next()
		if verdict != "" {
			return f.conclude(verdict, ""), nil
		}
		t, err := d.step(n, rate, run != nil)
		if err != nil {
			return nil, err
		}
		if t == nil {
			return f.conclude(search.Interrupted, "not all steps are done"), nil
		}
		b := d.Bundle(*t)
		if b == nil && run != nil {
			fmt.Fprintf(log, "step %d: %s for %v\n", n+1, describeRate(rate), d.Search.window(rate))
			switch err := run(*t); {
			case errors.Is(err, ErrInterrupted):
				return f.conclude(search.Interrupted, "repeat the command to continue"), err
			case err != nil:
				return f.conclude(search.Interrupted, err.Error()), err
			}
			b = d.Bundle(*t)
		}
		if b == nil {
			return f.conclude(search.Interrupted, d.whyMissing(*t)), nil
		}
		step, message, err := f.judge(b, *t, rate)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(log, "step %d, %s: %s\n", n+1, describeRate(rate), stepLine(step, message))
		if step.Undecided {
			return f.conclude(search.Undecided, fmt.Sprintf("%s: %s", describeRate(rate), message)), nil
		}
		if rate > 0 {
			f.pure.Add(rate, step.Held)
		}
	}
}

// whyMissing says why a step has no complete bundle.
func (d *Dir) whyMissing(t Trial) string {
	b, err := bundle.Open(d.Of(t))
	switch {
	case err != nil:
		return fmt.Sprintf("step %s is not done", t.Name)
	case b.Run.Reason != "":
		return fmt.Sprintf("step %s: %s", t.Name, b.Run.Reason)
	}
	return fmt.Sprintf("step %s is not complete", t.Name)
}

func (f *searching) begin() (err error) {
	s := f.dir.Search
	if s == nil {
		return fmt.Errorf("%s is not a search of the highest rate", f.dir.Path)
	}
	if f.program, err = s.compile(nil); err != nil {
		return fmt.Errorf("%s: %w", f.dir.Path, err)
	}
	f.pure = search.Search{From: s.From, Least: s.Least, Most: s.Most, Resolution: s.Resolution}
	f.hasBase = !slices.ContainsFunc(f.program.Queries(), func(q expr.Query) bool { return q.Baseline })
	f.result = summary.FindMax{Stage: s.Action, Condition: s.Condition, Runs: true, Steps: []summary.FindStep{}}
	if err := f.pure.Check(); err != nil {
		return fmt.Errorf("%s: %w", f.dir.Path, err)
	}
	return nil
}

// next is the rate of the next step; 0 of the baseline.
func (f *searching) next() (float64, search.Verdict) {
	if !f.hasBase {
		return 0, ""
	}
	return f.pure.Next()
}

// step is the n-th trial, at a rate. If there is none, it is added to the study; without add it is nil.
func (d *Dir) step(n int, rate float64, add bool) (*Trial, error) {
	value := noRate
	if rate > 0 {
		value = strconv.FormatFloat(rate, 'f', -1, 64)
	}
	if n < len(d.Trials) {
		t := d.Trials[n]
		if have := d.Cells[t.Cell].Levels[0].Value; have != value {
			return nil, fmt.Errorf("step %s of %s has rate %s where the search comes to %s: another version of CNSBench "+
				"began it; choose another --out", t.Name, d.Path, have, value)
		}
		return &t, nil
	}
	if !add {
		return nil, nil
	}
	cell := slices.IndexFunc(d.Cells, func(c Cell) bool { return c.Levels[0].Value == value })
	if cell < 0 {
		cell = len(d.Cells)
		d.Cells = append(d.Cells, Cell{Levels: []Level{{searchFactor, value}}, Set: d.Search.Set(rate)})
	}
	t := Trial{Name: fmt.Sprintf("%03d_%s", n+1, plainName(d.Cells[cell])), Cell: cell, Repetition: 1, Occasion: 1,
		Block: 1, Set: d.Cells[cell].Set}
	for _, o := range d.Trials {
		if o.Cell == cell {
			t.Repetition++
		}
	}
	d.Trials = append(d.Trials, t)
	return &t, d.save()
}

// conclude completes the result.
func (f *searching) conclude(v search.Verdict, message string) *summary.FindMax {
	r := &f.result
	r.Verdict, r.Message = string(v), message
	low, high := f.pure.Bracket()
	if low > 0 {
		r.PerSecond = &low
	}
	if math.IsInf(high, 1) {
		return r
	}
	r.AbovePerSecond = &high
	if low > 0 {
		width := high/low - 1
		r.Resolution = &width
	}
	for i := range r.Steps { // the last one counts
		s := &r.Steps[i]
		if s.PerSecond == high && !s.Held {
			r.Bound, r.Evidence = s.Bound, s.Evidence
		}
		if s.PerSecond == low && v == search.Found && s.VisibleExcess > max(f.pure.Resolution, keepUp) {
			r.Message = fmt.Sprintf("a run of this length shows a backlog only if the rate exceeds the capacity by more "+
				"than %.0f %%: use a longer --window", 100*s.VisibleExcess)
		}
	}
	return r
}

func describeRate(perSecond float64) string {
	if perSecond == 0 {
		return "baseline without the action"
	}
	return summary.PerSecond(perSecond)
}

// stepLine describes the result of a step.
func stepLine(s *summary.FindStep, message string) string {
	switch {
	case s.Undecided:
		return "undecided: " + message
	case s.PerSecond == 0:
		return s.Measured()
	case s.Held:
		return "holds: " + s.Measured()
	case s.Evidence != "":
		return "does not hold: " + s.Measured() + "; " + s.Evidence
	}
	return "does not hold: " + s.Measured()
}

// errNoOps is returned for a step without operations of the action.
var errNoOps = errors.New("no operation of the action was due")
