// Package precision says how many more trials an interval of a wanted width takes, at
// which level (repetitions or occasions), and when no number will do. All functions are
// pure; those that draw at random take a seed and are deterministic.
package precision

import "math"

// More returns the number of trials in all at which an interval of half-width h from n
// trials has the half-width wanted: ⌈n·(h/wanted)²⌉, at least n + 1 and at most 2·n (then
// capped is true if more are needed): widths from few trials vary, so that a forecast far
// beyond them is a guess. h and wanted have one unit; NaN or wanted ≤ 0 is capped.
func More(n int, h, wanted float64) (total int, capped bool) {
	need := math.Ceil(float64(n) * (h / wanted) * (h / wanted))
	if !(wanted > 0) || !(need <= float64(2*n)) {
		return max(n+1, 2*n), true
	}
	return max(n+1, int(need)), false
}
