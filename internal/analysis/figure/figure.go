// Package figure computes the data of the report's figures: distribution functions and
// timelines, reduced to a drawable number of points.
package figure

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Limits of what is drawn.
const (
	steps     = 400  // of a distribution function
	buckets   = 800  // of a canary's line
	maxBars   = 1500 // in one lane; more are merged with their neighbours
	maxRows   = 6    // of bars beside each other in a lane
	maxPanels = 12   // instances in the timeline
	maxBands  = 3    // units of other metrics in a panel
	maxLines  = 4    // of such a unit
)

// Figures of one run.
type Figures struct {
	CDFs     []CDF
	Timeline Timeline
}

// CDF is the distribution of one action's latencies. It stays below 1 where ops did not
// end or start.
type CDF struct {
	Action            string
	N                 int64
	Response, Service []stats.Step
}

// Timeline of a run: lanes of control operations, and a panel for each instance.
type Timeline struct {
	From, To op.Time
	Lanes    []Lane
	Panels   []Panel
	Omitted  int // instances without a panel
}

// Lane has the ops of one action as bars.
type Lane struct {
	Action string
	Bars   []Bar // in order of From
	Rows   int   // bars that overlap lie in different rows
}

// Bar is an op, or several neighbours (N > 1) of one outcome.
type Bar struct {
	From, To op.Time
	Row, N   int
	Name     string // "snapshots/7"
	Target   string
	Outcome  op.Outcome
}

// Panel is one instance: I/O completed, and latencies, over time.
type Panel struct {
	Instance  string
	Bandwidth []Line // bytes per second
	Values    []Band // of other metrics
	Latency   []Line // ns
	// Omitted are the metrics without a line.
	Omitted []string
}

// Band has lines of one unit.
type Band struct {
	Unit  string
	Lines []Line
}

// Lines returns all lines of a panel.
func (p *Panel) Lines() []Line {
	lines := slices.Clone(p.Bandwidth)
	for _, b := range p.Values {
		lines = append(lines, b.Lines...)
	}
	return append(lines, p.Latency...)
}

// Line is a value over time; it has gaps where there are no points.
type Line struct {
	Name   string
	Points []Point
}

// Point holds over [From, To].
type Point struct {
	From, To op.Time
	Value    float64
}

// Make computes the figures of a bundle.
func Make(b *bundle.Bundle) (*Figures, error) {
	d, err := dataset.Read(b)
	if err != nil {
		return nil, fmt.Errorf("figures of %s: %w", b.Dir, err)
	}
	f := &Figures{}
	if err := f.readOps(d); err != nil {
		return nil, fmt.Errorf("figures of %s: %w", b.Dir, err)
	}
	f.Timeline.panels(d)
	f.Timeline.addQueries(d)
	f.Timeline.extend(d)
	return f, nil
}

type tally struct {
	name              string
	response, service stats.Sample
	bars              []Bar
}

// readOps reads the ops once, for distributions and lanes.
func (f *Figures) readOps(d *dataset.Data) error {
	byAction := map[string]*tally{}
	end := d.End()
	for o, err := range d.Bundle.Ops() {
		if err != nil {
			return err
		}
		t := byAction[o.Action]
		if t == nil {
			t = &tally{name: o.Action}
			byAction[o.Action] = t
		}
		t.add(&o, end)
	}
	for _, name := range slices.Sorted(maps.Keys(byAction)) {
		t := byAction[name]
		if t.response.Known() > 0 {
			f.CDFs = append(f.CDFs, CDF{Action: t.name, N: t.response.N(), Response: t.response.CDF(steps),
				Service: t.service.CDF(steps)})
		}
		f.Timeline.Lanes = append(f.Timeline.Lanes, lane(t.name, t.bars))
	}
	return nil
}

func (t *tally) add(o *op.Op, end op.Time) {
	dataset.AddLatencies(o, &t.response, &t.service)
	bar := Bar{From: o.Started, To: o.Ended, N: 1, Name: fmt.Sprintf("%s/%d", o.Action, o.Instance), Target: o.Target,
		Outcome: o.Outcome}
	if !bar.From.Known() {
		bar.From, bar.To = o.Intended, o.Intended
	}
	if !bar.To.Known() {
		bar.To = end
	}
	t.bars = append(t.bars, bar)
}

// lane places overlapping bars in the first free row and merges bars where there are too
// many.
func lane(action string, bars []Bar) Lane {
	slices.SortStableFunc(bars, func(a, b Bar) int { return cmp.Compare(a.From, b.From) })
	l := Lane{Action: action, Bars: thin(bars), Rows: 1}
	var free []op.Time // when each row is free again
	for i := range l.Bars {
		b := &l.Bars[i]
		row := slices.IndexFunc(free, func(t op.Time) bool { return t <= b.From })
		switch {
		case row >= 0:
		case len(free) < maxRows:
			row = len(free)
			free = append(free, 0)
		default: // overlap in the row that is free first
			row = slices.Index(free, slices.Min(free))
		}
		b.Row, free[row] = row, max(free[row], b.To)
	}
	l.Rows = max(1, len(free))
	return l
}

// thin merges bars of one outcome that begin in the same bin.
func thin(bars []Bar) []Bar {
	if len(bars) <= maxBars {
		return bars
	}
	bin := (bars[len(bars)-1].From-bars[0].From)/(maxBars/2) + 1
	type key struct {
		bin     op.Time
		outcome op.Outcome
	}
	index := map[key]int{}
	var out []Bar
	for _, b := range bars {
		k := key{(b.From - bars[0].From) / bin, b.Outcome}
		i, ok := index[k]
		if !ok {
			index[k] = len(out)
			out = append(out, b)
			continue
		}
		out[i].N++
		out[i].To = max(out[i].To, b.To)
	}
	return out
}

// from returns the first instant of a panel.
func (p *Panel) from() op.Time {
	at := op.Time(math.MaxInt64)
	for _, l := range p.Lines() {
		at = min(at, l.Points[0].From)
	}
	return at
}

// panels gathers lines by instance.
func (t *Timeline) panels(d *dataset.Data) {
	byName := map[string]*Panel{}
	at := func(instance string) *Panel {
		if byName[instance] == nil {
			byName[instance] = &Panel{Instance: instance}
		}
		return byName[instance]
	}
	for _, s := range d.Series {
		name, ok := strings.CutSuffix(s.Metric, metric.Bandwidth)
		if !ok || name != metric.Read && name != metric.Write && !moves(d, s, name) {
			if s.Kind != "" && len(s.Points) > 0 {
				at(s.Instance).addValues(s)
			}
			continue
		}
		for _, p := range s.Points {
			appendRate(&at(s.Instance).Bandwidth, name, Point{p.At, p.At + op.Time(s.Step), p.Value})
		}
	}
	for _, h := range d.Slices {
		if v, ok := h.Hist.Quantile(0.99); ok {
			appendTo(&at(h.Instance).Latency, h.Metric+" p99", Point{h.From, h.To, float64(v)})
		}
	}
	for _, c := range d.Canaries {
		for _, write := range []bool{false, true} {
			if points := worst(c, write); len(points) > 0 {
				p := at(c.Instance)
				p.Latency = append(p.Latency, Line{Name: canaryName(d, c, write), Points: points})
			}
		}
	}
	for _, p := range byName {
		t.Panels = append(t.Panels, *p)
	}
	slices.SortFunc(t.Panels, func(a, b Panel) int {
		if d.Bundle.Run.ObjectsOnly() { // its stages follow one another
			return cmp.Or(cmp.Compare(a.from(), b.from()), cmp.Compare(a.Instance, b.Instance))
		}
		return cmp.Or(cmp.Compare(len(a.Instance), len(b.Instance)), cmp.Compare(a.Instance, b.Instance))
	})
	if n := len(t.Panels); n > maxPanels {
		t.Panels, t.Omitted = t.Panels[:maxPanels], n-maxPanels
	}
}

// addValues adds a declared series of the tool to the band of its unit.
func (p *Panel) addValues(s bundle.Series) {
	i := slices.IndexFunc(p.Values, func(b Band) bool { return b.Unit == s.Unit })
	if i < 0 && len(p.Values) < maxBands {
		i = len(p.Values)
		p.Values = append(p.Values, Band{Unit: s.Unit})
	}
	if i >= 0 {
		b := &p.Values[i]
		known := slices.ContainsFunc(b.Lines, func(l Line) bool { return l.Name == s.Metric })
		if known || len(b.Lines) < maxLines {
			for i, x := range s.Points {
				to := x.At + op.Time(s.Step)
				if s.Step == 0 && i+1 < len(s.Points) {
					to = s.Points[i+1].At
				}
				appendTo(&b.Lines, s.Metric, Point{x.At, to, x.Value})
			}
			return
		}
	}
	if !slices.Contains(p.Omitted, s.Metric) {
		p.Omitted = append(p.Omitted, s.Metric)
	}
}

// moves reports whether a bandwidth is above 0 and its operation has latencies in the panel.
func moves(d *dataset.Data, s bundle.Series, name string) bool {
	return slices.ContainsFunc(s.Points, func(p metric.Point) bool { return p.Value > 0 }) &&
		slices.ContainsFunc(d.Slices, func(h bundle.HistogramSlice) bool {
			return h.Instance == s.Instance &&
				h.Metric == name
		})
}

// canaryName includes the volume where an instance has several.
func canaryName(d *dataset.Data, c dataset.Canary, write bool) string {
	name := "canary read max"
	if write {
		name = "canary write max"
	}
	for _, x := range d.Canaries {
		if x.Instance == c.Instance && x.Volume != c.Volume {
			return name + " " + c.Volume
		}
	}
	return name
}

func appendTo(lines *[]Line, name string, p Point) {
	i := slices.IndexFunc(*lines, func(l Line) bool { return l.Name == name })
	if i < 0 {
		i = len(*lines)
		*lines = append(*lines, Line{Name: name})
	}
	(*lines)[i].Points = append((*lines)[i].Points, p)
}

// appendRate appends a rate. One over a very short time, such as a work's last, is merged
// with the one before: alone it would be a spike.
func appendRate(lines *[]Line, name string, p Point) {
	if i := slices.IndexFunc(*lines, func(l Line) bool { return l.Name == name }); i >= 0 {
		last := &(*lines)[i].Points[len((*lines)[i].Points)-1]
		if length, more := float64(last.To-last.From), float64(p.To-p.From); p.From == last.To && more < length/20 {
			last.Value, last.To = (last.Value*length+p.Value*more)/(length+more), p.To
			return
		}
	}
	appendTo(lines, name, p)
}

// worst returns the greatest response of the canary in each bin.
func worst(c dataset.Canary, write bool) []Point {
	var ios []op.CanaryIO
	for _, io := range c.IOs {
		if io.Write == write && io.Ended.Known() && io.Errno == 0 {
			ios = append(ios, io)
		}
	}
	if len(ios) == 0 {
		return nil
	}
	bin := (ios[len(ios)-1].Intended-ios[0].Intended)/buckets + 1
	var points []Point
	for _, io := range ios {
		v, n := float64(io.Ended-io.Intended), len(points)
		if n > 0 && io.Intended < points[n-1].From+bin {
			points[n-1].Value = max(points[n-1].Value, v)
			continue
		}
		points = append(points, Point{io.Intended, io.Intended + bin, v})
	}
	return points
}

// extend sets the time span of all bars and points.
func (t *Timeline) extend(d *dataset.Data) {
	first := true
	add := func(from, to op.Time) {
		if first {
			t.From, t.To, first = from, to, false
		}
		t.From, t.To = min(t.From, from), max(t.To, to)
	}
	for _, l := range t.Lanes {
		for _, b := range l.Bars {
			add(b.From, b.To)
		}
	}
	for _, p := range t.Panels {
		for _, l := range p.Lines() {
			for _, x := range l.Points {
				add(x.From, x.To)
			}
		}
	}
	if d.Bundle.Run.BarrierAt.Known() && !first {
		add(d.Bundle.Run.BarrierAt, d.Bundle.Run.BarrierAt)
	}
}
