package rank

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnsbench/cnsbench/internal/stats/statstest"
)

// TestShift: the estimates are the logarithms of those of ratios, cover a known shift, and do not depend on the origin.
func TestShift(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	near := func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-9 }
	covered := statstest.Share(400, func() bool {
		n := 4 + random.IntN(9)
		a, b, ea, eb := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range a {
			a[i], b[i] = random.NormFloat64(), 2+random.NormFloat64()
			ea[i], eb[i] = math.Exp(a[i]), math.Exp(b[i])
		}
		p, ok1 := PairedShift(a, b, 0.95)
		m, ok2 := MedianShift(a, b, 0.95)
		pr, _ := PairedRatio(ea, eb, 0.95)
		mr, _ := MedianRatio(ea, eb, 0.95)
		if !ok1 || !ok2 || !near(p.Value, math.Log(pr.Value)) || !near(p.Low, math.Log(pr.Low)) ||
			!near(m.Value, math.Log(mr.Value)) || !near(m.High, math.Log(mr.High)) || p.Bounded() != (n >= 6) {
			t.Fatalf("n = %d: %v, %v; %v, %v", n, p, pr, m, mr)
		}
		return m.Low <= 2 && 2 <= m.High
	})
	if covered < 0.94 {
		t.Errorf("the interval covers the shift in %.3f", covered)
	}
	for _, bad := range [][2][]float64{{nil, nil}, {{1}, {math.NaN()}}, {{1}, {math.Inf(1)}}} {
		if s, ok := PairedShift(bad[0], bad[1], 0.95); ok {
			t.Errorf("%v: %v", bad, s)
		}
		if s, ok := MedianShift(bad[0], bad[1], 0.95); ok {
			t.Errorf("%v: %v", bad, s)
		}
	}
	if s, ok := PairedShift([]float64{1}, []float64{1, 2}, 0.95); ok {
		t.Errorf("no pairs: %v", s)
	}
}

// TestLeastKnownP: a p-value that underflows is a bound, not 0.
func TestLeastKnownP(t *testing.T) {
	a, b := make([]float64, 20_000), make([]float64, 20_000)
	for i := range a {
		a[i], b[i] = float64(i), float64(i+100_000)
	}
	if test, ok := MannWhitney(a, b); !ok || test.P != LeastKnownP {
		t.Errorf("p of a rank-sum test %g", test.P)
	}
	if test, ok := SignedRank(b); !ok || test.P != LeastKnownP {
		t.Errorf("p of a signed-rank test %g", test.P)
	}
}
