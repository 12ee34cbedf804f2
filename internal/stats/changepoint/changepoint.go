// Package changepoint finds where a series of runs changed. All functions are pure: the
// same values, options and seed give the same result.
//
// The method is E-divisive (Matteson and James, JASA 2014) for one dimension. A segment's
// best split is where the energy distance of the values at its two sides (Székely and
// Rizzo 2004), weighted by n·m/(n+m), is greatest. The best split of all segments is a
// change if values permuted within their segments rarely have as good a split; then the
// segment is divided, and the search repeated. Logarithms are used if all values are
// positive. Values further than 3 standard deviations (estimated by the median absolute
// deviation) from their segment's median count as that far, so that an outlier at the end
// of a series is no change.
//
// A third of alpha is for the end of the series, where a history is watched: whether its
// last MinSegment values differ from those before. The place is given, so that the test
// needs no search and finds a shift as soon as there are MinSegment runs after it.
package changepoint

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// Options are the parameters of a search, to be printed with its result. Zero fields have
// the defaults.
type Options struct {
	// Alpha is the share of stable series in which a change is found. Default 0.03.
	Alpha float64
	// MinSegment is the least number of values between changes, at least 2: with the
	// default of 5 a single outlier is none.
	MinSegment int
	// Permutations of each test. Default 499.
	Permutations int
	Seed         uint64
}

// MaxValues is the most that Find searches: its time grows with their square.
const MaxValues = 5000

// WithDefaults returns o with defaults in place of zeros.
func (o Options) WithDefaults() Options {
	if o.Alpha == 0 {
		o.Alpha = 0.03
	}
	if o.MinSegment == 0 {
		o.MinSegment = 5
	}
	if o.Permutations == 0 {
		o.Permutations = 499
	}
	return o
}

// Change is a place at which the values changed.
type Change struct {
	// Index is that of the first value after the change. Low and High bound it with
	// 95 %, by the bootstrap of the segments at each side.
	Index, Low, High int
	// P is adjusted for the share of alpha that its test has, and for the changes found
	// before it: at least theirs.
	P float64
	// Before and After are the medians of the segments at each side.
	Before, After float64
	// Ratio is after ÷ before with its 95 % interval (rank.MedianRatio), given the place
	// of the change; all NaN where a value is not positive.
	Ratio stats.Ratio
}

// Find returns the changes in order of Index. It is an error if the values are fewer than
// two segments or more than MaxValues, if one is not finite, or an option is invalid.
func Find(values []float64, o Options) ([]Change, error) {
	o = o.WithDefaults()
	if err := o.check(values); err != nil {
		return nil, err
	}
	s := &search{Options: o, values: scale(values), random: rand.New(rand.NewPCG(o.Seed, 0x6368616e6765))}
	s.Alpha = o.Alpha * (1 - endShare)
	bounds, least := []int{0, len(values)}, 0.0
	var changes []Change
	for {
		segments := s.segments(bounds)
		at, q := s.bestOf(segments)
		if at == 0 {
			break
		}
		p := s.test(segments, q)
		if p > s.Alpha {
			break
		}
		least = max(least, p/(1-endShare))
		changes = append(changes, Change{Index: at, P: least})
		i, _ := slices.BinarySearch(bounds, at)
		bounds = slices.Insert(bounds, i, at)
	}
	if p, ok := s.end(bounds, o.Alpha*endShare); ok {
		at := len(values) - o.MinSegment
		changes = append(changes, Change{Index: at, P: p / endShare})
		bounds = slices.Insert(bounds, len(bounds)-1, at)
	}
	slices.SortFunc(changes, func(a, b Change) int { return a.Index - b.Index })
	for i := range changes {
		s.describe(&changes[i], values, bounds[i], bounds[i+2])
	}
	return changes, nil
}

func (o *Options) check(values []float64) error {
	switch {
	case !(o.Alpha > 0 && o.Alpha < 1):
		return fmt.Errorf("invalid alpha %v: want a number between 0 and 1", o.Alpha)
	case o.MinSegment < 2:
		return fmt.Errorf("invalid least segment %d: want 2 or more", o.MinSegment)
	case o.Permutations < 19 || float64(o.Permutations+1)*o.Alpha*(1-endShare) < 1-1e-9:
		return fmt.Errorf("invalid permutations %d: want %.0f or more for alpha %v", o.Permutations,
			max(19, math.Ceil(1/(o.Alpha*(1-endShare)))-1), o.Alpha)
	case len(values) < 2*o.MinSegment || len(values) > MaxValues:
		return fmt.Errorf("%d runs have no change points: want %d to %d", len(values), 2*o.MinSegment, MaxValues)
	}
	for i, x := range values {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("invalid value %v of run %d: want a finite number", x, i+1)
		}
	}
	return nil
}

// scale returns logarithms if all values are positive, otherwise the values.
func scale(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, x := range values {
		if !(x > 0) {
			return slices.Clone(values)
		}
		out[i] = math.Log(x)
	}
	return out
}

// describe completes a change between the segments from … Index … to.
func (s *search) describe(c *Change, values []float64, from, to int) {
	before, after := values[from:c.Index], values[c.Index:to]
	c.Before, c.After = stats.Median(before), stats.Median(after)
	var ok bool
	if c.Ratio, ok = rank.MedianRatio(before, after, stats.Confidence); !ok {
		c.Ratio = stats.Ratio{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	low, high := s.interval(clip(s.values[from:to]), c.Index-from)
	c.Low, c.High = low+from, high+from
}
