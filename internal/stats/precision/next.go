package precision

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// Decision is whether a cell has enough trials for the wanted precision.
type Decision struct {
	// Done: the values are enough.
	Done bool
	// HalfWidth of the 95 % interval of the median, as a share of the median; NaN with
	// fewer than six values.
	HalfWidth float64
	// Mean is MeanHalfWidth as a share of the median, which decides from MinConfirm values
	// on; NaN with fewer.
	Mean float64
	// Total is the number of trials wanted in all: that of the values if Done.
	Total int
	// Capped: Total is twice the number of values, and will hardly be enough.
	Capped bool
	// Method is the source of Done and Total.
	Method Method
	// Modes: the values are of two groups or more (Bimodal). The width of an interval of
	// their median does not converge as that of one group does.
	Modes bool
}

// Method of a forecast.
type Method string

// The methods.
const (
	Minimum   Method = "minimum" // fewer than six values have no interval
	Scaled    Method = "scaled"  // by More, from fewer than MinConfirm values
	Resampled Method = "confirm" // by Confirm
)

// Next decides whether the positive values of a cell, in any order, are enough for a 95 %
// interval of their median with a half-width of at most within (0.05 is 5 % of the
// median), and how many they should be. It depends on the width alone, never on a p-value.
// It returns false if a value is not positive and finite, or within is not positive.
func Next(values []float64, within float64) (Decision, bool) {
	d, ok := stats.Describe(values)
	if !ok || !(d.Min > 0) || !(within > 0) {
		return Decision{}, false
	}
	next := Decision{HalfWidth: (d.High - d.Low) / 2 / d.Median, Mean: math.NaN(), Total: int(stats.MinN(0.5)),
		Method: Minimum}
	if _, p, ok := Bimodal(values); ok {
		next.Modes = p < 1-stats.Confidence
	}
	switch {
	case math.IsNaN(next.HalfWidth):
	case d.N < MinConfirm:
		next.Method = Scaled
		if next.Done = next.HalfWidth <= within; next.Done {
			next.Total = d.N
		} else {
			next.Total, next.Capped = More(d.N, next.HalfWidth, within)
		}
	default:
		next.Method = Resampled
		mean, _ := MeanHalfWidth(values)
		next.Mean = mean / d.Median
		next.Total, next.Capped, _ = Confirm(values, within*d.Median, 2*d.N)
		if next.Done = next.Total <= d.N; next.Done {
			next.Total = d.N
		}
	}
	return next, true
}
