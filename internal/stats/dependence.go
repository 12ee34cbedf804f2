package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// dependence says how a moving-block bootstrap treats a series whose values depend on those before.
type dependence struct {
	length int     // of a block
	blocks float64 // in the series
	missed float64 // variance of the mean ÷ the part of it that blocks of this length show
}

// dependenceOf takes a series for one of first order (AR(1)), with or without independent errors. The lag-1 correlation
// is the greater of that at lag 1 and the square root of that at lag 2, each corrected for the bias of few values
// (Kendall 1954). Its upper bound at 95 % is used, because an estimate that is too low narrows an interval by more than
// one that is as much too high widens it. The length of a block is four times the cube root of the number of values, or
// the length that is best for the variance of a mean at that correlation (Carlstein 1986, Künsch 1989) if that is
// greater, and at most a quarter of the number of values.
func dependenceOf(x []float64) dependence {
	n := float64(len(x))
	rho := max(0, correlation(x, 1), math.Sqrt(max(0, correlation(x, 2))))
	rho = min(rho+1.645*math.Sqrt((1-min(1, rho*rho))/n), 0.95)
	best := math.Cbrt(n) * math.Pow(math.Sqrt(6)*rho/(1-rho*rho), 2.0/3)
	l := math.Floor(max(1, min(max(4*math.Cbrt(n), best), n/4)))
	shown := 1.0 // the correlations at lags below the length, as a block shows them
	for k := 1.0; k < l; k++ {
		shown += 2 * (1 - k/l) * math.Pow(rho, k)
	}
	return dependence{length: int(l), blocks: n / l, missed: (1 + rho) / (1 - rho) / shown}
}

// correlation of the values with those lag before.
func correlation(x []float64, lag int) float64 {
	n, mean, products, squares := float64(len(x)), stat.Mean(x, nil), 0.0, 0.0
	for i, v := range x {
		squares += (v - mean) * (v - mean)
		if i >= lag {
			products += (v - mean) * (x[i-lag] - mean)
		}
	}
	if !(squares > 0) {
		return 0
	}
	r := products / squares
	return r + (1+4*max(0, r))/n
}

// widening is by how much the half-widths of a 95 % interval of the bootstrap are less than those that hold: blocks
// miss the correlation beyond their length, and the variance of few blocks is known as badly as that of few values
// (Student's t in place of the normal distribution).
func widening(sides ...dependence) float64 {
	missed, free := 0.0, 0.0
	for _, s := range sides {
		missed += s.missed * s.blocks / (s.blocks - 1) / float64(len(sides))
		free += s.blocks - 1
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}.Quantile(0.975)
	return math.Sqrt(missed) * t / distuv.UnitNormal.Quantile(0.975)
}
