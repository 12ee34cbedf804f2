// Package comparison writes the answer of a comparison as CSV, as Markdown for a pull request, and in the text format
// of Go benchmarks, which benchstat reads. It shows the figures of the analysis and computes none.
package comparison

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
)

// WriteCSV writes one line for each comparison, one without b for each cell, one for each overall test, for each
// quantile of two levels, and for each run and each change of a history. cell makes a text safe for spreadsheets.
func WriteCSV(w io.Writer, r *compare.Result, cell func(string) string) error {
	out := &safe{csv.NewWriter(w), cell}
	out.row([]string{"kind", "metric", "context", "unit", "a", "b", "n", "mean", "sd", "cv", "median", "medianLow",
		"medianHigh", "min", "max", "unitOfAnalysis", "ratio", "low", "high", "p", "pHolm", "verdict", "scope", "reason",
		"warnings", "quantile", "method", "difference", "differenceLow", "differenceHigh"})
	for i := range r.Cells {
		c := &r.Cells[i]
		var warnings []string
		for _, x := range c.Warnings {
			warnings = append(warnings, x.Name+": "+x.Text)
		}
		out.row(slices.Concat([]string{"cell", c.Metric, context(c.Context), c.Unit, c.Level, "", strconv.Itoa(c.N)},
			numbers(c.Mean, c.SD, c.CV, c.Median, c.MedianLow, c.MedianHigh, c.Min, c.Max),
			make([]string, 9), []string{strings.Join(warnings, "; ")}))
	}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		answer(out, c, &c.Answer)
		if c.Within != nil {
			answer(out, c, c.Within)
		}
	}
	for i := range r.Overall {
		o := &r.Overall[i]
		out.row(slices.Concat([]string{"overall", o.Metric, context(o.Context), "", strings.Join(o.Levels, ";"), ""},
			make([]string, 9), []string{o.UnitOfAnalysis}, make([]string, 3), numbers(o.P), []string{"", "", o.Scope,
				o.Sentence}))
	}
	for i := range r.Distributions {
		quantiles(out, &r.Distributions[i])
	}
	for i := range r.History {
		history(out, &r.History[i])
	}
	out.Flush()
	return out.Error()
}

// safe writes cells that spreadsheets take as text or numbers, never as formulas.
type safe struct {
	*csv.Writer
	cell func(string) string
}

// columns is the number of cells of a line.
const columns = 30

// row writes a line, with empty cells at its end. A number stays as it is.
func (w *safe) row(cells []string) {
	cells = slices.Concat(cells, make([]string, columns-len(cells)))
	for i, text := range cells {
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			cells[i] = w.cell(text)
		}
	}
	_ = w.Write(cells) // Error has it
}

// quantiles writes a line for each quantile.
func quantiles(out *safe, d *compare.Distribution) {
	for i := range d.Quantiles {
		q := &d.Quantiles[i]
		n := ""
		if d.OfTrials() {
			n = strconv.Itoa(q.N)
		}
		out.row(slices.Concat([]string{"quantile", d.Metric, context(d.Context), "", d.A, d.B, n}, make([]string, 8),
			[]string{q.UnitOfAnalysis}, numbers(q.Ratio, q.Low, q.High), make([]string, 3), []string{q.Scope},
			make([]string, 2), numbers(&q.Q)))
	}
}

// answer writes one answer of a comparison.
func answer(out *safe, c *compare.Comparison, a *compare.Answer) {
	method, difference := a.Method, make([]string, 3)
	if w := a.Welch; w != nil {
		method, difference = w.Text, numbers(&w.Difference, &w.Low, &w.High)
	}
	out.row(slices.Concat([]string{"comparison", c.Metric, context(c.Context), c.Unit, c.A, c.B, strconv.Itoa(a.N)},
		make([]string, 8), []string{a.UnitOfAnalysis}, numbers(a.Ratio, a.Low, a.High, a.P, a.PHolm),
		[]string{string(a.Verdict), a.Scope, a.Reason, strings.Join(c.Doubts, "; ")}, make([]string, 1),
		[]string{method}, difference))
}

// history writes a line for each run and one for each change, which has the last run before it in a and the first
// after it in b.
func history(out *safe, h *compare.History) {
	start := func(kind, a, b string) []string {
		return []string{kind, h.Metric, context(h.Context), h.Unit, a, b}
	}
	for i, run := range h.Runs {
		warning := ""
		if _, outlier := marks(h, run); outlier {
			warning = "outlier"
		}
		out.row(slices.Concat(start("run", run, ""), make([]string, 4), numbers(h.Values[i]), make([]string, 13),
			[]string{warning}))
	}
	for _, c := range h.Changes {
		before := h.Runs[max(0, slices.Index(h.Runs, c.Run)-1)]
		out.row(slices.Concat(start("change", before, c.Run), make([]string, 10), numbers(c.Ratio, c.Low, c.High, nil, c.P),
			[]string{string(c.Word), "", fmt.Sprintf("between %s and %s with 95 %% confidence", c.From, c.To)}))
	}
}

// context joins the levels of the other factors: "size=4k;mode=read".
func context(levels []compare.Level) string {
	var parts []string
	for _, l := range levels {
		parts = append(parts, l.Factor+"="+l.Level)
	}
	return strings.Join(parts, ";")
}

func numbers(list ...*float64) []string {
	out := make([]string, len(list))
	for i, x := range list {
		if x != nil {
			out[i] = strconv.FormatFloat(*x, 'g', -1, 64)
		}
	}
	return out
}
