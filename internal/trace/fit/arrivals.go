package fit

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Arrivals is the distribution of the times of one kind of operation.
type Arrivals struct {
	N         int           `json:"n"`
	PerSecond float64       `json:"perSecond"`
	GapMean   time.Duration `json:"gapMeanNs"`
	GapP50    time.Duration `json:"gapP50Ns"`
	GapP99    time.Duration `json:"gapP99Ns"`
	// GapCV is the gaps' coefficient of variation: 0 for a clock, 1 for a Poisson process, more for bursts.
	GapCV float64 `json:"gapCV"`
	// Exponential is the Kolmogorov–Smirnov distance of the gaps from an exponential distribution with their
	// mean; 0 if there are fewer than two gaps.
	Exponential float64 `json:"ksExponential"`
	// Uniform is the Kolmogorov–Smirnov distance of the times from a uniform distribution over the trace: how
	// much the rate changes.
	Uniform float64 `json:"ksUniform"`
}

// arrivalsOf computes the statistics of sorted times in ns from 0 to length.
func arrivalsOf(times []int64, length int64) Arrivals {
	a := Arrivals{N: len(times)}
	if len(times) == 0 || length <= 0 {
		return a
	}
	a.PerSecond = float64(len(times)) / (float64(length) / 1e9)
	uniform := make([]float64, len(times))
	for i, t := range times {
		uniform[i] = float64(t) / float64(length)
	}
	a.Uniform = distance(uniform)
	if len(times) < 3 {
		return a
	}
	gaps := make([]float64, len(times)-1)
	var sum, squares float64
	for i := range gaps {
		gaps[i] = float64(times[i+1] - times[i])
		sum += gaps[i]
	}
	mean := sum / float64(len(gaps))
	for _, g := range gaps {
		squares += (g - mean) * (g - mean)
	}
	slices.Sort(gaps)
	a.GapMean, a.GapP50 = time.Duration(mean), time.Duration(gaps[len(gaps)/2])
	a.GapP99 = time.Duration(gaps[len(gaps)*99/100])
	if mean > 0 {
		a.GapCV = math.Sqrt(squares/float64(len(gaps)-1)) / mean
		for i, g := range gaps {
			gaps[i] = 1 - math.Exp(-g/mean)
		}
		a.Exponential = distance(gaps)
	}
	return a
}

// distance returns the Kolmogorov–Smirnov statistic of sorted values against the uniform distribution on [0,
// 1].
func distance(sorted []float64) float64 {
	d, n := 0.0, float64(len(sorted))
	for i, u := range sorted {
		d = max(d, u-float64(i)/n, float64(i+1)/n-u)
	}
	return d
}

// Rate is a rate of a Benchmark that fits arrivals, and the reason for its form.
type Rate struct {
	Form      string // constant, poisson, ramp
	PerSecond float64
	Start     float64 // start of a ramp, and its stages
	Stages    []Stage
	Why       string
}

// Stage is a stage of a ramp.
type Stage struct {
	Length    time.Duration
	PerSecond float64
}

// Limits of the choice. The Kolmogorov–Smirnov statistic of n values exceeds 1.63/√n with probability 0.01.
// For gaps against an exponential distribution with their own mean the limit is 1.31/√n (Lilliefors 1969
// gives 1.25 to 1.31 for the upper 1 %).
const (
	steady   = 0.02 // largest distance of a steady rate, as a share of all times
	alpha    = 1.63
	alphaExp = 1.31
	clockCV  = 0.1 // largest CV of the gaps of a constant rate
	minTimes = 20  // minimum for a test
	stages   = 8
)

// rateOf selects a rate: a ramp if the times are not evenly spread, a constant rate if the gaps are equal,
// else Poisson.
func rateOf(times []int64, length int64) Rate {
	a := arrivalsOf(times, length)
	r := Rate{Form: "poisson", PerSecond: a.PerSecond}
	n := math.Sqrt(float64(a.N))
	even := alpha * max(1, a.GapCV) / n // a burst counts as one value
	spread := fmt.Sprintf("n = %d, distance of the times from evenly spread %.3f (1 %% limit %.3f)", a.N, a.Uniform,
		even)
	gaps := fmt.Sprintf("distance of the gaps from exponential %.3f (1 %% limit %.3f)", a.Exponential, alphaExp/n)
	switch {
	case a.N < minTimes:
		r.Why = fmt.Sprintf("n = %d: too few to test; Poisson is assumed", a.N)
	case a.Uniform > max(steady, even):
		r.Form = "ramp"
		r.Start, r.Stages = ramp(times, length)
		r.Why = fmt.Sprintf("%s: the rate changes; this ramp is off by at most %.3f of all", spread, r.off(times))
	case a.GapCV < clockCV:
		r.Form = "constant"
		r.Why = fmt.Sprintf("%s; the gaps are alike (CV %.2f)", spread, a.GapCV)
	case a.Exponential <= alphaExp/n:
		r.Why = fmt.Sprintf("%s; %s: it is Poisson", spread, gaps)
	default:
		r.Why = fmt.Sprintf("%s; %s: it is NOT Poisson (CV %.2f), only the mean rate is kept", spread, gaps, a.GapCV)
	}
	return r
}

// ramp fits a piecewise linear rate to the mean rates of equal stages: each corner is the mean of the
// adjacent stages, and the ramp is scaled to the number of times.
func ramp(times []int64, length int64) (start float64, list []Stage) {
	k := min(stages, max(1, len(times)/minTimes))
	width := float64(length) / float64(k)
	counts := make([]float64, k)
	for _, t := range times {
		counts[min(int(float64(t)/width), k-1)]++
	}
	corners := make([]float64, k+1)
	perSecond := func(i int) float64 { return counts[i] / (width / 1e9) }
	for i := range corners {
		switch i {
		case 0:
			corners[i] = perSecond(0)
			if k > 1 {
				corners[i] = max(0, 1.5*perSecond(0)-0.5*perSecond(1))
			}
		case k:
			corners[i] = perSecond(k - 1)
			if k > 1 {
				corners[i] = max(0, 1.5*perSecond(k-1)-0.5*perSecond(k-2))
			}
		default:
			corners[i] = (perSecond(i-1) + perSecond(i)) / 2
		}
	}
	var area float64
	for i := range k {
		area += (corners[i] + corners[i+1]) / 2 * width / 1e9
	}
	scale := float64(len(times)) / area
	for i := range k {
		list = append(list, Stage{time.Duration(width), max(corners[i+1]*scale, 1e-6)}) // a rate must be positive
	}
	return corners[0] * scale, list
}

// off returns the largest distance between the times and the ramp, as a share of all times.
func (r *Rate) off(times []int64) float64 {
	worst, area, a, i := 0.0, 0.0, r.Start, 0
	from := int64(0)
	for _, s := range r.Stages {
		to := from + int64(s.Length)
		for ; i < len(times) && times[i] < to; i++ {
			t := float64(times[i]-from) / 1e9
			due := area + a*t + (s.PerSecond-a)*t*t/2/s.Length.Seconds()
			worst = max(worst, math.Abs(due-float64(i)-0.5)/float64(len(times)))
		}
		area += (a + s.PerSecond) / 2 * s.Length.Seconds()
		a, from = s.PerSecond, to
	}
	return worst
}
