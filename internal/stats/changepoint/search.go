package changepoint

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// search is one search's parameters.
type search struct {
	Options
	values []float64
	random *rand.Rand
}

// segment is a part of the series. The distances do not depend on the order of the points.
type segment struct {
	from   int // index of its first point in the series
	points []point
	all    float64 // sum of distances of all pairs
}

type point struct {
	v      float64
	others float64 // sum of its distances from all others of the segment
}

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
	g := segment{points: make([]point, len(x))}
	order, sum, below := make([]int, len(x)), 0.0, 0.0
	for i, v := range x {
		order[i] = i
		sum += v
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	for k, i := range order {
		v := x[i]
		g.points[i] = point{v, v*float64(2*k-len(x)) + sum - 2*below}
		below += v
		g.all += g.points[i].others / 2
	}
	return g
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
func (s *search) best(g *segment) (at int, q float64) {
	n := len(g.points)
	if n < 2*s.MinSegment || !(g.all > 0) {
		return 0, 0
	}
	left, right := 0.0, g.all // sums over pairs within each side
	for i, p := range g.points[:n-s.MinSegment] {
		toLeft := 0.0
		for j := range g.points[:i] {
			toLeft += math.Abs(p.v - g.points[j].v)
		}
		left += toLeft
		right -= p.others - toLeft
		if i+1 < s.MinSegment {
			continue
		}
		a, b := float64(i+1), float64(n-i-1)
		e := 2*(g.all-left-right)/(a*b) - 2*left/(a*a) - 2*right/(b*b)
		if w := e * a * b / (a + b); w > q {
			at, q = i+1, w
		}
	}
	return at, q / (2 * g.all / float64(n*n))
}

// test returns the share of permutations within the segments whose best split is as good,
// the data counted as one. It gives up as soon as that exceeds alpha. The segments are
// left in another order.
func (s *search) test(parts []segment, q float64) float64 {
	as := 1
	for range s.Permutations {
		for i := range parts {
			p := parts[i].points
			s.random.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
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
func (s *search) interval(x []float64, at int) (low, high int) {
	drawn, places := make([]float64, len(x)), []int{at}
	for range resamples {
		for i := range drawn {
			if i < at {
				drawn[i] = x[s.random.IntN(at)]
			} else {
				drawn[i] = x[at+s.random.IntN(len(x)-at)]
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
