package precision

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/stats"
	"gonum.org/v1/gonum/stat"
)

// The distribution of the statistic of Bimodal for uniform samples: how many, and of at
// most what size. It hardly changes beyond.
const (
	nullSamples = 1000
	nullMost    = 400
)

// Bimodal tests whether values are of two groups. Within is the share of their sum of
// squares that remains within two groups, at the best division of the ordered values into two
// (Fisher 1958) with at least a fifth of the values, and three, in each. The p-value is
// the share of 1000 uniform samples with as little: of distributions with one mode,
// uniform ones are divided best, so that at p < 0.05 at most 5 % of samples with one
// mode are called bimodal, and of normal ones fewer than 1 %. It returns false with fewer
// than MinConfirm values, one that is not finite, or equal values.
func Bimodal(values []float64) (within, p float64, ok bool) {
	if len(values) < MinConfirm || !stats.Finite(values) {
		return 0, 0, false
	}
	within = divide(stats.Sorted(values))
	if math.IsNaN(within) {
		return 0, 0, false
	}
	null := nullWithin(min(len(values), nullMost))
	below, _ := slices.BinarySearch(null, within)
	return within, float64(1+below) / float64(1+len(null)), true
}

// divide returns the least share of the sum of squares within two groups of ascending
// values; NaN if all are equal.
func divide(sorted []float64) float64 {
	n := float64(len(sorted))
	mean, sd := stat.PopMeanStdDev(sorted, nil)
	least := max(3, (len(sorted)+4)/5)
	left, between := 0.0, 0.0 // left: sum of standardised values
	for i, x := range sorted[:len(sorted)-least] {
		left += (x - mean) / sd
		if k := float64(i + 1); i+1 >= least {
			// n·m/(n+m) times the square of the difference of means
			between = max(between, left*left*(1/k+1/(n-k)))
		}
	}
	if !(sd > 0) || math.IsNaN(left) {
		return math.NaN()
	}
	return max(0, 1-between/n)
}

var nulls sync.Map // of n: its nullWithin

// nullWithin returns the ascending statistics of uniform samples of n.
func nullWithin(n int) []float64 {
	if known, ok := nulls.Load(n); ok {
		return known.([]float64)
	}
	random := rand.New(rand.NewPCG(uint64(n), 0x6d6f646573))
	null, sample := make([]float64, nullSamples), make([]float64, n)
	for i := range null {
		for j := range sample {
			sample[j] = random.Float64()
		}
		slices.Sort(sample)
		null[i] = divide(sample)
	}
	slices.Sort(null)
	nulls.Store(n, null)
	return null
}
