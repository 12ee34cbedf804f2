package stats

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"
)

// MeanRatio returns the mean of a ÷ that of b, values of steps in order of time, with a 95 % interval by the
// moving-block bootstrap, as in QuantileRatio. It is NaN with fewer than MinSteps on a side. It returns false if a side
// is empty or the mean of b is not positive. The same seed gives the same interval.
func MeanRatio(a, b []float64, seed uint64) (Ratio, bool) {
	if len(a) == 0 || len(b) == 0 || !(stat.Mean(b, nil) > 0) {
		return Ratio{}, false
	}
	r := Ratio{Value: stat.Mean(a, nil) / stat.Mean(b, nil), Low: math.NaN(), High: math.NaN()}
	if min(len(a), len(b)) < MinSteps {
		return r, true
	}
	in := [2]dependence{dependenceOf(a), dependenceOf(b)}
	random := rand.New(rand.NewPCG(seed, 0x6d65616e))
	ratios := make([]float64, 0, replicates)
	for range replicates {
		if d := resampled(random, b, in[1].length); d > 0 {
			ratios = append(ratios, resampled(random, a, in[0].length)/d)
		}
	}
	low, high := middle(ratios)
	wider := widening(in[:]...)
	r.Low, r.High = max(0, r.Value+wider*(low-r.Value)), r.Value+wider*(high-r.Value)
	return r, true
}

// resampled is the mean of as many values, drawn in blocks with replacement.
func resampled(random *rand.Rand, values []float64, length int) float64 {
	n, sum := len(values), 0.0
	for left := n; left > 0; left -= length {
		from := random.IntN(n - length + 1)
		for _, v := range values[from : from+min(length, left)] {
			sum += v
		}
	}
	return sum / float64(n)
}
