package stats

import (
	"math"
	"slices"
)

// Median of values in any order; 0 without any.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// MedianRatio returns the median of all b/a (Hodges and Lehmann's estimator of two
// independent samples, of logarithms) with an interval by the exact distribution of the
// rank-sum statistic (Mann and Whitney 1947; without ties), of the least coverage of at
// least level. The interval is NaN where the samples are too small. It returns false if
// a sample is empty or a value not positive.
func MedianRatio(a, b []float64, level float64) (Ratio, bool) {
	var all []float64
	for _, x := range a {
		for _, y := range b {
			if !(x > 0) || !(y > 0) {
				return Ratio{}, false
			}
			all = append(all, y/x)
		}
	}
	if len(all) == 0 {
		return Ratio{}, false
	}
	slices.Sort(all)
	last := len(all) - 1
	r := Ratio{Value: math.Sqrt(all[last/2] * all[(last+1)/2]), Low: math.NaN(), High: math.NaN()}
	// The interval from the k-th least to the k-th largest ratio leaves out P(U < k) at
	// each side. 1e-9: the probabilities are sums of floating-point fractions.
	chances, below := rankSums(len(a), len(b)), 0.0
	for k := 1; 2*k <= last+2 && 1-2*(below+chances[k-1]) >= level-1e-9; k++ {
		below += chances[k-1]
		r.Low, r.High = all[k-1], all[last-k+1]
	}
	return r, true
}

// rankSums returns the probability of each value 0 … n·m of the statistic U, the number
// of pairs in which b is below a, for samples of one distribution.
func rankSums(n, m int) []float64 {
	// ways[i][u]: orders of i of the first sample among j of the second, by U.
	ways := make([][]float64, n+1)
	for i := range ways {
		ways[i] = []float64{1}
	}
	for j := 1; j <= m; j++ {
		for i := 1; i <= n; i++ {
			// The largest value is of the second sample, or of the first and then above
			// j of the second.
			next := make([]float64, i*j+1)
			copy(next, ways[i])
			for u, w := range ways[i-1] {
				next[u+j] += w
			}
			ways[i] = next
		}
	}
	total := 0.0
	for _, w := range ways[n] {
		total += w
	}
	for u := range ways[n] {
		ways[n][u] /= total
	}
	return ways[n]
}
