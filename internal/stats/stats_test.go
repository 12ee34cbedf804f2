package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/hist"
)

func TestMinN(t *testing.T) {
	for q, want := range map[float64]int64{0.5: 6, 0.9: 29, 0.95: 59, 0.99: 299, 0.999: 2995, 0.1: 29, 0: math.MaxInt64,
		1: math.MaxInt64, math.NaN(): math.MaxInt64} {
		if got := MinN(q); got != want {
			t.Errorf("MinN(%g) = %d, want %d", q, got, want)
		}
	}
}

func TestRanks(t *testing.T) {
	tests := []struct {
		n        int64
		q        float64
		j, k     int64
		coverage float64
		ok       bool
	}{
		{5, 0.5, 0, 0, 0, false},
		{6, 0.5, 1, 6, 0.969, true},
		{10, 0.5, 2, 9, 0.979, true},
		{20, 0.5, 6, 15, 0.959, true},
		{28, 0.9, 0, 0, 0, false},
		{298, 0.99, 0, 0, 0, false},
		{2994, 0.999, 0, 0, 0, false},
	}
	for _, tt := range tests {
		j, k, c, ok := Ranks(tt.n, tt.q, 0.95)
		if j != tt.j || k != tt.k || math.Abs(c-tt.coverage) > 0.0005 || ok != tt.ok {
			t.Errorf("Ranks(%d, %g) = %d, %d, %.4f, %t; want %d, %d, %.3f, %t", tt.n, tt.q, j, k, c, ok, tt.j, tt.k,
				tt.coverage, tt.ok)
		}
	}
	for q, n := range map[float64]int64{0.5: 6, 0.9: 29, 0.95: 59, 0.99: 299, 0.999: 2995, 0.01: 299} {
		if _, k, c, ok := Ranks(n, q, 0.95); !ok || c < 0.95 || q > 0.5 && k != n {
			t.Errorf("Ranks(%d, %g): k %d, coverage %.4f, %t; an interval up to the greatest value exists", n, q, k, c,
				ok)
		}
	}
}

// TestRanksCover draws samples and counts how often the interval holds the
// true quantile.
func TestRanksCover(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		n int64
		q float64
	}{{10, 0.5}, {37, 0.9}, {400, 0.99}} {
		j, k, want, _ := Ranks(c.n, c.q, 0.95)
		hits, trials := 0, 4000
		for range trials {
			x := make([]float64, c.n)
			for i := range x {
				x[i] = random.Float64()
			}
			slices.Sort(x)
			if x[j-1] <= c.q && c.q <= x[k-1] {
				hits++
			}
		}
		if got := float64(hits) / float64(trials); math.Abs(got-want) > 0.015 {
			t.Errorf("n=%d q=%g: covered %.3f of the time, formula says %.3f", c.n, c.q, got, want)
		}
	}
}

func sample(values, bounds []int64, infinite int64) *Sample {
	var s Sample
	for _, v := range values {
		s.Add(v)
	}
	for _, v := range bounds {
		s.AddAtLeast(v)
	}
	s.AddInfinite(infinite)
	return &s
}

func TestQuantiles(t *testing.T) {
	ten := []int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	tests := []struct {
		name                string
		s                   *Sample
		q                   float64
		quantile, low, high Estimate
	}{
		{"median", sample(ten, nil, 0), 0.5, Estimate{Value: 5}, Estimate{Value: 5}, Estimate{Value: 5}},
		{"p99 of ten", sample(ten, nil, 0), 0.99, Estimate{Value: 10}, Estimate{Value: 10}, Estimate{Value: 10}},
		{"falls on a dropped op", sample(ten, nil, 1), 0.99, Estimate{Infinite: true}, Estimate{Infinite: true},
			Estimate{Infinite: true}},
		{"falls before a dropped op", sample(ten, nil, 1), 0.5, Estimate{Value: 6}, Estimate{Value: 6},
			Estimate{Value: 6}},
		{"falls on a bound", sample(ten, []int64{30}, 0), 0.99, Estimate{Value: 30, AtLeast: true}, Estimate{Value: 30},
			Estimate{Infinite: true}},
		{"falls before a late bound", sample(ten, []int64{30}, 0), 0.5, Estimate{Value: 6}, Estimate{Value: 6},
			Estimate{Value: 6}},
		// Kaplan–Meier by hand: events 1..4, a bound at 2 (after the event): S(1)=4/5, S(2)=3/5, then two at
		// risk: S(3)=3/10. The median is 3; certain is only that it is at least 2 (3 if the bound is far out).
		{"early bound", sample([]int64{1, 2, 3, 4}, []int64{2}, 0), 0.5, Estimate{Value: 3}, Estimate{Value: 2},
			Estimate{Value: 3}},
		{"only bounds", sample(nil, []int64{7, 9}, 0), 0.5, Estimate{Value: 9, AtLeast: true}, Estimate{Value: 7},
			Estimate{Infinite: true}},
		{"only dropped", sample(nil, nil, 3), 0.5, Estimate{Infinite: true}, Estimate{Infinite: true},
			Estimate{Infinite: true}},
		{"bound before dropped", sample(ten, []int64{4}, 1), 0.91, Estimate{Value: 10, AtLeast: true},
			Estimate{Value: 10}, Estimate{Infinite: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := tt.s.Quantile(tt.q)
			if got != tt.quantile {
				t.Errorf("Quantile(%g) = %+v, want %+v", tt.q, got, tt.quantile)
			}
			if low, high, _ := tt.s.BoundsOf(tt.q); low != tt.low || high != tt.high {
				t.Errorf("BoundsOf(%g) = %+v, %+v; want %+v, %+v", tt.q, low, high, tt.low, tt.high)
			}
		})
	}
	if _, ok := (&Sample{}).Quantile(0.5); ok {
		t.Error("an empty sample has a median")
	}
}

func TestInterval(t *testing.T) {
	low, high, coverage, ok := sample([]int64{1, 2, 3, 4, 5, 6, 7, 8}, []int64{20}, 1).Interval(0.5)
	if want := (Estimate{Value: 2}); !ok || low != want || high != (Estimate{Value: 20, AtLeast: true}) ||
		coverage < 0.95 {
		t.Errorf("got %+v %+v %g %t", low, high, coverage, ok)
	}
}

// TestCollapse: beyond the limit values are counted in buckets; extremes and
// mean stay exact.
func TestCollapse(t *testing.T) {
	var big Sample
	random := rand.New(rand.NewPCG(3, 4))
	var all []int64
	for range exactLimit + 50_000 {
		v := 1_000_000 + random.Int64N(1_000_000_000)
		all = append(all, v)
		big.Add(v)
	}
	slices.Sort(all)
	for _, q := range []float64{0.01, 0.5, 0.99} {
		got, _ := big.Quantile(q)
		want := all[hist.Rank(q, int64(len(all)))-1]
		if d := float64(got.Value-want) / float64(want); d < 0 || d > hist.RelativeError {
			t.Errorf("q %g: %d, want %d", q, got.Value, want)
		}
	}
	if lo, _ := big.Min(); lo != all[0] {
		t.Errorf("min %d, want %d", lo, all[0])
	}
	if hi, _ := big.Max(); hi != all[len(all)-1] {
		t.Errorf("max %d, want %d", hi, all[len(all)-1])
	}
	if big.N() != int64(len(all)) {
		t.Errorf("n %d, want %d", big.N(), len(all))
	}
}

func TestCDF(t *testing.T) {
	got := sample([]int64{1, 2, 3}, []int64{2}, 1).CDF(100)
	if diff := cmp.Diff([]Step{{1, 0.2}, {2, 0.4}, {3, 0.6}}, got); diff != "" {
		t.Error(diff)
	}
	var s Sample
	for i := range int64(10_000) {
		s.Add(i)
	}
	got = s.CDF(100)
	tail := slices.IndexFunc(got, func(p Step) bool { return p.P >= 0.999 })
	if len(got) > 300 || got[len(got)-1] != (Step{9999, 1}) || got[0].V != 0 || len(got)-tail < 10 {
		t.Errorf("%d steps from %v to %v, %d in the tail", len(got), got[0], got[len(got)-1], len(got)-tail)
	}
}

// TestQuantileRatio: the interval holds the truth about as often as it says,
// also where values are correlated in time.
func TestQuantileRatio(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	draw := func(n int, scale float64) []Counts {
		var out []Counts
		level := 0.0
		for range n {
			level = 0.5*level + random.NormFloat64()
			out = append(out, One(int64(scale*math.Exp(0.3*level))))
		}
		return out
	}
	hits := 0
	const trials = 100
	for i := range uint64(trials) {
		r, ok := QuantileRatio(draw(400, 3e6), draw(600, 1e6), 0.5, i)
		if !ok {
			t.Fatal("no ratio")
		}
		if r.Low <= 3 && 3 <= r.High {
			hits++
		}
	}
	if hits < 85 {
		t.Errorf("the true ratio was in %d of %d intervals", hits, trials)
	}
	if _, ok := QuantileRatio(nil, draw(10, 1), 0.5, 1); ok {
		t.Error("a ratio without a numerator")
	}
	r, ok := QuantileRatio([]Counts{One(4)}, []Counts{One(2)}, 0.5, 1)
	if !ok || r.Value != 2 || !math.IsNaN(r.Low) {
		t.Errorf("of single values: %+v, %t", r, ok)
	}
}

// TestShareOf: the interval has the known share in about 95 % of samples, and grouping does not change the share.
func TestShareOf(t *testing.T) {
	t.Parallel()
	covered, n := 0, 200
	for seed := range uint64(n) {
		random := rand.New(rand.NewPCG(seed, 3))
		var part, whole []float64
		for range 80 {
			w := 1 + random.ExpFloat64()
			part, whole = append(part, w*(0.2+0.4*random.Float64())), append(whole, w)
		}
		r, ok := ShareOf(part, whole, seed)
		if again, _ := ShareOf(part, whole, seed); !ok || again != r || !r.Bounded() {
			t.Fatalf("%v, %v, %t", r, again, ok)
		}
		if r.Low <= 0.4 && 0.4 <= r.High {
			covered++
		}
	}
	if covered < 90*n/100 {
		t.Errorf("the interval covers the share in %d of %d", covered, n)
	}
	many := make([]float64, 2500)
	for i := range many {
		many[i] = float64(i % 2)
	}
	whole := slices.Repeat([]float64{1}, len(many))
	if r, ok := ShareOf(many, whole, 1); !ok || r.Value != 0.5 || math.Abs(r.Low-0.5) > 0.01 {
		t.Errorf("grouped: %v, %t", r, ok)
	}
	if r, ok := ShareOf(many[:9], whole[:9], 1); !ok || r.Bounded() {
		t.Errorf("nine steps: %v, %t", r, ok)
	}
	for _, bad := range [][2][]float64{{nil, nil}, {{1}, {0}}, {{1}, {1, 2}}} {
		if r, ok := ShareOf(bad[0], bad[1], 1); ok {
			t.Errorf("%v: %v", bad, r)
		}
	}
}
