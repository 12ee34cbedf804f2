// Package table has the tables of a run's report. The HTML and the Markdown report show the same ones.
package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// Table has rows of cells, one for each column. All texts are plain: who shows them escapes them.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// Column of a table.
type Column struct {
	Name   string
	Number bool // its cells are aligned to the right
}

// Cell of a table.
type Cell struct {
	Text string
	// Sub are further lines, shown smaller.
	Sub []string
	// Bad lines are shown as failures, after Sub.
	Bad []string
	// Strong: the name of a row; Faint: a row or a value of less weight.
	Strong, Faint bool
}

// text and number are columns.
func text(name string) Column   { return Column{Name: name} }
func number(name string) Column { return Column{Name: name, Number: true} }

func cell(s string) Cell { return Cell{Text: s} }

// some is the cell of a count; empty for none.
func some(n int64) Cell {
	if n == 0 {
		return Cell{}
	}
	return cell(fmt.Sprint(n))
}

func (c Cell) empty() bool {
	return (c.Text == "" || c.Text == "–") && len(c.Sub) == 0 && len(c.Bad) == 0
}

// trimmed returns the table without the columns that are empty in all rows.
func (t Table) trimmed() Table {
	kept := Table{Rows: make([][]Cell, len(t.Rows))}
	for i, c := range t.Columns {
		if !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return !row[i].empty() }) {
			continue
		}
		kept.Columns = append(kept.Columns, c)
		for j, row := range t.Rows {
			kept.Rows[j] = append(kept.Rows[j], row[i])
		}
	}
	return kept
}

// latencyColumns are those of a distribution; a quantile with too few values is left out.
var latencyColumns = []Column{number("n"), number("median"), number("min … max"), number("mean"), number("p90"),
	number("p99"), number("p99.9")}

// latency has the cells of latencyColumns.
func latency(l summary.Latency) []Cell {
	n := cell(fmt.Sprint(l.N))
	if l.Censored > 0 {
		n.Sub = append(n.Sub, fmt.Sprintf("%d not ended", l.Censored))
	}
	if l.Infinite > 0 {
		n.Sub = append(n.Sub, fmt.Sprintf("%d dropped", l.Infinite))
	}
	if l.N == 0 {
		return []Cell{n, {}, {}, {}, {}, {}, {}}
	}
	middle := cell(l.Median.String())
	if m := l.Middle(); m != "" {
		middle.Sub = []string{"95 %: " + m}
	}
	mean := Cell{}
	if l.MeanNs != nil {
		mean.Text = duration(*l.MeanNs)
	}
	return []Cell{n, middle, cell(l.Range()), mean, quantile(l.P90), quantile(l.P99), quantile(l.P999)}
}

func quantile(q summary.Quantile) Cell {
	if q.NeedsN > 0 {
		return Cell{}
	}
	return cell(q.String())
}

// Markdown formats the table for a pull request or an issue.
func (t Table) Markdown() visible.Markup {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	var names, rules []string
	for _, c := range t.Columns {
		names = append(names, visible.Markdown(c.Name))
		rule := "---"
		if c.Number {
			rule = "--:"
		}
		rules = append(rules, rule)
	}
	line(names)
	line(rules)
	for _, row := range t.Rows {
		var cells []string
		for _, c := range row {
			s := visible.Markdown(c.Text)
			if c.Strong {
				s = "**" + s + "**"
			}
			for _, sub := range slices.Concat(c.Sub, c.Bad) {
				s += "<br>" + visible.Markdown(sub)
			}
			cells = append(cells, s)
		}
		line(cells)
	}
	return visible.Markup(b.String())
}
