package cli

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
	"github.com/cnsbench/cnsbench/internal/export/table"
)

// reproductionTable has a row for each difference, schedule and figure, for each verdict if a side has several runs,
// and for each validity flag and objective. A figure of several runs is their median, and no number if that is infinite;
// the states of several runs are joined by "; ".
func reproductionTable(r *reproduction.Result) *table.Table {
	t := reproductionRows{}
	t.differences("fact", r.Facts.Differences)
	t.differences("changed within a side", r.Changed)
	if r.Plan != nil {
		t.differences("plan", r.Plan.Differences)
	}
	for _, s := range r.Schedules {
		t.add(map[string]any{"kind": "schedule", "name": s.Action, "n_then": int64(s.Then), "n_now": int64(s.Now),
			"n_equal": int64(s.Equal), "same": s.Same})
	}
	for i := range r.Responses {
		x := &r.Responses[i]
		least, most := reproduction.Range(x.Now)
		t.add(map[string]any{"kind": "figure", "name": x.Metric, "unit": x.Unit, "n_then": int64(len(x.Then)),
			"n_now": int64(len(x.Now)), "value_then": known(reproduction.Median(x.Then)),
			"value_now": known(reproduction.Median(x.Now)), "min_now": known(least), "max_now": known(most),
			"lower_bounds": x.Bounds, "ratio": known(x.Ratio)})
	}
	if r.Comparison != nil && (len(r.Then) > 1 || len(r.Now) > 1) {
		for i := range r.Comparison.Comparisons {
			c := &r.Comparison.Comparisons[i]
			t.add(map[string]any{"kind": "comparison", "name": c.Metric, "unit": c.Unit, "n_then": int64(c.NA),
				"n_now": int64(c.NB), "ratio": known(c.Ratio), "low": known(c.Low), "high": known(c.High),
				"p_holm": known(c.PHolm), "verdict": string(c.Verdict), "reason": c.Reason})
		}
	}
	t.marks("validity flag", r.Flags)
	t.marks("objective", r.Verdicts)
	return tableOf(reproductionColumns, t.rows)
}

var reproductionColumns = []table.Column{{Name: "kind"}, {Name: "name"}, {Name: "group"}, {Name: "then"}, {Name: "now"},
	{Name: "same", Type: table.Bool}, {Name: "unit"}, {Name: "n_then", Type: table.Int}, {Name: "n_now", Type: table.Int},
	{Name: "n_equal", Type: table.Int}, {Name: "value_then", Type: table.Float}, {Name: "value_now", Type: table.Float},
	{Name: "min_now", Type: table.Float}, {Name: "max_now", Type: table.Float}, {Name: "lower_bounds", Type: table.Bool},
	{Name: "ratio", Type: table.Float}, {Name: "low", Type: table.Float}, {Name: "high", Type: table.Float},
	{Name: "p_holm", Type: table.Float}, {Name: "verdict"}, {Name: "reason"}}

type reproductionRows struct{ rows [][]any }

// add adds a row of the cells that are given by the names of their columns.
func (t *reproductionRows) add(cells map[string]any) {
	row := make([]any, len(reproductionColumns))
	for i, c := range reproductionColumns {
		row[i] = cells[c.Name]
	}
	t.rows = append(t.rows, row)
}

func (t *reproductionRows) differences(kind string, list []reproduction.Difference) {
	for _, d := range list {
		t.add(map[string]any{"kind": kind, "name": d.Fact, "group": string(d.Group), "then": known(d.Then),
			"now": known(d.Now), "same": false})
	}
}

func (t *reproductionRows) marks(kind string, list []reproduction.Mark) {
	for i := range list {
		m := &list[i]
		t.add(map[string]any{"kind": kind, "name": m.Name, "then": strings.Join(m.Then, "; "),
			"now": strings.Join(m.Now, "; "), "same": !m.Differs()})
	}
}
