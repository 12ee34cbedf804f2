package series

import (
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/stats"
	"gonum.org/v1/gonum/stat"
)

// Window is the number of rounds over which steady state is judged.
const Window = 5

// Steadiness is that of the last Window rounds, as shares of their mean.
type Steadiness struct {
	Steady bool
	Mean   float64
	Range  float64 // greatest − least; steady: at most 0.20
	Slope  float64 // rise of the least-squares line from the first to the last; steady: within ±0.10
}

// Steady judges the last Window rounds as SNIA's Solid State Storage Performance Test
// Specification does. It returns false with fewer rounds or a mean that is not positive.
func Steady(rounds []float64) (Steadiness, bool) {
	if len(rounds) < Window {
		return Steadiness{}, false
	}
	last := rounds[len(rounds)-Window:]
	mean := stat.Mean(last, nil)
	if !stats.Finite(last) || !(mean > 0) {
		return Steadiness{}, false
	}
	x := []float64{0, 1, 2, 3, 4}
	_, slope := stat.LinearRegression(x, last, nil, false)
	s := Steadiness{Mean: mean, Range: (slices.Max(last) - slices.Min(last)) / mean, Slope: slope * (Window - 1) / mean}
	// 1e-12: exactly at the limit is steady.
	s.Steady = s.Range <= 0.20+1e-12 && math.Abs(s.Slope) <= 0.10+1e-12
	return s, true
}

// Batch is the number of values in a batch of MSER5, and the fewest batches kept.
const Batch = 5

// MSER5 returns how many values at the start are a transient, by the rule of the least
// marginal standard error on means of batches of five (White, Cobb and Spratt 2000):
// d* = argmin Σ(Z_j − mean of Z after d)²/(k − d)². The last five batches are always
// kept, for the rule would otherwise keep the last one alone. It returns false with fewer
// than ten batches, and where d* > k/2: the series has no steady end.
func MSER5(values []float64) (truncate int, ok bool) {
	k := len(values) / Batch
	if k < 2*Batch || !stats.Finite(values) {
		return 0, false
	}
	z := make([]float64, k)
	for j := range z {
		z[j] = stat.Mean(values[j*Batch:(j+1)*Batch], nil)
	}
	best, least := 0, math.Inf(1)
	for d := 0; d <= k-Batch; d++ {
		mean, squares := stat.Mean(z[d:], nil), 0.0
		for _, x := range z[d:] {
			squares += (x - mean) * (x - mean)
		}
		if e := squares / float64((k-d)*(k-d)); e < least {
			best, least = d, e
		}
	}
	return best * Batch, 2*best <= k
}
