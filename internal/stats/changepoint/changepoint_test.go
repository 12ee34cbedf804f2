package changepoint

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/stats/statstest"
)

func TestSplitGolden(t *testing.T) {
	type golden struct {
		Values []float64
		At     int
		Q      float64
	}
	for _, c := range statstest.Golden[golden](t, "splits.json") {
		s := &search{Options: Options{}.WithDefaults()}
		g := newSegment(scale(c.Values))
		at, q := s.best(&g)
		if at != c.At {
			t.Errorf("of %d: split at %d, want %d", len(c.Values), at, c.At)
		}
		statstest.Near(t, "q", q, &c.Q)
	}
}

// history draws runs with a coefficient of variation of 5 %, and shifts of so many
// standard deviations from given runs on.
func history(random *rand.Rand, n int, shifts map[int]float64) []float64 {
	s, level := statstest.LogNormal(random, n, 1000, 0.05), 0.0
	for i := range s {
		level += shifts[i]
		s[i] *= math.Exp(0.05 * level)
	}
	return s
}

func find(t *testing.T, values []float64, seed uint64) []Change {
	t.Helper()
	changes, err := Find(values, Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// Stable histories, with and without outliers: at most 5 % have a change.
func TestStable(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    int
		draw func(random *rand.Rand, s []float64)
	}{
		{"normal", 20, nil}, {"normal", 60, nil}, {"normal", 120, nil},
		{"one outlier of 10 sigma", 60, func(random *rand.Rand, s []float64) { s[random.IntN(len(s))] *= math.Exp(0.5) }},
		{"the last is an outlier", 60, func(_ *rand.Rand, s []float64) { s[len(s)-1] *= math.Exp(-1) }},
		{"heavy tails", 60, func(random *rand.Rand, s []float64) {
			for i := range s {
				s[i] *= math.Exp(0.05 * math.Tan(1.4*(2*random.Float64()-1)))
			}
		}},
		{"coarse figures", 60, func(_ *rand.Rand, s []float64) {
			for i := range s {
				s[i] = math.Round(s[i]/60) * 60
			}
		}},
	} {
		random := rand.New(rand.NewPCG(1, uint64(tt.n)))
		const trials = 200
		alarms := 0
		for i := range uint64(trials) {
			s := history(random, tt.n, nil)
			if tt.draw != nil {
				tt.draw(random, s)
			}
			if len(find(t, s, i)) > 0 {
				alarms++
			}
		}
		t.Logf("%s, %d runs: %d of %d alarmed", tt.name, tt.n, alarms, trials)
		if alarms > trials*5/100 {
			t.Errorf("%s, %d runs: %d of %d alarmed", tt.name, tt.n, alarms, trials)
		}
	}
}

// A shift of two standard deviations is found, at its place and with its ratio.
func TestShift(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	const trials, n, at = 120, 60, 37
	found, near, inside, ratio := 0, 0, 0, 0
	for i := range uint64(trials) {
		changes := find(t, history(random, n, map[int]float64{at: 2}), i)
		if len(changes) != 1 {
			continue
		}
		found++
		c := changes[0]
		if math.Abs(float64(c.Index-at)) <= 5 {
			near++
		}
		if c.Low <= at && at <= c.High && c.Low <= c.Index && c.Index <= c.High {
			inside++
		}
		if c.Ratio.Low <= math.Exp(0.1) && math.Exp(0.1) <= c.Ratio.High {
			ratio++
		}
	}
	t.Logf("of %d: one change in %d, within five runs in %d, its interval has the place in %d, the ratio in %d", trials,
		found, near, inside, ratio)
	if found < trials*90/100 || near < trials*90/100 || inside < found*93/100 || ratio < found*90/100 {
		t.Errorf("of %d: one change in %d, within five runs in %d, its interval has the place in %d, the ratio in %d",
			trials, found, near, inside, ratio)
	}
}

// A shift is found when so many runs are after it.
func TestDelay(t *testing.T) {
	for _, tt := range []struct {
		sigma float64
		after int
		least float64
	}{{2, 5, 0.8}, {2, 8, 0.9}} {
		random := rand.New(rand.NewPCG(3, 3))
		i := uint64(0)
		got := statstest.Share(120, func() bool {
			i++
			changes := find(t, history(random, 60+tt.after, map[int]float64{60: tt.sigma}), i)
			return len(changes) > 0 && changes[len(changes)-1].Index >= 55
		})
		t.Logf("%g sigma, %d runs after: found in %.3f", tt.sigma, tt.after, got)
		if got < tt.least {
			t.Errorf("%g sigma, %d runs after: found in %.3f, want %.2f", tt.sigma, tt.after, got, tt.least)
		}
	}
}

func TestSeveral(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 5)) // of other seeds 3 % have a change more
	changes := find(t, history(random, 200, map[int]float64{50: 4, 90: -6, 150: 4}), 1)
	if len(changes) != 3 {
		t.Fatalf("%+v, want three changes", changes)
	}
	for i, want := range []int{50, 90, 150} {
		c := changes[i]
		if math.Abs(float64(c.Index-want)) > 2 || c.P > 0.03 || (c.After > c.Before) != (c.Ratio.Value > 1) {
			t.Errorf("%+v, want a change at %d", c, want)
		}
	}
}

// The result does not depend on the unit, and is the mirror image of that of the reversed
// series where both are clear.
func TestInvariance(t *testing.T) {
	s := history(rand.New(rand.NewPCG(5, 5)), 50, map[int]float64{20: 5})
	changes := find(t, s, 7)
	scaled, reversed := make([]float64, len(s)), make([]float64, len(s))
	for i, x := range s {
		scaled[i], reversed[len(s)-1-i] = 1000*x, x
	}
	other, mirrored := find(t, scaled, 7), find(t, reversed, 7)
	if len(changes) != 1 || len(other) != 1 || len(mirrored) != 1 {
		t.Fatalf("%v %v %v", changes, other, mirrored)
	}
	if other[0].Index != changes[0].Index || math.Abs(other[0].Ratio.Value-changes[0].Ratio.Value) > 1e-9 {
		t.Errorf("%+v in another unit %+v", changes[0], other[0])
	}
	if mirrored[0].Index != len(s)-changes[0].Index || math.Abs(mirrored[0].Ratio.Value*changes[0].Ratio.Value-1) > 1e-9 {
		t.Errorf("%+v reversed %+v", changes[0], mirrored[0])
	}
	if again := find(t, s, 7); again[0] != changes[0] {
		t.Errorf("%+v, then %+v", changes[0], again[0])
	}
}

func TestErrors(t *testing.T) {
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	tests := []struct {
		values []float64
		o      Options
		want   string
	}{
		{ten[:9], Options{}, "9 runs have no change points: want 10 to 5000"},
		{make([]float64, 5001), Options{}, "5001 runs"},
		{append([]float64{math.NaN()}, ten...), Options{}, "invalid value NaN of run 1: want a finite number"},
		{append(ten[:9:9], math.Inf(-1)), Options{}, "invalid value -Inf of run 10"},
		{ten, Options{Alpha: 1}, "invalid alpha 1"},
		{ten, Options{MinSegment: 1}, "invalid least segment 1"},
		{ten, Options{Alpha: 0.001}, "invalid permutations 499: want 1499 or more"},
	}
	for _, tt := range tests {
		if _, err := Find(tt.values, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	// No positive values: the change has no ratio.
	changes := find(t, []float64{0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9}, 1)
	if len(changes) != 1 || changes[0].Index != 7 || !math.IsNaN(changes[0].Ratio.Value) {
		t.Errorf("%+v", changes)
	}
	if changes := find(t, make([]float64, 20), 1); len(changes) > 0 {
		t.Errorf("equal values: %+v", changes)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(strings.Repeat("12345678abcdefgh", 10)))
	f.Fuzz(func(t *testing.T, data []byte) {
		values := statstest.Numbers(data, 40)
		changes, err := Find(values, Options{Alpha: 0.05, Permutations: 19})
		if err != nil && changes != nil {
			t.Error("changes beside an error")
		}
		for _, c := range changes {
			if c.Low > c.Index || c.Index > c.High || !(c.P > 0 && c.P <= 0.05) {
				t.Errorf("%v: %+v", values, c)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	s := history(rand.New(rand.NewPCG(6, 6)), 300, map[int]float64{100: 2, 200: -2})
	for b.Loop() {
		if _, err := Find(s, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
