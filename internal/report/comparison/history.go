package comparison

import (
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// markdownHistory writes the changes, the ends of each series, and the runs of what changed, folded.
func markdownHistory(b *visible.Document, list []compare.History) {
	if len(list) == 0 {
		return
	}
	var changed []compare.History
	for i := range list {
		if len(list[i].Changes) > 0 {
			changed = append(changed, list[i])
		}
	}
	if len(changed) > 0 {
		b.Printf("\n| metric | first run after | change is from | verdict | median before | after | ratio | " +
			"p, adjusted |\n|---|---|---|---|---|---|---|---|\n")
	}
	for i := range changed {
		h := &changed[i]
		for _, c := range h.Changes {
			times := compare.Answer{Ratio: c.Ratio, Low: c.Low, High: c.High}
			b.Printf("| %s | %s | %s to %s | **%s** | %s | %s | %s | %s |\n", titleOf(h), c.Run,
				c.From, c.To, c.Word, compare.Figure(c.Before, h.Unit),
				compare.Figure(c.After, h.Unit), times.Times(), compare.P(c.P))
		}
	}
	b.Printf("\n<details><summary>Metrics</summary>\n\n| metric | runs | first | last | changes | outliers |\n" +
		"|---|---|---|---|---|---|\n")
	for i := range list {
		h := &list[i]
		first, last, n := h.Ends()
		b.Printf("| %s | %d | %s | %s | %d | %s |\n", titleOf(h), n, compare.Figure(first, h.Unit),
			compare.Figure(last, h.Unit), len(h.Changes), strings.Join(h.Outliers, ", "))
	}
	b.Printf("\n</details>\n")
	markdownRuns(b, changed)
	b.Printf("\nSearch: %s.\n", list[0].Parameters.String())
}

// markdownRuns writes a line for each run and a column for each metric, all of which are of the same runs.
func markdownRuns(b *visible.Document, list []compare.History) {
	if len(list) == 0 {
		return
	}
	b.Printf("\n<details><summary>Runs, with the metrics that changed</summary>\n\n| run |")
	for i := range list {
		b.Printf(" %s |", titleOf(&list[i]))
	}
	b.Printf("\n|---%s|\n", visible.Markup(strings.Repeat("|---", len(list))))
	for i, run := range list[0].Runs {
		b.Printf("| %s |", run)
		for j := range list {
			h := &list[j]
			mark := ""
			switch changed, outlier := marks(h, run); {
			case changed:
				mark = " (changed)"
			case outlier:
				mark = " (outlier)"
			}
			b.Printf(" %s%s |", compare.Figure(h.Values[i], h.Unit), mark)
		}
		b.Printf("\n")
	}
	b.Printf("\n</details>\n")
}

// marks says whether a run is the first after a change, and whether it is an outlier.
func marks(h *compare.History, run string) (changed, outlier bool) {
	return slices.ContainsFunc(h.Changes, func(c compare.Change) bool { return c.Run == run }),
		slices.Contains(h.Outliers, run)
}

func titleOf(h *compare.History) string { return named(h.Metric, h.Unit, h.Context) }

// named is a metric with its unit and context.
func named(metric, unit string, levels []compare.Level) string {
	if unit != "" && !strings.HasSuffix(metric, unit) {
		metric += " (" + unit + ")"
	}
	for _, l := range levels {
		metric += ", " + l.Factor + " " + l.Level
	}
	return metric
}
