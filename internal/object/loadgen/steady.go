package loadgen

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats/series"
)

// Steadiness is what the rule of studies says of the last five intervals of a work that ends when it is steady.
type Steadiness struct {
	Steady bool `json:"steady"`
	// Range and Slope are those of series.Steadiness, of the throughput of five intervals.
	Range float64 `json:"range"`
	Slope float64 `json:"slope"`
	// Intervals are those that were measured in all.
	Intervals int `json:"intervals"`
}

// settling follows the throughput of a work that ends when it is steady.
type settling struct {
	since  op.Time // begin of the interval; Never: none has begun
	n      int64   // successes in it
	rounds []float64
}

// add takes in a second of a work, and reports whether the last five intervals are steady by series.Steady.
func (s *settling) add(k *working, from, to op.Time, cells Cells) *Steadiness {
	if from < k.from || k.to.Known() && to > k.to {
		return nil // in part of a ramp
	}
	if len(s.rounds) == 0 && s.n == 0 && !s.since.Known() {
		s.since = from
	}
	for key, c := range cells {
		if key.OK && key.Check == "" {
			s.n += c.N
		}
	}
	if !k.work.IntervalOver(time.Duration(to - s.since)) {
		return nil
	}
	s.rounds = append(s.rounds, float64(s.n)/time.Duration(to-s.since).Seconds())
	s.since, s.n = to, 0
	x, ok := series.Steady(s.rounds)
	if !ok {
		return &Steadiness{Intervals: len(s.rounds)}
	}
	return &Steadiness{Steady: x.Steady, Range: x.Range, Slope: x.Slope, Intervals: len(s.rounds)}
}

// notSteady finds a work that was to end when it is steady, and did not become so.
func (w *WorkResult) notSteady() (evidence string, found bool) {
	s := w.Steady
	switch {
	case !w.Work.UntilSteady || s != nil && s.Steady:
		return "", false
	case s == nil || s.Intervals < series.Window:
		return fmt.Sprintf("it was not found steady: that takes %d intervals of %v in its window", series.Window,
			w.Work.Interval), true
	}
	return fmt.Sprintf("it was not steady in its runtime: the throughput of the last %d intervals has a range of "+
		"%.0f %% and a slope of %.0f %% of its mean, and may have 20 %% and 10 %%", series.Window, 100*s.Range,
		100*s.Slope), true
}
