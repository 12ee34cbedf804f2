// Package hist implements latency histograms: HdrHistogram buckets with three significant
// digits, which merge exactly, and exact count, sum, minimum and maximum. Quantiles of
// several histograms are those of the merged one, never averages.
package hist

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// Digits is the number of significant decimal digits of a bucket.
	Digits = 3
	// RelativeError bounds (reported − true) / true of a quantile: buckets are at most
	// value/1024 wide and the upper edge is reported. Values below 2048 ns, the minimum
	// and the maximum are exact.
	RelativeError = 1.0 / 1024
	// Highest is the largest value with a bucket, in ns. Larger ones share the last bucket
	// and are counted by Saturated.
	Highest = int64(24 * time.Hour)
)

// Histogram counts non-negative durations in ns. It stores only the buckets in use. Create
// it with New. It is not safe for concurrent use.
type Histogram struct {
	buckets   *hdrhistogram.PackedHistogram
	n         int64
	sum       int64
	min, max  int64
	saturated int64
}

// New returns an empty histogram.
func New() *Histogram {
	return &Histogram{buckets: newBuckets()}
}

func newBuckets() *hdrhistogram.PackedHistogram {
	return hdrhistogram.NewPacked(1, Highest, Digits)
}

// Record counts one value in ns.
func (h *Histogram) Record(v int64) error { return h.RecordN(v, 1) }

// RecordN counts v ns n times. Negative values and counts are errors; n = 0 does nothing.
func (h *Histogram) RecordN(v, n int64) error {
	if v < 0 || n < 0 {
		return fmt.Errorf("hist: cannot record %d ns %d times: value and count must not be negative", v, n)
	}
	if n == 0 {
		return nil
	}
	if n > math.MaxInt64-h.n || (v > 0 && n > (math.MaxInt64-h.sum)/v) {
		return fmt.Errorf("hist: recording %d ns %d times overflows the count or the sum", v, n)
	}
	if err := h.buckets.RecordValues(min(v, Highest), n); err != nil {
		return fmt.Errorf("hist: record %d ns: %w", v, err)
	}
	if v > Highest {
		h.saturated += n
	}
	h.widen(v, v)
	h.n += n
	h.sum += v * n
	return nil
}

// widen must be called before h.n grows.
func (h *Histogram) widen(lo, hi int64) {
	if h.n == 0 {
		h.min, h.max = lo, hi
		return
	}
	h.min, h.max = min(h.min, lo), max(h.max, hi)
}

// SetExact sets sum, min and max, for values that were recorded as bucket midpoints of
// another tool. It returns an error if the histogram is empty or the three are inconsistent.
func (h *Histogram) SetExact(sum, lo, hi int64) error {
	switch {
	case h.n == 0:
		return errors.New("hist: an empty histogram has no minimum or maximum")
	case lo < 0 || lo > hi || float64(sum) < float64(lo)*float64(h.n)*(1-1e-9) ||
		float64(sum) > float64(hi)*float64(h.n)*(1+1e-9):
		return fmt.Errorf("hist: sum %d, min %d and max %d of %d values are inconsistent", sum, lo, hi, h.n)
	}
	h.sum, h.min, h.max = sum, lo, hi
	return nil
}

// Merge adds the counts of other, which is not changed. It returns an error on overflow.
func (h *Histogram) Merge(other *Histogram) error {
	if other == nil || other.n == 0 {
		return nil
	}
	if other.n > math.MaxInt64-h.n || other.sum > math.MaxInt64-h.sum {
		return errors.New("hist: merging overflows the count or the sum")
	}
	if dropped := h.buckets.Merge(other.buckets); dropped != 0 {
		return fmt.Errorf("hist: merge dropped %d values", dropped)
	}
	h.widen(other.min, other.max)
	h.n += other.n
	h.sum += other.sum
	h.saturated += other.saturated
	return nil
}

// Clone returns an independent copy.
func (h *Histogram) Clone() *Histogram {
	c := *h
	c.buckets = h.buckets.Clone()
	return &c
}

// N is the number of values.
func (h *Histogram) N() int64 { return h.n }

// Sum is the exact sum of the values in ns.
func (h *Histogram) Sum() int64 { return h.sum }

// Min is the exact smallest value; 0 when empty.
func (h *Histogram) Min() int64 { return h.min }

// Max is the exact largest value; 0 when empty.
func (h *Histogram) Max() int64 { return h.max }

// Saturated counts values above Highest; quantiles among them are the maximum.
func (h *Histogram) Saturated() int64 { return h.saturated }

// Mean is Sum ÷ N; NaN when empty.
func (h *Histogram) Mean() float64 {
	if h.n == 0 {
		return math.NaN()
	}
	return float64(h.sum) / float64(h.n)
}

// Quantile returns the value of rank ⌈q·n⌉ (at least 1), as the upper edge of its bucket
// within [Min, Max]: the sample quantile is at most RelativeError smaller. q ≤ 0 is the
// minimum, q ≥ 1 the maximum. It returns false without values, or if q is NaN.
func (h *Histogram) Quantile(q float64) (int64, bool) {
	if h.n == 0 || math.IsNaN(q) {
		return 0, false
	}
	rank := Rank(q, h.n)
	if q <= 0 || rank == 1 {
		return h.min, true
	}
	if rank > h.n-max(h.saturated, 1) {
		return h.max, true
	}
	result := h.max
	var seen int64
	h.buckets.ForEachBucket(func(low, count int64) bool {
		if seen += count; seen >= rank {
			result = upperEdge(low)
			return false
		}
		return true
	})
	return min(max(result, h.min), h.max), true
}

// Rank returns ⌈q·n⌉ within [1, n], the rank of the sample quantile q. A product within
// rounding of an integer counts as that integer: the 0.99 quantile of 100 values is the 99th.
func Rank(q float64, n int64) int64 {
	x := q * float64(n)
	k := math.Ceil(x)
	if r := math.Round(x); math.Abs(x-r) <= 1e-9*math.Max(1, math.Abs(x)) {
		k = r
	}
	switch {
	case !(k >= 1):
		return 1
	case k >= float64(n):
		return n
	}
	return int64(k)
}

// upperEdge returns the largest value in the bucket that begins at low: with three digits,
// and so 2048 sub-buckets, the bucket of a value of b bits is 2^(b−11) wide.
func upperEdge(low int64) int64 { return low + bucketWidth(low) - 1 }

func bucketWidth(v int64) int64 {
	return int64(1) << max(0, bits.Len64(uint64(v))-11)
}

// Bucket is one populated bucket: Count values in [Low, High].
type Bucket struct{ Low, High, Count int64 }

// Buckets calls f for each populated bucket in ascending order until it returns false.
func (h *Histogram) Buckets(f func(Bucket) bool) {
	h.buckets.ForEachBucket(func(low, count int64) bool {
		return f(Bucket{Low: low, High: upperEdge(low), Count: count})
	})
}
