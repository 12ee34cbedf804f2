package rank_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

func TestMedianRatio(t *testing.T) {
	tests := []struct {
		name                string
		a, b                []float64
		level               float64
		estimate, low, high float64
	}{
		{"one each", []float64{2}, []float64{3}, 0.9, 1.5, math.NaN(), math.NaN()},
		{"three each have 90 %", []float64{1, 2, 4}, []float64{8, 16, 32}, 0.9, 8, 2, 32},
		{"and no more", []float64{1, 2, 4}, []float64{8, 16, 32}, 0.91, 8, math.NaN(), math.NaN()},
		// Tables of Mann and Whitney: for 5 and 5, P(U ≤ 4) = 12/252.
		{"five each", []float64{1, 1, 1, 1, 1}, []float64{1, 2, 3, 4, 5}, 1 - 2*12.0/252, 3, 1, 5},
		{"five each, from the next pair on", []float64{1, 1, 1, 1, 1}, []float64{1, 2, 3, 4, 5}, 1 - 2*19.0/252, 3, 2,
			4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, ok := rank.MedianRatio(tt.a, tt.b, tt.level)
			for _, v := range []struct {
				what      string
				got, want float64
			}{{"estimate", r.Value, tt.estimate}, {"low", r.Low, tt.low}, {"high", r.High, tt.high}} {
				if math.IsNaN(v.got) != math.IsNaN(v.want) || math.Abs(v.got-v.want) > 1e-9 {
					t.Errorf("%s is %v, want %v", v.what, v.got, v.want)
				}
			}
			if !ok {
				t.Error("not ok")
			}
		})
	}
	for _, bad := range [][2][]float64{{nil, {1}}, {{1}, nil}, {{0}, {1}}, {{1}, {math.NaN()}}} {
		if _, ok := rank.MedianRatio(bad[0], bad[1], 0.9); ok {
			t.Errorf("%v has a ratio", bad)
		}
	}
}

// The interval covers the true ratio as often as it says.
func TestMedianRatioCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, median float64) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = median * math.Exp(0.3*random.NormFloat64())
		}
		return s
	}
	// the tables' P(U < k) ≤ 0.05
	for n, want := range map[int]float64{3: 1 - 2*1.0/20, 5: 1 - 2*12.0/252, 8: 1 - 2*0.0415} {
		const trials = 4000
		covered := 0
		for range trials {
			if r, _ := rank.MedianRatio(draw(n, 10), draw(n, 17), 0.9); r.Low <= 1.7 && 1.7 <= r.High {
				covered++
			}
		}
		if got := float64(covered) / trials; math.Abs(got-want) > 0.02 {
			t.Errorf("of %d each: covers %.3f, want %.3f", n, got, want)
		}
	}
}
