package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Description summarises the trials of one cell. All but N and Coverage have the values'
// unit, the CVs have none.
type Description struct {
	N         int
	Mean      float64
	SD        float64 // with the divisor n − 1; NaN for one value
	Median    float64
	Min, Max  float64
	CVMean    float64 // SD ÷ Mean; NaN where the mean is not positive
	CVMedian  float64 // SD ÷ Median; NaN where the median is not positive
	Low, High float64 // interval of the median by order statistics; NaN with fewer than MinN(0.5) values
	Coverage  float64 // of the interval, at least Confidence; NaN without an interval
}

// Describe returns the description of values in any order. It returns false if there is
// none or one is not finite.
func Describe(values []float64) (Description, bool) {
	if len(values) == 0 || !Finite(values) {
		return Description{}, false
	}
	s := Sorted(values)
	d := Description{N: len(s), Median: Median(s), Min: s[0], Max: s[len(s)-1],
		Low: math.NaN(), High: math.NaN(), Coverage: math.NaN(), CVMean: math.NaN(), CVMedian: math.NaN()}
	d.Mean, d.SD = stat.MeanStdDev(s, nil)
	if d.Mean > 0 {
		d.CVMean = d.SD / d.Mean
	}
	if d.Median > 0 {
		d.CVMedian = d.SD / d.Median
	}
	if j, k, coverage, ok := Ranks(int64(len(s)), 0.5, Confidence); ok {
		d.Low, d.High, d.Coverage = s[j-1], s[k-1], coverage
	}
	return d, true
}

// Finite reports whether no value is NaN or infinite.
func Finite(values []float64) bool {
	return !slices.ContainsFunc(values, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
