package stats

import (
	"math/rand/v2"
	"slices"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// Ranked are values with their frequencies, each by its rank among the distinct ones, so that quantiles of many parts
// of them need one sort.
type Ranked struct {
	Table []int64 // the distinct values, ascending
	Ranks []int32
	N     []int64 // nil: each is there once
}

// Rank returns values in their order.
func Rank(values Counts) Ranked {
	r := Ranked{Table: make([]int64, 0, len(values)), Ranks: make([]int32, len(values))}
	if slices.ContainsFunc(values, func(x Count) bool { return x.N != 1 }) {
		r.N = make([]int64, len(values))
	}
	for _, i := range Order(len(values), func(i int) int64 { return values[i].Value }) {
		x := values[i]
		if n := len(r.Table); n == 0 || r.Table[n-1] != x.Value {
			r.Table = append(r.Table, x.Value)
		}
		if r.Ranks[i] = int32(len(r.Table) - 1); r.N != nil {
			r.N[i] = x.N
		}
	}
	return r
}

// n is how often the i-th value is there.
func (r *Ranked) n(i int) int64 {
	if r.N == nil {
		return 1
	}
	return r.N[i]
}

// Steps are the values of time steps in order of time.
type Steps struct {
	Ranked         // those of a step after those of the step before
	ends   []int   // of each step in Ranks
	counts []int64 // of the values of Table; nil: not counted yet
}

// NewSteps returns no steps yet of some of these values, with room for so many.
func NewSteps(of *Ranked, values int) *Steps {
	s := &Steps{Ranked: Ranked{Table: of.Table, Ranks: make([]int32, 0, values)}}
	if of.N != nil {
		s.N = make([]int64, 0, values)
	}
	return s
}

// StepsOf returns steps with these values.
func StepsOf(steps []Counts) *Steps {
	s := &Steps{Ranked: Rank(slices.Concat(steps...))}
	n := 0
	for _, c := range steps {
		n += len(c)
		s.ends = append(s.ends, n)
	}
	return s
}

// Add adds the values [from, to) of r, which NewSteps was given, to the last step.
func (s *Steps) Add(r *Ranked, from, to int) {
	s.Ranks = append(s.Ranks, r.Ranks[from:to]...)
	if r.N != nil {
		s.N = append(s.N, r.N[from:to]...)
	}
	s.ends[len(s.ends)-1] = len(s.Ranks)
	s.counts = nil
}

// counted returns how often each value of the table is there.
func (s *Steps) counted() []int64 {
	if s.counts == nil {
		s.counts = make([]int64, len(s.Table))
		for i, r := range s.Ranks {
			s.counts[r] += s.n(i)
		}
	}
	return s.counts
}

// Begin begins a step.
func (s *Steps) Begin() { s.ends = append(s.ends, len(s.Ranks)) }

// Len is the number of steps.
func (s *Steps) Len() int { return len(s.ends) }

// begin is where a step begins in Ranks.
func (s *Steps) begin(i int) int {
	if i == 0 {
		return 0
	}
	return s.ends[i-1]
}

// Total is the number of values.
func (s *Steps) Total() (n int64) {
	if s.N == nil {
		return int64(len(s.Ranks))
	}
	for _, x := range s.N {
		n += x
	}
	return n
}

// Quantiles returns the order statistics of rank ⌈q·n⌉; nil without values.
func (s *Steps) Quantiles(qs ...float64) []int64 {
	total := s.Total()
	if total == 0 {
		return nil
	}
	counts := s.counted()
	list := make([]int64, len(qs))
	for i, q := range qs {
		list[i] = s.Table[find(counts, 0, hist.Rank(q, total))]
	}
	return list
}

// find returns the index of the value of a rank, where so many values are before the first.
func find(counts []int64, before, rank int64) int {
	for i, n := range counts {
		if before += n; before >= rank {
			return i
		}
	}
	return len(counts)
}

// dependence of the steps for the estimate of a quantile, which is at a value: that of how many of a step's values
// are above it, less how many should be. The quantile is where these add up to 0.
func (s *Steps) dependence(q float64, value int64) dependence {
	scores := make([]float64, s.Len())
	for i := range scores {
		for k := s.begin(i); k < s.ends[i]; k++ {
			if s.Table[s.Ranks[k]] > value {
				scores[i] += float64(s.n(k))
			}
			scores[i] -= (1 - q) * float64(s.n(k))
		}
	}
	return dependenceOf(scores)
}

// resampler draws steps in blocks with replacement, and finds the quantile of each replicate among the values near that
// of all steps: with those below only counted, a replicate is as fast as it has values in that bracket.
type resampler struct {
	of     *Steps
	q      float64
	length int // of a block
	blocks [][2]int

	low, high     int     // ranks of the bracket: [low, high)
	total, below  []int64 // values in the steps before the i-th, and those of them below the bracket
	ranks         []int32 // of the values in the bracket
	n             []int64
	begins        []int // of each step in ranks
	counts        []int64
	width, widest int64 // of the bracket on each side of the quantile, in values; that of all
}

func newResampler(s *Steps, q float64, length int) *resampler {
	r := &resampler{of: s, q: q, length: length, widest: s.Total(), total: make([]int64, s.Len()+1)}
	for i := range s.Len() {
		r.total[i+1] = r.total[i]
		for k := s.begin(i); k < s.ends[i]; k++ {
			r.total[i+1] += s.n(k)
		}
	}
	r.width = max(100, r.widest/500)
	r.bracket()
	return r
}

// bracket chooses the values within width ranks of the quantile.
func (r *resampler) bracket() {
	s := r.of
	counts := s.counted()
	at := hist.Rank(r.q, r.widest)
	r.low = find(counts, 0, max(1, at-r.width))
	r.high = find(counts, 0, min(r.widest, at+r.width))
	r.high++
	if r.width >= r.widest {
		r.low, r.high = 0, len(s.Table)
	}
	r.below, r.begins = make([]int64, s.Len()+1), make([]int, s.Len()+1)
	r.ranks, r.n = r.ranks[:0], r.n[:0]
	for i := range s.Len() {
		r.below[i+1] = r.below[i]
		for k := s.begin(i); k < s.ends[i]; k++ {
			switch rank := int(s.Ranks[k]); {
			case rank < r.low:
				r.below[i+1] += s.n(k)
			case rank < r.high:
				r.ranks, r.n = append(r.ranks, int32(rank-r.low)), append(r.n, s.n(k))
			}
		}
		r.begins[i+1] = len(r.ranks)
	}
	r.counts = make([]int64, r.high-r.low)
}

// draw returns the quantile of as many steps as there are, in blocks drawn with replacement.
func (r *resampler) draw(random *rand.Rand) int64 {
	n := r.of.Len()
	r.blocks = r.blocks[:0]
	for left := n; left > 0; left -= r.length {
		from := random.IntN(n - r.length + 1)
		r.blocks = append(r.blocks, [2]int{from, from + min(r.length, left)})
	}
	for {
		if v, ok := r.quantile(); ok {
			return v
		}
		r.width *= 8
		r.bracket()
	}
}

// quantile is that of the drawn blocks; false if it is not in the bracket. It is 0 without values.
func (r *resampler) quantile() (int64, bool) {
	var total, below int64
	clear(r.counts)
	for _, b := range r.blocks {
		total += r.total[b[1]] - r.total[b[0]]
		below += r.below[b[1]] - r.below[b[0]]
		for k := r.begins[b[0]]; k < r.begins[b[1]]; k++ {
			r.counts[r.ranks[k]] += r.n[k]
		}
	}
	if total == 0 {
		return 0, true
	}
	rank := hist.Rank(r.q, total)
	at := find(r.counts, below, rank)
	if rank <= below || at == len(r.counts) {
		return 0, false
	}
	return r.of.Table[r.low+at], true
}
