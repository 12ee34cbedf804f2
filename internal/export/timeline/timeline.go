// Package timeline lists what a bundle has measured of workloads over time: the series of
// their parsers, latencies of time slices, and rates from the counters of their agents.
package timeline

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Where a line is from.
const (
	Tool    = "tool"    // a series of the workload's parser
	Slices  = "slices"  // a latency of each time slice of the tool
	Sampled = "sampled" // from the counters that the agent read
)

// Line is a metric of one instance over time. Points are in order of At.
type Line struct {
	bundle.Labels
	Metric, Unit string
	Source       string
	Points       []Point
}

// Point is a value that holds over [At, At+Step), in ns; Step 0: at an instant.
type Point struct {
	At    op.Time
	Step  int64
	Value float64
}

// End returns the instant until which the point holds.
func (p Point) End() op.Time { return p.At + op.Time(p.Step) }

// Of returns the lines of a bundle, with its samples, in order of instance, metric and phase. A quantile of a
// time slice with too few values for it (stats.MinN) has no point.
func Of(d *dataset.Data, samples iter.Seq2[op.Sample, error]) ([]Line, error) {
	g := gather{index: map[key]int{}}
	for _, s := range d.Series {
		l := g.line(s.Labels, s.Metric, s.Unit, Tool)
		for _, p := range s.Points {
			l.Points = append(l.Points, Point{At: p.At, Step: s.Step, Value: p.Value})
		}
	}
	for i := range d.Slices {
		g.slice(&d.Slices[i])
	}
	last := map[string]op.Sample{}
	for s, err := range samples {
		if err != nil {
			return nil, err
		}
		if before, ok := last[s.Instance]; ok && s.At > before.At {
			g.sample(before, s)
		}
		last[s.Instance] = s
	}
	return g.sorted(), nil
}

type key struct {
	bundle.Labels
	metric, source string
}

type gather struct {
	lines []Line
	index map[key]int
}

// line returns the line of a metric; it is valid until the next call.
func (g *gather) line(of bundle.Labels, name, unit, source string) *Line {
	k := key{of, name, source}
	i, ok := g.index[k]
	if !ok {
		i = len(g.lines)
		g.index[k] = i
		g.lines = append(g.lines, Line{Labels: of, Metric: name, Unit: unit, Source: source})
	}
	return &g.lines[i]
}

func (g *gather) slice(h *bundle.HistogramSlice) {
	if h.To <= h.From || h.Hist.N() == 0 {
		return
	}
	add := func(suffix string, v int64) {
		l := g.line(h.Labels, h.Metric+suffix, h.Unit, Slices)
		l.Points = append(l.Points, Point{At: h.From, Step: int64(h.To - h.From), Value: float64(v)})
	}
	for _, q := range []struct {
		suffix string
		q      float64
	}{{".p50", 0.5}, {".p99", 0.99}} {
		if v, ok := h.Hist.Quantile(q.q); ok && h.Hist.N() >= stats.MinN(q.q) {
			add(q.suffix, v)
		}
	}
	add(".max", h.Hist.Max())
}

// counters are the rates between two readings of an agent.
var counters = []struct {
	name, unit string
	value      func(op.Sample) int64
	per        float64 // in ns: the time over which the unit counts
}{
	{"read.bandwidth", metric.BytesPerSecond, func(s op.Sample) int64 { return s.ReadBytes }, 1e9},
	{"write.bandwidth", metric.BytesPerSecond, func(s op.Sample) int64 { return s.WriteBytes }, 1e9},
	{"read.iops", metric.PerSecond, func(s op.Sample) int64 { return s.ReadOps }, 1e9},
	{"write.iops", metric.PerSecond, func(s op.Sample) int64 { return s.WriteOps }, 1e9},
	{"cpu", "CPUs", func(s op.Sample) int64 { return s.CPUNanos }, 1},
}

// sample adds the rates between two readings of an instance. A counter that went back was
// read of another process, and gives none.
func (g *gather) sample(a, b op.Sample) {
	of := bundle.Labels{Instance: b.Instance, Action: dataset.ActionOf(b.Instance)}
	step := int64(b.At - a.At)
	for _, c := range counters {
		if d := c.value(b) - c.value(a); d >= 0 {
			l := g.line(of, c.name, c.unit, Sampled)
			l.Points = append(l.Points, Point{At: a.At, Step: step, Value: float64(d) * c.per / float64(step)})
		}
	}
	if b.RSSBytes > 0 {
		l := g.line(of, "rss", metric.Bytes, Sampled)
		l.Points = append(l.Points, Point{At: b.At, Value: float64(b.RSSBytes)})
	}
}

// sorted returns the lines, without those of counters that never counted.
func (g *gather) sorted() []Line {
	lines := slices.DeleteFunc(g.lines, func(l Line) bool {
		return l.Source == Sampled && !slices.ContainsFunc(l.Points, func(p Point) bool { return p.Value != 0 })
	})
	for _, l := range lines {
		slices.SortStableFunc(l.Points, func(a, b Point) int { return cmp.Compare(a.At, b.At) })
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(strings.Compare(a.Instance, b.Instance), strings.Compare(a.Source, b.Source),
			strings.Compare(a.Metric, b.Metric), cmp.Compare(a.Phase, b.Phase))
	})
	return lines
}
