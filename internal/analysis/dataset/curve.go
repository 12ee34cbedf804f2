package dataset

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Curve is the throughput of an instance over time: slices of one length, in order, none overlapping. A slice without
// operations is 0 or missing.
type Curve struct {
	Instance, Action, Metric, Unit string
	Step                           op.Time
	Points                         []metric.Point
	From, Until                    op.Time // when the instance is observed
}

// Curves are those of all instances: every rate of a tool that is no bandwidth.
func (d *Data) Curves() []*Curve {
	type key struct{ instance, metric string }
	known := map[key]*Curve{}
	var list []*Curve
	for _, s := range d.Series {
		if !isThroughput(&s.Series) || s.Step <= 0 {
			continue
		}
		k := key{s.Instance, s.Metric}
		c := known[k]
		if c == nil {
			c = &Curve{Instance: s.Instance, Action: ActionOf(s.Instance), Metric: s.Metric, Unit: s.Unit,
				Step: op.Time(s.Step), From: d.MeasuredFrom(s.Instance), Until: d.endOf(s.Instance)}
			known[k] = c
			list = append(list, c)
		}
		if c.Points == nil {
			c.Points = slices.Clip(s.Points) // shared, until it is changed
		} else {
			c.Points = append(c.Points, s.Points...)
		}
	}
	for _, c := range list {
		inOrder := func(a, b metric.Point) int { return cmp.Compare(a.At, b.At) }
		if !slices.IsSortedFunc(c.Points, inOrder) {
			c.Points = slices.SortedStableFunc(slices.Values(c.Points), inOrder)
		}
	}
	return list
}

// isThroughput reports whether a series counts operations per second that succeeded.
func isThroughput(s *metric.Series) bool {
	if s.Unit != metric.PerSecond || s.Better == metric.Lower {
		return false
	}
	operation, rate := metric.RateOf(s.Metric)
	return rate && operation != metric.CanaryRead && operation != metric.CanaryWrite || s.Kind == metric.Rate
}

// endOf is the end of an instance, or of the recording.
func (d *Data) endOf(instance string) op.Time {
	for _, i := range d.Instances {
		if i.Name == instance && i.End != nil && i.End.At.Known() {
			return i.End.At
		}
	}
	return d.End()
}
