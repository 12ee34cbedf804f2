// Package comparison writes the answer of a comparison as CSV, as Markdown for a pull request, and in the text format
// of Go benchmarks, which benchstat reads. It shows the figures of the analysis and computes none.
package comparison

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
)

// WriteCSV writes one line for each comparison, and one without b for each cell.
func WriteCSV(w io.Writer, r *compare.Result) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"kind", "metric", "context", "unit", "a", "b", "n", "mean", "sd", "cv", "median", "medianLow",
		"medianHigh", "min", "max", "unitOfAnalysis", "ratio", "low", "high", "p", "pHolm", "verdict", "scope", "reason",
		"warnings"})
	for i := range r.Cells {
		c := &r.Cells[i]
		var warnings []string
		for _, x := range c.Warnings {
			warnings = append(warnings, x.Name+": "+x.Text)
		}
		_ = out.Write(slices.Concat([]string{"cell", c.Metric, context(c.Context), c.Unit, c.Level, "", strconv.Itoa(c.N)},
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
	out.Flush()
	return out.Error()
}

// answer writes one answer of a comparison.
func answer(out *csv.Writer, c *compare.Comparison, a *compare.Answer) {
	_ = out.Write(slices.Concat([]string{"comparison", c.Metric, context(c.Context), c.Unit, c.A, c.B, strconv.Itoa(a.N)},
		make([]string, 8), []string{a.UnitOfAnalysis}, numbers(a.Ratio, a.Low, a.High, a.P, a.PHolm),
		[]string{string(a.Verdict), a.Scope, a.Reason, ""}))
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
