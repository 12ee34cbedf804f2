package precision

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// HalfWidth is the half-width of the 95 % interval of the mean over all occasions, with the
// occasion as the unit: t·√(S₂²/n₂), t of Student's distribution with n₂ − 1 degrees of
// freedom and S₂² = T₂² + S₁²/r₁ (Kalibera and Jones 2013, equation 2). Where T₂² was
// estimated as 0, S₂² is S₁²/r₁, which is not less than the variance of the means, so that
// the interval is wider. Of logarithms it is that of a ratio's logarithm.
func (c *Components) HalfWidth() float64 {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(c.Occasions - 1)}.Quantile(1 - (1-stats.Confidence)/2)
	return t * math.Sqrt((c.Between+c.Within/c.Repetitions)/float64(c.Occasions))
}
