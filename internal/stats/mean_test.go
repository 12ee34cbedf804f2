package stats

import (
	"math/rand/v2"
	"testing"
)

// TestMeanRatio: the interval covers the truth about as often as it says, of few and many steps that depend on those
// before.
func TestMeanRatio(t *testing.T) {
	const trials = 400
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(level float64, n int, rho float64) (list []float64) {
		x := 0.0
		for range n {
			x = rho*x + random.NormFloat64()
			list = append(list, level*(1+0.05*x))
		}
		return list
	}
	for _, tt := range []struct {
		n   int
		rho float64
	}{{13, 0}, {40, 0}, {40, 0.3}, {200, 0.3}} {
		covered := 0
		for i := range uint64(trials) {
			r, ok := MeanRatio(draw(80, tt.n, tt.rho), draw(100, 2*tt.n, tt.rho), i)
			if !ok || !r.Bounded() {
				t.Fatalf("%+v", r)
			}
			if r.Low <= 0.8 && 0.8 <= r.High {
				covered++
			}
		}
		share := float64(covered) / trials
		t.Logf("%+v: %.3f", tt, share)
		if share < 0.93 {
			t.Errorf("%+v: %.2f of the intervals cover the truth", tt, share)
		}
	}
}

func TestMeanRatioOfFew(t *testing.T) {
	ten := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	if r, ok := MeanRatio(ten, ten[:9], 1); !ok || r.Value != 1 || r.Bounded() {
		t.Errorf("%+v of nine steps", r)
	}
	if r, ok := MeanRatio(make([]float64, 10), ten, 1); !ok || r.Value != 0 || r.Low != 0 || r.High != 0 {
		t.Errorf("%+v of no operations", r)
	}
	for _, b := range [][]float64{nil, {0, 0}} {
		if r, ok := MeanRatio(ten, b, 1); ok {
			t.Errorf("%v: %+v", b, r)
		}
	}
	if r, ok := MeanRatio(nil, ten, 1); ok {
		t.Errorf("%+v", r)
	}
}
