package terminal

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
)

// latencies is a table whose last columns are of latencies: the median, and the quantiles that a row has enough values
// for, with the greatest value; where no row has a quantile, the least and the greatest value.
type latencies struct {
	head []string
	rows []latencyRow
}

// latencyRow is a row; of nil: it has no latencies.
type latencyRow struct {
	of    *summary.Latency
	cells []string
}

func (t *latencies) row(of *summary.Latency, cells ...string) {
	t.rows = append(t.rows, latencyRow{of, cells})
}

// latencyColumn is a column of quantiles.
type latencyColumn struct {
	name string
	of   func(*summary.Latency) summary.Quantile
}

// quantiles are the columns that a row has enough values for.
func (t *latencies) quantiles() []latencyColumn {
	columns := []latencyColumn{
		{"p90", func(l *summary.Latency) summary.Quantile { return l.P90 }},
		{"p99", func(l *summary.Latency) summary.Quantile { return l.P99 }},
	}
	return slices.DeleteFunc(columns, func(c latencyColumn) bool {
		return !slices.ContainsFunc(t.rows, func(r latencyRow) bool { return r.of != nil && c.of(r.of).NeedsN == 0 })
	})
}

func (t *latencies) table() table {
	quantiles := t.quantiles()
	out := table{head: append(slices.Clone(t.head), "median")}
	for _, c := range quantiles {
		out.head = append(out.head, c.name)
	}
	last, extremes := "max", summary.Latency.Max
	if len(quantiles) == 0 {
		last, extremes = "min … max", summary.Latency.Range
	}
	out.head = append(out.head, last)
	for _, r := range t.rows {
		cells := slices.Clone(r.cells)
		if r.of == nil {
			out.row(append(cells, make([]string, len(out.head)-len(cells))...)...)
			continue
		}
		cells = append(cells, r.of.Median.String())
		for _, c := range quantiles {
			cells = append(cells, short(c.of(r.of)))
		}
		out.row(append(cells, extremes(*r.of))...)
	}
	return out
}

// note explains the cells of quantiles that have too few values.
func (t *latencies) note() string {
	for _, c := range t.quantiles() {
		for _, r := range t.rows {
			if r.of != nil && c.of(r.of).NeedsN > 0 {
				return "; n<29: too few values for that quantile"
			}
		}
	}
	return ""
}
