package precision

import (
	"github.com/cnsbench/cnsbench/internal/stats"
	"gonum.org/v1/gonum/stat"
)

// Components are the variances of repetitions within occasions and of occasions (Kalibera
// and Jones 2013, section 6). Of logarithms of values they are squares of shares.
type Components struct {
	Occasions   int
	Repetitions float64 // r₁, of an occasion; the harmonic mean where they differ
	// Within is S₁², the mean variance of the repetitions of one occasion.
	Within float64
	// Between is T₂² = S₂² − S₁²/r₁, the variance of occasions without what is due to
	// their repetitions, at least 0; S₂² is the variance of the occasions' means.
	Between float64
	// Add is the level at which more trials narrow the interval of the mean: Occasions if
	// Between exceeds Within/Repetitions, otherwise Repetitions; "" if nothing varies.
	Add Level
}

// Level of a design.
type Level string

// The levels.
const (
	Occasions   Level = "occasions"
	Repetitions Level = "repetitions"
)

// VarianceOf estimates the components of occasions[i][j], repetition j of occasion i.
// It returns false with fewer than two occasions, an empty one, a value that is not
// finite, or no occasion of two repetitions.
func VarianceOf(occasions [][]float64) (Components, bool) {
	c := Components{Occasions: len(occasions)}
	var means []float64
	squares, freedom, inverse := 0.0, 0.0, 0.0
	for _, o := range occasions {
		if len(o) == 0 || !stats.Finite(o) {
			return Components{}, false
		}
		means = append(means, stat.Mean(o, nil))
		inverse += 1 / float64(len(o))
		if len(o) > 1 {
			squares += stat.Variance(o, nil) * float64(len(o)-1)
			freedom += float64(len(o) - 1)
		}
	}
	if len(occasions) < 2 || freedom == 0 {
		return Components{}, false
	}
	c.Within = squares / freedom
	c.Repetitions = float64(len(occasions)) / inverse
	c.Between = max(0, stat.Variance(means, nil)-c.Within/c.Repetitions)
	switch {
	case c.Between > c.Within/c.Repetitions:
		c.Add = Occasions
	case c.Within > 0:
		c.Add = Repetitions
	}
	return c, true
}
