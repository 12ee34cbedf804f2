package stats

import (
	"math"
	"slices"
)

// Ratios estimates by what factor values of b are those of a: the median of all
// b/a (Hodges and Lehmann, for two independent samples, of logarithms), and an
// interval by the exact distribution of the rank-sum statistic (Mann and Whitney
// 1947; without ties), of the least coverage that is at least level. ok is false
// where a sample is empty or a value not positive. Samples too small for the level
// have the range of all b/a, whose coverage is returned.
func Ratios(a, b []float64, level float64) (estimate, low, high, coverage float64, ok bool) {
	var all []float64
	for _, x := range a {
		for _, y := range b {
			if !(x > 0) || !(y > 0) {
				return 0, 0, 0, 0, false
			}
			all = append(all, y/x)
		}
	}
	if len(all) == 0 {
		return 0, 0, 0, 0, false
	}
	slices.Sort(all)
	last := len(all) - 1
	estimate = math.Sqrt(all[last/2] * all[(last+1)/2])
	// The interval from the k-th least to the k-th largest ratio leaves out
	// P(U < k) at each side.
	chances := rankSums(len(a), len(b))
	k, below := 1, chances[0]
	for 2*k <= last && 1-2*(below+chances[k]) >= level {
		below += chances[k]
		k++
	}
	return estimate, all[k-1], all[last-k+1], 1 - 2*below, true
}

// rankSums has the probability of each value 0 … n·m of the statistic U, the
// number of pairs in which b is below a, where both are of one distribution.
func rankSums(n, m int) []float64 {
	// ways[i][u]: orders of i of the first sample among j of the second, by U.
	ways := make([][]float64, n+1)
	for i := range ways {
		ways[i] = []float64{1}
	}
	for j := 1; j <= m; j++ {
		for i := 1; i <= n; i++ {
			// The largest value is of the second sample, or of the first, which is
			// then above j of the second.
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
