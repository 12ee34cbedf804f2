package dataset

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Curve is the throughput of an instance over time: slices in order, none overlapping. A slice without operations is 0
// or missing.
type Curve struct {
	Instance, Action, Metric, Unit string
	Step                           op.Time // length of most slices
	Points                         []metric.Point
	From, Until                    op.Time // when the instance is observed

	others map[op.Time]extent // slices of another length, by their begin
}

// extent is what is known of a slice that is not as long as the others.
type extent struct {
	end op.Time
	// coarse: it is longer; when within it the operations were is not known.
	coarse bool
	// split: it is a part of one slice of the tool, which may have had all its operations in another part.
	split bool
}

// End is the end of a slice.
func (c *Curve) End(p metric.Point) op.Time {
	if x, ok := c.others[p.At]; ok {
		return x.end
	}
	return p.At + c.Step
}

// Coarse reports whether a slice says nothing about when within it, or whether, operations ended: a tool that could not
// run wrote it late. It had them throughout, or all at its end; a part that is followed by others had any or none.
func (c *Curve) Coarse(p metric.Point) (coarse, split bool) {
	x := c.others[p.At]
	return x.coarse && p.Value > 0, x.split
}

// Curves are those of all instances: every rate of a tool that is no bandwidth.
func (d *Data) Curves() []*Curve {
	type key struct{ instance, metric string }
	known, steps := map[key]*Curve{}, map[*Curve]map[op.Time]int{}
	var list []*Curve
	for _, s := range d.Series {
		if !isThroughput(&s.Series) || s.Step <= 0 {
			continue
		}
		k := key{s.Instance, s.Metric}
		c := known[k]
		if c == nil {
			c = &Curve{Instance: s.Instance, Action: ActionOf(s.Instance), Metric: s.Metric, Unit: s.Unit,
				From: d.MeasuredFrom(s.Instance), Until: d.endOf(s.Instance)}
			known[k], steps[c] = c, map[op.Time]int{}
			list = append(list, c)
		}
		steps[c][op.Time(s.Step)] += 1 + len(s.Points)
		if c.Points == nil {
			c.Points = slices.Clip(s.Points) // shared, until it is changed
		} else {
			c.Points = append(c.Points, s.Points...)
		}
	}
	for c, of := range steps {
		c.Step = mostOften(of)
	}
	for _, s := range d.Series {
		if c := known[key{s.Instance, s.Metric}]; c != nil && s.Step > 0 {
			c.addExtents(&s.Series)
		}
	}
	for _, c := range list {
		inOrder := func(a, b metric.Point) int { return cmp.Compare(a.At, b.At) }
		if !slices.IsSortedFunc(c.Points, inOrder) {
			c.Points = slices.SortedStableFunc(slices.Values(c.Points), inOrder)
		}
		if x := d.SamplesOf(c.Instance); x != nil && len(c.others) > 0 {
			c.leaveOut(x.Idle)
		}
	}
	return list
}

// mostOften is the step with the most slices, of several the shortest.
func mostOften(steps map[op.Time]int) (step op.Time) {
	for x, n := range steps {
		if n > steps[step] || n == steps[step] && x < step {
			step = x
		}
	}
	return step
}

// addExtents notes the slices of a series with a step of its own.
func (c *Curve) addExtents(s *metric.Series) {
	if op.Time(s.Step) == c.Step {
		return
	}
	if c.others == nil {
		c.others = map[op.Time]extent{}
	}
	for _, p := range s.Points {
		c.others[p.At] = extent{end: p.At + op.Time(s.Step), coarse: metric.Late(s.Step, int64(c.Step))}
	}
}

// leaveOut takes the times in which the instance did nothing out of coarse slices: their operations were in the rest. It
// does nothing if there were operations in such a time by a slice that is not coarse: the counters do not see them.
func (c *Curve) leaveOut(idle Union) {
	for _, p := range c.Points {
		if coarse, _ := c.Coarse(p); !coarse && p.Value > 0 && len(idle.Outside(Span{p.At, c.End(p)})) == 0 {
			return
		}
	}
	points := make([]metric.Point, 0, len(c.Points))
	for _, p := range c.Points {
		coarse, _ := c.Coarse(p)
		whole := Span{p.At, c.End(p)}
		rest := idle.Outside(whole)
		if !coarse || len(rest) == 0 || rest[0] == whole {
			points = append(points, p)
			continue
		}
		busy := op.Time(0)
		for _, s := range rest {
			busy += s.To - s.From
		}
		value, at := p.Value*float64(whole.To-whole.From)/float64(busy), whole.From
		for i, s := range append(rest, Span{whole.To, whole.To}) {
			if s.From > at {
				points, c.others[at] = append(points, metric.Point{At: at}), extent{end: s.From}
			}
			if at = s.To; s.To > s.From {
				points = append(points, metric.Point{At: s.From, Value: value})
				c.others[s.From] = extent{end: s.To, split: i < len(rest)-1,
					coarse: len(rest) > 1 || metric.Late(int64(s.To-s.From), int64(c.Step))}
			}
		}
	}
	c.Points = points
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
