package schedule

import (
	"math"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// ramp returns a ramp from start; stages are pairs of a duration in seconds and a rate.
func ramp(start float64, stages ...float64) *v1alpha1.RampRateSpec {
	r := &v1alpha1.RampRateSpec{StartPerSecond: &v1alpha1.NumberOrZero{Value: start}}
	for i := 0; i < len(stages); i += 2 {
		r.Stages = append(r.Stages,
			v1alpha1.RampStage{Duration: lasting(time.Duration(stages[i] * float64(time.Second))),
				PerSecond: v1alpha1.NumberOrZero{Value: stages[i+1]}})
	}
	return r
}

func upAndDown(inc, dec time.Duration, least, most int32) *v1alpha1.ConstantIncreaseDecreaseRateSpec {
	return &v1alpha1.ConstantIncreaseDecreaseRateSpec{IncInterval: lasting(inc), DecInterval: lasting(dec), Min: least,
		Max: most}
}

func lasting(d time.Duration) v1alpha1.Duration {
	return v1alpha1.Duration{Duration: metav1.Duration{Duration: d}}
}

// due returns the first n due times.
func due(s Schedule, seed uint64, n int) []time.Duration {
	q := s.New(seed)
	times := make([]time.Duration, n)
	for i := range times {
		t, _ := q.Next()
		times[i] = t.Due
	}
	return times
}

// TestDueTimes checks the first due times of each schedule.
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
		// The integral of the rate is t² up to 2 s, then 4 + 4(t−2).
		{"ramp", Closed{ramp(0, 2, 4, 1, 4)}, []time.Duration{s, 1414213562, 1732050808, 2 * s, 2250 * time.Millisecond,
			2500 * time.Millisecond, 2750 * time.Millisecond, 3 * s}},
		// Down to 0, a pause, and up again.
		{"ramp with a pause", Closed{ramp(4, 1, 0, 1, 0, 1, 4)}, []time.Duration{292893219, s, 2707106781, 3 * s}},
		{"up and down", Closed{upAndDown(s, 2*s, 1, 3)},
			[]time.Duration{0, s, 2 * s, 4 * s, 6 * s, 7 * s, 8 * s, 10 * s}},
		{"trace", Trace{0, s, s, 7 * s}, []time.Duration{0, s, s, 7 * s}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := due(tt.schedule, 1, len(tt.want)); !slices.Equal(got, tt.want) {
				t.Errorf("due = %v, want %v", got, tt.want)
			}
		})
	}
}

// TestConstantDoesNotDrift checks that a constant rate does not drift: the millionth trigger of 3/s is due
// after exactly 333333.333… s.
func TestConstantDoesNotDrift(t *testing.T) {
	const n = 1_000_000
	last := due(Constant{Rate: 3}, 0, n)[n-1]
	if want := time.Duration(333333333333333); last < want-1 || last > want+1 {
		t.Errorf("trigger %d due at %d ns, want %d ± 1", n, last, want)
	}
}

// TestPoissonKS checks the gaps against the exponential distribution with the Kolmogorov–Smirnov test at α =
// 0.01 (critical value 1.628/√n).
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

// TestPoissonIsAFunctionOfItsSeed checks that equal seeds give equal times and different seeds different
// ones.
func TestPoissonIsAFunctionOfItsSeed(t *testing.T) {
	p := Poisson{Rate: 10}
	if !slices.Equal(due(p, 7, 1000), due(p, 7, 1000)) {
		t.Error("the same seed gave other times")
	}
	if slices.Equal(due(p, 7, 10), due(p, 8, 10)) {
		t.Error("another seed gave the same times")
	}
}

// TestLevels checks the levels and ways of a rate that counts objects up and down.
func TestLevels(t *testing.T) {
	q := Closed{upAndDown(time.Second, time.Second, 1, 3)}.New(0)
	var levels []int64
	var ways []Way
	for range 9 {
		next, _ := q.Next()
		levels, ways = append(levels, next.Level), append(ways, next.Way)
	}
	if want := []int64{1, 2, 3, 2, 1, 2, 3, 2, 1}; !slices.Equal(levels, want) {
		t.Errorf("levels %v, want %v", levels, want)
	}
	if want := []Way{Up, Up, Up, Down, Down, Up, Up, Down, Down}; !slices.Equal(ways, want) {
		t.Errorf("ways %v, want %v", ways, want)
	}
}

// TestEnds checks the number of triggers of schedules that can be counted.
func TestEnds(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name     string
		schedule Ending
		until    time.Duration
		n        int64
		ended    bool
	}{
		{"ramp", Closed{ramp(0, 2, 4, 1, 4)}, 0, 8, true},
		{"part of a ramp", Closed{ramp(0, 2, 4, 1, 4)}, 2 * s, 4, true},
		{"up and down for ever", Closed{upAndDown(s, s, 0, 5)}, 0, 0, false},
		{"up and down", Closed{upAndDown(s, s, 0, 5)}, 12 * s, 12, true},
		{"only up", Closed{upAndDown(s, s, 5, 5)}, 0, 5, true},
		{"trace", Trace{0, s, 3 * s}, 0, 3, true},
		{"part of a trace", Trace{0, s, 3 * s}, s, 2, true},
	}
	for _, tt := range tests {
		n, ended := tt.schedule.Count(tt.until)
		if n != tt.n || ended != tt.ended {
			t.Errorf("%s: %d %v, want %d %v", tt.name, n, ended, tt.n, tt.ended)
		}
	}
}

// TestMillionthTrigger checks that each of a million triggers of each rate is within 1 µs of its formula,
// computed in other arithmetic, and that due times do not decrease.
func TestMillionthTrigger(t *testing.T) {
	const n = 1_000_000
	tests := []struct {
		name     string
		schedule Schedule
		want     func(k int) float64 // seconds, k from 0
	}{
		{"constant", Constant{Interval: 3 * time.Millisecond}, func(k int) float64 { return 0.003 * float64(k+1) }},
		{"burst", Burst{Size: 10, Interval: time.Second}, func(k int) float64 { return float64(k/10 + 1) }},
		// 0 to 2000/s over 1000 s: Λ(t) = t², a million at its end.
		{"ramp", Closed{ramp(0, 1000, 2000)}, func(k int) float64 { return math.Sqrt(float64(k + 1)) }},
		// Down from 1500/s to 500/s: Λ(t) = 1500t − t²/2.
		{"ramp down", Closed{ramp(1500, 1000, 500)},
			func(k int) float64 { return 1500 - math.Sqrt(1500*1500-2*float64(k+1)) }},
		// Down from 2000/s to 0: Λ(t) = 2000t − t², whose slope at the end is 0.
		{"ramp to nothing", Closed{ramp(2000, 1000, 0)},
			func(k int) float64 { return 1000 - math.Sqrt(float64(n-k-1)) }},
		{"up and down", Closed{upAndDown(time.Millisecond, 2*time.Millisecond, 0, 100)}, func(k int) float64 {
			cycle, step := float64(k/200), float64(k%200+1)
			return cycle*0.3 + 0.001*min(step, 100) + 0.002*max(0, step-100)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, last := tt.schedule.New(1), time.Duration(0)
			for k := range n {
				next, ok := q.Next()
				if !ok || next.Due < last {
					t.Fatalf("trigger %d: %v after %v, %v", k, next.Due, last, ok)
				}
				last = next.Due
				if off := math.Abs(next.Due.Seconds() - tt.want(k)); off > 1e-6 {
					t.Fatalf("trigger %d due %v, %.9f s off the formula", k, next.Due, off)
				}
			}
		})
	}
}

// TestLifetimes checks the means of drawn lifetimes against E[T] and of residual lifetimes at a random
// instant against E[T²]/2E[T].
func TestLifetimes(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name       string
		lifetime   Lifetime
		mean, rest float64 // seconds
	}{
		{"exponential", Lifetime{Mean: 10 * s}, 10, 10},
		{"constant", Lifetime{Quantiles: []time.Duration{8 * s, 8 * s}}, 8, 4},
		{"uniform", Lifetime{Quantiles: []time.Duration{0, 12 * s}}, 6, 4},
		// Half lie in [0, 2], half in [2, 10]: E[T] = 3.5, E[T²] = (4/3 + 124/3)/2.
		{"two pieces", Lifetime{Quantiles: []time.Duration{0, 2 * s, 10 * s}}, 3.5, 128.0 / 6 / 7},
	}
	const n = 200_000
	for _, tt := range tests {
		var mean, rest float64
		for i := range n {
			name := string(rune('a'+i%26)) + time.Duration(i).String()
			mean += tt.lifetime.Of(7, name).Seconds() / n
			rest += tt.lifetime.Rest(7, name).Seconds() / n
		}
		if math.Abs(mean/tt.mean-1) > 0.01 || math.Abs(rest/tt.rest-1) > 0.01 {
			t.Errorf("%s: mean %.3f s, rest %.3f s; want %.3f and %.3f", tt.name, mean, rest, tt.mean, tt.rest)
		}
		if got := tt.lifetime.Expected().Seconds(); math.Abs(got-tt.mean) > 1e-6 {
			t.Errorf("%s: expected %.3f s", tt.name, got)
		}
	}
}
