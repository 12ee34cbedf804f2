package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// interval is an estimated ratio of paired measurements with its confidence interval.
type interval struct{ estimate, low, high float64 }

// pairedRatio returns the ratio b/a over pairs with its 90 % interval (rank.PairedRatio). With
// fewer than five pairs this interval does not exist.
func pairedRatio(a, b []float64) (interval, error) {
	r, ok := rank.PairedRatio(a, b, 0.90)
	if !ok || !r.Bounded() {
		return interval{}, fmt.Errorf("%d and %d values: an interval needs 5 pairs of positive values", len(a), len(b))
	}
	return interval{estimate: r.Value, low: r.Low, high: r.High}, nil
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
