package rank

import (
	"math"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// MannWhitney tests whether values of b are as often above as below those of a (Mann and
// Whitney 1947). Statistic is U of b: the pairs in which b is above, ties by half. The
// p-value is exact given the ties up to ExactN values on each side, beyond by the normal
// distribution with corrections for ties and continuity.
func MannWhitney(a, b []float64) (Test, bool) {
	if !usable(a, b) {
		return Test{}, false
	}
	n, m := len(a), len(b)
	doubled, ties := mid(slices.Concat(a, b))
	sum := int(sumOf(doubled[n:]))
	least := m * (m + 1) // of doubled ranks
	t := Test{Statistic: float64(sum-least) / 2, Method: Exact}
	switch {
	case max(n, m) > ExactN:
		t.Method = Approximate
		all := float64(n + m)
		variance := float64(n) * float64(m) / 12 * (all + 1 - ties/(all*(all-1)))
		t.P = twoSided(math.Abs(t.Statistic-float64(n)*float64(m)/2)-0.5, math.Sqrt(variance))
	case ties == 0:
		u := (sum - least) / 2
		t.P = min(1, 2*total(rankSums(n, m)[:min(u, n*m-u)+1]))
	default:
		chances := subsetSums(doubled, m)
		t.P = min(1, 2*min(total(chances[:sum+1]), total(chances[sum:])))
	}
	return t, true
}

// subsetSums returns the probability of each sum of m of the ranks, where each choice is
// as likely as another.
func subsetSums(ranks []int, m int) []float64 {
	ranks = slices.Sorted(slices.Values(ranks))
	n := len(ranks)
	below := make([]int, n+1) // sum of so many least ranks
	for i, r := range ranks {
		below[i+1] = below[i] + r
	}
	// ways[k][s]: choices of k of the ranks seen so far with the sum s, which is between
	// that of the k least and that of the k greatest seen.
	ways := make([][]float64, m+1)
	for k := range ways {
		ways[k] = make([]float64, below[n]-below[n-k]+1)
	}
	ways[0][0] = 1
	for i, r := range ranks {
		for k := min(i+1, m); k >= max(1, m-(n-1-i)); k-- {
			from, to := ways[k-1], ways[k]
			for s := below[k-1]; s <= below[i]-below[i-k+1]; s++ {
				to[s+r] += from[s]
			}
		}
	}
	return normal(ways[m])
}

// known has the rankSums of sizes n, m that were asked for, at most ExactN: some MB if all are.
var known sync.Map

// rankSums returns the probability of each value 0 … n·m of the statistic U for samples
// without ties of one distribution. It is subsetSums of the ranks 1 … n+m, faster. The
// result is shared: do not modify it.
func rankSums(n, m int) []float64 {
	sizes := [2]int{min(n, m), max(n, m)}
	if u, ok := known.Load(sizes); ok {
		return u.([]float64)
	}
	u := countOrders(sizes[0], sizes[1])
	known.Store(sizes, u)
	return u
}

func countOrders(n, m int) []float64 {
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
	return normal(ways[n])
}

// normal divides counts by their sum.
func normal(ways []float64) []float64 {
	all := total(ways)
	for i := range ways {
		ways[i] /= all
	}
	return ways
}

// MedianRatio returns the median of all b/a (Hodges and Lehmann's estimator of the shift
// of two independent samples, of logarithms) with an interval of at least level by
// the exact distribution of the rank-sum statistic, approximate beyond ExactN values.
// Ties make the interval wider than need be (Noether 1967). The interval is NaN where the
// samples are too small: 95 % wants four on each side, 90 % three. It returns false
// if a sample is empty or a value not positive.
func MedianRatio(a, b []float64, level float64) (stats.Ratio, bool) {
	la, lb := logs(a), logs(b)
	if !usable(la, lb) {
		return stats.Ratio{}, false
	}
	slices.Sort(la)
	slices.Sort(lb)
	return ratio(sampleOrder(la, lb, level)), true
}

// sampleOrder returns the number of differences of two sorted samples, the k-th of them, and from which one on the
// interval is.
func sampleOrder(a, b []float64, level float64) (differences int, at func(k int) float64, from int) {
	n, m := len(a), len(b)
	return n * m, func(k int) float64 { return kth(k, func(v float64) int { return countDifferences(a, b, v) }) },
		cut(level, max(n, m) <= ExactN, func() []float64 { return rankSums(n, m) },
			float64(n)*float64(m)/2, math.Sqrt(float64(n)*float64(m)*float64(n+m+1)/12))
}

// countDifferences counts the pairs of sorted samples with b − a of at most v.
func countDifferences(a, b []float64, v float64) int {
	n, j := 0, 0
	for i := range a {
		for j < len(b) && b[j]-a[i] <= v {
			j++
		}
		n += j
	}
	return n
}
