package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// drive searches with a truth until the search ends.
func drive(t *testing.T, s *Search, holds func(rate float64) bool) (v Verdict, windows int) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	for windows = 0; windows < 200; windows++ {
		rate, v := s.Next()
		if v != "" {
			return v, windows
		}
		if rate < s.Least || rate > s.Most {
			t.Fatalf("a window at %g, outside %g to %g", rate, s.Least, s.Most)
		}
		s.Add(rate, holds(rate))
	}
	t.Fatal("the search does not end")
	return "", 0
}

func TestSearch(t *testing.T) {
	for _, from := range []float64{1, 100, 5000, 1e6} {
		for _, truth := range []float64{0.5, 1, 3.7, 397, 400, 812345, 1e6, 1e9} {
			t.Run(fmt.Sprintf("%g from %g", truth, from), func(t *testing.T) {
				s := &Search{From: from, Least: 1, Most: 1e6, Resolution: 0.02}
				v, n := drive(t, s, func(rate float64) bool { return rate <= truth })
				low, high := s.Bracket()
				want := Found
				switch {
				case truth < 1:
					want = Never
				case truth >= 1e6:
					want = Always
				}
				if v != want || n > 70 {
					t.Errorf("%s after %d windows, want %s", v, n, want)
				}
				if want == Found && !(low <= truth && truth < high && high/low <= 1.02) {
					t.Errorf("between %g and %g, want %g in a bracket of 2 %%", low, high, truth)
				}
				if held, _ := s.Windows(low); want != Never && held < 3 {
					t.Errorf("%g held in %d windows only", low, held)
				}
				if _, failed := s.Windows(high); want == Found && failed < 3 {
					t.Errorf("%g failed in %d windows only", high, failed)
				}
			})
		}
	}
}

// Odd windows, one in twenty, and a limit that is no sharp one, move the result
// by no more than the width of the limit and a few steps.
func TestSearchWithNoise(t *testing.T) {
	const truth, searches = 400, 500
	wrong := 0
	for seed := range uint64(searches) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := &Search{From: 100, Least: 1, Most: 1e6, Resolution: 0.05}
		v, _ := drive(t, s, func(rate float64) bool {
			held := rng.Float64() < 1/(1+math.Exp((rate/truth-1)/0.01)) // half at the truth; 1 % away, three quarters
			if rng.IntN(20) == 0 {
				return !held
			}
			return held
		})
		low, high := s.Bracket()
		if v != Found || low < 0.9*truth || high > 1.1*truth {
			wrong++
		}
	}
	if wrong > searches/50 {
		t.Errorf("%d of %d searches were more than 10 %% off", wrong, searches)
	}
}

func TestSearchCheck(t *testing.T) {
	for _, s := range []Search{
		{From: 1, Least: 0, Most: 10, Resolution: 0.05}, {From: 1, Least: 20, Most: 10, Resolution: 0.05},
		{From: 0.5, Least: 1, Most: 10, Resolution: 0.05},
		{From: 11, Least: 1, Most: 10, Resolution: 0.05}, {From: 5, Least: 1, Most: 10},
		{From: 5, Least: 1, Most: math.Inf(1), Resolution: 0.05},
		{From: math.NaN(), Least: 1, Most: 10, Resolution: 0.05},
	} {
		if s.Check() == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}
