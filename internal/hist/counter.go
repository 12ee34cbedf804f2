package hist

import "math/bits"

// Counter counts values in the buckets of a Histogram. It is several times as fast, and has memory for all buckets up
// to the greatest in use: at most a quarter of a megabyte. The zero value is empty. It is not safe for concurrent use.
type Counter struct{ counts []int64 }

// Record counts one value in ns; a negative one counts as 0, one above Highest as that.
func (c *Counter) Record(v int64) {
	v = min(max(v, 0), Highest)
	shift := max(0, bits.Len64(uint64(v))-11) // see bucketWidth
	at := shift<<10 + int(v>>shift)
	if at >= len(c.counts) {
		c.counts = append(c.counts, make([]int64, at+1-len(c.counts))...)
	}
	c.counts[at]++
}

// AddTo records the values in a histogram, each as the least of its bucket. It returns an error on overflow.
func (c *Counter) AddTo(h *Histogram) error {
	for at, n := range c.counts {
		if n > 0 {
			if err := h.RecordN(low(at), n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Buckets calls f for each populated bucket in ascending order until it returns false.
func (c *Counter) Buckets(f func(Bucket) bool) {
	for at, n := range c.counts {
		if l := low(at); n > 0 && !f(Bucket{Low: l, High: upperEdge(l), Count: n}) {
			return
		}
	}
}

// low is the least value of a bucket.
func low(at int) int64 {
	shift := max(0, at>>10-1)
	return int64(at-shift<<10) << shift
}
