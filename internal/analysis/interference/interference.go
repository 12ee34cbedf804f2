// Package interference measures the effect of control operations on I/O: latencies
// while ops were in progress compared with the rest of the time, for the op's own
// volume and for others, and stalls with the ops that they coincide with.
package interference

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Effect compares one metric of a workload during and outside the ops of one action.
type Effect struct {
	Control string `json:"control"` // the action whose ops are in progress
	Action  string `json:"action"`  // the workload's action
	Metric  string `json:"metric"`  // "canaryWrite", "write", …
	// Own: while an op on the same volume was in progress; Bystander: while
	// only ops on others were; Outside: while none was.
	Own       Side `json:"own"`
	Bystander Side `json:"bystander"`
	Outside   Side `json:"outside"`
	// Ratios to Outside of one quantile; nil where a side has too few values, or too
	// few time steps for an interval.
	OwnRatio       *Ratio `json:"ownRatio"`
	BystanderRatio *Ratio `json:"bystanderRatio"`
}

// Side is a distribution of latencies. A quantile is nil where N is too small
// for an interval of it (stats.MinN).
type Side struct {
	N     int64  `json:"n"`
	P50Ns *int64 `json:"p50Ns"`
	P90Ns *int64 `json:"p90Ns"`
	P99Ns *int64 `json:"p99Ns"`
	MaxNs *int64 `json:"maxNs"`
}

// Quantile returns p50, p90 or p99; nil if unknown.
func (s Side) Quantile(q float64) *int64 {
	return map[float64]*int64{0.5: s.P50Ns, 0.9: s.P90Ns, 0.99: s.P99Ns}[q]
}

// Ratio of a quantile, or of means, with its 95 % block-bootstrap interval.
type Ratio struct {
	Quantile float64 `json:"quantile,omitempty"` // 0: of means
	Value    float64 `json:"value"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// Bounds are the ends of the interval as text. A bound beyond a factor of a thousand says only that the data do not
// limit the ratio on that side: "> 1000", "< 0.001".
func (r *Ratio) Bounds() (low, high string) {
	bound := func(v float64) string {
		switch {
		case v > 1000:
			return "> 1000"
		case v < 0.001:
			return "< 0.001"
		}
		return units.Count(v)
	}
	return bound(r.Low), bound(r.High)
}

// place of an I/O relative to the ops of an action.
type place uint8

const (
	outside place = iota
	bystander
	own
)

// Effects returns the effect of every action with ops in progress during I/O on every
// metric, in order of control, action, metric. An action is not compared with itself.
func Effects(d *dataset.Data, ops *dataset.Busy, seed uint64) []Effect {
	var effects []Effect
	for _, m := range groups(d) {
		var g *group // only if an action is compared
		for _, control := range ops.Actions() {
			if m.action == control {
				continue
			}
			if g == nil {
				g = m.group()
			}
			if e, ok := g.effect(ops, control, seed); ok {
				e.Control, e.Action, e.Metric = control, g.action, g.metric
				effects = append(effects, e)
			}
		}
	}
	slices.SortFunc(effects, func(a, b Effect) int {
		return cmp.Or(cmp.Compare(a.Control, b.Control), cmp.Compare(a.Action, b.Action),
			cmp.Compare(a.Metric, b.Metric))
	})
	return effects
}

// effect returns false without I/O inside or outside the ops of an action.
func (g *group) effect(ops *dataset.Busy, control string, seed uint64) (Effect, bool) {
	sides := g.divide(ops, control)
	if sides[outside].Len() == 0 || sides[own].Len()+sides[bystander].Len() == 0 {
		return Effect{}, false
	}
	return Effect{
		Own: describe(sides[own]), Bystander: describe(sides[bystander]), Outside: describe(sides[outside]),
		OwnRatio:       ratioOf(sides[own], sides[outside], seed),
		BystanderRatio: ratioOf(sides[bystander], sides[outside], seed),
	}, true
}

// RatioOf compares the highest quantile, of p99, p90 and p50, that both sides have enough values for. A side is in
// order of time. It returns nil where there is no interval.
func RatioOf(a, b []stats.Counts, seed uint64) *Ratio {
	return ratioOf(stats.StepsOf(a), stats.StepsOf(b), seed)
}

func ratioOf(a, b *stats.Steps, seed uint64) *Ratio {
	n := min(a.Total(), b.Total())
	for _, q := range []float64{0.99, 0.9, 0.5} {
		if n < stats.MinN(q) {
			continue
		}
		r, ok := stats.RatioOfSteps(a, b, q, seed)
		if !ok || !r.Bounded() {
			return nil
		}
		return &Ratio{Quantile: q, Value: r.Value, Low: r.Low, High: r.High}
	}
	return nil
}

func describe(side *stats.Steps) Side {
	s := Side{N: side.Total()}
	if s.N == 0 {
		return s
	}
	list := side.Quantiles(1, 0.5, 0.9, 0.99)
	s.MaxNs = &list[0]
	for i, q := range []struct {
		q    float64
		into **int64
	}{{0.5, &s.P50Ns}, {0.9, &s.P90Ns}, {0.99, &s.P99Ns}} {
		if s.N >= stats.MinN(q.q) {
			*q.into = &list[i+1]
		}
	}
	return s
}
