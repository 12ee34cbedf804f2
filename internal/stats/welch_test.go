package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// momentsOf are those of values.
func momentsOf(values []float64) stats.Moments {
	mean, sd := stat.MeanStdDev(values, nil)
	return stats.Moments{Mean: mean, SD: sd, N: len(values)}
}

// near says whether two numbers agree to a number of decimals.
func near(got, want float64, decimals int) bool {
	return math.Abs(got-want) <= 0.5*math.Pow10(-decimals)*(1+1e-9)
}

// TestWelchPublished: R prints for t.test(extra ~ group, sleep), of Student's data, "t = -1.8608, df = 17.776,
// p-value = 0.07939" and the interval -3.3654832 to 0.2054832 of the mean of the first group less that of the second.
func TestWelchPublished(t *testing.T) {
	t.Parallel()
	first := momentsOf([]float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0})
	second := momentsOf([]float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4})
	w, ok := stats.WelchOf(second, first)
	if !ok || !near(w.T, -1.8608, 4) || !near(w.Freedom, 17.776, 3) || !near(w.P, 0.07939, 5) {
		t.Errorf("%+v, want t = -1.8608, 17.776 degrees of freedom, p = 0.07939", w)
	}
	d := w.Difference(0.95)
	if !near(d.Value, -1.58, 12) || !near(d.Low, -3.3654832, 7) || !near(d.High, 0.2054832, 7) {
		t.Errorf("difference %+v, want -1.58 from -3.3654832 to 0.2054832", d)
	}
}

// TestWelchUnequal: p-values that R's t.test gives for samples of other sizes and variances (Rosetta Code, "Welch's
// t-test").
func TestWelchUnequal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		a, b []float64
		p    float64
	}{
		{"other sizes", []float64{17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8},
			[]float64{21.5, 22.8, 21.0, 23.0, 21.6, 23.6, 22.5, 20.7, 23.4, 21.8, 20.7, 21.7, 21.5, 22.5, 23.6, 21.5, 22.5, 23.5,
				21.5, 21.8}, 0.148841696605327},
		{"four and three", []float64{3, 4, 1, 2.1}, []float64{490.2, 340, 433.9}, 0.010751561149785},
		{"small values", []float64{0.010268, 0.000167, 0.000167}, []float64{0.159258, 0.136278, 0.122389},
			0.00339907162713746},
		{"two of each", []float64{1. / 15, 10. / 62}, []float64{1. / 10, 2. / 50}, 0.52726574965384},
	} {
		w, ok := stats.WelchOf(momentsOf(tt.a), momentsOf(tt.b))
		if !ok || math.Abs(w.P-tt.p) > 1e-10 {
			t.Errorf("%s: %+v, want p = %v", tt.name, w, tt.p)
		}
	}
}

// TestWelchNothing: where a standard error, or a number above 0, is not known, there is no test or no ratio.
func TestWelchNothing(t *testing.T) {
	t.Parallel()
	good := stats.Moments{Mean: 10, SD: 1, N: 5}
	for name, bad := range map[string]stats.Moments{"one value": {Mean: 10, SD: 1, N: 1}, "no n": {Mean: 10, SD: 1},
		"no sd": {Mean: 10, SD: math.NaN(), N: 5}, "negative sd": {Mean: 10, SD: -1, N: 5},
		"infinite mean": {Mean: math.Inf(1), SD: 1, N: 5}} {
		if w, ok := stats.WelchOf(good, bad); ok {
			t.Errorf("%s: %+v", name, w)
		}
	}
	constant := stats.Moments{Mean: 10, N: 5}
	if w, ok := stats.WelchOf(constant, constant); ok {
		t.Errorf("no variance: %+v", w)
	}
	if w, ok := stats.WelchOf(good, constant); !ok || w.Freedom != 4 {
		t.Errorf("one variance: %+v, %v, want 4 degrees of freedom", w, ok)
	}
	w, _ := stats.WelchOf(good, stats.Moments{Mean: 0, SD: 1, N: 5})
	if r, ok := w.Ratio(0.95); ok {
		t.Errorf("mean of 0: %+v", r)
	}
	w, _ = stats.WelchOf(good, stats.Moments{Mean: 1, SD: 2, N: 5})
	if r, ok := w.Ratio(0.95); !ok || r.Value != 0.1 || r.Bounded() {
		t.Errorf("a mean like 0: %+v, %v, want 0.1 without an interval", r, ok)
	}
}

// TestWelchRatio: at an end of the interval b − ρ·a is as far from 0 as the confidence allows; it excludes 1 where the
// test does; and that of a/b is the reciprocal.
func TestWelchRatio(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	excluded := 0
	for range 500 {
		a := stats.Moments{Mean: 100, SD: 1 + 20*random.Float64(), N: 3 + random.IntN(20)}
		b := stats.Moments{Mean: 80 + 40*random.Float64(), SD: 1 + 20*random.Float64(), N: 3 + random.IntN(20)}
		w, _ := stats.WelchOf(a, b)
		r, ok := w.Ratio(0.95)
		if !ok || !r.Bounded() {
			continue
		}
		difference := w.Difference(0.95)
		quantile := (difference.High - difference.Value) * w.T / difference.Value
		for _, rho := range []float64{r.Low, r.High} {
			far := math.Abs(b.Mean-rho*a.Mean) /
				math.Sqrt(b.SD*b.SD/float64(b.N)+rho*rho*a.SD*a.SD/float64(a.N))
			if math.Abs(far/quantile-1) > 1e-9 {
				t.Errorf("%+v %+v: %v is %v standard errors away, want %v", a, b, rho, far, quantile)
			}
		}
		beyond := r.Low > 1 || r.High < 1
		if beyond != (w.P < 0.05) {
			t.Errorf("%+v %+v: %+v, p = %v", a, b, r, w.P)
		}
		if beyond {
			excluded++
		}
		back, _ := stats.WelchOf(b, a)
		if x, _ := back.Ratio(0.95); math.Abs(x.Low*r.High-1) > 1e-9 || math.Abs(x.High*r.Low-1) > 1e-9 {
			t.Errorf("%+v, exchanged %+v", r, x)
		}
	}
	if excluded < 50 || excluded > 450 {
		t.Errorf("%d of 500 differ: the test shows little", excluded)
	}
}

// TestWelchCoverage: 95 % of the intervals of normal samples have the true ratio, within 3 standard errors.
func TestWelchCoverage(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	draw := func(mean, sd float64, n int) stats.Moments {
		x := make([]float64, n)
		for i := range x {
			x[i] = mean + sd*random.NormFloat64()
		}
		return momentsOf(x)
	}
	const n = 4000
	covered := 0
	for range n {
		w, _ := stats.WelchOf(draw(100, 10, 6), draw(130, 20, 12))
		if r, _ := w.Ratio(0.95); r.Low <= 1.3 && r.High >= 1.3 {
			covered++
		}
	}
	if share := float64(covered) / n; math.Abs(share-0.95) > 3*math.Sqrt(0.95*0.05/n) {
		t.Errorf("%.3f of the intervals have the ratio, want 0.95", share)
	}
}
