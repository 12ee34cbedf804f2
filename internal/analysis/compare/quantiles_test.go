package compare_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// TestQuantilesOfTrials: of trials whose p90 differs by a factor of 2 and whose p50 is the same, both ratios are
// covered by their intervals; a p99 that a trial has too few operations for is left out.
func TestQuantilesOfTrials(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	const p50, p90, p99 = "p50(create)", "p90(create)", "p99(create)"
	truth := map[float64]float64{0.5: 1, 0.9: 2}
	covered := map[float64]int{}
	const studies = 200
	for range studies {
		main := observation.NewBuilder([]string{"provider"}, "", "block")
		b := observation.NewBuilder([]string{"provider"}, "", "block")
		for block := range 10 {
			for _, level := range []string{"b", "a"} { // the order of levels is that of the compared table
				r := observation.Row{Levels: []string{level}, Block: fmt.Sprint(block)}
				for i, name := range []string{p50, p90, p99} {
					q := compare.ComparedQuantiles()[i]
					r.Metric = observation.Metric{Name: name, Unit: "ns"}
					r.Value, r.State = 1e6*(1+0.1*random.NormFloat64()), observation.Known
					if level == "b" && truth[q] > 0 {
						r.Value *= truth[q]
					}
					if q == 0.99 && block == 3 {
						r.State = observation.Few
					}
					b.Add(r)
				}
			}
			for _, level := range []string{"a", "b"} {
				main.Add(observation.Row{Levels: []string{level}, Block: fmt.Sprint(block), Value: 1,
					Metric: observation.Metric{Name: "rate(create)", Unit: "1/s"}})
			}
		}
		r := run(t, main.Table(), compare.Options{Paired: true, Quantiles: &compare.Quantiles{Table: b.Table(),
			Of: map[string]compare.QuantileOf{p50: {Metric: "create", Q: 0.5}, p90: {Metric: "create", Q: 0.9},
				p99: {Metric: "create", Q: 0.99}}}})
		if len(r.Distributions) != 1 || len(r.Distributions[0].Quantiles) != 2 {
			t.Fatalf("%+v", r.Distributions)
		}
		d := r.Distributions[0]
		if d.Metric != "create" || d.A != "a" || d.B != "b" {
			t.Fatalf("%+v", d)
		}
		for _, q := range d.Quantiles {
			if q.N != 10 || q.UnitOfAnalysis != "repetition" {
				t.Fatalf("%+v", q)
			}
			if *q.Low <= truth[q.Q] && truth[q.Q] <= *q.High {
				covered[q.Q]++
			}
		}
	}
	for q, n := range covered {
		if n < 180 { // 95 % of 200, less three standard deviations
			t.Errorf("p%g: %d of %d intervals cover the ratio", 100*q, n, studies)
		}
	}
}
