// Package search finds the highest rate at which a condition holds, from steps that each report whether it held at
// one rate. It runs nothing: object/capacity repeats a stage of object storage by it, study a whole run.
package search

import (
	"fmt"
	"math"
	"slices"
)

// Search finds the highest rate at which a condition holds, from windows that each report whether it held at one
// rate. It doubles or halves the rate until it has a bracket, then bisects it. A rate is decided by a majority of at
// least two windows; the ends of the bracket by three. It is pure: set the fields, then alternate Next and Add.
type Search struct {
	From        float64 // the first rate, 1/s
	Least, Most float64 // rates that are searched
	// Resolution is how wide the bracket may be in the end, as a share of its
	// lower end.
	Resolution float64

	tallies map[float64]*tally
	last    float64
}

// Longest is how many times longer than the given window a step may be, to have enough operations.
const Longest = 10

// Enough is how many arrivals, which are random, are expected where fewer than need are not: four standard deviations
// of a Poisson count more.
func Enough(need int64) float64 { return float64(need) + 4*math.Sqrt(float64(need)) + 4 }

// RoundUp is v to three digits, and no less than it.
func RoundUp(v float64) float64 {
	scale := math.Pow(10, 2-math.Floor(math.Log10(v)))
	return math.Ceil(v*scale) / scale
}

// tally counts the windows at one rate.
type tally struct{ held, failed int }

// decides is how many windows that agree decide, and confirms how many the ends
// of the bracket take, if they are more than those that do not.
const (
	decides  = 2
	confirms = 3
)

func (t *tally) holds() bool { return t.held >= decides && t.held > t.failed }
func (t *tally) fails() bool { return t.failed >= decides && t.failed > t.held }

// Verdict is how a search ended.
type Verdict string

// The verdicts.
const (
	Found       Verdict = "found"       // the bracket is narrow enough
	Never       Verdict = "never"       // it does not hold even at the least rate
	Always      Verdict = "always"      // it holds even at the greatest
	Undecided   Verdict = "undecided"   // a window had no verdict
	Interrupted Verdict = "interrupted" // it was interrupted
)

// Check validates the fields.
func (s *Search) Check() error {
	switch {
	case !(s.Least > 0 && s.Least <= s.Most) || math.IsInf(s.Most, 0):
		return fmt.Errorf("invalid range of rates from %g to %g a second", s.Least, s.Most)
	case !(s.From >= s.Least && s.From <= s.Most):
		return fmt.Errorf("the first rate of %g a second is not between %g and %g", s.From, s.Least, s.Most)
	case !(s.Resolution >= 0.001 && s.Resolution <= 1):
		return fmt.Errorf("a resolution of %g is not between 0.001 and 1", s.Resolution)
	}
	return nil
}

// Add records whether the condition held in one more window at that rate.
func (s *Search) Add(rate float64, held bool) {
	if s.tallies == nil {
		s.tallies = map[float64]*tally{}
	}
	t := s.tallies[rate]
	if t == nil {
		t = &tally{}
		s.tallies[rate] = t
	}
	if s.last = rate; held {
		t.held++
	} else {
		t.failed++
	}
}

// Bracket is the lowest rate at which the condition is decided not to hold, +Inf without one, and the highest below
// it at which it held, 0 without one.
func (s *Search) Bracket() (low, high float64) {
	high = math.Inf(1)
	for r, t := range s.tallies {
		if t.fails() {
			high = min(high, r)
		}
	}
	for r, t := range s.tallies {
		if r < high && t.held > 0 {
			low = max(low, r)
		}
	}
	return low, high
}

// Windows at a rate, in which it held and did not.
func (s *Search) Windows(rate float64) (held, failed int) {
	if t := s.tallies[rate]; t != nil {
		return t.held, t.failed
	}
	return 0, 0
}

// Next is the rate of the next window; an empty verdict as long as there is one.
func (s *Search) Next() (rate float64, v Verdict) {
	if t := s.tallies[s.last]; t == nil {
		return s.From, ""
	} else if t.failed > 0 && !t.holds() && !t.fails() {
		return s.last, "" // one window that did not hold decides nothing
	}
	low, high := s.Bracket()
	switch {
	case math.IsInf(high, 1) && low >= s.Most:
		if s.tallies[low].held >= confirms {
			return 0, Always
		}
		return low, ""
	case math.IsInf(high, 1):
		return min(2*low, s.Most), ""
	case low == 0 && high <= s.Least:
		return 0, Never
	case low == 0:
		return max(high/2, s.Least), ""
	case !s.tallies[low].holds():
		return low, "" // it went on after one window
	case high/low > 1+s.Resolution:
		return between(low, high), ""
	case s.tallies[high].failed < confirms:
		return high, ""
	case s.tallies[low].held < confirms:
		return low, ""
	}
	return 0, Found
}

// between is the geometric middle, to four digits.
func between(low, high float64) float64 {
	middle := math.Sqrt(low * high)
	scale := math.Pow(10, 3-math.Floor(math.Log10(middle)))
	if r := math.Round(middle*scale) / scale; r > low && r < high {
		return r
	}
	return middle
}

// Rates that were tried, from the least up.
func (s *Search) Rates() []float64 {
	rates := make([]float64, 0, len(s.tallies))
	for r := range s.tallies {
		rates = append(rates, r)
	}
	slices.Sort(rates)
	return rates
}
