package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/stats"
)

func TestRatios(t *testing.T) {
	tests := []struct {
		name                          string
		a, b                          []float64
		level                         float64
		estimate, low, high, coverage float64
	}{
		{"one each", []float64{2}, []float64{3}, 0.9, 1.5, 1.5, 1.5, 0},
		{"three each have 90 %", []float64{1, 2, 4}, []float64{8, 16, 32}, 0.9, 8, 2, 32, 0.9},
		// Tables of Mann and Whitney: for 5 and 5, P(U ≤ 4) = 12/252.
		{"five each", []float64{1, 1, 1, 1, 1}, []float64{1, 2, 3, 4, 5}, 0.9, 3, 1, 5, 1 - 2*12.0/252},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			estimate, low, high, coverage, ok := stats.Ratios(tt.a, tt.b, tt.level)
			for _, v := range []struct {
				what      string
				got, want float64
			}{{"estimate", estimate, tt.estimate}, {"low", low, tt.low}, {"high", high, tt.high}, {"coverage", coverage, tt.coverage}} {
				if math.Abs(v.got-v.want) > 1e-9 {
					t.Errorf("%s is %v, want %v", v.what, v.got, v.want)
				}
			}
			if !ok {
				t.Error("not ok")
			}
		})
	}
	for _, bad := range [][2][]float64{{nil, {1}}, {{1}, nil}, {{0}, {1}}, {{1}, {math.NaN()}}} {
		if _, _, _, _, ok := stats.Ratios(bad[0], bad[1], 0.9); ok {
			t.Errorf("%v has a ratio", bad)
		}
	}
}

// The interval covers the true ratio as often as it says.
func TestRatiosCover(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, median float64) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = median * math.Exp(0.3*random.NormFloat64())
		}
		return s
	}
	for _, n := range []int{3, 5, 8} {
		const trials = 4000
		covered, said := 0, 0.0
		for range trials {
			_, low, high, coverage, _ := stats.Ratios(draw(n, 10), draw(n, 17), 0.9)
			if said = coverage; low <= 1.7 && 1.7 <= high {
				covered++
			}
		}
		if got := float64(covered) / trials; math.Abs(got-said) > 0.02 {
			t.Errorf("of %d each: covers %.3f, says %.3f", n, got, said)
		}
	}
}
