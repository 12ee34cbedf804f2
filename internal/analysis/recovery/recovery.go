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
	// StepNs is the length of the slices of its series. A pause of less than two of them may not be seen.
	StepNs int64 `json:"stepNs"`
	// Serving is when the first operation was answered after a slice of the series without any; nil: there was none.
	Serving *Time `json:"serving"`
	// Recovered is when the throughput was back at a share of its level, for 5 s on average.
	Recovered Time `json:"recovered"`
}

// Time is an instant after the start of an op.
type Time struct {
	Ns      int64 `json:"ns"`
	ErrorNs int64 `json:"errorNs"` // ±: half a step of the series
	// LowNs is set where a slice of the tool was longer than its step: when within it the operations were is not known,
	// so that the time is between LowNs and Ns.
	LowNs *int64 `json:"lowNs,omitempty"`
	// AtLeast says that it was not seen: the next op on the instance, the end of its phase, of the workload or of the
	// recording came before, or the throughput stayed away. LowNs is then a lower bound; without it, Ns is.
	AtLeast bool `json:"atLeast,omitempty"`
}

// Of returns the recoveries of all instances that have a series of throughput, in order of the ops. ws are the
// windows of all disruptive ops in order of time, and of any others; share is in (0, 1].
func Of(d *dataset.Data, ws []dataset.Window, share float64) []Recovery {
	ws = slices.DeleteFunc(slices.Clone(ws), func(w dataset.Window) bool { return !Disruptive(w.Kind) })
	var list []Recovery
	var all []curve
	for _, c := range d.Curves() {
		all = append(all, curve{Curve: c, unreported: d.Unreported(c.Instance, c)})
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

// curve is the throughput of an instance over time. What coarse slices do not say is taken for the best, or for the worst.
type curve struct {
	*dataset.Curve
	worst      bool
	unreported dataset.Union
	cut        bool // it ends before the instance does
}

// takesTurns reports whether another metric of the instance has operations in [from, to) while this one has no slice: the
// tool runs its tests one after another, and the end of a test is no outage.
func (c curve) takesTurns(all []curve, from, to op.Time) bool {
	for _, other := range all {
		if other.Curve == c.Curve || other.Instance != c.Instance {
			continue
		}
		for _, p := range other.Points {
			end := other.End(p)
			if p.Value <= 0 || p.At < from || end > to {
				continue
			}
			i, _ := slices.BinarySearchFunc(c.Points, p.At-c.Step,
				func(x metric.Point, at op.Time) int { return cmp.Compare(x.At, at) })
			if i > 0 && c.End(c.Points[i-1]) > p.At {
				continue
			}
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
		if p.At >= max(c.From, w.From-before) && c.End(p) <= w.From {
			level = append(level, p.Value)
		}
	}
	if len(level) < fewest {
		return Recovery{}, false
	}
	slices.Sort(level)
	r := Recovery{Op: w.Op, Control: w.Action, Kind: w.Kind, Instance: c.Instance, Action: c.Action, Metric: c.Metric,
		Unit: c.Unit, StepNs: int64(c.Step), Level: (level[(len(level)-1)/2] + level[len(level)/2]) / 2}
	if r.Level <= 0 {
		return Recovery{}, false
	}
	r.Serving, r.Recovered = c.times(w.From, share*r.Level)
	return r, true
}

// times are those of Recovery, for operations that came as soon, or as late, as coarse slices allow.
func (c curve) times(from op.Time, limit float64) (*Time, Time) {
	one := func(worst bool) (*Time, Time) {
		c.worst = worst
		s, r := c.serving(from), c.recovered(from, limit)
		if s != nil && r.Ns < s.Ns { // its first slice is a whole one
			r.Ns, r.ErrorNs = s.Ns, s.ErrorNs
		}
		return s, r
	}
	serving, recovered := one(false)
	latestServing, latest := one(true)
	return between(serving, latestServing), *between(&recovered, &latest)
}

// serving finds the first operation after the first slice without any that follows from.
func (c curve) serving(from op.Time) *Time {
	last := from // until then there were operations
	for _, p := range c.Points {
		end := c.End(p)
		coarse, split := c.Coarse(p)
		switch {
		case p.Value <= 0 || end <= from || c.worst && split:
		case c.worst && coarse && end > last+c.Step:
			return &Time{Ns: int64(min(end, c.Until) - from), AtLeast: c.cut && end > c.Until}
		case p.At <= last+c.Step/2:
			last = end
		case coarse:
			return &Time{Ns: int64(p.At - from)}
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
		coarse, _ := c.Coarse(p)
		switch {
		case coarse && c.End(p) > from && p.At+Holds <= c.Until:
			if at := max(from, c.soonest(p, limit)); !c.worst && at < c.End(p) && c.mean(i, at) >= limit {
				return Time{Ns: int64(at - from)}
			}
		case p.At < from:
			continue
		case p.At+Holds > c.Until:
			return Time{Ns: int64(below - from), AtLeast: true}
		case p.Value >= limit && c.mean(i, p.At) >= limit: // reached in the slice before
			return Time{Ns: max(0, int64(p.At-from-c.Step/2)), ErrorNs: int64(c.Step / 2)}
		}
		below = c.End(p)
	}
	return Time{Ns: int64(max(below, c.Until) - from), AtLeast: true}
}

// mean is the mean over Holds from an instant on, with all operations of the slice i. Of a coarse slice that lasts for
// longer it has all, or none.
func (c curve) mean(i int, from op.Time) float64 {
	sum, until := 0.0, from+Holds
	for _, p := range c.Points[i:] {
		if p.At >= until {
			break
		}
		within := min(c.End(p), until) - p.At
		if coarse, _ := c.Coarse(p); coarse && c.End(p) > until {
			if within = c.End(p) - p.At; c.worst {
				within = 0
			}
		}
		sum += p.Value * float64(within)
	}
	return sum / float64(Holds)
}
