package stats

import (
	"cmp"
	"slices"
)

// Timed are the values of a time step that began at an instant.
type Timed struct {
	At int64
	Counts
}

// InTime returns the steps of simultaneous streams in order of time, as QuantileRatio wants them. Streams of one time
// share its conditions: as many successive steps as there are streams are one step, so that they are not counted as
// independent.
func InTime(streams ...[]Timed) []Counts {
	streams = slices.DeleteFunc(slices.Clone(streams), func(s []Timed) bool { return len(s) == 0 })
	all := slices.Concat(streams...)
	slices.SortStableFunc(all, func(a, b Timed) int { return cmp.Compare(a.At, b.At) })
	var steps []Counts
	for together := range slices.Chunk(all, max(1, len(streams))) {
		var step Counts
		for _, s := range together {
			step = append(step, s.Counts...)
		}
		steps = append(steps, step)
	}
	return steps
}
