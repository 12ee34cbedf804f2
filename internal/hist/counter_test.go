package hist

import (
	"slices"
	"testing"
)

// TestCounter: a counter has the buckets of a histogram of the same values, also added to another histogram.
func TestCounter(t *testing.T) {
	buckets := func(of interface{ Buckets(func(Bucket) bool) }) (list []Bucket) {
		of.Buckets(func(b Bucket) bool { list = append(list, b); return true })
		return list
	}
	for _, shape := range []string{"uniform", "exponential", "lognormal", "bimodal", "tiny"} {
		values := append(draw(shape, 20_000), 0, 1, 1023, 1024, 2047, 2048, 2049, 4095, 4096, Highest-1, Highest, Highest+5)
		h, sum := New(), of(t, values...)
		var c Counter
		for _, v := range values {
			must(t, h.Record(v))
			c.Record(v)
		}
		if got, want := buckets(&c), buckets(h); !slices.Equal(got, want) {
			t.Errorf("%s: %d buckets, want %d", shape, len(got), len(want))
		}
		must(t, c.AddTo(sum))
		must(t, h.Merge(h.Clone()))
		if got, want := buckets(sum), buckets(h); !slices.Equal(got, want) {
			t.Errorf("%s, added: %d buckets, want %d", shape, len(got), len(want))
		}
		exact := func(h *Histogram) [5]int64 { return [5]int64{h.N(), h.Sum(), h.Min(), h.Max(), h.Saturated()} }
		if got, want := exact(sum), exact(h); got != want {
			t.Errorf("%s, added: n, sum, min, max and saturated %d, want %d", shape, got, want)
		}
		c.Reset()
		c.Record(values[0])
		one, again := of(t, values[0]), New()
		must(t, c.AddTo(again))
		if got, want := exact(again), exact(one); got != want || !slices.Equal(buckets(&c), buckets(one)) {
			t.Errorf("%s, reset: n, sum, min, max and saturated %d, want %d", shape, got, want)
		}
	}
	var c Counter
	c.Record(-7)
	if got := buckets(&c); len(got) != 1 || got[0] != (Bucket{Count: 1}) {
		t.Errorf("of a negative value: %v", got)
	}
}
