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
	sides := [2]side{newSide(a), newSide(b)}
	num, den := sides[0].quantile(q, sides[0].all()), sides[1].quantile(q, sides[1].all())
	if sides[0].total == 0 || sides[1].total == 0 || den == 0 {
		return Ratio{}, false
	}
	r := Ratio{Value: float64(num) / float64(den), Low: math.NaN(), High: math.NaN()}
	if min(len(a), len(b)) < MinSteps {
		return r, true
	}
	in := [2]dependence{sides[0].dependence(q, num), sides[1].dependence(q, den)}
	random := rand.New(rand.NewPCG(seed, 0x626c6f636b73))
	ratios := make([]float64, 0, replicates)
	for range replicates {
		n, d := sides[0].quantile(q, sides[0].draw(random, in[0].length)),
			sides[1].quantile(q, sides[1].draw(random, in[1].length))
		if n > 0 && d > 0 {
			ratios = append(ratios, math.Log(float64(n)/float64(d)))
		}
	}
	low, high := middle(ratios)
	center, wider := math.Log(r.Value), widening(in[:]...)
	r.Low, r.High = math.Exp(center+wider*(low-center)), math.Exp(center+wider*(high-center))
	return r, true
}

// side holds one side's steps with values replaced by their index in a sorted table, so
// that a replicate's quantile needs no sort.
type side struct {
	table []int64
	steps [][]indexed
	count []int64
	total int64
}

type indexed struct {
	index int
	n     int64
}

func newSide(steps []Counts) side {
	var s side
	for _, c := range steps {
		for _, x := range c {
			s.table = append(s.table, x.Value)
			s.total += x.N
		}
	}
	slices.Sort(s.table)
	s.table = slices.Compact(s.table)
	s.count = make([]int64, len(s.table))
	for _, c := range steps {
		step := make([]indexed, len(c))
		for i, x := range c {
			at, _ := slices.BinarySearch(s.table, x.Value)
			step[i] = indexed{at, x.N}
		}
		s.steps = append(s.steps, step)
	}
	return s
}

// all counts every step once; the result is valid until the next call.
func (s *side) all() []int64 {
	clear(s.count)
	s.add(0, len(s.steps))
	return s.count
}

// draw counts as many steps as there are, in blocks drawn with replacement.
func (s *side) draw(random *rand.Rand, length int) []int64 {
	clear(s.count)
	n := len(s.steps)
	for left := n; left > 0; left -= length {
		from := random.IntN(n - length + 1)
		s.add(from, from+min(length, left))
	}
	return s.count
}

// dependence of the steps for the estimate of a quantile, which is at a value: that of how many of a step's values
// are above it, less how many should be. The quantile is where these add up to 0.
func (s *side) dependence(q float64, value int64) dependence {
	scores := make([]float64, len(s.steps))
	for i, step := range s.steps {
		for _, x := range step {
			if s.table[x.index] > value {
				scores[i] += float64(x.n)
			}
			scores[i] -= (1 - q) * float64(x.n)
		}
	}
	return dependenceOf(scores)
}

func (s *side) add(from, to int) {
	for _, step := range s.steps[from:to] {
		for _, x := range step {
			s.count[x.index] += x.n
		}
	}
}

func (s *side) quantile(q float64, counts []int64) int64 {
	var n, seen int64
	for _, c := range counts {
		n += c
	}
	if n == 0 {
		return 0
	}
	rank := hist.Rank(q, n)
	for i, c := range counts {
		if seen += c; seen >= rank {
			return s.table[i]
		}
	}
	return 0
}
