package rate

import (
	"math"
	"slices"
	"testing"
	"time"
)

// due returns the first n due times.
func due(s Schedule, seed uint64, n int) []time.Duration {
	q := s.New(seed)
	times := make([]time.Duration, n)
	for i := range times {
		times[i], _ = q.Next()
	}
	return times
}

func TestDueTimes(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name     string
		schedule Schedule
		want     []time.Duration
	}{
		{"constant interval", Constant{Interval: 5 * s}, []time.Duration{5 * s, 10 * s, 15 * s}},
		{"constant rate", Constant{Rate: 3}, []time.Duration{333333333, 666666667, s}},
		{"burst", Burst{Size: 2, Interval: s}, []time.Duration{s, s, 2 * s, 2 * s, 3 * s}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := due(tt.schedule, 1, len(tt.want)); !slices.Equal(got, tt.want) {
				t.Errorf("due = %v, want %v", got, tt.want)
			}
		})
	}
}

// A constant rate must not drift: the millionth trigger of 3/s is due after
// exactly 333333.333… s.
func TestConstantDoesNotDrift(t *testing.T) {
	const n = 1_000_000
	last := due(Constant{Rate: 3}, 0, n)[n-1]
	if want := time.Duration(333333333333333); last < want-1 || last > want+1 {
		t.Errorf("trigger %d due at %d ns, want %d ± 1", n, last, want)
	}
}

// TestPoissonKS holds the gaps against the exponential distribution with the
// Kolmogorov–Smirnov test at α = 0.01 (critical value 1.628/√n).
func TestPoissonKS(t *testing.T) {
	const n, perSecond = 100_000, 50.0
	times := due(Poisson{Rate: perSecond}, 42, n)
	gaps := make([]float64, n)
	prev := time.Duration(0)
	for i, at := range times {
		gaps[i] = (at - prev).Seconds()
		prev = at
	}
	slices.Sort(gaps)
	d := 0.0
	for i, g := range gaps {
		f := 1 - math.Exp(-perSecond*g)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	if limit := 1.628 / math.Sqrt(n); d > limit {
		t.Errorf("KS statistic %.5f > %.5f", d, limit)
	}
}

func TestPoissonIsAFunctionOfItsSeed(t *testing.T) {
	p := Poisson{Rate: 10}
	if !slices.Equal(due(p, 7, 1000), due(p, 7, 1000)) {
		t.Error("the same seed gave other times")
	}
	if slices.Equal(due(p, 7, 10), due(p, 8, 10)) {
		t.Error("another seed gave the same times")
	}
}
