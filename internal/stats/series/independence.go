package series

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/stats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
)

// MinIndependence is the least number of values for Lag1 and Runs.
const MinIndependence = 8

// Lag1 returns the autocorrelation at lag 1 and the limit 1.96/√n: beyond it the values are
// not independent, at a level of about 5 %. It returns false with fewer than
// MinIndependence values, and if all are equal.
func Lag1(values []float64) (r, limit float64, ok bool) {
	if len(values) < MinIndependence || !stats.Finite(values) {
		return 0, 0, false
	}
	mean := stat.Mean(values, nil)
	products, squares := 0.0, 0.0
	for i, x := range values {
		squares += (x - mean) * (x - mean)
		if i > 0 {
			products += (x - mean) * (values[i-1] - mean)
		}
	}
	if squares == 0 {
		return 0, 0, false
	}
	return products / squares, 1.96 / math.Sqrt(float64(len(values))), true
}

// Runs returns the two-sided p-value of the runs test (Wald and Wolfowitz 1940): whether
// values above and below their median follow each other as in random order. Few
// runs are a drift or correlation, many an alternation. Values equal to the median are
// left out. It is exact. It returns false with fewer than MinIndependence values that are
// left, or with values on one side only.
func Runs(values []float64) (p float64, ok bool) {
	if !stats.Finite(values) {
		return 0, false
	}
	median := stats.Median(values)
	above, below, runs := 0, 0, 0
	last := 0.0
	for _, x := range values {
		side := 1.0
		switch {
		case x == median:
			continue
		case x > median:
			above++
		default:
			below++
			side = -1
		}
		if side != last {
			runs++
		}
		last = side
	}
	if above+below < MinIndependence || above == 0 || below == 0 {
		return 0, false
	}
	fewer, more := 0.0, 0.0
	for r := 2; r <= 2*min(above, below)+1; r++ {
		c := chanceOfRuns(r, above, below)
		if r <= runs {
			fewer += c
		}
		if r >= runs {
			more += c
		}
	}
	return min(1, 2*min(fewer, more)), true
}

// chanceOfRuns is the probability of r runs of n and m values in random order.
func chanceOfRuns(r, n, m int) float64 {
	ways := func(a, b int) float64 {
		if a > n || b > m {
			return 0
		}
		return math.Exp(combin.LogGeneralizedBinomial(float64(n-1), float64(a-1)) +
			combin.LogGeneralizedBinomial(float64(m-1), float64(b-1)) -
			combin.LogGeneralizedBinomial(float64(n+m), float64(n)))
	}
	if r%2 == 0 {
		return 2 * ways(r/2, r/2)
	}
	return ways(r/2+1, r/2) + ways(r/2, r/2+1)
}
