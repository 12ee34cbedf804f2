package selector

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

type zipf struct {
	low     int64
	ranks   ranks
	scatter Scatter
	rng     *rand.Rand
}

func (z *zipf) Next() int64 { return z.low + z.scatter.At(z.ranks.draw(z.rng)-1) }

// ranks draws ranks 1…n with P(k) ∝ k^−s by rejection-inversion (W. Hörmann, G. Derflinger,
// "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996). It
// needs no tables and about one random number per rank, for any s > 0.
type ranks struct {
	n                float64
	s                float64
	hFirst, hLast, c float64
}

func newRanks(n int64, s float64) ranks {
	r := ranks{n: float64(n), s: s}
	r.hFirst = r.integral(1.5) - 1
	r.hLast = r.integral(r.n + 0.5)
	r.c = 2 - r.inverse(r.integral(2.5)-r.height(2))
	return r
}

func (r *ranks) draw(rng *rand.Rand) int64 {
	for {
		u := r.hLast + rng.Float64()*(r.hFirst-r.hLast)
		x := r.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), r.n)
		if k-x <= r.c || u >= r.integral(k+0.5)-r.height(k) {
			return int64(k)
		}
	}
}

// height returns x^−s.
func (r *ranks) height(x float64) float64 { return math.Exp(-r.s * math.Log(x)) }

// integral returns the integral of height: (x^(1−s) − 1)/(1−s), and log x for s = 1.
func (r *ranks) integral(x float64) float64 {
	l := math.Log(x)
	return expm1Over((1-r.s)*l) * l
}

func (r *ranks) inverse(y float64) float64 {
	t := max(y*(1-r.s), -1)
	return math.Exp(log1pOver(t) * y)
}

// expm1Over returns (e^x − 1)/x, which is 1 at 0.
func expm1Over(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2*(1+x/3)
}

// log1pOver returns log(1+x)/x, which is 1 at 0.
func log1pOver(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x*(0.5-x/3)
}

// Scatter is a bijection of [0, n) that moves neighbors far apart and spreads the images of any interval as
// evenly as possible. Hot keys are therefore not in one shard of a server that sorts keys.
type Scatter struct{ n, step uint64 }

// golden is 2⁶⁴ divided by the golden ratio.
const golden = 0x9E3779B97F4A7C15

// NewScatter returns a Scatter of [0, n).
func NewScatter(n int64) Scatter {
	if n <= 2 {
		return Scatter{uint64(n), 1}
	}
	step, _ := bits.Mul64(golden, uint64(n))
	for gcd(step, uint64(n)) != 1 {
		step++
	}
	return Scatter{uint64(n), step}
}

// At returns the image of i.
func (s Scatter) At(i int64) int64 {
	hi, lo := bits.Mul64(uint64(i), s.step)
	return int64(bits.Rem64(hi, lo, s.n))
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
