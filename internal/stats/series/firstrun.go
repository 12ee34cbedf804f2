package series

import (
	"math"
	"math/rand/v2"

	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// First is whether the first repetition of each occasion differs from the others.
type First struct {
	// Occasions with at least two repetitions.
	Occasions int
	// Lowest and Highest count the occasions in which no other repetition is lower, or
	// higher, than the first, and not all are equal.
	Lowest, Highest int
	// Ratio is the median over occasions of the first value ÷ the median of the others;
	// NaN where one is not positive.
	Ratio float64
	// P is two-sided, of this metric alone.
	P float64
	// Adjusted is P adjusted for all metrics of one call of FirstRuns.
	Adjusted float64
}

// FirstRun is FirstRuns of one metric. It returns false without an occasion of two repetitions.
func FirstRun(occasions [][]float64) (First, bool) {
	first, ok := FirstRuns([][][]float64{occasions})
	if !ok {
		return First{}, false
	}
	return first[0], true
}

// choices of a first repetition that are enumerated, and how many are drawn if there are more.
const (
	enumerated = 20_000
	drawn      = 9_999
)

// FirstRuns tests the metrics of one provider, measured in the same repetitions:
// metrics[m][i][j] is metric m in repetition j of occasion i, in order of time.
//
// If the order of repetitions has no effect, each is as likely as another to be the
// first. The statistic is the sum over occasions of the first one's rank within its
// occasion less the mean rank; its distribution is enumerated over all choices
// of one repetition in each occasion. A metric's P counts the choices with a sum as far from 0;
// Adjusted those in which any metric's sum, in units of its standard deviation, is
// (Westfall and Young 1993): at Adjusted < 0.05 at most 5 % of providers without an effect
// have a metric named, however the metrics depend on each other.
// Four occasions of five runs have 625 choices: the least P is 2/625.
//
// Occasions of one repetition are left out. It returns false if there is no other, if a
// value is not finite, or if metrics differ in the number of repetitions: then test each apart and
// adjust by rank.Holm.
func FirstRuns(metrics [][][]float64) ([]First, bool) {
	if len(metrics) == 0 {
		return nil, false
	}
	shape := shapeOf(metrics[0])
	firsts, scores := make([]First, len(metrics)), make([][][]float64, len(metrics))
	for m, occasions := range metrics {
		var ok bool
		if firsts[m], scores[m], ok = scored(occasions, shape); !ok {
			return nil, false
		}
	}
	observed := sums(scores, make([]int, len(shape)))
	total, one, family := 0, make([]int, len(metrics)), make([]int, len(metrics))
	count := func(choice []int) {
		total++
		most := 0.0
		chosen := sums(scores, choice)
		for _, s := range chosen {
			most = max(most, math.Abs(s))
		}
		for m, s := range observed {
			// 1e-9: sums of the same scores in another order are as far.
			if math.Abs(chosen[m]) >= math.Abs(s)-1e-9 {
				one[m]++
			}
			if most >= math.Abs(s)-1e-9 {
				family[m]++
			}
		}
	}
	choose(shape, count)
	for m := range firsts {
		firsts[m].P, firsts[m].Adjusted = float64(one[m])/float64(total), float64(family[m])/float64(total)
	}
	return firsts, true
}

// shapeOf returns the numbers of repetitions of the occasions that have two or more.
func shapeOf(occasions [][]float64) []int {
	var shape []int
	for _, o := range occasions {
		if len(o) > 1 {
			shape = append(shape, len(o))
		}
	}
	return shape
}

// scored describes one metric, and gives each repetition its rank within its occasion less the mean
// rank, in units of the standard deviation of a sum over occasions.
func scored(occasions [][]float64, shape []int) (First, [][]float64, bool) {
	f := First{Occasions: len(shape), Ratio: math.NaN()}
	var scores [][]float64
	var ratios []float64
	squares := 0.0
	for _, o := range occasions {
		if !stats.Finite(o) {
			return First{}, nil, false
		}
		if len(o) < 2 {
			continue
		}
		if len(scores) == len(shape) || len(o) != shape[len(scores)] {
			return First{}, nil, false
		}
		ranks := rank.Midranks(o)
		for j := range ranks {
			ranks[j] -= float64(len(o)+1) / 2
			squares += ranks[j] * ranks[j] / float64(len(o))
		}
		scores = append(scores, ranks)
		f.compare(o[0], o[1:], &ratios)
	}
	if len(shape) == 0 || len(scores) != len(shape) {
		return First{}, nil, false
	}
	for _, o := range scores {
		for j := range o {
			if squares > 0 {
				o[j] /= math.Sqrt(squares)
			}
		}
	}
	if len(ratios) == len(shape) {
		f.Ratio = stats.Median(ratios)
	}
	return f, scores, true
}

// compare counts an occasion, and appends its ratio if both are positive.
func (f *First) compare(first float64, others []float64, ratios *[]float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range others {
		low, high = min(low, x), max(high, x)
	}
	if first <= low && first < high {
		f.Lowest++
	}
	if first >= high && first > low {
		f.Highest++
	}
	if median := stats.Median(others); first > 0 && median > 0 {
		*ratios = append(*ratios, first/median)
	}
}

// sums returns each metric's sum of the scores of the chosen repetitions.
func sums(scores [][][]float64, choice []int) []float64 {
	s := make([]float64, len(scores))
	for m, occasions := range scores {
		for i, j := range choice {
			s[m] += occasions[i][j]
		}
	}
	return s
}

// choose calls count with each choice of one repetition in each occasion; with
// the first of each and random ones if there are too many.
func choose(shape []int, count func([]int)) {
	choice := make([]int, len(shape))
	all := 1.0
	for _, r := range shape {
		all *= float64(r)
	}
	if all > enumerated {
		count(choice)
		random := rand.New(rand.NewPCG(1, 0x6669727374))
		for range drawn {
			for i, r := range shape {
				choice[i] = random.IntN(r)
			}
			count(choice)
		}
		return
	}
	for {
		count(choice)
		i := 0
		for i < len(shape) && choice[i] == shape[i]-1 {
			choice[i] = 0
			i++
		}
		if i == len(shape) {
			return
		}
		choice[i]++
	}
}
