package precision

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestOccasionHalfWidth: of values with known variances between and within occasions, 95 % of the intervals cover the
// truth; where occasions do not differ, or are two, no fewer: then T₂² is often estimated as 0.
func TestOccasionHalfWidth(t *testing.T) {
	const trials = 4000
	random := rand.New(rand.NewPCG(11, 12))
	for _, tt := range []struct {
		occasions, repetitions int
		between, within        float64 // standard deviations
		least, most            float64
	}{
		{4, 5, 1, 1, 0.94, 0.965}, {2, 8, 2, 1, 0.95, 1}, {6, 4, 0, 1, 0.95, 1},
	} {
		covered := 0
		for range trials {
			var all [][]float64
			mean := 0.0
			for range tt.occasions {
				shift, of := tt.between*random.NormFloat64(), make([]float64, tt.repetitions)
				for j := range of {
					of[j] = 7 + shift + tt.within*random.NormFloat64()
					mean += of[j] / float64(tt.occasions*tt.repetitions)
				}
				all = append(all, of)
			}
			c, ok := VarianceOf(all)
			if !ok {
				t.Fatal("no components")
			}
			if math.Abs(mean-7) <= c.HalfWidth() {
				covered++
			}
		}
		if share := float64(covered) / trials; share < tt.least || share > tt.most {
			t.Errorf("%d × %d, sd %g and %g: %.3f of the intervals cover the truth, want %g to %g", tt.occasions,
				tt.repetitions, tt.between, tt.within, share, tt.least, tt.most)
		}
	}
}
