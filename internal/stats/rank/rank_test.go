package rank_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
	"github.com/cnsbench/cnsbench/internal/stats/statstest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSmallestN(t *testing.T) {
	var paired, unpaired []int
	for providers := 2; providers <= 6; providers++ {
		paired = append(paired, rank.SmallestN(true, providers))
		unpaired = append(unpaired, rank.SmallestN(false, providers))
	}
	if diff := cmp.Diff([][]int{{6, 7, 8, 9, 10}, {4, 5, 5, 6, 6}}, [][]int{paired, unpaired}); diff != "" {
		t.Error(diff)
	}
	// LeastP is what the tests say of samples that do not overlap.
	for n := 1; n <= 9; n++ {
		up := make([]float64, n)
		for i := range up {
			up[i] = float64(i + 1)
		}
		for m := 1; m <= 7; m++ {
			got, _ := rank.MannWhitney(up, []float64{10, 11, 12, 13, 14, 15, 16}[:m])
			want := rank.LeastP(false, n, m)
			statstest.Near(t, "least p", got.P, &want)
		}
		got, _ := rank.SignedRank(up)
		want := rank.LeastP(true, n, n)
		statstest.Near(t, "least p of pairs", got.P, &want)
	}
}

func TestHolm(t *testing.T) {
	nan := math.NaN()
	tests := []struct{ p, want []float64 }{
		{nil, nil},
		{[]float64{0.03}, []float64{0.03}},
		{[]float64{0.01, 0.04, 0.03}, []float64{0.03, 0.06, 0.06}},
		{[]float64{0.6, 0.5}, []float64{1, 1}},
		{[]float64{nan, 0.02, 0.01}, []float64{nan, 0.02, 0.02}},
	}
	for _, tt := range tests {
		got := rank.Holm(tt.p)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
			t.Errorf("%v: %s", tt.p, diff)
		}
	}
}

func TestEffect(t *testing.T) {
	// Of ten by ten values, b above a in `above` pairs.
	for above, want := range map[int]rank.Magnitude{50: rank.Negligible, 57: rank.Negligible, 58: rank.Small,
		66: rank.Small, 67: rank.Medium, 73: rank.Medium, 74: rank.Large, 100: rank.Large, 0: rank.Large} {
		var a, b []float64
		for i := range 10 {
			a = append(a, float64(i))
			// As many of a are below: above/10 of them, one more for the rest.
			k := above / 10
			if i < above%10 {
				k++
			}
			b = append(b, float64(k)-0.5)
		}
		e, ok := rank.EffectOf(a, b)
		if !ok || e.Magnitude != want || math.Abs(e.A12-float64(above)/100) > 1e-12 ||
			math.Abs(e.Delta-(2*e.A12-1)) > 1e-12 {
			t.Errorf("%d of 100 above: %+v", above, e)
		}
		if back, _ := rank.EffectOf(b, a); math.Abs(back.Delta+e.Delta) > 1e-12 {
			t.Errorf("b against a has %v, a against b %v", e.Delta, back.Delta)
		}
	}
}

// Zeros neither make a difference nor hide one: Pratt's ranks keep them in mind.
func TestZeros(t *testing.T) {
	if got, ok := rank.SignedRank([]float64{0, 0, 0}); !ok || got.P != 1 {
		t.Errorf("of zeros: %+v, %t", got, ok)
	}
	all := []float64{1, 2, 3, 4, 5, 6, -0.5}
	without, _ := rank.SignedRank(all)
	with, _ := rank.SignedRank(append(all, 0, 0, 0, 0, 0, 0))
	if with.P < without.P {
		t.Errorf("six zeros make p %v of %v", with.P, without.P)
	}
}

// To exchange the samples, to multiply them by a factor, or to transform them by a
// monotone function does not change a test, and inverts a ratio or leaves it.
func TestInvariance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	near := func(a, b float64) bool {
		return math.Abs(a-b) < 1e-9*math.Abs(a)+1e-12 || math.IsNaN(a) && math.IsNaN(b)
	}
	for range 200 {
		n := 1 + random.IntN(12)
		a, b := statstest.LogNormal(random, n, 10, 1), statstest.LogNormal(random, n, 12, 1)
		if random.IntN(2) == 0 { // ties
			for i := range a {
				a[i], b[i] = math.Ceil(a[i]/4), math.Ceil(b[i]/4)
			}
		}
		cubed := func(s []float64) []float64 {
			c := slices.Clone(s)
			for i := range c {
				c[i] = 5 * c[i] * c[i] * c[i]
			}
			return c
		}
		u, _ := rank.MannWhitney(a, b)
		v, _ := rank.MannWhitney(b, a)
		w, _ := rank.MannWhitney(cubed(a), cubed(b))
		if !near(u.P, v.P) || u != w || !near(u.Statistic+v.Statistic, float64(n*n)) {
			t.Fatalf("%v %v: %+v %+v %+v", a, b, u, v, w)
		}
		for _, of := range []func(a, b []float64, level float64) (stats.Ratio, bool){rank.MedianRatio, rank.PairedRatio} {
			r, _ := of(a, b, 0.9)
			s, _ := of(b, a, 0.9)
			c, _ := of(cubed(a), cubed(b), 0.9)
			if !near(r.Value, 1/s.Value) || !near(r.Low, 1/s.High) || !near(c.Value, r.Value*r.Value*r.Value) ||
				!near(c.High, r.High*r.High*r.High) {
				t.Fatalf("%v %v: %+v %+v %+v", a, b, r, s, c)
			}
		}
	}
}

// Under no difference p is below 0.05 in at most 5 % of trials, also with ties and
// zeros, and not much less often where the distribution has fine steps.
func TestFalsePositives(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	round := func(s []float64, unit float64) []float64 {
		for i := range s {
			s[i] = math.Round(s[i]/unit) * unit
		}
		return s
	}
	draw := func(n int, unit float64) []float64 { return round(statstest.LogNormal(random, n, 100, 0.2), unit) }
	differences := func(n int, unit float64) []float64 {
		a, b := draw(n, unit), draw(n, unit)
		for i := range a {
			a[i] -= b[i]
		}
		return a
	}
	tests := []struct {
		name  string
		least float64
		test  func() (rank.Test, bool)
	}{
		{"signed-rank of 10", 0.03, func() (rank.Test, bool) { return rank.SignedRank(differences(10, 1e-9)) }},
		{"signed-rank with ties and zeros", 0.02, func() (rank.Test, bool) { return rank.SignedRank(differences(10, 25)) }},
		{"signed-rank of 60", 0.03, func() (rank.Test, bool) { return rank.SignedRank(differences(60, 10)) }},
		{"rank sum of 8 and 8", 0.03, func() (rank.Test, bool) { return rank.MannWhitney(draw(8, 1e-9), draw(8, 1e-9)) }},
		{"rank sum with ties", 0.02, func() (rank.Test, bool) { return rank.MannWhitney(draw(8, 25), draw(6, 25)) }},
		{"rank sum of 60 and 55", 0.03, func() (rank.Test, bool) { return rank.MannWhitney(draw(60, 10), draw(55, 10)) }},
	}
	const trials = 2000
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := statstest.Share(trials, func() bool {
				r, ok := tt.test()
				return !ok || r.P < 0.05
			})
			t.Logf("%.2f %%", 100*got)
			// Two standard errors of 5 % in so many trials.
			if got > 0.05+2*math.Sqrt(0.05*0.95/trials) || got < tt.least {
				t.Errorf("p < 0.05 in %.2f %% of trials", 100*got)
			}
		})
	}
}

// Tests of several samples: fewer trials, for each permutes.
func TestFalsePositivesOfSeveral(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	draw := func(n int) []float64 { return statstest.LogNormal(random, n, 100, 0.2) }
	for name, test := range map[string]func() (rank.Test, bool){
		"Kruskal and Wallis": func() (rank.Test, bool) { return rank.KruskalWallis([][]float64{draw(4), draw(3), draw(4)}) },
		"Friedman": func() (rank.Test, bool) {
			return rank.Friedman([][]float64{draw(3), draw(3), draw(3), draw(3), draw(3)})
		},
	} {
		got := statstest.Share(150, func() bool {
			r, ok := test()
			return !ok || r.P < 0.05
		})
		t.Logf("%s: %.1f %%", name, 100*got)
		if got > 0.08 || got < 0.01 {
			t.Errorf("%s: p < 0.05 in %.1f %% of trials", name, 100*got)
		}
	}
}

// Intervals cover the true ratio as often as they say: beyond exact ones too, with ties, and for pairs.
func TestCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	const trials, ratio = 1000, 1.7
	for _, tt := range []struct {
		name     string
		n, m     int
		level    float64
		ties, of bool // of pairs
	}{
		{"four each", 4, 4, 0.95, false, false}, {"ten and twenty", 10, 20, 0.95, false, false},
		{"ten each with ties", 10, 10, 0.95, true, false}, {"beyond exact", 55, 60, 0.9, false, false},
		{"six pairs", 6, 6, 0.95, false, true}, {"twelve pairs", 12, 12, 0.9, false, true},
		{"twelve pairs with ties", 12, 12, 0.9, true, true}, {"sixty pairs", 60, 60, 0.95, false, true},
	} {
		covered := statstest.Share(trials, func() bool {
			a := statstest.LogNormal(random, tt.n, 10, 0.3)
			b := statstest.LogNormal(random, tt.m, 10*ratio, 0.3)
			if tt.ties { // logarithms in steps of ln(1.7)/2, so that the shift is two steps
				for _, s := range [][]float64{a, b} {
					for i, x := range s {
						step := math.Log(ratio) / 2
						s[i] = math.Exp(step * math.Round(math.Log(x/10)/step))
					}
				}
			}
			r, ok := rank.MedianRatio(a, b, tt.level)
			if tt.of {
				r, ok = rank.PairedRatio(a, b, tt.level)
			}
			return ok && r.Low <= ratio*(1+1e-9) && ratio <= r.High*(1+1e-9)
		})
		t.Logf("%s: nominal %.2f, covers %.3f", tt.name, tt.level, covered)
		if covered < tt.level-2*math.Sqrt(tt.level*(1-tt.level)/trials) {
			t.Errorf("%s: nominal %.2f, covers %.3f", tt.name, tt.level, covered)
		}
	}
}

// 50 000 values on each side: an algorithm that forms all 2.5·10⁹ ratios fails this by its memory.
func TestManyValues(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	a, b := statstest.LogNormal(random, 50_000, 10, 0.3), statstest.LogNormal(random, 50_000, 11, 0.3)
	for _, of := range []func(a, b []float64, level float64) (stats.Ratio, bool){rank.MedianRatio, rank.PairedRatio} {
		r, ok := of(a, b, 0.95)
		if !ok || math.Abs(r.Value-1.1) > 0.01 || !(r.Low < r.Value && r.Value < r.High) {
			t.Errorf("%+v", r)
		}
	}
}

func TestRefuses(t *testing.T) {
	good := []float64{1, 2, 3}
	for _, bad := range [][]float64{nil, {1, 2, math.NaN()}, {1, 2, math.Inf(1)}} {
		_, signed := rank.SignedRank(bad)
		_, u := rank.MannWhitney(good, bad)
		_, effect := rank.EffectOf(bad, good)
		_, h := rank.KruskalWallis([][]float64{good, bad})
		_, q := rank.Friedman([][]float64{good, bad})
		_, ratio := rank.MedianRatio(good, bad, 0.9)
		_, paired := rank.PairedRatio(bad, good, 0.9)
		if signed || u || effect || h || q || ratio || paired {
			t.Errorf("%v: %t %t %t %t %t %t %t", bad, signed, u, effect, h, q, ratio, paired)
		}
	}
	if _, ok := rank.PairedRatio(good, good[:2], 0.9); ok {
		t.Error("sides of pairs differ in length")
	}
	if _, ok := rank.Friedman([][]float64{{1, 2}, {1, 2, 3}}); ok {
		t.Error("blocks differ in length")
	}
	if got, ok := rank.KruskalWallis([][]float64{{1, 1}, {1}}); !ok || got.P != 1 {
		t.Errorf("of equal values: %+v, %t", got, ok)
	}
	if got, ok := rank.Friedman([][]float64{{1, 1}, {2, 2}}); !ok || got.P != 1 {
		t.Errorf("of equal values: %+v, %t", got, ok)
	}
}

func FuzzTests(f *testing.F) {
	f.Add([]byte("12345678abcdefgh12345678abcdefgh12345678"), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, at uint8) {
		values := statstest.Numbers(data, 30)
		cut := min(int(at), len(values))
		a, b := values[:cut], values[cut:]
		var p []float64
		if r, ok := rank.MannWhitney(a, b); ok {
			p = append(p, r.P)
		}
		if r, ok := rank.SignedRank(values); ok {
			p = append(p, r.P)
		}
		if r, ok := rank.KruskalWallis([][]float64{a, b}); ok {
			p = append(p, r.P)
		}
		for _, x := range append(p, rank.Holm(p)...) {
			if !(x > 0 && x <= 1) {
				t.Errorf("%v: p %v", values, x)
			}
		}
		if r, ok := rank.MedianRatio(a, b, 0.9); ok && r.Bounded() && !(r.Low <= r.High) {
			t.Errorf("%v %v: %+v", a, b, r)
		}
		rank.PairedRatio(a, b, 0.9)
		rank.EffectOf(a, b)
	})
}
