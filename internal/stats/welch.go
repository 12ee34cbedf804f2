package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Moments are what is known of values that are not known one by one. SD has the divisor N − 1.
type Moments struct {
	Mean, SD float64
	N        int
}

// variance is that of the mean.
func (m Moments) variance() float64 { return m.SD * m.SD / float64(m.N) }

// Welch compares the means of two samples by their moments. It assumes that values are normal and independent; their
// variances may differ.
type Welch struct {
	// T is (mean of b − mean of a) ÷ its standard error, Freedom the degrees of freedom of its t distribution.
	T, Freedom float64
	P          float64 // two-sided

	a, b Moments
}

// WelchOf tests whether two means differ (Welch, "The generalization of 'Student's' problem when several different
// population variances are involved", Biometrika 34, 1947), with the degrees of freedom of Satterthwaite ("An
// approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946). It returns false if a
// side has fewer than two values, a number is not finite, an SD is negative, or both are 0.
func WelchOf(a, b Moments) (Welch, bool) {
	va, vb := a.variance(), b.variance()
	w := Welch{T: (b.Mean - a.Mean) / math.Sqrt(va+vb), a: a, b: b}
	share := va / (va + vb)
	if min(a.N, b.N) < 2 || min(a.SD, b.SD) < 0 || math.IsNaN(w.T+share) || math.IsInf(w.T, 0) {
		return Welch{}, false
	}
	w.Freedom = 1 / (share*share/float64(a.N-1) + (1-share)*(1-share)/float64(b.N-1))
	w.P = 2 * w.distribution().CDF(-math.Abs(w.T))
	return w, true
}

func (w *Welch) distribution() distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: w.Freedom}
}

// Difference is mean of b − mean of a with its interval.
func (w *Welch) Difference(confidence float64) Shift {
	d := w.b.Mean - w.a.Mean
	half := w.distribution().Quantile((1+confidence)/2) * math.Sqrt(w.a.variance()+w.b.variance())
	return Shift{Value: d, Low: d - half, High: d + half}
}

// Ratio is mean of b ÷ mean of a with the interval of Fieller ("Some problems in interval estimation", Journal of the
// Royal Statistical Society B 16, 1954): all ρ for which b − ρ·a does not differ from 0. The degrees of freedom are
// those of the test, so that the interval excludes 1 where P is below 1 − confidence, and no other time. The ends are
// NaN
// where either mean itself does not differ from 0: the interval would not be bounded by numbers above 0. It returns
// false if a mean is not positive.
func (w *Welch) Ratio(confidence float64) (Ratio, bool) {
	a, b := w.a.Mean, w.b.Mean
	if !(a > 0) || !(b > 0) {
		return Ratio{}, false
	}
	r := Ratio{Value: b / a, Low: math.NaN(), High: math.NaN()}
	t := w.distribution().Quantile((1 + confidence) / 2)
	// The squares of the relative half-widths of each mean. In these terms the formula cannot overflow.
	ga, gb := square(t*w.a.SD/a)/float64(w.a.N), square(t*w.b.SD/b)/float64(w.b.N)
	if ga >= 1 || gb >= 1 {
		return r, true
	}
	root := math.Sqrt(ga + gb - ga*gb)
	r.Low, r.High = r.Value*(1-root)/(1-ga), r.Value*(1+root)/(1-ga)
	return r, true
}

func square(x float64) float64 { return x * x }
