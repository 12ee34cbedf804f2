package changepoint

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// endShare is the share of alpha of the test of the last values.
const endShare = 1.0 / 3

// The distribution of the statistic in stable series: how many, and of at most how many values. It hardly changes
// beyond.
const (
	endSamples = 9999
	endMost    = 200
)

// end tests whether the last MinSegment values differ from those before them, since the last change: the p-value, and
// whether it is at most alpha. p is the share of normally distributed series, clipped as this one, whose statistic is
// as great: permutations of a series with a shift have the shift in their spread, and find fewer. It is at least
// 1/10000, and ok is false if there are fewer than MinSegment values before.
func (s *search) end(bounds []int, alpha float64) (p float64, ok bool) {
	x := s.values[bounds[len(bounds)-2]:]
	if len(x) < 2*s.MinSegment {
		return 1, false
	}
	observed := endStatistic(clip(x), s.MinSegment)
	if !(observed > 0) {
		return 1, false
	}
	null := endNull(min(len(x), max(endMost, 2*s.MinSegment)), s.MinSegment)
	at, _ := slices.BinarySearch(null, observed)
	p = float64(1+len(null)-at) / float64(1+len(null))
	return p, p <= alpha
}

var endNulls sync.Map // of [2]int{n, last}: its endNull

// endNull returns the ascending statistics of normal series of n values.
func endNull(n, last int) []float64 {
	key := [2]int{n, last}
	if known, ok := endNulls.Load(key); ok {
		return known.([]float64)
	}
	random := rand.New(rand.NewPCG(uint64(n), uint64(last)))
	null, x := make([]float64, endSamples), make([]float64, n)
	for i := range null {
		for j := range x {
			x[j] = random.NormFloat64()
		}
		null[i] = endStatistic(clip(x), last)
	}
	slices.Sort(null)
	endNulls.Store(key, null)
	return null
}

// endStatistic is the least absolute value of Student's t of the last values against those before, each of the last
// left out in turn: one outlier among them makes no change.
func endStatistic(x []float64, last int) float64 {
	n := len(x) - last
	var before, after moments
	for _, v := range x[:n] {
		before.add(v, 1)
	}
	for _, v := range x[n:] {
		after.add(v, 1)
	}
	least := math.Inf(1)
	for _, v := range x[n:] {
		rest := after
		rest.add(v, -1)
		least = min(least, math.Abs(student(before, rest)))
	}
	return least
}

// moments are the number of values, their sum and the sum of their squares.
type moments struct{ n, sum, squares float64 }

// add adds a value, or with −1 takes it away.
func (m *moments) add(v, times float64) {
	m.n += times
	m.sum += times * v
	m.squares += times * v * v
}

// within is the sum of squares about the mean.
func (m *moments) within() float64 { return max(0, m.squares-m.sum*m.sum/m.n) }

// student is Student's t of two samples; 0 if nothing varies.
func student(a, b moments) float64 {
	variance := (a.within() + b.within()) / (a.n + b.n - 2)
	difference := b.sum/b.n - a.sum/a.n
	if !(variance > 0) {
		if difference == 0 {
			return 0
		}
		return math.Inf(1)
	}
	return difference / math.Sqrt(variance*(1/a.n+1/b.n))
}
