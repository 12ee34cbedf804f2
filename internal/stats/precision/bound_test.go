package precision

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// near is the range of n that counts as near an oracle's: within a factor of 1.5.
const near = 1.5

// ruleBound is the greatest probability with which any rule can stop near the oracle's n both at the spread for which
// the oracle needs n and at one 1.5 times as small, for which it needs n/2.25. With n/1.5 values the rule must have
// stopped at the smaller spread, and must not have at the greater: it is a test of one against the other. The best test
// of two standard deviations of normal values is by their sum of squares (Neyman and Pearson); its equal error is the
// least that the worse of the two cases can have.
func ruleBound(n int) float64 {
	freedom := float64(int(float64(n)/near)) - 1
	chi := distuv.ChiSquared{K: freedom}
	// c: the bound of the sum of squares, in squares of the smaller spread
	at := sort.Search(100_000, func(i int) bool {
		c := float64(i) / 100
		return chi.Survival(c) <= chi.CDF(c/(near*near))
	})
	return 1 - chi.Survival(float64(at)/100)
}

// sampleBound is the probability with which the variance of n normal values, the best estimate of it, puts n within a
// factor of 1.5: n goes with the variance.
func sampleBound(n int) float64 {
	chi := distuv.ChiSquared{K: float64(n - 1)}
	return chi.CDF(near*float64(n-1)) - chi.CDF(float64(n-1)/near)
}

// TestBound: where an oracle wants 25 values no rule is near it in 90 % of cases at every spread; where it wants 25 or
// 33 its own n values do not give n in 90 %. A simulation of each bound agrees.
func TestBound(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 12))
	const trials = 20_000
	variance := func(n int, sd float64) float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = sd * random.NormFloat64()
		}
		return stat.Variance(x, nil)
	}
	for _, n := range []int{25, 33, 44, 108} {
		inside := 0
		for range trials {
			if v := variance(n, 1); v <= near && v >= 1/near {
				inside++
			}
		}
		// The best threshold of the variance by simulation: the geometric middle is near it.
		least := 1.0
		for c := 1.2; c < 1.8; c += 0.1 {
			small, great := 0, 0
			for range trials / 4 {
				if variance(int(float64(n)/near), 1) <= c {
					small++
				}
				if variance(int(float64(n)/near), near) > c {
					great++
				}
			}
			least = min(least, 1-float64(min(small, great))/(trials/4))
		}
		rule, sample := ruleBound(n), sampleBound(n)
		t.Logf("oracle %d: any rule, at every spread %.3f (simulated %.3f); from the variance of n values %.3f (simulated "+
			"%.3f)", n, rule, 1-least, sample, float64(inside)/trials)
		if math.Abs(sample-float64(inside)/trials) > 0.015 || math.Abs(rule-(1-least)) > 0.03 {
			t.Errorf("oracle %d: the bounds %.3f and %.3f are not those of the simulation", n, rule, sample)
		}
		if wrong := (n <= 25) != (rule < 0.9) || (n <= 33) != (sample < 0.9); wrong {
			t.Errorf("oracle %d: bounds %.3f, %.3f", n, rule, sample)
		}
	}
}
