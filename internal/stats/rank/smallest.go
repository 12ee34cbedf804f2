package rank

import "math"

// LeastP returns the least p-value that SignedRank of n pairs (paired; m is ignored), or
// MannWhitney of n and m values, can have without ties.
func LeastP(paired bool, n, m int) float64 {
	ways := math.Exp2(float64(n))
	if !paired {
		// The binomial coefficient of n + m over n.
		ways = 1
		for i := 1; i <= n; i++ {
			ways *= float64(m+i) / float64(i)
		}
	}
	return min(1, 2/ways)
}

// SmallestN returns the least number of pairs, or of values on each side, with which a
// comparison of one pair of providers can have a p-value below 0.05 after Holm's
// correction for all pairs of so many providers: 6, 7, 8, 9, 10 pairs for 2 … 6
// providers, and 4, 5, 5, 6, 6 values.
func SmallestN(paired bool, providers int) int {
	pairs := max(1, float64(providers)*float64(providers-1)/2)
	n := 1
	for LeastP(paired, n, n)*pairs >= 0.05 {
		n++
	}
	return n
}
