package stats

import "slices"

// Median of values in any order; 0 without any.
func Median(values []float64) float64 {
	s := Sorted(values)
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Sorted returns the values in ascending order, in memory of their size: slices.Sorted takes several times as much.
func Sorted(values []float64) []float64 {
	s := slices.Clone(values)
	slices.Sort(s)
	return s
}
