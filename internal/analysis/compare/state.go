package compare

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// study is a comparison in progress.
type study struct {
	*layout
	options *Options
	result  *Result
	cells   map[key]int      // of result.Cells
	weak    map[key][]string // why a cell cannot be judged
	doubts  map[key][]doubt  // flags of a cell's trials that weaken a verdict
}

// newStudy starts a comparison with an empty result.
func newStudy(t *observation.Table, o *Options) (*study, error) {
	l, err := lay(t, o)
	if err != nil {
		return nil, err
	}
	return &study{layout: l, options: o, cells: map[key]int{}, weak: map[key][]string{},
		doubts: map[key][]doubt{}, result: &Result{Format: Format,
			Factor: t.Factors[l.factor], Levels: l.levels, Confidence: stats.Confidence, Cells: []Cell{},
			Comparisons: []Comparison{}, Rankings: []Ranking{}, Flags: []Flag{}, Notes: []string{}, Sentences: []string{}}}, nil
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
