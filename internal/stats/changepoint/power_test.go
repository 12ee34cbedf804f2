package changepoint

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/cnsbench/cnsbench/internal/stats/statstest"
)

// TestFiveRuns: a shift of two standard deviations is found with five runs after it, by how many runs before it; beside
// the power of the best test of two normal samples whose place is known, with and without their standard deviation, at
// the level of the test of the end.
func TestFiveRuns(t *testing.T) {
	for _, tt := range []struct {
		before int
		least  float64
	}{{15, 0.75}, {20, 0.82}, {30, 0.82}, {60, 0.88}} {
		random := rand.New(rand.NewPCG(10, uint64(tt.before)))
		i := uint64(0)
		got := statstest.Share(400, func() bool {
			i++
			changes := find(t, history(random, tt.before+5, map[int]float64{tt.before: 2}), i)
			return len(changes) > 0 && changes[len(changes)-1].Index >= tt.before-5
		})
		level := Options{}.WithDefaults().Alpha * endShare
		known := distuv.UnitNormal.CDF(2/math.Sqrt(1.0/5+1/float64(tt.before)) - distuv.UnitNormal.Quantile(1-level/2))
		student := studentPower(random, tt.before, 5, level)
		t.Logf("%d runs before: found in %.3f of 400; known place: %.3f, known place and deviation: %.3f", tt.before, got,
			student, known)
		if student > known || tt.before <= 20 && student >= 0.9 {
			t.Errorf("%d runs before: Student's t finds %.3f, want at most %.3f, and less than 0.9 of 20 and fewer",
				tt.before, student, known)
		}
		if got < tt.least {
			t.Errorf("%d runs before: found in %.3f, want %g", tt.before, got, tt.least)
		}
	}
}

// studentPower is the share of shifts of two standard deviations between n and m normal values that Student's two-sided
// t-test finds at the level, the uniformly most powerful unbiased test where the deviation is unknown; of 20 000 draws
// of its noncentral distribution.
func studentPower(random *rand.Rand, n, m int, level float64) float64 {
	df := float64(n + m - 2)
	limit := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(1 - level/2)
	squares := distuv.ChiSquared{K: df, Src: random}
	shift := 2 / math.Sqrt(1/float64(n)+1/float64(m))
	found, draws := 0, 20000
	for range draws {
		if math.Abs(shift+random.NormFloat64())/math.Sqrt(squares.Rand()/df) > limit {
			found++
		}
	}
	return float64(found) / float64(draws)
}

// TestEndStatistic compares it with values computed by hand.
func TestEndStatistic(t *testing.T) {
	// Before: mean 2, squares about it 2. Of 4, 5, 6 the least t is without 5: mean 5, squares 2; (5 − 2) /
	// √((2 + 2)/3 · (1/3 + 1/2)).
	got, want := endStatistic([]float64{1, 2, 3, 4, 5, 6}, 3), 3/math.Sqrt(4.0/3*(1.0/3+1.0/2))
	if math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := endStatistic([]float64{5, 5, 5, 5, 5, 5}, 3); got != 0 {
		t.Errorf("of equal values %v, want 0", got)
	}
}
