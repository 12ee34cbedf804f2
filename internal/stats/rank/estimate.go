package rank

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/stats"
	"gonum.org/v1/gonum/stat/distuv"
)

// logs of values; NaN for one that is not positive.
func logs(values []float64) []float64 {
	l := make([]float64, len(values))
	for i, x := range values {
		l[i] = math.Log(x)
		if !(x > 0) {
			l[i] = math.NaN()
		}
	}
	return l
}

// total of probabilities or counts.
func total(chances []float64) float64 {
	p := 0.0
	for _, c := range chances {
		p += c
	}
	return p
}

// LeastKnownP is the least p-value that is computed: below it the tail of the normal distribution underflows. A p-value
// is never 0.
const LeastKnownP = 1e-300

// twoSided is the p-value of a normal deviate, at least LeastKnownP; 1 without a variance.
func twoSided(deviation, sd float64) float64 {
	if !(sd > 0) {
		return 1
	}
	return max(LeastKnownP, min(1, 2*distuv.UnitNormal.Survival(deviation/sd)))
}

// cut returns the greatest k with P(statistic < k) ≤ (1 − level)/2, 0 if there is none:
// the interval is from the k-th least to the k-th largest of the differences.
func cut(level float64, exact bool, chances func() []float64, mean, sd float64) int {
	// 1e-12: the probabilities are sums of floating-point fractions.
	allowed := (1-level)/2 + 1e-12
	if !exact {
		return max(0, int(mean+0.5+sd*distuv.UnitNormal.Quantile(allowed)))
	}
	below := 0.0
	for k, c := range chances() {
		if below += c; below > allowed {
			return k
		}
	}
	return 0
}

// ratio is the exponential of the median of n ordered logarithms, and of the k-th from
// each end.
func ratio(n int, at func(k int) float64, k int) stats.Ratio {
	s := shift(n, at, k)
	return stats.Ratio{Value: math.Exp(s.Value), Low: math.Exp(s.Low), High: math.Exp(s.High)}
}

// kth returns the k-th least of a multiset of which count tells how many are at most v:
// by bisection of the bits of a number, so that it is exact after 64 counts, where sorting
// all differences of n values would take n².
func kth(k int, count func(v float64) int) float64 {
	low, high := ordered(math.Inf(-1)), ordered(math.Inf(1))
	for low < high {
		middle := low + (high-low)/2
		if count(unordered(middle)) >= k {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return unordered(low)
}

// ordered maps numbers to integers of the same order.
func ordered(x float64) uint64 {
	bits := math.Float64bits(x)
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}

func unordered(u uint64) float64 {
	if u>>63 == 1 {
		return math.Float64frombits(u &^ (1 << 63))
	}
	return math.Float64frombits(^u)
}
