package rank

import (
	"math"
	"slices"
)

// Effect is the size of a difference of two samples without unit.
type Effect struct {
	// Delta is Cliff's (1993): P(b > a) − P(b < a), from −1 to 1.
	Delta float64
	// A12 is Vargha and Delaney's (2000): P(b > a) + P(b = a)/2, from 0 to 1.
	A12       float64
	Magnitude Magnitude
}

// Magnitude is a word for |Delta|.
type Magnitude string

// The magnitudes, with the bounds of Romano et al. (2006).
const (
	Negligible Magnitude = "negligible" // |δ| < 0.147
	Small      Magnitude = "small"      // |δ| < 0.33
	Medium     Magnitude = "medium"     // |δ| < 0.474
	Large      Magnitude = "large"
)

// EffectOf returns the effect of b against a.
func EffectOf(a, b []float64) (Effect, bool) {
	if !usable(a, b) {
		return Effect{}, false
	}
	n, m := float64(len(a)), float64(len(b))
	doubled, _ := mid(slices.Concat(a, b))
	above := (sumOf(doubled[len(a):]) - m*(m+1)) / 2
	e := Effect{Delta: 2*above/(n*m) - 1, A12: above / (n * m), Magnitude: Large}
	switch d := math.Abs(e.Delta); {
	case d < 0.147:
		e.Magnitude = Negligible
	case d < 0.33:
		e.Magnitude = Small
	case d < 0.474:
		e.Magnitude = Medium
	}
	return e, true
}
