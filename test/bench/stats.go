package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// interval is a confidence interval for the ratio of paired measurements.
type interval struct {
	estimate, low, high float64
	coverage            float64 // actual coverage of the exact test
}

// pairedRatio returns the Hodges–Lehmann estimate of b/a over pairs, with its 90 % interval from
// the exact Wilcoxon signed-rank test of ln(b/a): the k-th smallest and largest of the Walsh
// averages (Hollander & Wolfe, section 3.3). With fewer than five pairs this interval does not
// exist.
func pairedRatio(a, b []float64) (interval, error) {
	if len(a) != len(b) || len(a) < 5 {
		return interval{}, fmt.Errorf("%d and %d values: an interval needs at least 5 pairs", len(a), len(b))
	}
	var walsh []float64
	for i := range a {
		for j := range i + 1 {
			walsh = append(walsh, (math.Log(b[i]/a[i])+math.Log(b[j]/a[j]))/2)
		}
	}
	slices.Sort(walsh)
	k, coverage := signedRank(len(a), 0.05)
	return interval{
		estimate: math.Exp(stats.Median(walsh)), low: math.Exp(walsh[k-1]), high: math.Exp(walsh[len(walsh)-k]), coverage: coverage,
	}, nil
}

// signedRank returns the greatest k with P(W < k) ≤ tail, where W is the signed-rank statistic of n
// values under the null hypothesis, and the coverage 1 − 2·P(W < k).
func signedRank(n int, tail float64) (k int, coverage float64) {
	ways := make([]float64, n*(n+1)/2+1) // ways[w]: number of subsets of 1…n with sum w
	ways[0] = 1
	for i := 1; i <= n; i++ {
		for w := len(ways) - 1; w >= i; w-- {
			ways[w] += ways[w-i]
		}
	}
	all, below := math.Exp2(float64(n)), 0.0
	for below+ways[k]/all <= tail {
		below += ways[k] / all
		k++
	}
	return max(k, 1), 1 - 2*below
}

// quantile returns the value of rank ⌈q·n⌉, as bundles define it.
func quantile(values []int64, q float64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[hist.Rank(q, int64(len(sorted)))-1]
}

func sum(values []int64) float64 {
	var s float64
	for _, v := range values {
		s += float64(v)
	}
	return s
}

// mirrored returns the order of the arms in each block. Each second block is the reverse of the
// block before (A B C, C B A), so that a linear drift affects all arms equally. The order of each
// pair of blocks is random.
func mirrored(arms, blocks int, seed uint64) [][]int {
	r := rand.New(rand.NewPCG(seed, 0x6f72646572))
	var orders [][]int
	for len(orders) < blocks {
		order := r.Perm(arms)
		back := slices.Clone(order)
		slices.Reverse(back)
		orders = append(orders, order, back)
	}
	return orders[:blocks]
}
