package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is the default level of intervals.
const Confidence = 0.95

// MinN is the least number of independent values for which an interval of the
// quantile q exists at the level Confidence: 1 − qⁿ − (1−q)ⁿ ≥ 0.95, that is
// 6 for the median, 29 for p90, 59 for p95, 299 for p99, 2995 for p99.9. With
// fewer no quantile is printed. Outside (0, 1) no number is enough.
func MinN(q float64) int64 {
	if !(q > 0 && q < 1) {
		return math.MaxInt64
	}
	covers := func(n float64) bool { return 1-math.Pow(q, n)-math.Pow(1-q, n) >= Confidence }
	hi := 1
	for hi < 1<<60 && !covers(float64(hi)) {
		hi *= 2
	}
	return int64(sort.Search(hi, func(n int) bool { return n > 0 && covers(float64(n)) }))
}

// Ranks gives the order statistics [x(j), x(k)], 1-based, that contain the
// quantile q of n independent values with at least the probability level, and
// that probability: B(k−1) − B(j−1) ≥ level with B the distribution function
// of Binomial(n, q) (Le Boudec, Performance Evaluation, theorem 2.1). The
// tails are of equal weight where n allows. It is false when n is too small.
func Ranks(n int64, q, level float64) (j, k int64, coverage float64, ok bool) {
	if n < 1 {
		return 0, 0, 0, false
	}
	b := distuv.Binomial{N: float64(n), P: q}
	cdf := func(i int64) float64 {
		if i < 0 {
			return 0
		}
		return b.CDF(float64(i))
	}
	tail := (1 - level) / 2
	// k: the least with B(k−1) ≥ 1 − tail; n if there is none.
	k = 1 + int64(sort.Search(int(n), func(i int) bool { return cdf(int64(i)) >= 1-tail }))
	allowed := tail
	if k > n {
		k = n
		allowed = cdf(n-1) - level
	}
	// j: the greatest with B(j−1) ≤ allowed.
	j = int64(sort.Search(int(n), func(i int) bool { return cdf(int64(i)) > allowed }))
	if j < 1 { // no such lower end: move the upper one
		j = 1
		k = 1 + int64(sort.Search(int(n), func(i int) bool { return cdf(int64(i))-cdf(0) >= level }))
		if k > n {
			return 0, 0, 0, false
		}
	}
	coverage = cdf(k-1) - cdf(j-1)
	return j, k, coverage, coverage >= level
}

// OneSided returns one-sided bounds of the quantile q, each at the confidence of one end
// of an interval at the level Confidence. Without such an order statistic the lower is 0
// and the upper infinite.
func (s *Sample) OneSided(q float64) (low, high Estimate) {
	n := s.N()
	tail := (1 - Confidence) / 2
	high = Estimate{Infinite: true}
	if n < 1 {
		return low, high
	}
	b := distuv.Binomial{N: float64(n), P: q}
	// The greatest j with B(j−1) ≤ tail, the least k with B(k−1) ≥ 1 − tail.
	if j := sort.Search(int(n), func(i int) bool { return b.CDF(float64(i)) > tail }); j > 0 {
		low = s.order(int64(j))
	}
	if k := 1 + sort.Search(int(n), func(i int) bool { return b.CDF(float64(i)) >= 1-tail }); k <= int(n) {
		if high = s.order(int64(k)); high.AtLeast {
			high = Estimate{Infinite: true}
		}
	}
	return low, high
}

// Interval returns the interval of the quantile q at the level Confidence. Low and high
// may be lower bounds, or infinite. It returns false if the sample is too small.
func (s *Sample) Interval(q float64) (low, high Estimate, coverage float64, ok bool) {
	j, k, coverage, ok := Ranks(s.N(), q, Confidence)
	if !ok {
		return Estimate{}, Estimate{}, 0, false
	}
	return s.order(j), s.order(k), coverage, true
}
