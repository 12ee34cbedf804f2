package stats

import (
	"math"
	"slices"
)

// Box is the box plot of a sample (Tukey 1977): quartiles, and whiskers to the furthest values within 1.5 times the
// interquartile range of the box. Values have the sample's unit.
type Box struct {
	N              int
	Low, High      float64 // ends of the whiskers
	Q1, Median, Q3 float64
	// Outliers are the values beyond the whiskers, in order.
	Outliers []float64
}

// BoxOf returns the box plot of values in any order; false if there is none or one is not finite. Quartiles are
// interpolated between order statistics: definition 7 of Hyndman and Fan (1996), the default of R, NumPy and
// spreadsheets.
func BoxOf(values []float64) (Box, bool) {
	if len(values) == 0 || !Finite(values) {
		return Box{}, false
	}
	s := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 {
		h := q * float64(len(s)-1)
		i := int(math.Floor(h))
		if i+1 == len(s) {
			return s[i]
		}
		return s[i] + (h-float64(i))*(s[i+1]-s[i])
	}
	b := Box{N: len(s), Q1: at(0.25), Median: at(0.5), Q3: at(0.75)}
	reach := 1.5 * (b.Q3 - b.Q1)
	b.Low, b.High = b.Q1, b.Q3
	for _, x := range s {
		switch {
		case x < b.Q1-reach || x > b.Q3+reach:
			b.Outliers = append(b.Outliers, x)
		default:
			b.Low, b.High = min(b.Low, x), max(b.High, x)
		}
	}
	return b, true
}
