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

// Bounded reports whether there is an interval.
func (r Ratio) Bounded() bool { return !math.IsNaN(r.Low) }

// replicates of a bootstrap, and the fewest time steps per side for an interval.
const (
	replicates = 400
	minSteps   = 10
)

// QuantileRatio returns the quantile q of a ÷ that of b, both in order of time, with a
// 95 % interval by the moving-block bootstrap (Künsch 1989): blocks of consecutive steps,
// as long as the cube root of their number, are drawn with replacement from each side.
// The interval is NaN with fewer than ten steps on a side. It returns false if a side is
// empty or the divisor is 0. The same seed gives the same interval.
func QuantileRatio(a, b []Counts, q float64, seed uint64) (Ratio, bool) {
	sides := [2]side{newSide(a), newSide(b)}
	num, den := sides[0].quantile(q, sides[0].all()), sides[1].quantile(q, sides[1].all())
	if sides[0].total == 0 || sides[1].total == 0 || den == 0 {
		return Ratio{}, false
	}
	r := Ratio{Value: float64(num) / float64(den), Low: math.NaN(), High: math.NaN()}
	if min(len(a), len(b)) < minSteps {
		return r, true
	}
	random := rand.New(rand.NewPCG(seed, 0x626c6f636b73))
	ratios := make([]float64, 0, replicates)
	for range replicates {
		n, d := sides[0].quantile(q, sides[0].draw(random)), sides[1].quantile(q, sides[1].draw(random))
		if d > 0 {
			ratios = append(ratios, float64(n)/float64(d))
		}
	}
	slices.Sort(ratios)
	m := float64(len(ratios))
	if m > 0 {
		r.Low, r.High = ratios[int(0.025*m)], ratios[min(len(ratios)-1, int(math.Ceil(0.975*m)))]
	}
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
func (s *side) draw(random *rand.Rand) []int64 {
	clear(s.count)
	n := len(s.steps)
	length := max(1, int(math.Round(math.Cbrt(float64(n)))))
	for left := n; left > 0; left -= length {
		from := random.IntN(n - length + 1)
		s.add(from, from+min(length, left))
	}
	return s.count
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
