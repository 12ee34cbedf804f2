package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
)

// distributionsOf prints the quantile ratios of two runs, and those of trials.
func (p *printer) distributionsOf(list []compare.Distribution) {
	byRuns := func(d compare.Distribution) bool { return d.StepsA > 0 }
	p.quantilesOfTrials(slices.DeleteFunc(slices.Clone(list), byRuns))
	if list = slices.DeleteFunc(slices.Clone(list), func(d compare.Distribution) bool { return !byRuns(d) }); len(list) == 0 {
		return
	}
	t := table{head: []string{"Within the two runs", "quantile", "ratio b/a", "95 % interval"}}
	for _, d := range list {
		for _, q := range d.Quantiles {
			interval := "–"
			if q.Low != nil {
				interval = fmt.Sprintf("[%.3g, %.3g]", *q.Low, *q.High)
			}
			ratio := "–"
			if q.Ratio != nil {
				ratio = fmt.Sprintf("×%.3g", *q.Ratio)
			}
			t.row(d.Metric, fmt.Sprintf("p%g", 100*q.Q), ratio, interval)
		}
	}
	p.table(t)
	p.note(fmt.Sprintf("a: %s, b: %s; how these two runs differ, not whether two others would", list[0].A, list[0].B))
}

// history prints the changes of each metric.
func (p *printer) history(list []compare.History) {
	if len(list) == 0 {
		return
	}
	t := table{head: []string{"Metric", "runs", "first", "last", "changes"}, left: map[int]bool{4: true}}
	for _, h := range list {
		first, last, n := h.Ends()
		name := h.Metric
		for _, l := range h.Context {
			name += ", " + l.Level
		}
		var changes []string
		for _, c := range h.Changes {
			changes = append(changes, c.Run)
		}
		t.row(name, fmt.Sprint(n), compare.Figure(first, h.Unit), compare.Figure(last, h.Unit),
			strings.Join(changes, ", "))
	}
	p.table(t)
	for _, h := range list {
		if len(h.Changes) == 0 {
			p.note(h.Sentence)
		}
	}
	p.note(list[0].Parameters.String())
}

// quantilesOfTrials prints the ratios of the quantiles of trials.
func (p *printer) quantilesOfTrials(list []compare.Distribution) {
	if len(list) == 0 {
		return
	}
	t := table{head: []string{"Quantiles of trials", "b / a", "quantile", "n", "ratio b/a", "95 % interval"}}
	var units []string
	for _, d := range list {
		names := d.B + " / " + d.A
		for _, l := range d.Context {
			names += ", " + l.Level
		}
		for _, q := range d.Quantiles {
			t.row(d.Metric, names, fmt.Sprintf("p%g", 100*q.Q), fmt.Sprint(q.N), fmt.Sprintf("×%.3g", *q.Ratio),
				fmt.Sprintf("[%.3g, %.3g]", *q.Low, *q.High))
			if unit := q.UnitOfAnalysis + " (" + q.Scope + ")"; !slices.Contains(units, unit) {
				units = append(units, unit)
			}
		}
	}
	p.table(t)
	p.note("one value of a quantile for each trial, where all have the operations that it needs (p90 29, p99 299); unit: " +
		strings.Join(units, ", ") + "; intervals by rank tests, not adjusted for the number of rows: no verdicts")
}
