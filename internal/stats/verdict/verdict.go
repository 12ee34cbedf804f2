package verdict

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnsbench/cnsbench/internal/stats/precision"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// Alpha is the level of the tests.
const Alpha = 0.05

// DefaultMargin is the margin if the noise floor is not greater.
const DefaultMargin = 0.05

// Word is a verdict on b against a.
type Word string

// The verdicts.
const (
	None         Word = "none"         // too few values, or weak data
	Better       Word = "better"       // b is better by more than the margin
	Worse        Word = "worse"        // b is worse by more than the margin
	Different    Word = "different"    // by more than the margin; it is unknown which is better
	Equivalent   Word = "equivalent"   // within the margin
	Trivial      Word = "trivial"      // within the margin, and a difference is shown
	Inconclusive Word = "inconclusive" // more values are needed
)

// Direction is which values are better.
type Direction int

// The directions.
const (
	Unknown Direction = iota
	MoreIsBetter
	LessIsBetter
)

// Rule is what a pair is judged by.
type Rule struct {
	// Margin is the ratio − 1 from which a difference matters, above 0: 0.05 is from
	// 1/1.05 to 1.05, so that b against a and a against b have one verdict.
	Margin    float64
	Direction Direction
	// Comparisons is the size of the pair's family in Holm's correction; 0 counts as 1.
	Comparisons int
	// Weak are reasons for which the data of a side cannot be trusted.
	Weak []string
}

// Verdict is a judged estimate.
type Verdict struct {
	Word Word
	// P is adjusted by Holm for the family.
	P float64
	// Reason says why, in words: of None what is missing, of Inconclusive what is.
	Reason string
	// Needed is the least number of values per side (or pairs) to decide: of None by too
	// few values, and of Inconclusive, where it is an estimate. Otherwise 0.
	Needed int
	// Capped: Needed is twice what there is, and will hardly be enough.
	Capped bool
}

// Judge applies the rule in this order: weak data or values too few to be significant:
// None. The whole interval at the level Wide beyond the margin, and p < Alpha: Better,
// Worse, or Different. The whole interval at the level Narrow within the margin:
// Equivalent, or Trivial if p < Alpha. Else Inconclusive. p is adjusted for the family.
func Judge(e *Estimate, p float64, rule Rule) Verdict {
	v := Verdict{Word: None, P: p}
	high := 1 + rule.Margin
	low := 1 / high
	switch {
	case len(rule.Weak) > 0:
		v.Reason = "weak data: " + strings.Join(rule.Weak, "; ")
	case !e.canDecide(rule.Comparisons):
		v.Needed = e.smallest(rule.Comparisons)
		v.Reason = fmt.Sprintf("too few values: %d and %d, needs %d on each side", e.NA, e.NB, v.Needed)
		if e.Paired {
			v.Reason = fmt.Sprintf("too few pairs: %d, needs %d", e.NA, v.Needed)
		}
	case (e.Ratio.Low > high || e.Ratio.High < low) && p < Alpha:
		v.Word = rule.Direction.word(e.Ratio.Low > high)
		v.Reason = "the 95 % interval is beyond the margin"
	case e.Ratio90.Low > low && e.Ratio90.High < high:
		v.Word = Equivalent
		if p < Alpha {
			v.Word = Trivial
		}
		v.Reason = "the 90 % interval is within the margin"
	default:
		v.Word = Inconclusive
		v.Needed, v.Capped = e.needed(rule)
		v.Reason = fmt.Sprintf("p = %.2g; needs about %d on each side", p, v.Needed)
		if e.Paired {
			v.Reason = fmt.Sprintf("p = %.2g; needs about %d pairs", p, v.Needed)
		}
		if v.Capped {
			v.Reason += " or more"
		}
	}
	return v
}

func (d Direction) word(more bool) Word {
	switch {
	case d == Unknown:
		return Different
	case more == (d == MoreIsBetter):
		return Better
	}
	return Worse
}

// canDecide reports whether a p-value below Alpha is possible in a family of that size. That of Welch's test can be as
// small as any.
func (e *Estimate) canDecide(comparisons int) bool {
	return e.Ratio.Bounded() && (e.Welch != nil || rank.LeastP(e.Paired, e.NA, e.NB)*float64(max(1, comparisons)) < Alpha)
}

// smallest is the least n on each side with which canDecide holds.
func (e *Estimate) smallest(comparisons int) int {
	n := 1
	for rank.LeastP(e.Paired, n, n)*float64(max(1, comparisons)) >= Alpha {
		n++
	}
	return n
}

// needed estimates how many values on each side decide, if the ratio stays as it is: so
// many that an interval of half the distance to the nearer bound of the margin does not
// reach that bound, or the interval for a significant difference not 1.
func (e *Estimate) needed(rule Rule) (n int, capped bool) {
	centre, margin := math.Abs(math.Log(e.Ratio.Value)), math.Log(1+rule.Margin)
	if centre > margin {
		return precision.More(min(e.NA, e.NB), math.Log(e.Ratio.High/e.Ratio.Low)/2, centre-margin)
	}
	return precision.More(min(e.NA, e.NB), math.Log(e.Ratio90.High/e.Ratio90.Low)/2, margin-centre)
}
