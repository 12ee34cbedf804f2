package comparison

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/report/table"
)

// markdownHistory writes the changes, the ends of each series, and the runs of what changed, folded.
func markdownHistory(b *strings.Builder, list []compare.History) {
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
		fmt.Fprint(b, "\n| metric | first run after | change is from | verdict | median before | after | ratio | "+
			"p, adjusted |\n|---|---|---|---|---|---|---|---|\n")
	}
	for i := range changed {
		h := &changed[i]
		for _, c := range h.Changes {
			times := compare.Answer{Ratio: c.Ratio, Low: c.Low, High: c.High}
			fmt.Fprintf(b, "| %s | %s | %s to %s | **%s** | %s | %s | %s | %s |\n", titleOf(h), table.Escape(c.Run),
				table.Escape(c.From), table.Escape(c.To), c.Word, compare.Figure(c.Before, h.Unit),
				compare.Figure(c.After, h.Unit), times.Times(), compare.P(c.P))
		}
	}
	fmt.Fprint(b, "\n<details><summary>Metrics</summary>\n\n| metric | runs | first | last | changes | outliers |\n"+
		"|---|---|---|---|---|---|\n")
	for i := range list {
		h := &list[i]
		first, last, n := h.Ends()
		fmt.Fprintf(b, "| %s | %d | %s | %s | %d | %s |\n", titleOf(h), n, compare.Figure(first, h.Unit),
			compare.Figure(last, h.Unit), len(h.Changes), table.Escape(strings.Join(h.Outliers, ", ")))
	}
	fmt.Fprint(b, "\n</details>\n")
	markdownRuns(b, changed)
	fmt.Fprintf(b, "\nSearch: %s.\n", table.Escape(list[0].Parameters.String()))
}

// markdownRuns writes a line for each run and a column for each metric, all of which are of the same runs.
func markdownRuns(b *strings.Builder, list []compare.History) {
	if len(list) == 0 {
		return
	}
	fmt.Fprint(b, "\n<details><summary>Runs, with the metrics that changed</summary>\n\n| run |")
	for i := range list {
		fmt.Fprintf(b, " %s |", titleOf(&list[i]))
	}
	fmt.Fprintf(b, "\n|---%s|\n", strings.Repeat("|---", len(list)))
	for i, run := range list[0].Runs {
		fmt.Fprintf(b, "| %s |", table.Escape(run))
		for j := range list {
			h := &list[j]
			mark := ""
			switch changed, outlier := marks(h, run); {
			case changed:
				mark = " (changed)"
			case outlier:
				mark = " (outlier)"
			}
			fmt.Fprintf(b, " %s%s |", compare.Figure(h.Values[i], h.Unit), mark)
		}
		fmt.Fprint(b, "\n")
	}
	fmt.Fprint(b, "\n</details>\n")
}

// marks says whether a run is the first after a change, and whether it is an outlier.
func marks(h *compare.History, run string) (changed, outlier bool) {
	return slices.ContainsFunc(h.Changes, func(c compare.Change) bool { return c.Run == run }),
		slices.Contains(h.Outliers, run)
}

func titleOf(h *compare.History) string { return table.Escape(named(h.Metric, h.Unit, h.Context)) }

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
