package hist

import (
	"errors"
	"math"
	"math/bits"
)

// Counter counts values in the buckets of a Histogram, in less time than that. It has 8 KiB of memory for each power of
// two in which there are values, at most 304 KiB. The zero value is empty. It is not safe for concurrent use.
type Counter struct {
	pages             [38]*[1024]int64 // counts by bucket
	n, sum, saturated int64
	min, max          int64
}

// Record counts one value in ns; a negative one counts as 0.
func (c *Counter) Record(v int64) {
	v = max(v, 0)
	if c.n == 0 {
		c.min = v
	}
	c.n, c.sum, c.min, c.max = c.n+1, c.sum+v, min(c.min, v), max(c.max, v)
	if v > Highest {
		c.saturated++
		v = Highest
	}
	shift := max(0, bits.Len64(uint64(v))-11) // see bucketWidth
	at := shift<<10 + int(v>>shift)
	page := c.pages[at>>10]
	if page == nil {
		page = new([1024]int64)
		c.pages[at>>10] = page
	}
	page[at&1023]++
}

// AddTo adds all values to a histogram, as if it had recorded them. It returns an error on overflow.
func (c *Counter) AddTo(h *Histogram) error {
	if c.n == 0 {
		return nil
	}
	if c.n > math.MaxInt64-h.n || c.sum > math.MaxInt64-h.sum {
		return errors.New("hist: adding overflows the count or the sum")
	}
	var err error
	c.Buckets(func(b Bucket) bool {
		err = h.buckets.RecordValues(b.Low, b.Count)
		return err == nil
	})
	h.widen(c.min, c.max)
	h.n, h.sum, h.saturated = h.n+c.n, h.sum+c.sum, h.saturated+c.saturated
	return err
}

// Reset empties the counter, whose memory remains.
func (c *Counter) Reset() {
	if c.n == 0 {
		return
	}
	for _, p := range c.pages {
		if p != nil {
			clear(p[:])
		}
	}
	*c = Counter{pages: c.pages}
}

// Buckets calls f for each populated bucket in ascending order until it returns false.
func (c *Counter) Buckets(f func(Bucket) bool) {
	for i, p := range c.pages {
		if p == nil {
			continue
		}
		for j, n := range p {
			if n == 0 {
				continue
			}
			if l := low(i<<10 + j); !f(Bucket{Low: l, High: upperEdge(l), Count: n}) {
				return
			}
		}
	}
}

// low is the least value of a bucket.
func low(at int) int64 {
	shift := max(0, at>>10-1)
	return int64(at-shift<<10) << shift
}
