package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// interval of a ratio of paired measurements.
type interval struct {
	estimate, low, high float64
	coverage            float64 // what the exact test really covers
}

// pairedRatio is the Hodges–Lehmann estimate of b/a over pairs with its 90 %
// interval by the exact Wilcoxon signed-rank test of ln(b/a): the k-th smallest
// and largest of the Walsh averages (Hollander & Wolfe, section 3.3). With
// fewer than five pairs no such interval exists.
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

// signedRank is the greatest k with P(W < k) ≤ tail, W the signed-rank
// statistic of n values under its null hypothesis, and 1 − 2·P(W < k).
func signedRank(n int, tail float64) (k int, coverage float64) {
	ways := make([]float64, n*(n+1)/2+1) // ways[w]: subsets of 1…n whose sum is w
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

// quantile is the value of rank ⌈q·n⌉, as bundles define it.
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

// mirrored orders arms in blocks: each second block is the one before in
// reverse (A B C, C B A), so that a linear drift falls on all alike; the order
// of each couple is drawn.
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
