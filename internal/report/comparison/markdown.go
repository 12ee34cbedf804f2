package comparison

import (
	"fmt"
	"io"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/report/table"
)

// WriteMarkdown writes the answer for a pull request: the sentences, a table of the comparisons, and the cells folded.
func WriteMarkdown(w io.Writer, r *compare.Result) error {
	var b strings.Builder
	for _, s := range r.Sentences {
		fmt.Fprintf(&b, "- %s\n", table.Escape(s))
	}
	if len(r.Comparisons) > 0 {
		fmt.Fprint(&b, "\n| metric | b / a | ratio b/a | p | adjusted | verdict |\n|---|---|---|---|---|---|\n")
	}
	for i := range r.Comparisons {
		markdownRow(&b, &r.Comparisons[i])
	}
	for i := range r.Overall {
		fmt.Fprintf(&b, "\n%s\n", table.Escape(r.Overall[i].Sentence))
	}
	for i := range r.Pareto {
		markdownPareto(&b, &r.Pareto[i])
	}
	markdownQuantiles(&b, r.Distributions)
	markdownHistory(&b, r.History)
	if len(r.Cells) > 0 {
		markdownCells(&b, r.Cells)
	}
	b.WriteString("\n")
	for _, m := range r.Models {
		fmt.Fprintf(&b, "Unit of analysis: %s: %s. ", table.Escape(m.Unit), table.Escape(m.Text))
	}
	if len(r.Comparisons) > 0 {
		fmt.Fprintf(&b, "Adjusted: p by %s. CV: sd ÷ mean.\n", table.Escape(r.Family))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nNote: %s.\n", table.Escape(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdownCells writes the levels of each metric, folded.
func markdownCells(b *strings.Builder, list []compare.Cell) {
	fmt.Fprint(b, "\n<details><summary>Cells</summary>\n\n| metric | level | n | mean | sd | CV | median | "+
		"95 % interval | warnings |\n|---|---|---|---|---|---|---|---|---|\n")
	for i := range list {
		c := &list[i]
		var warnings []string
		for _, x := range c.Warnings {
			warnings = append(warnings, x.Text)
		}
		f := c.Column
		fmt.Fprintf(b, "| %s | %s | %d | %s | %s | %s | %s | %s … %s | %s |\n",
			table.Escape(named(c.Metric, c.Unit, c.Context)),
			table.Escape(c.Level), c.N, f(c.Mean), compare.Column(c.SD, c.Unit), compare.Percent(c.CV), f(c.Median),
			f(c.MedianLow), f(c.MedianHigh), table.Escape(strings.Join(warnings, "; ")))
	}
	fmt.Fprint(b, "\n</details>\n")
}

// markdownRow writes a comparison; a second answer is on a second line of its cells.
func markdownRow(b *strings.Builder, c *compare.Comparison) {
	ratio, p, adjusted := c.Times(), compare.P(c.P), compare.P(c.PHolm)
	verdict := fmt.Sprintf("**%s** %s", c.Verdict, table.Escape(c.Scope))
	if w := c.Within; w != nil {
		ratio, p, adjusted = ratio+"<br>"+w.Times(), p+"<br>"+compare.P(w.P), adjusted+"<br>"+compare.P(w.PHolm)
		verdict += fmt.Sprintf("<br>**%s** %s", w.Verdict, table.Escape(w.Scope))
	}
	if len(c.Doubts) > 0 {
		verdict += "<br>doubtful: " + table.Escape(strings.Join(c.Doubts, ", "))
	}
	fmt.Fprintf(b, "| %s | %s / %s | %s | %s | %s | %s |\n",
		table.Escape(named(c.Metric, c.Unit, c.Context)), table.Escape(c.B),
		table.Escape(c.A), ratio, p, adjusted, verdict)
}

// markdownPareto writes the levels by cost and one metric.
func markdownPareto(b *strings.Builder, p *compare.Pareto) {
	fmt.Fprintf(b, "\n| %s, %s is better | n | median | %s (%s), median | |\n|---|---|---|---|---|\n",
		table.Escape(named(p.Metric, p.Unit, p.Context)), p.Direction, table.Escape(p.Cost), table.Escape(p.Currency))
	for i := range p.Points {
		x := &p.Points[i]
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s |\n", table.Escape(x.Level), x.N, compare.Column(x.Value, p.Unit),
			compare.Column(x.Cost, p.Currency), table.Escape(x.String()))
	}
}

// markdownQuantiles writes the quantile ratios of trials, and those within two runs.
func markdownQuantiles(b *strings.Builder, list []compare.Distribution) {
	for _, ofTrials := range []bool{true, false} {
		note := compare.QuantilesNote(list, ofTrials)
		if note == "" {
			continue
		}
		t := table.Table{Columns: []table.Column{{Name: "metric"}, {Name: "b / a"}, {Name: "quantile"},
			{Name: "ratio b/a"}}}
		if ofTrials {
			t.Columns = append(t.Columns, table.Column{Name: "n", Number: true})
		}
		for i := range list {
			d := &list[i]
			if d.OfTrials() != ofTrials {
				continue
			}
			for _, q := range d.Quantiles {
				row := []table.Cell{{Text: named(d.Metric, "", d.Context)}, {Text: d.B + " / " + d.A},
					{Text: fmt.Sprintf("p%g", 100*q.Q)}, {Text: q.Times()}}
				if ofTrials {
					row = append(row, table.Cell{Text: fmt.Sprint(q.N)})
				}
				t.Rows = append(t.Rows, row)
			}
		}
		fmt.Fprintf(b, "\nQuantiles %s:\n\n%s\n%s.\n", map[bool]string{true: "of trials", false: "within the two runs"}[ofTrials],
			t.Markdown(), table.Escape(note))
	}
}
