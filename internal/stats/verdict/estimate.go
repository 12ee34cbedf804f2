// Package verdict says whether one sample of trials is better than another, by how much,
// and how sure that is. All functions are pure.
//
// A comparison takes three steps: New estimates each pair of a family; rank.Holm adjusts
// the p-values of the family; Judge applies the rule to each. Adjust does the last two.
package verdict

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// Levels of the two intervals of a ratio.
const (
	Wide   = stats.Confidence // for better, worse and different
	Narrow = 0.90             // for equivalent: two one-sided tests at 0.05 (Schuirmann 1987)
)

// Estimate is what two samples say about b against a. Its ratios are b/a.
type Estimate struct {
	Paired bool
	// NA and NB count the values of each side; the pairs, if Paired, are both.
	NA, NB int
	// Ratio has the interval at the level Wide, Ratio90 that at the level Narrow; the
	// value is the same. The ends are NaN where values are too few.
	Ratio, Ratio90 stats.Ratio
	Effect         rank.Effect
	// Test is rank.SignedRank of the differences of logarithms, or rank.MannWhitney.
	Test rank.Test
	// Welch is the test of samples of which only means are known: Test has its p-value, and there is no Effect. nil of
	// samples of values.
	Welch *stats.Welch
}

// Welch is the method of a p-value from means.
const Welch rank.Method = "Welch"

// FromMoments estimates b against a from their means, standard deviations and numbers of values. It returns false if
// Welch's test is not possible (stats.WelchOf), or a mean is not positive.
func FromMoments(a, b stats.Moments) (Estimate, bool) {
	w, ok := stats.WelchOf(a, b)
	if !ok {
		return Estimate{}, false
	}
	e := Estimate{NA: a.N, NB: b.N, Welch: &w,
		Test: rank.Test{Statistic: w.T, P: max(w.P, rank.LeastKnownP), Method: Welch}}
	if e.Ratio, ok = w.Ratio(Wide); !ok {
		return Estimate{}, false
	}
	e.Ratio90, _ = w.Ratio(Narrow)
	return e, true
}

// New estimates b against a. With paired, a[i] and b[i] are of one block and repetition.
// It returns false if a side is empty, a value is not positive and finite, or the sides of pairs
// differ in length: a ratio needs positive values.
func New(a, b []float64, paired bool) (Estimate, bool) {
	e := Estimate{Paired: paired, NA: len(a), NB: len(b)}
	ratioOf := rank.MedianRatio
	if paired {
		ratioOf = rank.PairedRatio
	}
	var ok bool
	if e.Ratio, ok = ratioOf(a, b, Wide); !ok {
		return Estimate{}, false
	}
	e.Ratio90, _ = ratioOf(a, b, Narrow)
	e.Effect, _ = rank.EffectOf(a, b)
	if !paired {
		e.Test, ok = rank.MannWhitney(a, b)
		return e, ok
	}
	d := make([]float64, len(a))
	for i := range a {
		d[i] = math.Log(b[i] / a[i])
	}
	e.Test, ok = rank.SignedRank(d)
	return e, ok
}

// HalfWidth is half the width of the interval at the level Wide, as the share by which a
// ratio differs: √(High/Low) − 1. NaN without an interval.
func (e *Estimate) HalfWidth() float64 { return math.Sqrt(e.Ratio.High/e.Ratio.Low) - 1 }
