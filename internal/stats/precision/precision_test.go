package precision

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/statstest"
)

func TestMore(t *testing.T) {
	tests := []struct {
		n         int
		h, wanted float64
		total     int
		capped    bool
	}{
		{10, 0.06, 0.05, 15, false}, // 10·1.44
		{10, 0.05, 0.05, 11, false},
		{10, 0.2, 0.05, 20, true},
		{10, 0.0707, 0.05, 20, false},
		{10, math.NaN(), 0.05, 20, true},
		{10, 0.1, 0, 20, true},
		{0, 0.1, 0.1, 1, false},
	}
	for _, tt := range tests {
		total, capped := More(tt.n, tt.h, tt.wanted)
		if total != tt.total || capped != tt.capped {
			t.Errorf("More(%d, %g, %g) = %d, %t; want %d, %t", tt.n, tt.h, tt.wanted, total, capped, tt.total, tt.capped)
		}
	}
}

func TestNext(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	few, ok := Next([]float64{1, 2, 3}, 0.05)
	if !ok || few.Done || few.Total != 6 || few.Method != Minimum {
		t.Errorf("of three: %+v, %t", few, ok)
	}
	exact, _ := Next([]float64{100, 101, 100, 99, 100, 101}, 0.05)
	if !exact.Done || exact.Total != 6 || exact.Method != Scaled {
		t.Errorf("of six alike: %+v", exact)
	}
	noisy, _ := Next(statstest.LogNormal(random, 10, 100, 1), 0.01)
	if noisy.Done || noisy.Total != 20 || !noisy.Capped || noisy.Method != Resampled {
		t.Errorf("of ten that vary: %+v", noisy)
	}
	for _, bad := range []struct {
		values []float64
		within float64
	}{{nil, 0.1}, {[]float64{0, 1}, 0.1}, {[]float64{1, math.NaN()}, 0.1}, {[]float64{1, 2}, 0},
		{[]float64{1, 2}, math.NaN()}} {
		if d, ok := Next(bad.values, bad.within); ok {
			t.Errorf("%v: %+v", bad, d)
		}
	}
	if _, _, ok := Confirm(make([]float64, 9), 1, 20); ok {
		t.Error("nine values are confirmed")
	}
}

// needed is the least n with a mean half-width of the interval of at most wanted.
func needed(wanted float64, draw func(n int) []float64) int {
	const trials = 2000
	return 6 + sort.Search(200, func(i int) bool {
		sum := 0.0
		for range trials {
			d, _ := stats.Describe(draw(6 + i))
			sum += (d.High - d.Low) / 2
		}
		return sum/trials <= wanted
	})
}

// Sampled until Next is content, the interval covers the truth about as often as it
// says, and the number of values is within a factor of 1.5 of what their mean width takes, the more
// often the more it takes: the spread of 20 values is known with an error of 16 %, and their number goes with its
// square.
func TestSequential(t *testing.T) {
	const trials, truth = 600, 100.0
	for _, tt := range []struct{ cv, within, near float64 }{{0.05, 0.03, 0.7}, {0.1, 0.05, 0.85}, {0.2, 0.08, 0.88},
		{0.2, 0.05, 0.9}} {
		random := rand.New(rand.NewPCG(2, 2))
		draw := func(n int) []float64 { return statstest.LogNormal(random, n, truth, tt.cv) }
		oracle := needed(tt.within*truth, draw)
		covered, near, sum := 0, 0, 0
		for range trials {
			values := draw(6)
			for {
				next, _ := Next(values, tt.within)
				if next.Done {
					break
				}
				values = append(values, draw(next.Total-len(values))...)
			}
			d, _ := stats.Describe(values)
			if d.Low <= truth && truth <= d.High {
				covered++
			}
			if r := float64(d.N) / float64(oracle); r <= 1.5 && r >= 1/1.5 {
				near++
			}
			sum += d.N
		}
		t.Logf("CV %g within %g: oracle %d, mean n %.1f, near %.3f, covers %.3f", tt.cv, tt.within, oracle,
			float64(sum)/trials, float64(near)/trials, float64(covered)/trials)
		if covered < trials*93/100 {
			t.Errorf("CV %g: the interval covers the truth in %d of %d", tt.cv, covered, trials)
		}
		if float64(near) < tt.near*trials {
			t.Errorf("CV %g: n is near the oracle's %d in %d of %d", tt.cv, oracle, near, trials)
		}
	}
}

func TestBimodalGolden(t *testing.T) {
	type golden struct {
		Values []float64
		Within *float64
	}
	for _, c := range statstest.Golden[golden](t, "bimodal.json") {
		within, _, ok := Bimodal(c.Values)
		if !ok {
			t.Fatalf("of %v", c.Values)
		}
		statstest.Near(t, "within", within, c.Within)
	}
	for _, bad := range [][]float64{make([]float64, 9), make([]float64, 20), append(make([]float64, 10), math.NaN())} {
		if _, _, ok := Bimodal(bad); ok {
			t.Errorf("%v is tested", bad)
		}
	}
}

// At most 5 % of samples with one mode are called bimodal, and two groups are found.
func TestBimodal(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	uniform := func(n int) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = random.Float64()
		}
		return s
	}
	groups := func(apart float64) func(n int) []float64 {
		return func(n int) []float64 {
			s := make([]float64, n)
			for i := range s {
				s[i] = 100 + random.NormFloat64() + apart*float64(random.IntN(2))
			}
			return s
		}
	}
	skewed := func(n int) []float64 { return statstest.LogNormal(random, n, 100, 1) }
	heavy := func(n int) []float64 { // Student's t with one degree of freedom
		s := make([]float64, n)
		for i := range s {
			s[i] = random.NormFloat64() / random.NormFloat64()
		}
		return s
	}
	for _, tt := range []struct {
		name        string
		n           int
		draw        func(n int) []float64
		least, most float64
	}{
		{"normal", 20, groups(0), 0, 0.01}, {"uniform", 20, uniform, 0.03, 0.07}, {"uniform", 100, uniform, 0.03, 0.07},
		{"uniform", 600, uniform, 0, 0.07}, {"log-normal", 20, skewed, 0, 0.05}, {"Cauchy", 20, heavy, 0, 0.05},
		{"one group in two", 40, groups(1), 0, 0.01}, {"six sigma apart", 12, groups(6), 0.5, 1},
		{"six sigma apart", 20, groups(6), 0.85, 1}, {"five sigma apart", 40, groups(5), 0.85, 1},
	} {
		got := statstest.Share(600, func() bool {
			_, p, _ := Bimodal(tt.draw(tt.n))
			return p < 0.05
		})
		t.Logf("%s, %d values: %.3f", tt.name, tt.n, got)
		if got < tt.least || got > tt.most {
			t.Errorf("%s, %d values: bimodal in %.3f, want %g to %g", tt.name, tt.n, got, tt.least, tt.most)
		}
	}
}

// Injected variances are recovered, and the dominant level is named.
func TestComponents(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	draw := func(occasions, repetitions int, between, within float64) [][]float64 {
		s := make([][]float64, occasions)
		for i := range s {
			mean := 100 + between*random.NormFloat64()
			for range repetitions + i%2 { // not balanced
				s[i] = append(s[i], mean+within*random.NormFloat64())
			}
		}
		return s
	}
	c, ok := VarianceOf(draw(2000, 5, 3, 4))
	if !ok || math.Abs(c.Within-16) > 1 || math.Abs(c.Between-9) > 1 || c.Add != Occasions {
		t.Errorf("between 9, within 16: %+v, %t", c, ok)
	}
	c, _ = VarianceOf(draw(2000, 5, 1, 4))
	if c.Add != Repetitions || math.Abs(c.Between-1) > 0.5 {
		t.Errorf("between 1, within 16: %+v", c)
	}
	// By hand: means 2 and 6, variances 2 and 2: S₂² = 8, T₂² = 8 − 2/2.
	c, _ = VarianceOf([][]float64{{1, 3}, {5, 7}})
	if c != (Components{Occasions: 2, Repetitions: 2, Within: 2, Between: 7, Add: Occasions}) {
		t.Errorf("by hand: %+v", c)
	}
	if c, ok := VarianceOf([][]float64{{1, 1}, {1, 1}}); !ok || c.Add != "" {
		t.Errorf("without variance: %+v, %t", c, ok)
	}
	for _, bad := range [][][]float64{nil, {{1, 2}}, {{1}, {2}}, {{1, 2}, nil}, {{1, 2}, {3, math.Inf(1)}}} {
		if c, ok := VarianceOf(bad); ok {
			t.Errorf("%v: %+v", bad, c)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte("12345678abcdefgh12345678abcdefgh12345678"), 0.1)
	f.Fuzz(func(t *testing.T, data []byte, within float64) {
		values := statstest.Numbers(data, 60)
		if d, ok := Next(values, within); ok && (d.Total < len(values) || d.Done && d.Total != len(values)) {
			t.Errorf("%v: %+v", values, d)
		}
		if within, p, ok := Bimodal(values); ok && !(within >= 0 && within <= 1 && p > 0 && p <= 1) {
			t.Errorf("%v: within %v, p %v", values, within, p)
		}
		VarianceOf([][]float64{values, values})
	})
}
