package schedule

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// Lifetime is the distribution of the time from the creation of an object to its trigger:
// exponential with Mean or, if set, given by equally spaced Quantiles with linear
// interpolation.
type Lifetime struct {
	Mean      time.Duration
	Quantiles []time.Duration
}

// Of returns the lifetime of a named object, a function of seed and name.
func (l Lifetime) Of(seed uint64, name string) time.Duration {
	rng := named(seed, name)
	if len(l.Quantiles) == 0 {
		return seconds(rng.ExpFloat64() * l.Mean.Seconds())
	}
	i, part := l.piece(rng.Float64())
	a, b := l.Quantiles[i].Seconds(), l.Quantiles[i+1].Seconds()
	return seconds(a + part*(b-a))
}

func (l Lifetime) piece(u float64) (i int, part float64) {
	pieces := float64(len(l.Quantiles) - 1)
	i = min(int(u*pieces), len(l.Quantiles)-2)
	return i, u*pieces - float64(i)
}

// Rest returns the residual lifetime of a named object at a random instant of a population
// in equilibrium. The lifetime then has the density t·f(t)/E[T], and the instant is
// uniform in it (Cox, Renewal Theory, 1962, section 5.2). In a piece from a to b, where f
// is constant, t² is uniform between a² and b².
func (l Lifetime) Rest(seed uint64, name string) time.Duration {
	if len(l.Quantiles) == 0 {
		return l.Of(seed, name) // the exponential distribution is memoryless
	}
	rng := named(seed, name)
	u := rng.Float64() * l.Expected().Seconds() * float64(len(l.Quantiles)-1)
	i := 0
	for ; i < len(l.Quantiles)-2; i++ {
		weight := (l.Quantiles[i].Seconds() + l.Quantiles[i+1].Seconds()) / 2
		if u < weight {
			break
		}
		u -= weight
	}
	a, b := l.Quantiles[i].Seconds(), l.Quantiles[i+1].Seconds()
	whole := math.Sqrt(a*a + rng.Float64()*(b*b-a*a))
	return seconds(whole * rng.Float64())
}

// Expected returns the mean E[T].
func (l Lifetime) Expected() time.Duration {
	if len(l.Quantiles) == 0 {
		return l.Mean
	}
	var sum float64
	for i := range l.Quantiles[1:] {
		sum += (l.Quantiles[i].Seconds() + l.Quantiles[i+1].Seconds()) / 2
	}
	return seconds(sum / float64(len(l.Quantiles)-1))
}

func named(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
