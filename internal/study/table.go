package study

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/plan/expr"
)

// Table has a row for each cell.
type Table struct {
	Name      string   `json:"name"`
	Factors   []string `json:"factors"`
	Responses []string `json:"responses"`
	Rows      []Row    `json:"rows"`
}

// Row is one cell.
type Row struct {
	Levels []Level `json:"levels"`
	Done   int     `json:"done"` // trials with a complete bundle
	Of     int     `json:"of"`
	// Values of the table's responses, in their order.
	Values []Value `json:"values"`
}

// Value is what the trials of a cell gave for one response.
type Value struct {
	N      int      `json:"n"` // trials that had one
	Median *float64 `json:"median"`
	Min    *float64 `json:"min"`
	Max    *float64 `json:"max"`
	Unit   string   `json:"unit"`
	// AtLeast: a trial's value is only known from below.
	AtLeast bool `json:"atLeast,omitempty"`
	// Infinite: so many trials had an infinite one. Median is absent if it is.
	Infinite int `json:"infinite,omitempty"`
	// Trials has the value of each trial that had one, in their order; null: infinite.
	Trials []*float64 `json:"trials"`
}

// Responses parses what is to be read from each trial. Each is one call, such
// as p50(pods) or rate(pods).
func Responses(texts []string) ([]expr.Query, error) {
	var queries []expr.Query
	for _, text := range texts {
		// A response is half of an objective.
		p, err := expr.Compile(fmt.Sprintf("(%s) == (%s)", text, text), expr.Env{})
		if err != nil {
			return nil, fmt.Errorf("response %q: %w", text, err)
		}
		qs := p.Queries()
		if len(qs) != 2 || qs[0].String() != qs[1].String() { // once on each side
			return nil, fmt.Errorf("response %q: must be one call, such as p50(pods) or rate(pods)", text)
		}
		queries = append(queries, qs[0])
	}
	return queries, nil
}

// Table reads every trial that is done.
func (d *Dir) Table() (*Table, error) {
	queries, err := Responses(d.Responses)
	if err != nil {
		return nil, err
	}
	t := &Table{Name: d.Name, Factors: d.Factors}
	for _, q := range queries {
		t.Responses = append(t.Responses, q.String())
	}
	samples := make([][]sample, len(d.Cells))
	t.Rows = make([]Row, len(d.Cells))
	for i, c := range d.Cells {
		t.Rows[i].Levels, samples[i] = c.Levels, make([]sample, len(queries))
	}
	for _, trial := range d.Trials {
		row := &t.Rows[trial.Cell]
		row.Of++
		b := d.Bundle(trial)
		if b == nil {
			continue
		}
		row.Done++
		data, err := dataset.Read(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", trial.Name, err)
		}
		if err := answer(data, queries, samples[trial.Cell]); err != nil {
			return nil, fmt.Errorf("%s: %w", trial.Name, err)
		}
	}
	for i := range t.Rows {
		for j, q := range queries {
			t.Rows[i].Values = append(t.Rows[i].Values, samples[i][j].value(q.Func.Unit()))
		}
	}
	return t, nil
}

type sample struct {
	values  []float64
	atLeast bool
}

func answer(data *dataset.Data, queries []expr.Query, into []sample) error {
	answers, err := slo.Answers(data, queries)
	if err != nil {
		return err
	}
	for i, a := range answers {
		switch {
		case errors.Is(a.Err, expr.ErrNoData):
		case a.Err != nil:
			return a.Err
		default:
			into[i].values = append(into[i].values, a.Value.Number)
			into[i].atLeast = into[i].atLeast || a.Value.AtLeast
		}
	}
	return nil
}

func (s *sample) value(unit string) Value {
	v := Value{N: len(s.values), Unit: unit, AtLeast: s.atLeast, Trials: []*float64{}}
	for _, x := range s.values {
		v.Trials = append(v.Trials, finite(x))
	}
	if v.N == 0 {
		return v
	}
	slices.Sort(s.values)
	low, high := s.values[(v.N-1)/2], s.values[v.N/2]
	for _, x := range s.values {
		if math.IsInf(x, 1) {
			v.Infinite++
		}
	}
	v.Median, v.Min, v.Max = finite((low+high)/2), finite(s.values[0]), finite(s.values[v.N-1])
	return v
}

func finite(v float64) *float64 {
	if math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// String is a value for people: "412 ms (398 ms … 431 ms)".
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

// DefaultResponses are median latency and rate of each action that a Benchmark
// does at a rate, and the median latency of every other.
func DefaultResponses(actions []Action) []string {
	var list []string
	for _, a := range actions {
		list = append(list, expr.Query{Func: expr.Quantile, Q: 0.5, Metric: expr.Metric{Action: a.Name}}.String())
		if a.Repeated {
			list = append(list, expr.Query{Func: expr.Rate, Metric: expr.Metric{Action: a.Name}}.String())
		}
		for _, m := range a.IO {
			list = append(list, expr.Query{Func: expr.IOPS, Metric: expr.Metric{Action: a.Name, Name: m}}.String())
		}
	}
	return list
}

// Action is what responses are made for by default.
type Action struct {
	Name     string
	Repeated bool     // at a rate, or in an episode
	IO       []string // "read", "write"
}
