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

// MaxValues is the most that Find searches: its time grows with them and with their changes.
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
	return divide(values, o).changes(o.Alpha), nil
}

// divided is a series that was searched, with the splits that were found at its level, in order of finding.
type divided struct {
	search
	unscaled []float64
	splits   []split
}

// split is the index of the first value after it, with the p-value of its own test.
type split struct {
	at int
	p  float64
}

// divide divides a series until a split is not significant.
func divide(values []float64, o Options) *divided {
	d := &divided{search: search{Options: o, values: scale(values),
		random: rand.New(rand.NewPCG(o.Seed, 0x6368616e6765))}, unscaled: values}
	d.Alpha = o.Alpha * (1 - endShare)
	bounds := []int{0, len(values)}
	for {
		segments := d.segments(bounds)
		at, q := d.bestOf(segments)
		if at == 0 {
			return d
		}
		p := d.test(segments, q)
		if p > d.Alpha {
			return d
		}
		d.splits = append(d.splits, split{at, p})
		bounds = insert(bounds, at)
	}
}

func insert(bounds []int, at int) []int {
	i, _ := slices.BinarySearch(bounds, at)
	return slices.Insert(bounds, i, at)
}

// places returns the changes at a level that is at most the one of the search, and the bounds of the segments between
// them. The permutations of each test are the same at every level, so that a search at that level finds the splits
// before the first that is not significant at it.
func (d *divided) places(alpha float64) (changes []Change, bounds []int) {
	bounds = []int{0, len(d.values)}
	least := 0.0
	for _, found := range d.splits {
		if found.p > alpha*(1-endShare) {
			break
		}
		least = max(least, found.p/(1-endShare))
		changes = append(changes, Change{Index: found.at, P: least})
		bounds = insert(bounds, found.at)
	}
	if p, ok := d.end(bounds, alpha*endShare); ok {
		at := len(d.values) - d.MinSegment
		changes = append(changes, Change{Index: at, P: p / endShare})
		bounds = insert(bounds, at)
	}
	slices.SortFunc(changes, func(a, b Change) int { return a.Index - b.Index })
	return changes, bounds
}

// changes are the places, described.
func (d *divided) changes(alpha float64) []Change {
	changes, bounds := d.places(alpha)
	random := rand.New(rand.NewPCG(d.Seed, 0x626f756e6473))
	for i := range changes {
		d.describe(&changes[i], d.unscaled, bounds[i], bounds[i+2], random)
	}
	return changes
}

// outliers are the indices of the values that are clipped in the segments between changes.
func (d *divided) outliers(changes []Change) (list []int) {
	from := 0
	for i := range len(changes) + 1 {
		to := len(d.values)
		if i < len(changes) {
			to = changes[i].Index
		}
		part := d.values[from:to]
		for j, v := range clip(part) {
			if v != part[j] {
				list = append(list, from+j)
			}
		}
		from = to
	}
	return list
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
func (s *search) describe(c *Change, values []float64, from, to int, random *rand.Rand) {
	before, after := values[from:c.Index], values[c.Index:to]
	c.Before, c.After = stats.Median(before), stats.Median(after)
	var ok bool
	if c.Ratio, ok = rank.MedianRatio(before, after, stats.Confidence); !ok {
		c.Ratio = stats.Ratio{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	low, high := s.interval(clip(s.values[from:to]), c.Index-from, random)
	c.Low, c.High = low+from, high+from
}
