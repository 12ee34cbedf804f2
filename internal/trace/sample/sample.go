// Package sample generates traces of a cluster in equilibrium: containers with a volume each arrive at random and have
// random lifetimes.
//
// The defaults are the estimate of Merenstein et al., "The Case for Benchmarking Control Operations in Cloud Native
// Storage" (HotStorage '20), section 2: 1000 hosts with a median of 30 containers, 54 % of which live up to 5 minutes,
// have 1000·30/(5·60) = 100 creations per second. The estimate takes 5 minutes for the mean; both hold for a Weibull
// distribution of shape 2 and mean 300 s, where P(T ≤ 300 s) = 1 − exp(−π/4) = 54.4 %.
package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cnsbench/cnsbench/internal/trace"
)

// Options configure a sample.
type Options struct {
	Hosts, PerHost int           // on average
	Mean           time.Duration // lifetime of a container
	Shape          float64       // of the Weibull distribution; 1: exponential
	Length         time.Duration // of the trace
	// Snapshots is the share of volumes with a snapshot, taken at a random time of their lives. SnapshotMean
	// is the mean lifetime of a snapshot, which has the same type of distribution.
	Snapshots    float64
	SnapshotMean time.Duration
	Seed         uint64
}

// Defaults are the options of the committed sample.
func Defaults() Options {
	return Options{Hosts: 1000, PerHost: 30, Mean: 5 * time.Minute, Shape: 2, Length: time.Minute,
		Snapshots: 0.05, SnapshotMean: time.Minute, Seed: 42}
}

// PerSecond returns the rate of creations, N/E[T] by Little's law.
func (o Options) PerSecond() float64 { return float64(o.Hosts*o.PerHost) / o.Mean.Seconds() }

// Generate generates a trace. Creations are a Poisson process that starts so early that practically none of
// its first containers exists at time 0, so that the trace starts in equilibrium: the number of containers,
// and that of each host, has a Poisson distribution (M/G/∞). Objects that exist at time 0 have a creation
// before it, in whole seconds like the creationTimestamp of a cluster.
func Generate(o Options) ([]trace.Record, error) {
	if o.Hosts <= 0 || o.PerHost <= 0 || o.Mean <= 0 || o.Length <= 0 || !(o.Shape >= 0.2) ||
		o.Snapshots < 0 || o.Snapshots > 1 || o.SnapshotMean <= 0 {
		return nil, errors.New("invalid options: hosts, containers, lifetimes and the length must be more than 0, " +
			"the shape at least 0.2, and the share of snapshots from 0 to 1")
	}
	g := &generator{Options: o, rng: rand.New(rand.NewPCG(o.Seed, 0x73616d706c65))}
	// A container that is created earlier exists at time 0 with a probability of at most 10⁻⁹.
	before := g.scale(o.Mean.Seconds()) * math.Pow(20.7, 1/o.Shape)
	for t := -before; ; {
		t += g.rng.ExpFloat64() / o.PerSecond()
		if t >= o.Length.Seconds() {
			break
		}
		g.container(t)
	}
	g.records = append(g.records, trace.Record{Time: int64(o.Length), Op: trace.End, Duration: trace.Unknown})
	trace.Sort(g.records)
	return g.records, nil
}

type generator struct {
	Options
	rng       *rand.Rand
	records   []trace.Record
	n, copies int
}

// scale returns the scale parameter of a Weibull distribution with this mean.
func (g *generator) scale(mean float64) float64 { return mean / math.Gamma(1+1/g.Shape) }

func (g *generator) lifetime(mean time.Duration) float64 {
	return g.scale(mean.Seconds()) * math.Pow(g.rng.ExpFloat64(), 1/g.Shape)
}

// container adds a volume that arrives at t, and perhaps its snapshot.
func (g *generator) container(t float64) {
	life, host := g.lifetime(g.Mean), g.rng.IntN(g.Hosts)
	var snapshot []float64
	if g.rng.Float64() < g.Snapshots {
		at := t + life*g.rng.Float64()
		snapshot = []float64{at, at + g.lifetime(g.SnapshotMean)}
	}
	if t+life < 0 && (snapshot == nil || snapshot[1] < 0) {
		return
	}
	g.n++
	name := fmt.Sprintf("v%d", g.n)
	volume := trace.Record{Op: trace.Create, Kind: trace.Volume, Object: name, Class: "standard", Size: 1 << 30,
		Node: fmt.Sprintf("host-%d", host)}
	if t+life >= 0 {
		g.lives(volume, t, t+life)
	}
	if snapshot != nil && snapshot[1] >= 0 {
		g.copies++
		g.lives(trace.Record{Op: trace.Snapshot, Kind: trace.Snapshots, Object: fmt.Sprintf("s%d", g.copies),
			Source: name},
			snapshot[0], snapshot[1])
	}
}

// lives adds the creation of an object and, within the trace, its deletion.
func (g *generator) lives(r trace.Record, from, to float64) {
	length := g.Length.Seconds()
	if from < 0 {
		from = math.Floor(from)
	}
	r.Duration = trace.Unknown
	if r.Time = int64(from * 1e9); from < length {
		g.records = append(g.records, r)
	}
	if to < length && from < length {
		g.records = append(g.records, trace.Record{Time: int64(to * 1e9), Op: trace.Delete, Kind: r.Kind,
			Object: r.Object, Duration: trace.Unknown})
	}
}
