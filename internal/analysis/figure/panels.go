package figure

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

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
		if len(s.Points) > 0 {
			lineOf(&at(s.Instance).Bandwidth, name, len(s.Points)).addRates(s.Points, op.Time(s.Step))
		}
	}
	for _, p := range byName {
		p.sortByTime()
	}
	for _, h := range d.Slices {
		if v, ok := h.Hist.Quantile(0.99); ok {
			l := lineOf(&at(h.Instance).Latency, h.Metric+" p99", 1)
			l.Points = append(l.Points, Point{h.From, h.To, float64(v)})
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
	if n := len(t.Panels); n >= FoldPanels {
		t.All = together(t.Panels)
	}
	if n := len(t.Panels); n > maxPanels {
		t.Panels, t.Omitted = slices.Clone(t.Panels[:maxPanels]), n-maxPanels
	}
}

// sortByTime sorts the points of a tool's series: slices of another length are series of their own.
func (p *Panel) sortByTime() {
	sort := func(lines []Line) {
		for _, l := range lines {
			slices.SortStableFunc(l.Points, func(a, b Point) int { return cmp.Compare(a.From, b.From) })
		}
	}
	sort(p.Bandwidth)
	for _, b := range p.Values {
		sort(b.Lines)
	}
}

// reduce reduces the lines of panels to a drawable number of points.
func (t *Timeline) reduce() {
	most := maxPoints
	if t.All != nil {
		most = foldedPoints
	}
	for _, p := range t.Panels {
		t.Joined = max(t.Joined, reduce(p.Bandwidth, most, mean), reduce(p.Latency, most, greatest))
		for _, b := range p.Values {
			t.Joined = max(t.Joined, reduce(b.Lines, most, mean))
		}
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
			l := lineOf(&b.Lines, s.Metric, len(s.Points))
			for i, x := range s.Points {
				to := x.At + op.Time(s.Step)
				if s.Step == 0 && i+1 < len(s.Points) {
					to = s.Points[i+1].At
				}
				l.Points = append(l.Points, Point{x.At, to, x.Value})
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
