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

// rateSlice is one of a curve, with its instant.
type rateSlice struct {
	at    op.Time
	value float64
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
	for _, control := range ops.Actions() {
		for k, curves := range groups {
			if k[0] != control {
				effects = append(effects, rateEffects(ops, control, curves, seed)...)
			}
		}
	}
	slices.SortFunc(effects, func(a, b RateEffect) int {
		return cmp.Or(cmp.Compare(a.Control, b.Control), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Metric, b.Metric),
			cmp.Compare(a.Instance, b.Instance))
	})
	return effects
}

// rateEffects are those of one metric: of all instances and, if there are several, of each.
func rateEffects(ops *dataset.Busy, control string, curves []*dataset.Curve, seed uint64) (list []RateEffect) {
	var all, sides [3][]rateSlice
	for _, c := range curves {
		sides = divide(sides, ops.Own(control, c.Instance, ""), ops.All(control), c)
		for p := range sides {
			if n := len(sides[p]); len(all[p])+n > cap(all[p]) { // append alone copies several times as much
				all[p] = slices.Grow(all[p], max(n, len(all[p])))
			}
			all[p] = append(all[p], sides[p]...)
		}
		if e, ok := rateEffect(sides, 1, seed); ok && len(curves) > 1 {
			e.Instance = c.Instance
			list = append(list, e)
		}
	}
	if e, ok := rateEffect(all, len(curves), seed); ok {
		list = append(list, e)
	}
	for i := range list {
		e := &list[i]
		e.Control, e.Action, e.Metric, e.Unit = control, curves[0].Action, curves[0].Metric, curves[0].Unit
	}
	return list
}

// divide assigns the slices of an instance, from the first to the last that has operations, to their places, in the
// memory of sides. mine and all are the times of the ops on its volumes and of all.
func divide(sides [3][]rateSlice, mine, all dataset.Union, c *dataset.Curve) [3][]rateSlice {
	for p := range sides {
		sides[p] = sides[p][:0]
	}
	last := op.Never
	ownOps, anyOps := dataset.Cursor{Of: mine}, dataset.Cursor{Of: all}
	add := func(at op.Time, value float64) {
		p := outside
		switch {
		case ownOps.Overlaps(at, at+c.Step):
			p = own
		case anyOps.Overlaps(at, at+c.Step):
			p = bystander
		}
		sides[p] = append(sides[p], rateSlice{at, value})
	}
	for _, x := range c.Points {
		if x.Value <= 0 || x.At < c.From {
			continue
		}
		for at := last + c.Step; last.Known() && at <= x.At-c.Step/2; at += c.Step { // slices without operations
			add(at, 0)
		}
		add(x.At, x.Value)
		last = x.At
	}
	return sides
}

// rateEffect returns false without slices inside or outside the windows.
func rateEffect(sides [3][]rateSlice, streams int, seed uint64) (e RateEffect, ok bool) {
	if len(sides[outside]) == 0 || len(sides[own])+len(sides[bystander]) == 0 {
		return e, false
	}
	e.Own, e.Bystander, e.Outside = rateSide(sides[own]), rateSide(sides[bystander]), rateSide(sides[outside])
	e.OwnRatio = meanRatio(sides[own], sides[outside], streams, seed)
	e.BystanderRatio = meanRatio(sides[bystander], sides[outside], streams, seed)
	return e, true
}

func rateSide(list []rateSlice) RateSide {
	s := RateSide{N: len(list)}
	for _, x := range list {
		s.Mean += x.value / float64(len(list))
	}
	return s
}

// rounds are the means of as many successive slices as there are streams: those of one time share its conditions.
func rounds(list []rateSlice, streams int) (means []float64) {
	order := stats.Order(len(list), func(i int) int64 { return int64(list[i].at) })
	for together := range slices.Chunk(order, max(1, streams)) {
		mean := 0.0
		for _, i := range together {
			mean += list[i].value / float64(len(together))
		}
		means = append(means, mean)
	}
	return means
}

func meanRatio(a, b []rateSlice, streams int, seed uint64) *Ratio {
	r, ok := stats.MeanRatio(rounds(a, streams), rounds(b, streams), seed)
	if !ok || !r.Bounded() {
		return nil
	}
	return &Ratio{Value: r.Value, Low: r.Low, High: r.High}
}
