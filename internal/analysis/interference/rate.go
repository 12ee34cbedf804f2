package interference

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// RateEffect compares the throughput of a workload's tool during and outside the ops of one action.
type RateEffect struct {
	Control string `json:"control"` // the action whose ops are in progress
	Action  string `json:"action"`  // the workload's action
	// Instance of the workload; empty: the mean of all.
	Instance string `json:"instance,omitempty"`
	Metric   string `json:"metric"`
	Unit     string `json:"unit"`
	// Own: while an op on the same volume was in progress; Bystander: while only ops on others were; Outside: while
	// none was. A slice of the series that an op touches is not Outside.
	Own       RateSide `json:"own"`
	Bystander RateSide `json:"bystander"`
	Outside   RateSide `json:"outside"`
	// Ratios of the means to that of Outside; nil with too few slices for an interval. Quantile is 0.
	OwnRatio       *Ratio `json:"ownRatio"`
	BystanderRatio *Ratio `json:"bystanderRatio"`
}

// RateSide is the mean throughput over N slices.
type RateSide struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
}

// RateEffects returns the effect of every action with ops in progress on every rate of a tool, of all instances
// together and of each, in order of control, action, metric, instance.
func RateEffects(d *dataset.Data, ops *dataset.Busy, seed uint64) []RateEffect {
	groups := map[[2]string][]*dataset.Curve{}
	for _, c := range d.Curves() {
		k := [2]string{c.Action, c.Metric}
		groups[k] = append(groups[k], c)
	}
	var effects []RateEffect
	for k, curves := range groups {
		var r *rates // only if an action is compared
		for _, control := range ops.Actions() {
			if k[0] == control {
				continue
			}
			if r == nil {
				r = newRates(d, curves)
			}
			effects = append(effects, r.effects(ops, control, seed)...)
		}
	}
	slices.SortFunc(effects, func(a, b RateEffect) int {
		return cmp.Or(cmp.Compare(a.Control, b.Control), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Metric, b.Metric),
			cmp.Compare(a.Instance, b.Instance))
	})
	return effects
}

// rates are the slices of the curves of one metric.
type rates struct {
	curves []*dataset.Curve
	ends   []int     // of each curve in the slices
	at     []op.Time // of each slice
	to     []op.Time
	values []float64
	// The slices curve by curve, and by time, those of one instant in order of their curves.
	byCurve, byTime []int32
	places          []place // of each slice, relative to the ops of an action
}

// newRates returns the slices of each curve from the first to the last that has operations, without the time of processes
// that have left nothing. One that is as long as several steps is as many slices of the same time, each with its mean.
func newRates(d *dataset.Data, curves []*dataset.Curve) *rates {
	n := 0
	for _, c := range curves {
		n += len(c.Points)
	}
	r := &rates{curves: curves, at: make([]op.Time, 0, n), to: make([]op.Time, 0, n), values: make([]float64, 0, n)}
	add := func(at, to op.Time, v float64) {
		r.at, r.to, r.values = append(r.at, at), append(r.to, to), append(r.values, v)
	}
	for _, c := range curves {
		last, unreported := op.Never, d.Unreported(c.Instance, c)
		for _, x := range c.Points {
			if x.Value <= 0 || x.At < c.From {
				continue
			}
			for ; last.Known() && last <= x.At-c.Step/2; last += c.Step { // slices without operations
				if !unreported.Overlaps(last, last+c.Step) {
					add(last, last+c.Step, 0)
				}
			}
			last = c.End(x)
			for range max(1, (last-x.At+c.Step/2)/c.Step) {
				add(x.At, last, x.Value)
			}
		}
		r.ends = append(r.ends, len(r.at))
	}
	r.byTime = stats.Order(len(r.at), func(i int) int64 { return int64(r.at[i]) })
	r.byCurve, r.places = make([]int32, len(r.at)), make([]place, len(r.at))
	for i := range r.byCurve {
		r.byCurve[i] = int32(i)
	}
	return r
}

// effects are those of an action: on all instances and, if there are several, on each.
func (r *rates) effects(ops *dataset.Busy, control string, seed uint64) (list []RateEffect) {
	begin := 0
	for k, c := range r.curves {
		of := r.byCurve[begin:r.ends[k]]
		r.divide(of, ops.Own(control, c.Instance, ""), ops.All(control))
		if e, ok := r.effect(of, of, 1, seed); ok && len(r.curves) > 1 {
			e.Instance = c.Instance
			list = append(list, e)
		}
		begin = r.ends[k]
	}
	if e, ok := r.effect(r.byCurve, r.byTime, len(r.curves), seed); ok {
		list = append(list, e)
	}
	for i := range list {
		e := &list[i]
		e.Control, e.Action, e.Metric, e.Unit = control, r.curves[0].Action, r.curves[0].Metric, r.curves[0].Unit
	}
	return list
}

// divide sets the places of the slices of an instance. mine and all are the times of the ops on its volumes and of all.
func (r *rates) divide(of []int32, mine, all dataset.Union) {
	ownOps, anyOps := dataset.Cursor{Of: mine}, dataset.Cursor{Of: all}
	for _, i := range of {
		at, to := r.at[i], r.to[i]
		switch {
		case ownOps.Overlaps(at, to):
			r.places[i] = own
		case anyOps.Overlaps(at, to):
			r.places[i] = bystander
		default:
			r.places[i] = outside
		}
	}
}

// effect is that on some slices, also given by time, of so many streams. It returns false without slices inside or
// outside the ops.
func (r *rates) effect(of, byTime []int32, streams int, seed uint64) (e RateEffect, ok bool) {
	var sides [3]RateSide
	for _, i := range of {
		sides[r.places[i]].N++
	}
	if sides[outside].N == 0 || sides[own].N+sides[bystander].N == 0 {
		return e, false
	}
	for _, i := range of {
		s := &sides[r.places[i]]
		s.Mean += r.values[i] / float64(s.N)
	}
	e.Own, e.Bystander, e.Outside = sides[own], sides[bystander], sides[outside]
	means := r.rounds(byTime, sides, max(1, streams))
	e.OwnRatio = meanRatio(means[own], means[outside], seed)
	e.BystanderRatio = meanRatio(means[bystander], means[outside], seed)
	return e, true
}

// rounds are the means, for each place, of as many successive slices as there are streams: those of one time share its
// conditions.
func (r *rates) rounds(byTime []int32, sides [3]RateSide, streams int) (means [3][]float64) {
	for p := range means {
		means[p] = make([]float64, 0, (sides[p].N+streams-1)/streams)
	}
	var n [3]int
	for _, i := range byTime {
		p := r.places[i]
		if n[p]%streams == 0 {
			means[p] = append(means[p], 0)
		}
		last := len(means[p]) - 1
		means[p][last] += r.values[i] / float64(min(streams, sides[p].N-last*streams))
		n[p]++
	}
	return means
}

func meanRatio(a, b []float64, seed uint64) *Ratio {
	r, ok := stats.MeanRatio(a, b, seed)
	if !ok || !r.Bounded() {
		return nil
	}
	return &Ratio{Value: r.Value, Low: r.Low, High: r.High}
}
