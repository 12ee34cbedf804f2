// Package knee finds where throughput stops growing with concurrency. It does no I/O.
//
// The rule. Let x(w) be the throughput with w workers. Its gain for each doubling
// between two levels v < w is (x(w)/x(v))^(1/log₂(w/v)) − 1: 100 % where it grows in
// proportion, 0 where it does not grow. The knee is the least level from which no step
// to the next level gains as much as a threshold (default 10 %). By the response-time
// law (Denning and Buzen, 1978), with x at its limit the response time is w/x(w): past
// the knee more workers only add response time.
//
// A step's gain is the median of the ratios of repetitions, with an interval by Mann
// and Whitney (rank.MedianRatio). A step grows if the whole interval is at or above the
// threshold, is flat if the whole is below, and is unknown otherwise. The interval of the
// knee is from the level after the last growing step to the first level from which all
// steps are flat.
package knee

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// Threshold is the default gain for each doubling below which a step is flat.
const Threshold = 0.10

// Level is one number of workers.
type Level struct {
	Workers   int       `json:"workers"`
	PerSecond []float64 `json:"perSecond"` // of each repetition
}

// Median throughput of the repetitions; 0 without.
func (l *Level) Median() float64 { return stats.Median(l.PerSecond) }

// Class of a step.
type Class string

// The classes.
const (
	Grows   Class = "grows"
	Flat    Class = "flat"
	Unknown Class = "unknown"
)

// Step is from one level to the next.
type Step struct {
	From int `json:"from"` // workers
	To   int `json:"to"`
	// Gain for each doubling, as a share, with its interval, if there are enough
	// repetitions for one.
	Gain  float64  `json:"gain"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Class Class    `json:"class"`
}

// Knee is where throughput stops growing.
type Knee struct {
	Threshold float64 `json:"threshold"`
	Levels    []Level `json:"levels"` // from the fewest workers up
	Steps     []Step  `json:"steps"`
	// Workers is the knee by the medians; nil: the last step still gains.
	Workers *int `json:"workers"`
	// AtLeast and AtMost bound it by the intervals; nil: unbounded. AtMost equal to the
	// fewest workers: it may be below them.
	AtLeast *int `json:"atLeast"`
	AtMost  *int `json:"atMost"`
	// Peak is the level of the highest median.
	Peak int `json:"peak"`
}

// Find applies the rule. Fewer than two levels, or one without a positive throughput,
// are an error.
func Find(levels []Level, threshold float64) (*Knee, error) {
	levels = slices.Clone(levels)
	slices.SortFunc(levels, func(a, b Level) int { return a.Workers - b.Workers })
	if len(levels) < 2 {
		return nil, fmt.Errorf("%d numbers of workers have no knee: two are the least", len(levels))
	}
	k := &Knee{Threshold: threshold, Levels: levels}
	best := 0.0
	for i := range levels {
		if m := levels[i].Median(); m > best {
			best, k.Peak = m, levels[i].Workers
		}
		if i == 0 {
			continue
		}
		s, err := step(&levels[i-1], &levels[i], threshold)
		if err != nil {
			return nil, err
		}
		k.Steps = append(k.Steps, s)
	}
	k.Workers = k.from(func(s *Step) bool { return s.Gain < threshold })
	k.AtMost = k.from(func(s *Step) bool { return s.Class == Flat })
	for i := range k.Steps {
		if k.Steps[i].Class == Grows {
			k.AtLeast = &k.Steps[i].To
		}
	}
	return k, nil
}

// from returns the least level from which all steps match; nil if the last does not.
func (k *Knee) from(so func(*Step) bool) *int {
	var at *int
	for i := len(k.Steps) - 1; i >= 0 && so(&k.Steps[i]); i-- {
		at = &k.Steps[i].From
	}
	return at
}

func step(a, b *Level, threshold float64) (Step, error) {
	doublings := math.Log2(float64(b.Workers) / float64(a.Workers))
	if !(doublings > 0) {
		return Step{}, fmt.Errorf("%d and %d workers are no two levels", a.Workers, b.Workers)
	}
	ratio, ok := rank.MedianRatio(a.PerSecond, b.PerSecond, stats.Confidence)
	if !ok {
		return Step{}, fmt.Errorf("no gain between %d and %d workers: no operation completed", a.Workers, b.Workers)
	}
	gain := func(ratio float64) float64 { return math.Pow(ratio, 1/doublings) - 1 }
	s := Step{From: a.Workers, To: b.Workers, Gain: gain(ratio.Value), Class: Unknown}
	if !ratio.Bounded() {
		return s, nil
	}
	low, high := gain(ratio.Low), gain(ratio.High)
	s.Low, s.High = &low, &high
	switch {
	case low >= threshold:
		s.Class = Grows
	case high < threshold:
		s.Class = Flat
	}
	return s, nil
}

// String returns the knee in a sentence.
func (k *Knee) String() string {
	first, last := k.Levels[0].Workers, k.Levels[len(k.Levels)-1].Workers
	gain := fmt.Sprintf("%.0f %% for each doubling", 100*k.Threshold)
	var text string
	switch {
	case k.Workers == nil:
		text = fmt.Sprintf("no knee up to %d workers: the last step still gains %.0f %% for each doubling, not less than %s",
			last, 100*k.Steps[len(k.Steps)-1].Gain, gain)
	case *k.Workers == first:
		text = fmt.Sprintf("the knee is at %d workers or below: no step from there on gains %s", first, gain)
	default:
		text = fmt.Sprintf("the knee is at %d workers: from there on no step gains %s", *k.Workers, gain)
	}
	switch {
	case k.AtLeast == nil && k.AtMost == nil:
		text += "; without an interval: the repetitions are too few or vary too much"
	case k.AtLeast == nil:
		text += fmt.Sprintf("; by the intervals at most %d", *k.AtMost)
	case k.AtMost == nil:
		text += fmt.Sprintf("; by the intervals at least %d", *k.AtLeast)
	case *k.AtLeast == *k.AtMost:
		text += "; the intervals allow no other level"
	default:
		text += fmt.Sprintf("; by the intervals from %d to %d", *k.AtLeast, *k.AtMost)
	}
	return text
}
