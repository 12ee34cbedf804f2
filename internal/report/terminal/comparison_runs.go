package terminal

import (
	"fmt"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
)

// distributionsOf prints the quantile ratios of two runs, and those of trials.
func (p *printer) distributionsOf(list []compare.Distribution) {
	p.quantilesOfTrials(list)
	t := table{head: []string{"Within the two runs", "quantile", "ratio b/a", "95 % interval"}}
	for i := range list {
		if d := &list[i]; !d.OfTrials() {
			for _, q := range d.Quantiles {
				ratio, interval := quantile(&q)
				t.row(d.Metric, fmt.Sprintf("p%g", 100*q.Q), ratio, interval)
			}
		}
	}
	p.quantiles(t, compare.QuantilesNote(list, false))
}

// quantiles prints a table and how to read it.
func (p *printer) quantiles(t table, note string) {
	if note != "" {
		p.table(t)
		p.note(note)
	}
}

// quantile is a ratio and its interval.
func quantile(q *compare.QuantileRatio) (ratio, interval string) {
	ratio, interval = "–", "–"
	if q.Ratio != nil {
		ratio = fmt.Sprintf("×%.3g", *q.Ratio)
	}
	if q.Low != nil {
		interval = fmt.Sprintf("[%.3g, %.3g]", *q.Low, *q.High)
	}
	return ratio, interval
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
	t := table{head: []string{"Quantiles of trials", "b / a", "quantile", "n", "ratio b/a", "95 % interval"}}
	for i := range list {
		d := &list[i]
		if !d.OfTrials() {
			continue
		}
		names := d.B + " / " + d.A
		for _, l := range d.Context {
			names += ", " + l.Level
		}
		for _, q := range d.Quantiles {
			ratio, interval := quantile(&q)
			t.row(d.Metric, names, fmt.Sprintf("p%g", 100*q.Q), fmt.Sprint(q.N), ratio, interval)
		}
	}
	p.quantiles(t, compare.QuantilesNote(list, true))
}
