package comparison

import (
	"fmt"
	"io"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/report/table"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// WriteMarkdown writes the answer for a pull request: the sentences, a table of the comparisons, and the cells folded.
func WriteMarkdown(w io.Writer, r *compare.Result) error {
	var b visible.Document
	for _, s := range r.Sentences {
		b.Printf("- %s\n", s)
	}
	if len(r.Comparisons) > 0 {
		b.Printf("\n| metric | b / a | ratio b/a | p | adjusted | verdict |\n|---|---|---|---|---|---|\n")
	}
	for i := range r.Comparisons {
		markdownRow(&b, &r.Comparisons[i])
	}
	for i := range r.Overall {
		b.Printf("\n%s\n", r.Overall[i].Sentence)
	}
	markdownQuantiles(&b, r.Distributions)
	markdownHistory(&b, r.History)
	if len(r.Cells) > 0 {
		markdownCells(&b, r.Cells)
	}
	b.Printf("\n")
	for _, m := range r.Models {
		b.Printf("Unit of analysis: %s: %s. ", m.Unit, m.Text)
	}
	if len(r.Comparisons) > 0 {
		b.Printf("Adjusted: p by %s. CV: sd ÷ mean.\n", r.Family)
	}
	for _, n := range r.Notes {
		b.Printf("\nNote: %s.\n", n)
	}
	_, err := b.WriteTo(w)
	return err
}

// markdownCells writes the levels of each metric, folded.
func markdownCells(b *visible.Document, list []compare.Cell) {
	b.Printf("\n<details><summary>Cells</summary>\n\n| metric | level | n | mean | sd | CV | median | " +
		"95 %% interval | warnings |\n|---|---|---|---|---|---|---|---|---|\n")
	for i := range list {
		c := &list[i]
		var warnings []string
		for _, x := range c.Warnings {
			warnings = append(warnings, x.Text)
		}
		f := c.Column
		b.Printf("| %s | %s | %d | %s | %s | %s | %s | %s … %s | %s |\n",
			named(c.Metric, c.Unit, c.Context),
			c.Level, c.N, f(c.Mean), compare.Column(c.SD, c.Unit), compare.Percent(c.CV), f(c.Median),
			f(c.MedianLow), f(c.MedianHigh), strings.Join(warnings, "; "))
	}
	b.Printf("\n</details>\n")
}

// markdownRow writes a comparison; a second answer is on a second line of its cells.
func markdownRow(b *visible.Document, c *compare.Comparison) {
	f := visible.Markdownf
	ratio, p, adjusted := f("%s", c.Times()), f("%s", compare.P(c.P)), f("%s", compare.P(c.PHolm))
	verdict := f("**%s** %s", c.Verdict, c.Scope)
	if w := c.Within; w != nil {
		ratio, p = f("%s<br>%s", ratio, w.Times()), f("%s<br>%s", p, compare.P(w.P))
		adjusted = f("%s<br>%s", adjusted, compare.P(w.PHolm))
		verdict += f("<br>**%s** %s", w.Verdict, w.Scope)
	}
	if len(c.Doubts) > 0 {
		verdict += f("<br>doubtful: %s", strings.Join(c.Doubts, ", "))
	}
	b.Printf("| %s | %s / %s | %s | %s | %s | %s |\n",
		named(c.Metric, c.Unit, c.Context), c.B,
		c.A, ratio, p, adjusted, verdict)
}

// markdownQuantiles writes the quantile ratios of trials, and those within two runs.
func markdownQuantiles(b *visible.Document, list []compare.Distribution) {
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
		b.Printf("\nQuantiles %s:\n\n%s\n%s.\n", map[bool]string{true: "of trials", false: "within the two runs"}[ofTrials],
			t.Markdown(), note)
	}
}
