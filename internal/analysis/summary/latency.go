package summary

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Latency is a distribution of durations.
type Latency struct {
	N        int64 `json:"n"`        // all values
	Censored int64 `json:"censored"` // of which lower bounds
	Infinite int64 `json:"infinite"` // of which ops that never started
	// Of the known values; nil without any.
	MinNs  *int64   `json:"minNs"`
	MeanNs *float64 `json:"meanNs"`
	MaxNs  *int64   `json:"maxNs"`
	// MaxAtLeastNs is the greatest lower bound where it exceeds MaxNs; nil
	// otherwise.
	MaxAtLeastNs *int64 `json:"maxAtLeastNs,omitempty"`
	// Quantiles over all values, by Kaplan and Meier's estimator where there
	// are censored ones.
	P50  Quantile `json:"p50"`
	P90  Quantile `json:"p90"`
	P99  Quantile `json:"p99"`
	P999 Quantile `json:"p999"`
	// Median is the sample's median, of any number of values: below P50's number it has no interval.
	Median Quantile `json:"median"`
	// MedianInterval at 95 % by order statistics; nil when n < 6.
	MedianInterval *Interval `json:"medianInterval"`
}

// Quantile is a quantile, or the number of values that it needs.
type Quantile struct {
	Ns *int64 `json:"ns"` // nil: infinite, or too few values
	// AtLeast: Ns is a lower bound, of an op that had not ended.
	AtLeast  bool  `json:"atLeast,omitempty"`
	Infinite bool  `json:"infinite,omitempty"` // of a dropped op
	NeedsN   int64 `json:"needsN,omitempty"`   // too few values: the number needed
}

// Interval in nanoseconds; HighNs nil: unbounded.
type Interval struct {
	LowNs      *int64  `json:"lowNs"`
	HighNs     *int64  `json:"highNs"`
	Confidence float64 `json:"confidence"` // actual coverage
}

func latencyOf(s *stats.Sample) Latency {
	l := Latency{
		N: s.N(), Censored: s.Bounds(), Infinite: s.Infinite(),
		P50: quantileOf(s, 0.5), P90: quantileOf(s, 0.9), P99: quantileOf(s, 0.99), P999: quantileOf(s, 0.999),
	}
	if e, ok := s.Quantile(0.5); ok {
		l.Median = Quantile{Ns: finite(e), AtLeast: e.AtLeast, Infinite: e.Infinite}
	}
	if v, ok := s.Min(); ok {
		l.MinNs = &v
	}
	if v, ok := s.Max(); ok {
		l.MaxNs = &v
	}
	if v, ok := s.MaxBound(); ok && (l.MaxNs == nil || v > *l.MaxNs) {
		l.MaxAtLeastNs = &v
	}
	if m := s.Mean(); !math.IsNaN(m) {
		l.MeanNs = &m
	}
	if low, high, coverage, ok := s.Interval(0.5); ok {
		l.MedianInterval = &Interval{LowNs: finite(low), Confidence: coverage}
		if !high.AtLeast {
			l.MedianInterval.HighNs = finite(high)
		}
	}
	return l
}

// Middle formats the 95 % interval of the median: "1.16 s … 3.52 s"; empty without one.
func (l Latency) Middle() string {
	i := l.MedianInterval
	switch {
	case i == nil || i.LowNs == nil:
		return ""
	case i.HighNs == nil:
		return ns(*i.LowNs) + " … ∞"
	}
	return ns(*i.LowNs) + " … " + ns(*i.HighNs)
}

// Range formats the least and the greatest value: "1.4 s … 5.2 s"; empty without a value.
func (l Latency) Range() string {
	if l.MinNs == nil {
		return ""
	}
	return ns(*l.MinNs) + " … " + l.Max()
}

// Max formats the greatest value, never below a printed quantile: "347 ms", "≥ 1 s" of
// an op that had not ended, "∞" if a quantile is infinite.
func (l Latency) Max() string {
	switch {
	case l.P50.Infinite || l.P90.Infinite || l.P99.Infinite || l.P999.Infinite:
		return "∞"
	case l.MaxAtLeastNs != nil:
		return "≥ " + ns(*l.MaxAtLeastNs)
	case l.MaxNs != nil:
		return ns(*l.MaxNs)
	}
	return "–"
}

func quantileOf(s *stats.Sample, q float64) Quantile {
	if need := stats.MinN(q); s.N() < need {
		return Quantile{NeedsN: need}
	}
	e, _ := s.Quantile(q)
	return Quantile{Ns: finite(e), AtLeast: e.AtLeast, Infinite: e.Infinite}
}

func finite(e stats.Estimate) *int64 {
	if e.Infinite {
		return nil
	}
	return &e.Value
}

func ns(v int64) string { return units.Duration(float64(v)) }

// String formats the quantile: "180 ms", "≥ 3 s", "∞", "needs n ≥ 299".
func (q Quantile) String() string {
	switch {
	case q.NeedsN > 0:
		return fmt.Sprintf("needs n ≥ %d", q.NeedsN)
	case q.Infinite:
		return "∞"
	case q.Ns == nil:
		return "–"
	case q.AtLeast:
		return "≥ " + ns(*q.Ns)
	}
	return ns(*q.Ns)
}
