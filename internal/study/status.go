package study

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/precision"
)

// Status is how far a study is, and what it lacks.
type Status struct {
	Name string `json:"name"`
	// Done and Of count the trials of the occasions that have begun, PlannedTrials those of all planned ones.
	Done          int `json:"done"`
	Of            int `json:"of"`
	PlannedTrials int `json:"plannedTrials"`
	Failed        int `json:"failed"`
	// Invalid counts those of Done whose figures must not be used.
	Invalid Invalid `json:"invalid"`
	// PlannedOccasions is the planned number; Occasions have begun.
	PlannedOccasions int              `json:"plannedOccasions"`
	Occasions        []OccasionStatus `json:"occasions"`
	// LeftNs estimates the time of the remaining trials of the begun occasions, PlannedLeftNs of all planned ones, from
	// the median of the finished trials of each cell; null: none is finished.
	LeftNs        *int64         `json:"leftNs"`
	PlannedLeftNs *int64         `json:"plannedLeftNs"`
	Coverage      Coverage       `json:"coverage"`
	Metrics       []MetricStatus `json:"metrics"`
	WarmUps       []WarmUp       `json:"precondition,omitempty"`
	Warnings      []string       `json:"warnings"`
}

// MetricStatus is how precisely a response is known.
type MetricStatus struct {
	TableMetric
	// Wanted is the half-width that the intervals should have, as a share of the median: the margin, or 5 %.
	Wanted float64      `json:"wanted"`
	Cells  []CellStatus `json:"cells"`
}

// CellStatus is the precision of one response of one cell.
type CellStatus struct {
	Levels []Level `json:"levels"`
	N      int     `json:"n"` // trials with a finite value
	// Median of all values, also infinite ones; null: there is none, or it is infinite.
	Median *float64 `json:"median"`
	// HalfWidth of the 95 % interval of the median by order statistics, as a share of the median; null with fewer than
	// six values.
	HalfWidth *float64 `json:"halfWidth"`
	// MeanHalfWidth is the half-width that samples of N values have in the mean, by CONFIRM; null with fewer than ten
	// values. It decides then whether more blocks are needed, because HalfWidth varies by chance.
	MeanHalfWidth *float64 `json:"meanHalfWidth"`
	// OccasionHalfWidth of the 95 % interval of the geometric mean, with the occasion as the unit, as a share: a ratio
	// less 1. It includes the differences between occasions, which HalfWidth does not; null with fewer than two
	// occasions, or if none has two values.
	OccasionHalfWidth *float64 `json:"occasionHalfWidth"`
	// Between and Within are the variances of the values' logarithms between occasions and within them; null where
	// OccasionHalfWidth is.
	Between *float64 `json:"varianceBetween"`
	Within  *float64 `json:"varianceWithin"`
	// Needed is what more is needed until MeanHalfWidth, or HalfWidth with fewer than ten values, and OccasionHalfWidth
	// are the wanted one; nil: nothing. It is occasions where the variance between them dominates, because more blocks
	// of the same occasions do not narrow the interval, and where only OccasionHalfWidth is above the wanted one; else
	// blocks.
	Needed *Needed `json:"needed"`
	// Problem says why no number of trials can be given, or why it may be wrong.
	Problem string `json:"problem,omitempty"`
}

// MedianText formats the median: "412 ms".
func (c *CellStatus) MedianText(unit string) string {
	if c.Median == nil {
		return "–"
	}
	if unit == "" {
		unit = "digits"
	}
	return expr.Format(*c.Median, unit)
}

// Wider says why nothing is needed although the interval of the values is wider than wanted; empty: it is not wider, or
// more is needed.
func (c *CellStatus) Wider(wanted float64) string {
	if c.Needed != nil || c.HalfWidth == nil || c.MeanHalfWidth == nil || *c.HalfWidth <= wanted {
		return ""
	}
	return fmt.Sprintf("samples of %d have ± %.3g %% in the mean; this one is wider by chance", c.N,
		100**c.MeanHalfWidth)
}

// Needed is a number of further occasions, or of further blocks.
type Needed struct {
	Level string `json:"level"` // occasions, blocks
	N     int    `json:"n"`
	// Capped says that more than N is needed: an estimate is not extrapolated beyond twice what there is.
	Capped bool `json:"capped"`
	// Method is the source of N: minimum (an interval needs six values), scaled, or confirm (resampling).
	Method string `json:"method"`
}

// String is "3 more blocks", or "at least 3 more blocks".
func (n *Needed) String() string {
	word := n.Level
	if n.N == 1 {
		word = word[:len(word)-1]
	}
	if n.Capped {
		return fmt.Sprintf("at least %d more %s", n.N, word)
	}
	return fmt.Sprintf("%d more %s", n.N, word)
}

// The levels of a design at which trials can be added.
const (
	addOccasions = "occasions"
	addBlocks    = "blocks"
)

// defaultWanted is the wanted half-width of a response without a margin.
const defaultWanted = 0.05

// Status reads the state of the study from its bundles.
func (d *Dir) Status() (*Status, error) {
	table, err := d.Table()
	if err != nil {
		return nil, err
	}
	s := &Status{Name: d.Name, PlannedOccasions: max(d.Planned, d.OccasionCount()), WarmUps: table.WarmUps,
		Invalid: d.InvalidTrials()}
	var starts [][]time.Time
	var took []timed
	for i, trials := range d.byOccasion() {
		o := d.occasionStatus(d.occasion(i), trials)
		s.Occasions = append(s.Occasions, o)
		s.Done, s.Of, s.Failed = s.Done+o.Done, s.Of+o.Of, s.Failed+o.Failed
		starts, took = append(starts, o.starts), append(took, o.took...)
	}
	s.Coverage, s.Warnings = coverageOf(starts), append(sameDay(s.Occasions), unsteady(s.WarmUps)...)
	planned := (s.PlannedOccasions - d.OccasionCount()) * d.Blocks
	s.PlannedTrials = s.Of + planned*len(d.Cells)
	s.LeftNs = d.left(took, 0)
	s.PlannedLeftNs = d.left(took, planned)
	for i, m := range table.Metrics {
		s.Metrics = append(s.Metrics, metricStatus(table, i, m))
	}
	return s, nil
}

// unsteady names the cells whose rounds are steady, but not the time within the last of them.
func unsteady(list []WarmUp) (warnings []string) {
	for _, w := range list {
		if w.Steady != nil && *w.Steady && w.Within != nil && !w.Within.Steady {
			warnings = append(warnings, fmt.Sprintf("precondition, occasion %d: %s is steady over its rounds, but not "+
				"within the last one (MSER-5: %s)", w.Occasion, w.Cell, w.Within))
		}
	}
	return warnings
}

// left estimates how long the remaining trials and so many further blocks take; nil: no trial is finished.
func (d *Dir) left(took []timed, blocks int) *int64 {
	if len(took) == 0 {
		return nil
	}
	all := make([]float64, 0, len(took))
	of := make([][]float64, len(d.Cells))
	for _, t := range took {
		all = append(all, float64(t.long))
		of[t.cell] = append(of[t.cell], float64(t.long))
	}
	remaining := make([]int, len(d.Cells))
	for _, t := range d.Trials {
		if d.Bundle(t) == nil {
			remaining[t.Cell]++
		}
	}
	sum := 0.0
	for cell, n := range remaining {
		values := of[cell]
		if len(values) == 0 {
			values = all
		}
		sum += float64(n+blocks) * stats.Median(values)
	}
	ns := int64(sum)
	return &ns
}

func metricStatus(t *Table, response int, m TableMetric) MetricStatus {
	s := MetricStatus{TableMetric: m, Wanted: m.Margin}
	if s.Wanted == 0 {
		s.Wanted = defaultWanted
	}
	for _, r := range t.Rows {
		s.Cells = append(s.Cells, cellStatus(r.Levels, r.Values[response].Trials, s.Wanted))
	}
	return s
}

// cellStatus judges the values of one response of a cell.
func cellStatus(levels []Level, trials []TrialValue, wanted float64) CellStatus {
	c := CellStatus{Levels: levels}
	var values, infinite []float64
	occasions := map[int][]float64{}
	bounds := 0
	for _, t := range trials {
		if t.Infinite {
			infinite = append(infinite, math.Inf(1))
		}
		if t.AtLeast {
			bounds++
		}
		if t.Value != nil {
			values = append(values, *t.Value)
			occasions[t.Occasion] = append(occasions[t.Occasion], *t.Value)
		}
	}
	c.N = len(values)
	if len(values)+len(infinite) == 0 {
		c.Problem = "no values"
		return c
	}
	c.Median = finite(stats.Median(slices.Concat(values, infinite)))
	if len(infinite) > 0 {
		c.Problem = fmt.Sprintf("%d infinite: the width of the interval has no end", len(infinite))
		return c
	}
	decision, ok := precision.Next(values, wanted)
	if !ok {
		c.Problem = "a value is not positive: a width relative to the median has no meaning"
		return c
	}
	if !math.IsNaN(decision.HalfWidth) {
		c.HalfWidth = &decision.HalfWidth
	}
	if !math.IsNaN(decision.Mean) {
		c.MeanHalfWidth = &decision.Mean
	}
	components, several := componentsOf(occasions)
	if several {
		c.Between, c.Within = &components.Between, &components.Within
		wide := math.Expm1(components.HalfWidth())
		c.OccasionHalfWidth = &wide
	}
	if decision.Modes {
		c.Problem = "the values are of two groups or more: the width will not converge"
	}
	if bounds > 0 {
		c.Problem = fmt.Sprintf("%d of %d values are lower bounds: the true median may be greater", bounds, c.N)
	}
	if several && (components.Add == precision.Occasions || decision.Done) {
		c.Needed = occasionsFor(components, *c.OccasionHalfWidth, wanted)
	}
	if c.Needed == nil && !decision.Done {
		c.Needed = &Needed{Level: addBlocks, N: decision.Total - len(values), Capped: decision.Capped,
			Method: string(decision.Method)}
	}
	return c
}

// componentsOf estimates the variances of the logarithms of positive values.
func componentsOf(occasions map[int][]float64) (precision.Components, bool) {
	var logs [][]float64
	for _, number := range slices.Sorted(maps.Keys(occasions)) {
		var of []float64
		for _, v := range occasions[number] {
			of = append(of, math.Log(v))
		}
		logs = append(logs, of)
	}
	return precision.VarianceOf(logs)
}

// occasionsFor is the number of further occasions until the interval with the occasion as its unit has the wanted
// half-width. nil: none is needed.
func occasionsFor(v precision.Components, halfWidth, wanted float64) *Needed {
	if halfWidth <= wanted {
		return nil
	}
	total, capped := precision.More(v.Occasions, halfWidth, wanted)
	return &Needed{Level: addOccasions, N: total - v.Occasions, Capped: capped, Method: string(precision.Scaled)}
}
