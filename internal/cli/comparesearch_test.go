package cli

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// TestCompareSearches: searches of control operations are trials of one metric, of which more is better; one that found
// no rate has no value, and one whose condition held at all rates is a lower bound.
func TestCompareSearches(t *testing.T) {
	t.Parallel()
	found := func(low, high float64) *summary.FindMax {
		m := &summary.FindMax{Stage: "snapshots", Verdict: "found"}
		if low > 0 {
			m.PerSecond = &low
		}
		if high > 0 {
			m.AbovePerSecond = &high
		}
		return m
	}
	b := observation.NewBuilder([]string{bundleFactor}, "", "")
	add := func(level string, m *summary.FindMax) {
		v := trial.OfSearch(m)
		b.Add(observation.Row{Levels: []string{level}, Metric: v.Metric, Value: v.Value, State: v.State})
	}
	for i := range 8 {
		add("old", found(10+0.1*float64(i), 12))
		add("new", found(20+0.1*float64(i), 22))
	}
	add("some", found(0, 5))
	add("some", found(50, 0))
	r, err := compare.Run(b.Table(), compare.Options{Factor: bundleFactor, Trial: "run"})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Comparisons[0]
	if c.Metric != "findMax(snapshots)" || c.Unit != "1/s" || c.A != "old" || c.B != "new" || c.Verdict != "better" {
		t.Errorf("%+v", c)
	}
	for _, cell := range r.Cells {
		if cell.Level == "some" && (cell.Missing != 1 || len(cell.Warnings) == 0) {
			t.Errorf("%+v", cell)
		}
	}
}
