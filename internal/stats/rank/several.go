package rank

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// A test of several samples with at most permuteN values is by permutations: the χ²
// distribution is its limit, and far off where samples are small.
const (
	permuteN     = 60
	permutations = 9999
)

// KruskalWallis tests whether two or more independent samples have one distribution
// (Kruskal and Wallis 1952), corrected for ties.
func KruskalWallis(samples [][]float64) (Test, bool) {
	if len(samples) < 2 || !usable(samples...) {
		return Test{}, false
	}
	doubled, ties := mid(slices.Concat(samples...))
	n := float64(len(doubled))
	correction := 1 - ties/(n*n*n-n)
	if !(correction > 0) { // all are equal
		return Test{Statistic: 0, P: 1, Method: Exact}, true
	}
	statistic := func() float64 {
		h, from := 0.0, 0
		for _, s := range samples {
			h += sumOf(doubled[from:from+len(s)]) * sumOf(doubled[from:from+len(s)]) / float64(len(s))
			from += len(s)
		}
		return (3*h/(n*(n+1)) - 3*(n+1)) / correction
	}
	t := Test{Statistic: statistic()}
	if len(doubled) > permuteN {
		return t.limit(len(samples) - 1), true
	}
	return t.permute(statistic, func(random *rand.Rand) { shuffle(random, doubled) }), true
}

// Friedman tests whether two or more treatments have the same effect (Friedman 1937),
// corrected for ties. blocks[i][j] is the value of treatment j in block i.
func Friedman(blocks [][]float64) (Test, bool) {
	if len(blocks) == 0 || len(blocks[0]) < 2 || !usable(blocks...) {
		return Test{}, false
	}
	n, k := float64(len(blocks)), float64(len(blocks[0]))
	ranks, ties := make([][]int, len(blocks)), 0.0
	for i, b := range blocks {
		if len(b) != len(blocks[0]) {
			return Test{}, false
		}
		var t float64
		ranks[i], t = mid(b)
		ties += t
	}
	correction := 1 - ties/(n*k*(k*k-1))
	if !(correction > 0) { // all are equal within each block
		return Test{Statistic: 0, P: 1, Method: Exact}, true
	}
	statistic := func() float64 {
		squares := 0.0
		for j := range blocks[0] {
			sum := 0
			for i := range ranks {
				sum += ranks[i][j]
			}
			squares += float64(sum) * float64(sum) / 4
		}
		return (12*squares/(n*k*(k+1)) - 3*n*(k+1)) / correction
	}
	t := Test{Statistic: statistic()}
	if len(blocks)*len(blocks[0]) > permuteN {
		return t.limit(len(blocks[0]) - 1), true
	}
	return t.permute(statistic, func(random *rand.Rand) {
		for _, r := range ranks {
			shuffle(random, r)
		}
	}), true
}

// limit completes t by the χ² distribution.
func (t Test) limit(freedom int) Test {
	t.Method = Approximate
	t.P = max(LeastKnownP, distuv.ChiSquared{K: float64(freedom)}.Survival(t.Statistic))
	return t
}

// permute completes t by the share of permutations whose statistic is as great, the data
// counted as one of them (Phipson and Smyth 2010).
func (t Test) permute(statistic func() float64, shuffle func(*rand.Rand)) Test {
	random := rand.New(rand.NewPCG(1, 0x7065726d757465))
	as := 1
	for range permutations {
		shuffle(random)
		if statistic() >= t.Statistic-1e-9*math.Abs(t.Statistic) {
			as++
		}
	}
	t.Method, t.P = Permuted, float64(as)/(permutations+1)
	return t
}

func shuffle(random *rand.Rand, s []int) {
	random.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
}

func sumOf(s []int) float64 {
	sum := 0
	for _, x := range s {
		sum += x
	}
	return float64(sum)
}
