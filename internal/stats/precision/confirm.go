package precision

import (
	"math"
	"sort"

	"github.com/cnsbench/cnsbench/internal/stats"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// MinConfirm is the least number of values for Confirm and Bimodal, and the least size of
// Confirm's samples.
const MinConfirm = 10

// Confirm estimates how many values an interval of their median with a half-width of at
// most wanted (in the values' unit) takes. Like CONFIRM (Maricq et al., OSDI 2018) it
// takes the mean half-width of samples drawn without replacement, but of all there are,
// not of 200, and of one size, a sixth of the values and at least 10: the half-widths of
// nearly all of the values are those of one sample, and vary with it. To other sizes it
// scales as for normally distributed values. The result is from 10 to limit, which is at
// least 10; capped is true if more are needed. It returns false with fewer than MinConfirm
// values or one that is not finite.
func Confirm(values []float64, wanted float64, limit int) (total int, capped, ok bool) {
	if len(values) < MinConfirm || !stats.Finite(values) {
		return 0, false, false
	}
	scale := scaleOf(values)
	enough := func(n int) bool { return scale*normalHalfWidth(n) <= wanted }
	total = MinConfirm + sort.Search(max(0, limit-MinConfirm), func(i int) bool { return enough(MinConfirm + i) })
	return total, total >= limit && !enough(limit), true
}

// MeanHalfWidth is the half-width that samples of as many values have in the mean, by the estimate of Confirm, in the
// values' unit. The half-width of the values themselves differs from it by chance. It returns false where Confirm does.
func MeanHalfWidth(values []float64) (float64, bool) {
	if len(values) < MinConfirm || !stats.Finite(values) {
		return 0, false
	}
	return scaleOf(values) * normalHalfWidth(len(values)), true
}

// scaleOf is the half-width of small samples of the values as a multiple of that of a normal sample.
func scaleOf(values []float64) float64 {
	size := max(MinConfirm, len(values)/6)
	return meanHalfWidth(stats.Sorted(values), size) / normalHalfWidth(size)
}

// meanHalfWidth is the mean over all samples of a size, drawn without replacement, of half
// the width of the interval of the median: the value of rank i of n is that of rank r of
// the sample in C(i−1, r−1)·C(n−i, size−r) of C(n, size) samples.
func meanHalfWidth(sorted []float64, size int) float64 {
	j, k, _, _ := stats.Ranks(int64(size), 0.5, stats.Confidence)
	n := len(sorted)
	ways := func(n, k int) float64 { return combin.LogGeneralizedBinomial(float64(n), float64(k)) }
	mean := func(r int) float64 {
		sum := 0.0
		for i := r; i <= n-(size-r); i++ {
			sum += sorted[i-1] * math.Exp(ways(i-1, r-1)+ways(n-i, size-r)-ways(n, size))
		}
		return sum
	}
	return (mean(int(k)) - mean(int(j))) / 2
}

// normalHalfWidth is the expected half-width of the interval of the median of n values
// of the standard normal distribution, by Blom's (1958) normal scores.
func normalHalfWidth(n int) float64 {
	j, k, _, ok := stats.Ranks(int64(n), 0.5, stats.Confidence)
	if !ok {
		return math.NaN()
	}
	score := func(rank int64) float64 {
		return distuv.UnitNormal.Quantile((float64(rank) - 0.375) / (float64(n) + 0.25))
	}
	return (score(k) - score(j)) / 2
}
