package rank

import (
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// PairedShift returns the median of the differences b − a of pairs as PairedRatio estimates that of the ratios, with
// the same interval, without logarithms. It returns false if the sides have no or different numbers of values, or if
// one is NaN or infinite.
func PairedShift(a, b []float64, level float64) (stats.Shift, bool) {
	if len(a) != len(b) || !finite(a, b) {
		return stats.Shift{}, false
	}
	d := make([]float64, len(a))
	for i := range a {
		d[i] = b[i] - a[i]
	}
	slices.Sort(d)
	return shift(pairedOrder(d, level)), true
}

// MedianShift returns the median of all differences b − a as MedianRatio estimates that of the ratios, with the same
// interval, without logarithms. It returns false if a sample is empty, or if a value is NaN or infinite.
func MedianShift(a, b []float64, level float64) (stats.Shift, bool) {
	if !finite(a, b) {
		return stats.Shift{}, false
	}
	return shift(sampleOrder(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)), level)), true
}

func finite(samples ...[]float64) bool {
	infinite := func(x float64) bool { return math.IsInf(x, 0) }
	return usable(samples...) && !slices.ContainsFunc(slices.Concat(samples...), infinite)
}

// shift is the median of n ordered differences, and the k-th from each end; NaN where k is 0.
func shift(n int, at func(k int) float64, k int) stats.Shift {
	s := stats.Shift{Value: (at((n+1)/2) + at(n/2+1)) / 2, Low: math.NaN(), High: math.NaN()}
	if k > 0 {
		s.Low, s.High = at(k), at(n+1-k)
	}
	return s
}
