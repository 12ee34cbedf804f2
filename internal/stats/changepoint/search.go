package changepoint

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// search is one search's parameters.
type search struct {
	Options
	values []float64
	random *rand.Rand
}

// segment is a part of the series. Its points are numbered by rank: the distances do not depend on their order in time.
type segment struct {
	from   int       // index of its first point in the series
	ranks  []int     // of the points in order of time
	values []float64 // ascending, with the mean at 0
	others []float64 // by rank: sum of the point's distances from all others
	all    float64   // sum of distances of all pairs
	// before has, while best runs, count and sum of the values of the earlier points, as a binary indexed tree
	// (Fenwick 1994) over the ranks.
	before []total
}

type total struct{ n, sum float64 }

// segments are the parts of the series between bounds, with outliers clipped.
func (s *search) segments(bounds []int) []segment {
	parts := make([]segment, len(bounds)-1)
	for i := range parts {
		parts[i] = newSegment(clip(s.values[bounds[i]:bounds[i+1]]))
		parts[i].from = bounds[i]
	}
	return parts
}

func newSegment(x []float64) segment {
	n := len(x)
	g := segment{ranks: make([]int, n), values: make([]float64, n), others: make([]float64, n),
		before: make([]total, n+1)}
	order, mean, below := make([]int, n), stat.Mean(x, nil), 0.0
	for i := range x {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	sum := 0.0
	for k, i := range order {
		g.ranks[i], g.values[k] = k, x[i]-mean
		sum += g.values[k]
	}
	for k, v := range g.values {
		g.others[k] = v*float64(2*k-n) + sum - 2*below
		below += v
		g.all += g.others[k] / 2
	}
	return g
}

// join adds the point of a rank. It returns the sum of the distances of this point from the n points that were added
// before it, whose values have the given sum.
func (g *segment) join(rank, n int, sum float64) float64 {
	v, below := g.values[rank], total{}
	for k := rank; k > 0; k &= k - 1 {
		below.n += g.before[k].n
		below.sum += g.before[k].sum
	}
	for k := rank + 1; k < len(g.before); k += k & -k {
		g.before[k].n++
		g.before[k].sum += v
	}
	return v*(2*below.n-float64(n)) + sum - 2*below.sum
}

// clip returns x with values of at most 3 standard deviations from the median. The
// deviation is 1.4826 times the median absolute one, as of normally distributed values; if
// that is 0, nothing is clipped.
func clip(x []float64) []float64 {
	median, deviations := stats.Median(x), make([]float64, len(x))
	for i, v := range x {
		deviations[i] = math.Abs(v - median)
	}
	most := 3 * 1.4826 * stats.Median(deviations)
	out := slices.Clone(x)
	for i, v := range x {
		if most > 0 {
			out[i] = min(max(v, median-most), median+most)
		}
	}
	return out
}

// bestOf returns the best split of all segments, as an index of the series, and how good it
// is; 0 if none can be split.
func (s *search) bestOf(parts []segment) (at int, q float64) {
	for i := range parts {
		if a, b := s.best(&parts[i]); a > 0 && (at == 0 || b > q) {
			at, q = parts[i].from+a, b
		}
	}
	return at, q
}

// best returns the best split of one segment: the index of the first value after it, and
// n·m/(n+m) · E ÷ the mean distance of all pairs, where E = 2·E|X−Y| − E|X−X′| − E|Y−Y′|
// is the energy distance of the two sides. Means include the distances of values from
// themselves, so that E is at least 0, and the expectation for values in random order is
// the same at each split.
//
// The time is that of n·log n steps. Of splits that are equally good but for rounding the first is taken.
func (s *search) best(g *segment) (at int, q float64) {
	n := len(g.ranks)
	if n < 2*s.MinSegment || !(g.all > 0) {
		return 0, 0
	}
	clear(g.before)
	left, right, sum := 0.0, g.all, 0.0 // left and right: over pairs within each side
	for i, rank := range g.ranks[:n-s.MinSegment] {
		toLeft := g.join(rank, i, sum)
		sum += g.values[rank]
		left += toLeft
		right -= g.others[rank] - toLeft
		if i+1 < s.MinSegment {
			continue
		}
		a, b := float64(i+1), float64(n-i-1)
		// a·b/(a+b) · (2·between/(a·b) − 2·left/a² − 2·right/b²), without its factor 2/n
		if w := g.all - left - right - (left*b*b+right*a*a)/(a*b); w > q*(1+1e-12) {
			at, q = i+1, w
		}
	}
	return at, q * float64(n) / g.all
}

// test returns the share of permutations within the segments whose best split is as good,
// the data counted as one. It gives up as soon as that exceeds alpha. The segments are
// left in another order.
func (s *search) test(parts []segment, q float64) float64 {
	as := 1
	for range s.Permutations {
		for i := range parts {
			r := parts[i].ranks
			s.random.Shuffle(len(r), func(i, j int) { r[i], r[j] = r[j], r[i] })
		}
		if _, other := s.bestOf(parts); other >= q*(1-1e-9) {
			as++
		}
		if p := float64(as) / float64(s.Permutations+1); p > s.Alpha {
			return p
		}
	}
	return float64(as) / float64(s.Permutations+1)
}

// resamples of a bootstrap.
const resamples = 199

// interval returns the bounds of a change at index at: the 2.5th and 97.5th
// percentile of where it is found in series whose two sides are drawn with replacement
// from its sides.
func (s *search) interval(x []float64, at int, random *rand.Rand) (low, high int) {
	drawn, places := make([]float64, len(x)), []int{at}
	for range resamples {
		for i := range drawn {
			if i < at {
				drawn[i] = x[random.IntN(at)]
			} else {
				drawn[i] = x[at+random.IntN(len(x)-at)]
			}
		}
		g := newSegment(drawn)
		if found, _ := s.best(&g); found > 0 {
			places = append(places, found)
		}
	}
	slices.Sort(places)
	k := len(places)
	return places[int(0.025*float64(k))], places[min(k-1, int(0.975*float64(k)))]
}
