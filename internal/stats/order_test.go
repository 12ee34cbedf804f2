package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOrder: the order is that of a stable sort, of few and many keys, of narrow and the widest ranges. Values are
// sorted in it.
func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() int64{
		"equal":     func() int64 { return 7 },
		"few":       func() int64 { return random.Int64N(10) - 5 },
		"latencies": func() int64 { return int64(3e5 + 1e5*random.ExpFloat64()) },
		"instants":  func() int64 { return random.Int64N(3600e9) },
		"widest":    func() int64 { return int64(random.Uint64()) },
		"extremes":  func() int64 { return []int64{math.MinInt64, -1, 0, math.MaxInt64}[random.IntN(4)] },
	} {
		for _, n := range []int{0, 1, 2, 1000, 1 << digit, 50_000} {
			keys, want := make([]int64, n), make([]int32, n)
			for i := range keys {
				keys[i], want[i] = draw(), int32(i)
			}
			slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(keys[a], keys[b]) })
			if got := Order(n, func(i int) int64 { return keys[i] }); !slices.Equal(got, want) {
				t.Errorf("%s, %d keys: in another order", name, n)
			}
			sorted := slices.Sorted(slices.Values(keys))
			if n == 0 {
				continue
			}
			if sortValues(keys, sorted[0], sorted[n-1]); !slices.Equal(keys, sorted) {
				t.Errorf("%s, %d values: not sorted", name, n)
			}
		}
	}
}
