package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// Counts are the values in ns of one time step with their frequencies.
type Counts []Count

// Count is a value that was seen N times.
type Count struct{ Value, N int64 }

// One is the Counts of a single value.
func One(ns int64) Counts { return Counts{{ns, 1}} }

// OfHistogram returns the populated buckets of h, as their upper edges.
func OfHistogram(h *hist.Histogram) Counts {
	var c Counts
	h.Buckets(func(b hist.Bucket) bool {
		c = append(c, Count{min(max(b.High, h.Min()), h.Max()), b.Count})
		return true
	})
	return c
}

// Ratio is an estimated ratio with its interval, which is NaN with too few values.
type Ratio struct {
	Value, Low, High float64
}

// Shift is an estimated difference with its interval, which is NaN with too few values.
type Shift struct {
	Value, Low, High float64
}

// Bounded reports whether there is an interval.
func (s Shift) Bounded() bool { return !math.IsNaN(s.Low) }

// Bounded reports whether there is an interval.
func (r Ratio) Bounded() bool { return !math.IsNaN(r.Low) }

// MinSteps is the fewest time steps per side for an interval of a bootstrap.
const MinSteps = 10

// replicates of a bootstrap, and the most steps that ShareOf draws from.
const (
	replicates = 400
	maxSteps   = 1000
)

// ShareOf returns the sum of part ÷ the sum of whole, both of the same steps in order of time, with a 95 % interval by
// the moving-block bootstrap. A block is as long as the cube root of their number: the wait in a queue that grows has a
// trend, which longer blocks, as in QuantileRatio, take for dependence. More than 1000 steps are summed in groups of
// consecutive ones. The interval is NaN with fewer than MinSteps. It returns false if the slices differ in length or
// whole adds up to 0. The same seed gives the same interval.
func ShareOf(part, whole []float64, seed uint64) (Ratio, bool) {
	if len(part) != len(whole) {
		return Ratio{}, false
	}
	group := max(1, (len(part)+maxSteps-1)/maxSteps)
	var parts, wholes []float64
	var p, w float64
	for i := range part {
		if i%group == 0 {
			parts, wholes = append(parts, 0), append(wholes, 0)
		}
		parts[len(parts)-1] += part[i]
		wholes[len(parts)-1] += whole[i]
		p, w = p+part[i], w+whole[i]
	}
	if !(w > 0) {
		return Ratio{}, false
	}
	r := Ratio{Value: p / w, Low: math.NaN(), High: math.NaN()}
	n := len(parts)
	if n < MinSteps {
		return r, true
	}
	random := rand.New(rand.NewPCG(seed, 0x7368617265))
	length := max(1, int(math.Round(math.Cbrt(float64(n)))))
	shares := make([]float64, 0, replicates)
	for range replicates {
		p, w = 0, 0
		for left := n; left > 0; left -= length {
			from := random.IntN(n - length + 1)
			for i := from; i < from+min(length, left); i++ {
				p, w = p+parts[i], w+wholes[i]
			}
		}
		if w > 0 {
			shares = append(shares, p/w)
		}
	}
	r.Low, r.High = middle(shares)
	return r, true
}

// middle returns the bounds between which 95 % of the values of a bootstrap are; NaN without any.
func middle(values []float64) (low, high float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(values)
	m := float64(len(values))
	return values[int(0.025*m)], values[min(len(values)-1, int(math.Ceil(0.975*m)))]
}

// QuantileRatio returns the quantile q of a ÷ that of b, both in order of time, with a 95 % interval by the
// moving-block bootstrap (Künsch 1989): blocks of consecutive steps are drawn with replacement from each side, and the
// interval is widened for what blocks miss (see dependence). It is NaN with fewer than ten steps on a side. It returns
// false if a side is empty or the divisor is 0. The same seed gives the same interval.
func QuantileRatio(a, b []Counts, q float64, seed uint64) (Ratio, bool) {
	return RatioOfSteps(StepsOf(a), StepsOf(b), q, seed)
}

// RatioOfSteps is QuantileRatio of steps whose values are ranked.
func RatioOfSteps(a, b *Steps, q float64, seed uint64) (Ratio, bool) {
	x, y := a.Quantiles(q), b.Quantiles(q)
	if x == nil || y == nil || y[0] == 0 {
		return Ratio{}, false
	}
	num, den := x[0], y[0]
	r := Ratio{Value: float64(num) / float64(den), Low: math.NaN(), High: math.NaN()}
	if min(a.Len(), b.Len()) < MinSteps {
		return r, true
	}
	in := [2]dependence{a.dependence(q, num), b.dependence(q, den)}
	sides := [2]*resampler{newResampler(a, q, in[0].length), newResampler(b, q, in[1].length)}
	random := rand.New(rand.NewPCG(seed, 0x626c6f636b73))
	ratios := make([]float64, 0, replicates)
	for range replicates {
		if n, d := sides[0].draw(random), sides[1].draw(random); n > 0 && d > 0 {
			ratios = append(ratios, math.Log(float64(n)/float64(d)))
		}
	}
	low, high := middle(ratios)
	center, wider := math.Log(r.Value), widening(in[:]...)
	r.Low, r.High = math.Exp(center+wider*(low-center)), math.Exp(center+wider*(high-center))
	return r, true
}
