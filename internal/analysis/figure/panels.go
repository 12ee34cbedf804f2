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
	if n := len(t.Panels); n >= FoldPanels {
		t.All = together(t.Panels)
	}
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
