package compare_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// TestPareto puts levels whose places are known: cheap and slow, dear and fast, dear and slow, as fast as another at a
// higher cost; and one whose values vary too much to be shown.
func TestPareto(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	b := observation.NewBuilder([]string{"provider"}, "", "")
	for _, level := range []struct {
		name             string
		cost, iops, vary float64
	}{{"cheap", 1, 100, 0.01}, {"fast", 2, 200, 0.01}, {"dear", 3, 100, 0.01}, {"same", 4, 200, 0.01},
		{"wild", 2.5, 140, 1.2}} {
		for range 12 {
			draw := func(of, vary float64) float64 { return of * math.Exp(vary*random.NormFloat64()) }
			for _, m := range []struct {
				name, unit string
				value      float64
			}{{"cost per trial", "EUR", draw(level.cost, 0.001)}, {"reads", "IOPS", draw(level.iops, level.vary)},
				{"apples", "apples", 1}, {"cost per GB moved", "EUR", 1}} {
				b.Add(observation.Row{Levels: []string{level.name}, Metric: observation.Metric{Name: m.name, Unit: m.unit},
					Value: m.value})
			}
		}
	}
	b.Add(observation.Row{Levels: []string{"unpriced"}, Metric: observation.Metric{Name: "reads", Unit: "IOPS"}, Value: 1})
	o := compare.Options{Cost: "cost per trial",
		Directions: map[string]verdict.Direction{"cost per trial": verdict.LessIsBetter}}
	r := run(t, b.Table(), o)
	if len(r.Pareto) != 1 || r.Pareto[0].Metric != "reads" || r.Pareto[0].Direction != "higher" {
		t.Fatalf("%+v, want one table, of reads", r.Pareto)
	}
	var got []string
	for _, p := range r.Pareto[0].Points {
		got = append(got, p.Level+": "+p.String())
	}
	want := []string{"cheap: efficient", "fast: efficient", "wild: not shown (against cheap, fast)",
		"dear: dominated by cheap, fast",
		"same: dominated by fast"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"unpriced"}, r.Pareto[0].Without); d != "" ||
		!strings.Contains(strings.Join(r.Sentences, "\n"), "without unpriced, which have no median of one of them") {
		t.Errorf("%s%q", d, r.Sentences)
	}
	o.Weak = map[string]string{"cost per trial": "resources have no price"}
	for _, p := range run(t, b.Table(), o).Pareto[0].Points {
		if p.State != compare.NotShown {
			t.Errorf("with costs that cannot be compared %s is %s", p.Level, p.String())
		}
	}
	o.Weak, o.AA = nil, [][2]string{{"fast", "same"}}
	for _, p := range run(t, b.Table(), o).Pareto[0].Points {
		if p.Level == "same" || strings.Contains(p.String(), "same") {
			t.Errorf("the second label of an A/A pair competes: %s: %s", p.Level, p.String())
		}
	}
	if r := run(t, b.Table(), compare.Options{}); len(r.Pareto) != 0 {
		t.Errorf("without a cost: %+v", r.Pareto)
	}
}
