package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// seconds draws steps of a second from each of several streams, whose common level depends on that of the second before
// (AR(1), in steady state). A second has so many values.
func seconds(random *rand.Rand, n, streams, values int, phi, scale float64) [][]Timed {
	level := random.NormFloat64() / math.Sqrt(1-phi*phi)
	all := make([][]Timed, streams)
	for at := range n {
		level = phi*level + random.NormFloat64()
		for i := range all {
			second := Timed{At: int64(at)}
			for range values {
				x := 0.2 * level
				if values > 1 {
					x += 0.5 * random.NormFloat64()
				}
				second.Counts = append(second.Counts, Count{int64(scale * 1e6 * math.Exp(x)), 1})
			}
			all[i] = append(all[i], second)
		}
	}
	return all
}

// TestCoverage: the interval of a ratio has the true one in about 95 %, although a second depends on the one before,
// and simultaneous streams on each other: for rates (one value a second) and latencies.
func TestCoverage(t *testing.T) {
	t.Parallel()
	const trials = 400
	for _, tt := range []struct {
		n, streams, values int
		q, phi, least      float64 // least: 93 % up to a correlation of 0.6, less than 1.3 standard errors
	}{
		{30, 1, 1, 0.5, 0, 0.915}, {30, 1, 1, 0.5, 0.6, 0.915}, {30, 1, 1, 0.5, 0.8, 0.90},
		{60, 1, 1, 0.5, 0, 0.915}, {60, 1, 1, 0.5, 0.6, 0.915}, {60, 1, 1, 0.5, 0.8, 0.90},
		{30, 1, 20, 0.9, 0, 0.915}, {30, 1, 20, 0.9, 0.6, 0.915}, {30, 1, 20, 0.9, 0.8, 0.88},
		{30, 4, 1, 0.5, 0, 0.915}, {30, 4, 1, 0.5, 0.6, 0.915}, {30, 4, 5, 0.9, 0.6, 0.915},
	} {
		t.Run(fmt.Sprintf("%d seconds of %d streams, %d values, phi %g", tt.n, tt.streams, tt.values, tt.phi),
			func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(tt.n), uint64(100*tt.phi)))
				side := func(scale float64) []Counts {
					return InTime(seconds(random, tt.n, tt.streams, tt.values, tt.phi, scale)...)
				}
				covered, width := 0, 0.0
				for i := range uint64(trials) {
					r, ok := QuantileRatio(side(2), side(1), tt.q, i)
					if !ok || !r.Bounded() {
						t.Fatal("no interval")
					}
					if r.Low <= 2 && 2 <= r.High {
						covered++
					}
					width += math.Log(r.High/r.Low) / trials
				}
				share := float64(covered) / trials
				t.Logf("the true ratio is in %.3f of %d intervals; mean width of its logarithm %.3f", share, trials, width)
				if share < tt.least {
					t.Errorf("the true ratio is in %.3f of %d intervals, want %g", share, trials, tt.least)
				}
			})
	}
}

// TestInTime: steps of one time are one step, in order of time.
func TestInTime(t *testing.T) {
	of := func(at, value int64) Timed { return Timed{at, One(value)} }
	got := InTime([]Timed{of(0, 1), of(10, 2), of(20, 3)}, nil, []Timed{of(1, 4), of(11, 5)})
	want := []Counts{{{1, 1}, {4, 1}}, {{2, 1}, {5, 1}}, {{3, 1}}}
	if !slices.EqualFunc(got, want, slices.Equal[Counts]) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := InTime(); got != nil {
		t.Errorf("of none: %v", got)
	}
}
