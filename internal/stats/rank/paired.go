package rank

import (
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// SignedRank tests whether paired differences are symmetric about 0 (Wilcoxon 1945), with
// the exact distribution given the ties up to ExactN differences that are not 0.
// Zeros are ranked and then left out (Pratt 1959): left out before ranking, pairs without
// a difference would count for nothing, however many. With zeros only, P is 1.
func SignedRank(differences []float64) (Test, bool) {
	if !usable(differences) {
		return Test{}, false
	}
	size := make([]float64, len(differences))
	for i, d := range differences {
		size[i] = math.Abs(d)
	}
	doubled, _ := mid(size)
	var kept []int
	plus, sum, squares := 0, 0, 0.0
	for i, d := range differences {
		if d == 0 {
			continue
		}
		kept = append(kept, doubled[i])
		sum += doubled[i]
		squares += float64(doubled[i]) * float64(doubled[i])
		if d > 0 {
			plus += doubled[i]
		}
	}
	t := Test{Statistic: float64(plus) / 2, P: 1, Method: Exact}
	switch {
	case len(kept) == 0:
	case len(kept) <= ExactN:
		// The distribution is symmetric: the tail is that of the lesser sum.
		t.P = min(1, 2*total(signs(kept)[:min(plus, sum-plus)+1]))
	default:
		// Of doubled ranks: the variance is Σr²/4, half a step is 1.
		t.Method = Approximate
		t.P = twoSided(math.Abs(float64(plus)-float64(sum)/2)-1, math.Sqrt(squares)/2)
	}
	return t, true
}

// signs returns the probability of each sum of those ranks that have a positive sign, where
// each sign is as likely as the other.
func signs(ranks []int) []float64 {
	chances := []float64{1}
	for _, r := range ranks {
		next := make([]float64, len(chances)+r)
		for s, c := range chances {
			next[s] += c / 2
			next[s+r] += c / 2
		}
		chances = next
	}
	return chances
}

// PairedRatio returns the median of the ratios b/a of pairs as Hodges and Lehmann (1963)
// estimate it: the median of the means of all two differences of logarithms (Walsh
// averages), with the interval of at least level by the exact distribution of the
// signed-rank statistic (Tukey 1949), approximate beyond ExactN pairs. Ties make the
// interval wider than need be (Noether 1967). The interval is NaN where pairs are too few:
// 95 % wants six, 90 % five. It returns false if the sides have no or different numbers
// of values, or one is not positive.
func PairedRatio(a, b []float64, level float64) (stats.Ratio, bool) {
	la, lb := logs(a), logs(b)
	if len(a) != len(b) || !usable(la, lb) {
		return stats.Ratio{}, false
	}
	d := make([]float64, len(a))
	for i := range a {
		d[i] = lb[i] - la[i]
	}
	slices.Sort(d)
	return ratio(pairedOrder(d, level)), true
}

// pairedOrder returns the number of means of two of the sorted differences, the k-th of them, and from which one on
// the interval is.
func pairedOrder(d []float64, level float64) (means int, at func(k int) float64, from int) {
	n := len(d)
	return n * (n + 1) / 2, func(k int) float64 { return kth(k, func(v float64) int { return countMeans(d, v) }) },
		cut(level, n <= ExactN, func() []float64 { return signs(upTo(n)) },
			float64(n)*float64(n+1)/4, math.Sqrt(float64(n)*float64(n+1)*float64(2*n+1)/24))
}

// countMeans counts the pairs i ≤ j of sorted values with a mean of at most v.
func countMeans(sorted []float64, v float64) int {
	n, j := 0, len(sorted)-1
	for i := range sorted {
		for j >= i && (sorted[i]+sorted[j])/2 > v {
			j--
		}
		if j < i {
			break
		}
		n += j - i + 1
	}
	return n
}

func upTo(n int) []int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	return ranks
}
