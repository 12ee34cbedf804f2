package study

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// Table has a row for each cell.
type Table struct {
	Name      string   `json:"name"`
	Factors   []string `json:"factors"`
	Responses []string `json:"responses"`
	// Metrics has an entry for each response.
	Metrics []TableMetric `json:"metrics"`
	// Order is the order of the trials; null: that of the cells.
	Order     *Order     `json:"order"`
	Occasions []Occasion `json:"occasions"` // that have begun; empty: one, of an earlier version
	// Distributions are the factors that make no rows; TrialValue has their values.
	Distributions []Distribution `json:"distributions,omitempty"`
	// WarmUps are the rounds before each occasion; their values are in no row.
	WarmUps []WarmUp `json:"precondition,omitempty"`
	// Note is a caveat on the rows.
	Note string `json:"note"`
	Rows []Row  `json:"rows"`
}

// note is the caveat of the table of a study in a directory.
func note(path string) string {
	return fmt.Sprintf("The rows are not compared here, and a difference between them may be chance: "+
		"cnsbench compare %s tests it.", path)
}

// Row is one cell.
type Row struct {
	Levels []Level `json:"levels"`
	Done   int     `json:"done"` // trials with a complete bundle
	Of     int     `json:"of"`
	// Invalid counts the complete trials that have a validity flag of severity invalid; null: none.
	Invalid *Invalid `json:"invalid,omitempty"`
	// Failed is why the first trial without a complete bundle failed; empty: none did.
	Failed string `json:"failed,omitempty"`
	// AAOf is the index of the row that this one is an A/A arm of; null: it is none. Both are of the same cell.
	AAOf *int `json:"aaOf,omitempty"`
	// Values are those of the table's responses, in their order.
	Values []Value `json:"values"`
}

// Cells are the texts of a row: its levels, the number of its trials, its values.
func (r *Row) Cells() []string {
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

// Value is the value of one response in the trials of a cell.
type Value struct {
	N      int      `json:"n"` // trials with a value
	Median *float64 `json:"median"`
	Min    *float64 `json:"min"`
	Max    *float64 `json:"max"`
	Unit   string   `json:"unit"`
	// AtLeast says that the value of a trial is a lower bound.
	AtLeast bool `json:"atLeast,omitempty"`
	// Few is the number of trials without a value because they have fewer than Needs operations for the quantile.
	Few   int   `json:"few,omitempty"`
	Needs int64 `json:"needs,omitempty"`
	// Infinite is the number of trials with an infinite value. An infinite Median is absent.
	Infinite int `json:"infinite,omitempty"`
	// Trials has an entry for every trial of the cell, in order of repetition.
	Trials []TrialValue `json:"trials"`
}

// TrialValue is the value of one response in one trial.
type TrialValue struct {
	Trial      string `json:"trial"`      // name of its directory
	Repetition int    `json:"repetition"` // number of its block in the whole study, from 1
	Occasion   int    `json:"occasion"`   // from 1
	Block      int    `json:"block"`      // within the occasion, from 1
	// Draws are the values of the factors that are distributions.
	Draws []Level `json:"draws,omitempty"`
	// Value is null if it is infinite, or if Missing says why there is none.
	Value    *float64 `json:"value"`
	Infinite bool     `json:"infinite,omitempty"`
	// AtLeast says that the value is a lower bound.
	AtLeast bool   `json:"atLeast,omitempty"`
	Missing string `json:"missing,omitempty"` // NotDone, runFailed, noData, tooFew
	// Operations is their number where they are too few for the quantile.
	Operations int64 `json:"operations,omitempty"`
}

// Why a trial has no value.
const (
	NotDone   = "notDone" // it has not run, runs, or was interrupted
	runFailed = "failed"  // its run failed
	noData    = "noData"  // nothing in its bundle answers the response
	tooFew    = "tooFew"  // it has fewer operations than the quantile needs
)

// Table reads every complete trial.
func (d *Dir) Table() (*Table, error) {
	queries, err := Responses(d.Responses)
	if err != nil {
		return nil, err
	}
	t := &Table{Name: d.Name, Factors: d.Factors, Order: d.Order, Occasions: d.Occasions,
		Distributions: d.Distributions, Note: note(d.Path), Rows: make([]Row, len(d.Cells))}
	if t.WarmUps, err = d.WarmUps(); err != nil {
		return nil, err
	}
	for i, q := range queries {
		t.Responses = append(t.Responses, q.String())
		t.Metrics = append(t.Metrics, d.metric(d.Responses[i], q))
	}
	samples := make([][]sample, len(d.Cells))
	for i, c := range d.Cells {
		t.Rows[i].Levels, t.Rows[i].AAOf, samples[i] = c.Levels, c.AAOf, make([]sample, len(queries))
	}
	for _, trial := range d.byRepetition() {
		row := &t.Rows[trial.Cell]
		row.Of++
		done, err := d.answer(trial, queries, samples[trial.Cell])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Of(trial), err)
		}
		switch {
		case done:
			row.Done++
			row.count(&d.Bundle(trial).Run)
		case d.failed(trial):
			row.Failed = cmp.Or(row.Failed, d.whyFailed(trial))
		}
	}
	for j := range queries {
		for i := range samples { // those of value() are of the metric, which a parser declares
			t.Metrics[j].Unit = cmp.Or(t.Metrics[j].Unit, samples[i][j].unit)
			t.Metrics[j].Direction = cmp.Or(t.Metrics[j].Direction, string(samples[i][j].better))
		}
		for i := range t.Rows {
			t.Rows[i].Values = append(t.Rows[i].Values, samples[i][j].value(queries[j], t.Metrics[j].Unit))
		}
	}
	return t, nil
}

// count counts a complete trial if it is invalid.
func (r *Row) count(run *bundle.Run) {
	invalid := Invalid{Flags: []FlagCount{}}
	if r.Invalid != nil {
		invalid = *r.Invalid
	}
	if invalid.add(run); invalid.Trials > 0 {
		r.Invalid = &invalid
	}
}

// Notes say which trials failed or are invalid, and why; and they name the responses that trials have too few
// operations for, and what they can be replaced by.
func (t *Table) Notes() (list []string) {
	for i := range t.Rows {
		r := &t.Rows[i]
		of := " of " + Cell{Levels: r.Levels}.Name()
		if len(r.Levels) == 0 {
			of = ""
		}
		if r.Failed != "" {
			list = append(list, fmt.Sprintf("%d of %d trials%s have no result; the first that failed: %s", r.Of-r.Done, r.Of,
				of, r.Failed))
		}
		if r.Invalid != nil {
			list = append(list, fmt.Sprintf("trials%s: %d done, %v", of, r.Done, *r.Invalid))
		}
	}
	for j, response := range t.Responses {
		trials, few, needs := 0, 0, int64(0)
		low, high := int64(math.MaxInt64), int64(0)
		for _, r := range t.Rows {
			v := &r.Values[j]
			trials, few, needs = trials+r.Done, few+v.Few, max(needs, v.Needs)
			for _, x := range v.Trials {
				if x.Missing == tooFew {
					low, high = min(low, x.Operations), max(high, x.Operations)
				}
			}
		}
		if few > 0 {
			list = append(list, fmt.Sprintf("%s needs %d operations in a trial; %d of %d trials have fewer (%d to %d) and no "+
				"value: let trials last longer, or use p50 or max", response, needs, few, trials, low, high))
		}
	}
	return list
}

// byRepetition lists the trials by repetition and cell.
func (d *Design) byRepetition() []Trial {
	return slices.SortedStableFunc(slices.Values(d.Trials), func(a, b Trial) int {
		return cmp.Or(cmp.Compare(a.Repetition, b.Repetition), cmp.Compare(a.Cell, b.Cell))
	})
}

// sample is the values of one response in the trials of a cell.
type sample struct {
	values []float64 // of the trials that have one
	unit   string    // of ValueOf
	better metric.Direction
	trials []TrialValue
}

// answer adds a trial to the samples of its cell; false: it is not complete.
func (d *Dir) answer(trial Trial, queries []expr.Query, into []sample) (bool, error) {
	none := valueOf(trial)
	none.Missing = NotDone
	b := d.Bundle(trial)
	if b == nil {
		if d.failed(trial) {
			none.Missing = runFailed
		}
		for i := range into {
			into[i].trials = append(into[i].trials, none)
		}
		return false, nil
	}
	none.Missing = noData
	data, err := dataset.Read(b)
	if err != nil {
		return true, err
	}
	answers, err := slo.Answers(data, queries)
	if err != nil {
		return true, err
	}
	for i, a := range answers {
		switch {
		case errors.Is(a.Err, expr.ErrNoData):
			into[i].trials = append(into[i].trials, none)
		case a.Err != nil:
			return true, a.Err
		case slo.TooFew(queries[i], a.Value):
			few := none
			few.Missing, few.Operations = tooFew, a.Value.N
			into[i].trials = append(into[i].trials, few)
		default:
			into[i].add(trial, a.Value)
		}
	}
	return true, nil
}

func (s *sample) add(trial Trial, v expr.Value) {
	s.values = append(s.values, v.Number)
	s.unit, s.better = v.Unit, v.Better
	t := valueOf(trial)
	t.Value, t.Infinite, t.AtLeast = finite(v.Number), math.IsInf(v.Number, 1), v.AtLeast
	s.trials = append(s.trials, t)
}

// valueOf is the entry of a trial without its value.
func valueOf(t Trial) TrialValue {
	return TrialValue{Trial: t.Name, Repetition: t.Repetition, Occasion: t.Occasion, Block: t.Block, Draws: t.Draws}
}

func (s *sample) value(q expr.Query, unit string) Value {
	v := Value{N: len(s.values), Unit: unit, Trials: s.trials}
	for _, t := range s.trials {
		if t.Missing == tooFew {
			v.Few, v.Needs = v.Few+1, slo.Least(q)
		}
		v.AtLeast = v.AtLeast || t.AtLeast
		if t.Infinite {
			v.Infinite++
		}
	}
	if v.N == 0 {
		return v
	}
	sorted := slices.Sorted(slices.Values(s.values))
	low, high := sorted[(v.N-1)/2], sorted[v.N/2]
	v.Median, v.Min, v.Max = finite((low+high)/2), finite(sorted[0]), finite(sorted[v.N-1])
	return v
}

func finite(v float64) *float64 {
	if math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// String formats a value: "412 ms (398 ms … 431 ms)".
func (v Value) String() string {
	at := func(p *float64) string {
		if p == nil {
			return "∞"
		}
		unit := v.Unit
		if unit == "" {
			unit = "digits"
		}
		return expr.Format(*p, unit)
	}
	switch v.N {
	case 0:
		if v.Few > 0 {
			return fmt.Sprintf("n<%d", v.Needs)
		}
		return "–"
	case 1:
		return v.bound() + at(v.Median)
	}
	return fmt.Sprintf("%s%s (%s … %s)", v.bound(), at(v.Median), at(v.Min), at(v.Max))
}

func (v Value) bound() string {
	if v.AtLeast {
		return "≥ "
	}
	return ""
}
