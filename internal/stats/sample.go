// Package stats implements the statistics of CNSBench: quantiles of right-censored
// samples, intervals of quantiles by order statistics, and bootstrap intervals of their
// ratios. It does no I/O.
package stats

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// exactLimit is how many values a Sample keeps exactly. Beyond it counts them in
// histogram buckets (hist.RelativeError), which bounds its memory.
const exactLimit = 200_000

// Sample has latencies in ns: known values, lower bounds (ops that had not ended), and
// infinite values (ops that never started). The zero value is empty. It is not safe for
// concurrent use.
type Sample struct {
	values, bounds values
	infinite       int64
	sorted         []point
}

// point is a value with its count; lower marks a lower bound.
type point struct {
	v, count int64
	lower    bool
}

// Add records a known value.
func (s *Sample) Add(ns int64) { s.values.add(ns); s.sorted = nil }

// AddAtLeast records a value of which only a lower bound is known.
func (s *Sample) AddAtLeast(ns int64) { s.bounds.add(ns); s.sorted = nil }

// AddInfinite records n values greater than all others.
func (s *Sample) AddInfinite(n int64) { s.infinite += n }

// AddHistogram records the values of a histogram, as the upper edges of its
// buckets within its exact extremes. It is an error when counts overflow.
func (s *Sample) AddHistogram(h *hist.Histogram) error {
	s.sorted = nil
	return s.values.merge(h)
}

// N counts all values.
func (s *Sample) N() int64 { return s.values.n + s.bounds.n + s.infinite }

// Known counts the values that are known.
func (s *Sample) Known() int64 { return s.values.n }

// Bounds counts the lower bounds.
func (s *Sample) Bounds() int64 { return s.bounds.n }

// Infinite counts the infinite values.
func (s *Sample) Infinite() int64 { return s.infinite }

// Min is the exact smallest known value; false without any.
func (s *Sample) Min() (int64, bool) { return s.values.min, s.values.n > 0 }

// Max is the exact greatest known value; false without any.
func (s *Sample) Max() (int64, bool) { return s.values.max, s.values.n > 0 }

// MaxBound is the exact greatest lower bound; false without any.
func (s *Sample) MaxBound() (int64, bool) { return s.bounds.max, s.bounds.n > 0 }

// Mean is the exact mean of the known values; NaN without any.
func (s *Sample) Mean() float64 {
	if s.values.n == 0 {
		return math.NaN()
	}
	return s.values.sum / float64(s.values.n)
}

// points returns known values and lower bounds in ascending order; at equal values the
// bounds are last, since the values they bound are greater.
func (s *Sample) points() []point {
	if s.sorted == nil {
		s.sorted = append(s.values.points(false), s.bounds.points(true)...)
		if s.bounds.n > 0 {
			slices.SortFunc(s.sorted, func(a, b point) int {
				return cmp.Or(cmp.Compare(a.v, b.v), cmp.Compare(b2i(a.lower), b2i(b.lower)))
			})
		}
	}
	return s.sorted
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Estimate is an estimated quantile in ns: Value, at least Value, or infinite.
type Estimate struct {
	Value    int64
	AtLeast  bool
	Infinite bool
}

// Quantile estimates the quantile q by Kaplan and Meier's product limit (without lower
// bounds: the order statistic of rank ⌈q·n⌉). Where the estimator does not reach 1 − q,
// the greatest value is a lower bound. It returns false for an empty sample.
func (s *Sample) Quantile(q float64) (Estimate, bool) {
	n := s.N()
	if n == 0 {
		return Estimate{}, false
	}
	if hist.Rank(q, n) > n-s.infinite {
		return Estimate{Infinite: true}, true
	}
	if s.bounds.n == 0 {
		return s.order(hist.Rank(q, n)), true
	}
	survival, atRisk := 1.0, float64(n)
	last := int64(0)
	for _, p := range s.points() {
		last = p.v
		if !p.lower {
			survival *= 1 - float64(p.count)/atRisk
			if survival <= 1-q+1e-9 {
				return Estimate{Value: p.v}, true
			}
		}
		atRisk -= float64(p.count)
	}
	return Estimate{Value: last, AtLeast: true}, true
}

// MedianKnown is the lower median of the known values; false without any.
func (s *Sample) MedianKnown() (int64, bool) {
	if s.values.n == 0 {
		return 0, false
	}
	known := Sample{values: s.values}
	e, ok := known.Quantile(0.5)
	return e.Value, ok
}

// BoundsOf returns certain bounds of the quantile q: the order statistic with lower
// bounds taken as values, and taken as infinite. They are equal where no unended op can
// change the quantile. It returns false for an empty sample.
func (s *Sample) BoundsOf(q float64) (low, high Estimate, ok bool) {
	n := s.N()
	if n == 0 {
		return Estimate{}, Estimate{}, false
	}
	rank := hist.Rank(q, n)
	low, high = s.order(rank), Estimate{Infinite: true}
	if s.bounds.n == 0 {
		return low, low, true
	}
	low.AtLeast = false
	var known int64
	for _, p := range s.points() {
		if !p.lower {
			if known += p.count; known >= rank {
				return low, Estimate{Value: p.v}, true
			}
		}
	}
	return low, high, true
}

// order returns the value of a rank in [1, n], lower bounds taken as values.
func (s *Sample) order(rank int64) Estimate {
	if s.bounds.n == 0 && !s.values.inBuckets() {
		if rank > s.values.n {
			return Estimate{Infinite: true}
		}
		return Estimate{Value: s.values.inOrder()[rank-1]}
	}
	var seen int64
	for _, p := range s.points() {
		if seen += p.count; seen >= rank {
			return Estimate{Value: p.v, AtLeast: p.lower}
		}
	}
	return Estimate{Infinite: true}
}

// Step is a point of a distribution function: the share P of values is at most V ns.
type Step struct {
	V int64
	P float64
}

// CDF returns the distribution function in about limit steps, from the least to the greatest known value, and more in
// the tail, where 1 − P falls by a twentieth with each. Lower bounds and infinite values keep it below 1.
func (s *Sample) CDF(limit int) []Step {
	n, seen, next, rest := float64(s.N()), 0.0, 0.0, 1.0
	points := slices.DeleteFunc(slices.Clone(s.points()), func(p point) bool { return p.lower })
	var steps []Step
	for i, p := range points {
		seen += float64(p.count)
		if share := seen / n; share >= next || 1-share <= rest || i == len(points)-1 {
			steps = append(steps, Step{V: p.v, P: share})
			next, rest = share+1/float64(limit), 0.95*(1-share)
		}
	}
	return steps
}

// values are kept exactly up to exactLimit, then in buckets.
type values struct {
	n        int64
	sum      float64
	min, max int64
	exact    []int64
	sorted   bool // exact is
	// counts has all once there are too many exact ones. A negative latency, due to the error of a joined clock, is 0.
	counts *hist.Counter
	merged *hist.Histogram // values that were histograms
}

func (v *values) add(x int64) {
	v.widen(x, x)
	v.n++
	v.sum += float64(x)
	if !v.inBuckets() && len(v.exact) < exactLimit {
		if len(v.exact) == cap(v.exact) { // append alone copies several times as much
			v.exact = slices.Grow(v.exact, min(max(64, len(v.exact)), exactLimit-len(v.exact)))
		}
		v.exact, v.sorted = append(v.exact, x), false
		return
	}
	v.collapse()
	v.counts.Record(x)
}

func (v *values) merge(h *hist.Histogram) error {
	if h.N() == 0 {
		return nil
	}
	v.widen(h.Min(), h.Max())
	v.n += h.N()
	v.sum += float64(h.Sum())
	v.collapse()
	if v.merged == nil {
		v.merged = hist.New()
	}
	return v.merged.Merge(h)
}

func (v *values) widen(lo, hi int64) {
	if v.n == 0 {
		v.min, v.max = lo, hi
		return
	}
	v.min, v.max = min(v.min, lo), max(v.max, hi)
}

func (v *values) inBuckets() bool { return v.counts != nil }

// collapse moves the exact values into buckets.
func (v *values) collapse() {
	if v.inBuckets() {
		return
	}
	v.counts = &hist.Counter{}
	for _, x := range v.exact {
		v.counts.Record(x)
	}
	v.exact = nil
}

// inOrder returns the exact values in ascending order.
func (v *values) inOrder() []int64 {
	if !v.sorted {
		sortValues(v.exact, v.min, v.max)
		v.sorted = true
	}
	return v.exact
}

// points are in ascending order.
func (v *values) points(lower bool) []point {
	var ps []point
	if !v.inBuckets() {
		ps = make([]point, 0, len(v.exact))
		for _, x := range v.inOrder() {
			ps = append(ps, point{v: x, count: 1, lower: lower})
		}
		return ps
	}
	n, buckets := 0, v.counts.Buckets
	if v.merged != nil {
		all := v.merged.Clone()
		_ = v.counts.AddTo(all) // counts of a run do not overflow
		buckets = all.Buckets
	}
	buckets(func(hist.Bucket) bool { n++; return true })
	ps = make([]point, 0, n)
	buckets(func(b hist.Bucket) bool {
		ps = append(ps, point{v: min(max(b.High, v.min), v.max), count: b.Count, lower: lower})
		return true
	})
	return ps
}
