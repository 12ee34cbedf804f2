package v1alpha1

import (
	"fmt"
	"math"
	"time"
)

// RampRateSpec triggers at a rate that changes linearly within each stage. It ends with its last stage.
type RampRateSpec struct {
	// startPerSecond is the initial rate, in triggers per second; 0 when absent.
	// +optional
	StartPerSecond *NumberOrZero `json:"startPerSecond,omitempty"`
	// stages in their order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Stages []RampStage `json:"stages"`
}

// RampStage is one stage of a ramp.
type RampStage struct {
	// duration of the stage.
	// +required
	Duration Duration `json:"duration"`
	// perSecond is the rate at the end of the stage, in triggers per second; it may be 0.
	// +required
	PerSecond NumberOrZero `json:"perSecond"`
}

// Due is when trigger k (0, 1, …) comes: when the integral of the rate r(t) is
// k+1. Within a stage that begins with rate a, ends with rate b and lasts D,
// n = a·t + (b−a)·t²/2D, so that t = 2n / (a + √(a² + 2n(b−a)/D)), which loses no
// digits where a = b. Where the rate falls, the same is counted from the stage's
// end, with what is left of n: near a rate of 0 the root would lose half of them.
func (r *RampRateSpec) Due(k int64) (time.Duration, bool) {
	n, a := float64(k+1), r.start()
	var before time.Duration
	for _, s := range r.Stages {
		b, d := s.PerSecond.Value, s.Duration.Seconds()
		area := (a + b) / 2 * d
		if area > 0 && n <= area*(1+1e-12) { // the last trigger of a stage is not lost to rounding
			t := within(n, a, b, d)
			if b < a {
				t = d - within(max(0, area-n), b, a, d)
			}
			return before + time.Duration(math.Round(min(t, d)*1e9)), true
		}
		n, a, before = n-area, b, before+s.Duration.Duration.Duration
	}
	return 0, false
}

// within is when n triggers have come of a stage that begins with rate a, ends
// with rate b ≥ a and lasts d.
func within(n, a, b, d float64) float64 {
	if n == 0 {
		return 0
	}
	return 2 * n / (a + math.Sqrt(a*a+2*n*(b-a)/d))
}

func (r *RampRateSpec) start() float64 {
	if r.StartPerSecond == nil {
		return 0
	}
	return r.StartPerSecond.Value
}

// PerSecond is the mean rate over all stages.
func (r *RampRateSpec) PerSecond() float64 {
	area, length := r.whole()
	return area / length
}

// whole is how many triggers come, and in which time in seconds.
func (r *RampRateSpec) whole() (area, length float64) {
	a := r.start()
	for _, s := range r.Stages {
		area += (a + s.PerSecond.Value) / 2 * s.Duration.Seconds()
		length += s.Duration.Seconds()
		a = s.PerSecond.Value
	}
	return area, length
}

// Wrong names the first stage that cannot be.
func (r *RampRateSpec) Wrong() (field, problem string) {
	for i, s := range r.Stages {
		if s.Duration.Duration.Duration <= 0 {
			return fmt.Sprintf("stages[%d].duration", i), "must be more than 0"
		}
		if s.PerSecond.Value > maxPerSecond {
			return fmt.Sprintf("stages[%d].perSecond", i), tooFast
		}
	}
	if r.start() > maxPerSecond {
		return "startPerSecond", tooFast
	}
	if area, _ := r.whole(); area < 1 {
		return "stages", fmt.Sprintf("all of them together make %.3g triggers, less than one", area)
	}
	return "", ""
}

// maxPerSecond is the fastest rate that is taken for meant.
const (
	maxPerSecond = 1e6
	tooFast      = "no more than a million triggers a second"
)
