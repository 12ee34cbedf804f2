package compare

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// key is a cell of a metric, as indices of the table's.
type key = observation.Key

// study is a comparison in progress.
type study struct {
	*layout
	options *Options
	result  *Result
	cells   map[key]int      // of result.Cells
	weak    map[key][]string // why a cell cannot be judged
}

// Run compares the levels of a factor. It is an error if the options name what the table does not have.
func Run(t *observation.Table, o Options) (*Result, error) {
	l, err := lay(t, &o)
	if err != nil {
		return nil, err
	}
	if err := l.bounded(o.Against); err != nil {
		return nil, err
	}
	s := &study{layout: l, options: &o, cells: map[key]int{}, weak: map[key][]string{}, result: &Result{Format: Format,
		Factor: t.Factors[l.factor], Levels: l.levels, Confidence: stats.Confidence, Cells: []Cell{},
		Comparisons: []Comparison{}, Rankings: []Ranking{}, Flags: []Flag{}, Notes: []string{}, Sentences: []string{}}}
	s.describe()
	s.warnOfOrder()
	if err := s.limit(); err != nil {
		return nil, err
	}
	s.blockSizes()
	for m := range t.Metrics {
		for c := range l.contexts {
			s.compare(m, &l.contexts[c])
		}
	}
	s.rank()
	s.model()
	s.summarise()
	return s.result, nil
}

// at is the key of a level; false if the context has no values of this metric there.
func (s *study) at(metric int, c *context, level string) (key, bool) {
	cell, ok := c.cells[level]
	k := key{Metric: metric, Cell: cell}
	if !ok {
		return k, false
	}
	_, ok = s.cells[k]
	return k, ok
}

func (s *study) cell(k key) *Cell { return &s.result.Cells[s.cells[k]] }

// warn adds a warning to a cell.
func (s *study) warn(k key, name, format string, args ...any) {
	c := s.cell(k)
	c.Warnings = append(c.Warnings, Warning{Name: name, Text: fmt.Sprintf(format, args...)})
}

// known are the finite values of trials, in order.
func known(values []observation.Value) []float64 {
	list := make([]float64, 0, len(values))
	for _, v := range values {
		if v.State == observation.Known {
			list = append(list, v.Value)
		}
	}
	return list
}

// medians are those of each group, of the groups that have a known value.
func (s *study) medians(values []observation.Value) []float64 {
	var list []float64
	for _, g := range s.grouping.groups(values) {
		if of := known(g); len(of) > 0 {
			list = append(list, stats.Median(of))
		}
	}
	return list
}

// grouped says whether groups of several values stand above the single trials of these cells.
func (s *study) grouped(cells ...key) bool {
	if s.grouping.name == "" {
		return false
	}
	return slices.ContainsFunc(cells, func(k key) bool {
		values := s.table.Series[k]
		return len(s.grouping.groups(values)) < len(values)
	})
}
