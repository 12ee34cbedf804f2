// Package rank implements tests, estimates and effect sizes by ranks. They assume no
// distribution of the values: only independent trials, and for an estimated ratio that
// the two samples differ by a factor. All functions are pure.
//
// A value that is NaN or infinite makes a result not ok, as does an empty sample.
package rank

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// Test is the result of a two-sided test of "no difference".
type Test struct {
	// Statistic is W⁺ of SignedRank, U of MannWhitney, H of KruskalWallis, χ² of Friedman.
	Statistic float64
	P         float64
	Method    Method
}

// Method is how a p-value was computed.
type Method string

// The methods.
const (
	// Exact is from the distribution of the statistic given the ties in the data.
	Exact Method = "exact"
	// Permuted is from random permutations with a fixed seed; p ≥ 1/10000.
	Permuted Method = "permuted"
	// Approximate is from the limit of large samples, corrected for ties.
	Approximate Method = "approximate"
)

// ExactN is the most values per side, or pairs, for which p-values and intervals are exact.
const ExactN = 50

// mid returns twice the rank of each value, from 2 up, so that the ranks of ties (their
// mean: "midranks") are integers, and Σ(t³ − t) over groups of t ties.
func mid(values []float64) (doubled []int, ties float64) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	doubled = make([]int, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			doubled[i] = from + 1 + to
		}
		t := float64(to - from)
		ties += t*t*t - t
		from = to
	}
	return doubled, ties
}

// Midranks returns the rank of each value, from 1 up; ties have the mean of their ranks.
func Midranks(values []float64) []float64 {
	doubled, _ := mid(values)
	ranks := make([]float64, len(values))
	for i, r := range doubled {
		ranks[i] = float64(r) / 2
	}
	return ranks
}

// usable reports whether each sample has values, all finite.
func usable(samples ...[]float64) bool {
	for _, s := range samples {
		if len(s) == 0 || !stats.Finite(s) {
			return false
		}
	}
	return true
}

// Holm returns p-values adjusted for the number of comparisons (Holm 1979), in the order
// given: p̃(i) = max over j ≤ i of min(1, (m − j + 1)·p(j)), for p(1) ≤ … ≤ p(m). NaN
// stands for a comparison that was not made: it stays NaN and does not count.
func Holm(p []float64) []float64 {
	var order []int
	adjusted := slices.Clone(p)
	for i, x := range p {
		if x == x {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if p[a] < p[b] {
			return -1
		} else if p[a] > p[b] {
			return 1
		}
		return 0
	})
	most := 0.0
	for j, i := range order {
		most = max(most, min(1, float64(len(order)-j)*p[i]))
		adjusted[i] = most
	}
	return adjusted
}
