// Package recovery measures how long a workload is away, and how long its throughput takes to be back at its level,
// after an op that replaces its pod or changes its volume: the failover of a database, not only of a pod, and the
// warm-up of its caches with it.
package recovery

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// Share of the level before the op that is recovery, unless a query gives another.
	Share = 0.9
	// Holds is how long the throughput must be at Share before it counts as recovered, in ns.
	Holds = op.Time(5e9)
	// before is the time that the level is taken from, and fewest how many values it needs.
	before = op.Time(10e9)
	fewest = 3
)

// Disruptive reports whether the targets of ops of a kind may stop or slow down.
func Disruptive(k op.Kind) bool {
	switch k {
	case op.Kill, op.Reattach, op.Rollout, op.Drain, op.Resize, op.Restore, op.Modify:
		return true
	}
	return false
}

// Recovery is what one op did to the throughput of one instance. Times count from the op's start.
type Recovery struct {
	Op       int64   `json:"op"`
	Control  string  `json:"control"` // action of the op
	Kind     op.Kind `json:"kind"`
	Instance string  `json:"instance"`
	Action   string  `json:"action"` // of the instance
	Metric   string  `json:"metric"`
	Unit     string  `json:"unit"`
	Level    float64 `json:"level"` // median in the 10 s before the op
	// Serving is when the first operation was answered after a slice of the series without any; nil: there was none.
	Serving *Time `json:"serving"`
	// Recovered is when the throughput was back at a share of its level, for 5 s on average.
	Recovered Time `json:"recovered"`
}

// Time is an instant after the start of an op.
type Time struct {
	Ns      int64 `json:"ns"`
	ErrorNs int64 `json:"errorNs"` // ±: half a step of the series
	// AtLeast says that it was not seen: the next op on the instance, the end of its phase, of the workload or of the
	// recording came before, or the throughput stayed away. Ns is then a lower bound.
	AtLeast bool `json:"atLeast,omitempty"`
}

// Of returns the recoveries of all instances that have a series of throughput, in order of the ops. ws are the
// windows of all disruptive ops in order of time, and of any others; share is in (0, 1].
func Of(d *dataset.Data, ws []dataset.Window, share float64) []Recovery {
	ws = slices.DeleteFunc(slices.Clone(ws), func(w dataset.Window) bool { return !Disruptive(w.Kind) })
	var list []Recovery
	var all []curve
	for _, c := range d.Curves() {
		all = append(all, curve{Curve: c})
	}
	for _, c := range all {
		own := slices.DeleteFunc(slices.Clone(ws), func(w dataset.Window) bool { return !d.Owns(c.Instance, "", w.Target) })
		for i, w := range own {
			r, ok := c.of(d, own[i:]).after(&w, share)
			if ok && !c.takesTurns(all, w.From-before, w.From+op.Time(r.Recovered.Ns)+Holds) {
				list = append(list, r)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Recovery) int { return cmp.Compare(a.Op, b.Op) })
	return list
}

// curve is the throughput of an instance over time.
type curve struct {
	*dataset.Curve
	cut bool // it ends before the instance does
}

// takesTurns reports whether another metric of the instance has operations in [from, to) while this one has no slice: the
// tool runs its tests one after another, and the end of a test is no outage.
func (c curve) takesTurns(all []curve, from, to op.Time) bool {
	for _, other := range all {
		if other.Curve == c.Curve || other.Instance != c.Instance {
			continue
		}
		for _, p := range other.Points {
			end := p.At + other.Step
			if p.Value <= 0 || p.At < from || end > to {
				continue
			}
			i, _ := slices.BinarySearchFunc(c.Points, p.At-c.Step,
				func(x metric.Point, at op.Time) int { return cmp.Compare(x.At, at) })
			if i == len(c.Points) || c.Points[i].At >= end {
				return true
			}
		}
	}
	return false
}

// after measures what an op did; false without a level before it.
func (c curve) after(w *dataset.Window, share float64) (Recovery, bool) {
	var level []float64
	for _, p := range c.Points {
		if p.At >= max(c.From, w.From-before) && p.At+c.Step <= w.From {
			level = append(level, p.Value)
		}
	}
	if len(level) < fewest {
		return Recovery{}, false
	}
	slices.Sort(level)
	r := Recovery{Op: w.Op, Control: w.Action, Kind: w.Kind, Instance: c.Instance, Action: c.Action, Metric: c.Metric,
		Unit: c.Unit, Level: (level[(len(level)-1)/2] + level[len(level)/2]) / 2}
	if r.Level <= 0 {
		return Recovery{}, false
	}
	r.Serving = c.serving(w.From)
	r.Recovered = c.recovered(w.From, share*r.Level)
	if r.Serving != nil && r.Recovered.Ns < r.Serving.Ns { // its first slice is a whole one
		r.Recovered.Ns = r.Serving.Ns
	}
	return r, true
}

// serving finds the first operation after the first slice without any that follows from.
func (c curve) serving(from op.Time) *Time {
	last := from // until then there were operations
	for _, p := range c.Points {
		end := p.At + c.Step
		switch {
		case p.Value <= 0 || end <= from:
		case p.At <= last+c.Step/2:
			last = end
		default: // the operation is in [p.At, end)
			return &Time{Ns: int64(p.At - from + c.Step/2), ErrorNs: int64(c.Step / 2)}
		}
	}
	if away := c.Until - last; away > c.Step+Holds || c.cut && 2*away > 3*c.Step {
		return &Time{Ns: int64(c.Until - from), AtLeast: true}
	}
	return nil
}

// recovered finds the first slice from which on the throughput is at least the limit for Holds, itself and on
// average; slices that are missing count as 0.
func (c curve) recovered(from op.Time, limit float64) Time {
	below := from // the end of what is known to be below the limit
	for i, p := range c.Points {
		switch {
		case p.At < from:
			continue
		case p.At+Holds > c.Until:
			return Time{Ns: int64(below - from), AtLeast: true}
		case p.Value >= limit && c.mean(i) >= limit: // reached in the slice before
			return Time{Ns: max(0, int64(p.At-from-c.Step/2)), ErrorNs: int64(c.Step / 2)}
		}
		below = p.At + c.Step
	}
	return Time{Ns: int64(max(below, c.Until) - from), AtLeast: true}
}

// mean is the mean over Holds from a slice on.
func (c curve) mean(i int) float64 {
	from := c.Points[i].At
	sum := 0.0
	for _, p := range c.Points[i:] {
		if p.At >= from+Holds {
			break
		}
		sum += p.Value * float64(min(c.Step, from+Holds-p.At))
	}
	return sum / float64(Holds)
}
