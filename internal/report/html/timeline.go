package html

import (
	"fmt"
	"math"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
)

// Measures of the timeline in pixels.
const (
	width      = 1180.0
	leftMargin = 120.0
	rightEdge  = width - 16
	rowHeight  = 9.0
	laneGap    = 10.0
	panelTop   = 30.0 // title and legend
	bandHeight = 64.0 // throughput
	lateHeight = 96.0 // latency
	panelGap   = 14.0
	// captionHeight is that of the sentence that explains a stall.
	captionHeight = 18.0
	axisHeight    = 34.0
)

// timeline is a figure with one time axis.
type timeline struct {
	svg
	x      scale
	stalls []interference.Stall
	y      float64        // current offset from the top
	linked map[int64]bool // ops with an entry of their own
	shaded map[int]bool   // stalls that are drawn, by their index
	limits map[string][2]float64
	// explained is the panel that explains its longest stall; -1: none has one.
	explained int
}

// timelineCharts draws operations, and below them throughput and latency of each instance with its stalls. With many
// instances the panels are in a figure of their own, and the first has one of all together. shaded are the indexes of
// the stalls that are drawn. They are empty without data.
func timelineCharts(t figure.Timeline, stalls []interference.Stall, linked map[int64]bool) (first, folded template.HTML,
	shaded map[int]bool) {
	shaded = map[int]bool{}
	if t.To <= t.From {
		return "", "", shaded
	}
	draw := func(lanes []figure.Lane, panels []figure.Panel, label string) template.HTML {
		d := &timeline{
			x:      scale{min: float64(t.From), max: float64(t.To), lo: leftMargin, hi: rightEdge},
			stalls: stalls, y: 8, linked: linked, shaded: shaded,
		}
		return d.draw(lanes, panels, label)
	}
	panels := t.Panels
	if t.All != nil {
		panels = []figure.Panel{*t.All}
	}
	if t.States != nil {
		panels = append(slices.Clone(panels), *t.States)
	}
	if t.All == nil {
		return draw(t.Lanes, panels, "Control operations, I/O, stalls and instances over time"), "", shaded
	}
	return draw(t.Lanes, panels, "Control operations, I/O and instances over time"),
		draw(nil, t.Panels, "I/O and stalls of each instance over time"), shaded
}

func (d *timeline) draw(lanes []figure.Lane, panels []figure.Panel, label string) template.HTML {
	d.explained = slices.IndexFunc(panels, func(p figure.Panel) bool { return d.longest(p.Instance) >= 0 })
	d.limits = limitsOf(panels)
	height := axisHeight + 8
	for _, l := range lanes {
		height += laneHeight(l) + laneGap
	}
	for i, p := range panels {
		height += d.panelHeight(p, i)
	}
	d.open(width, height, label, "role", "group", "data-from", num(d.x.min), "data-to", num(d.x.max),
		"data-left", num(leftMargin),
		"data-right", num(rightEdge))
	d.grid(height - axisHeight)
	for _, l := range lanes {
		d.lane(l)
	}
	for i, p := range panels {
		d.panel(p, i)
	}
	timeAxis(&d.svg, d.x, height-axisHeight)
	return d.close()
}

// longest returns the index of the longest stall of an instance, or -1.
func (d *timeline) longest(instance string) int {
	at := -1
	for i, s := range d.stalls {
		if s.Instance == instance && (at < 0 || s.LengthNs > d.stalls[at].LengthNs) {
			at = i
		}
	}
	return at
}

// limitsOf returns the least and greatest value of each metric over all panels, so that their scales are equal.
func limitsOf(panels []figure.Panel) map[string][2]float64 {
	limits := map[string][2]float64{}
	add := func(key string, lo, hi float64) {
		if l, ok := limits[key]; ok {
			lo, hi = min(lo, l[0]), max(hi, l[1])
		}
		limits[key] = [2]float64{lo, hi}
	}
	for _, p := range panels {
		if len(p.Bandwidth) > 0 {
			add("bandwidth", 0, greatest(p.Bandwidth))
		}
		if len(p.Latency) > 0 {
			add("latency", least(p.Latency), greatest(p.Latency))
		}
		for _, b := range p.Values {
			lo, hi := extent(b.Lines)
			add(bandKey(b), lo, hi)
		}
	}
	return limits
}

// bandKey names the metrics of a band.
func bandKey(b figure.Band) string {
	var names []string
	for _, l := range b.Lines {
		names = append(names, l.Name)
	}
	return strings.Join(append(names, b.Unit), "\x00")
}

// panelHeight is the height of the i-th panel.
func (d *timeline) panelHeight(p figure.Panel, i int) float64 {
	h := panelHeight(p)
	if i == d.explained {
		h += captionHeight
	}
	return h
}

func panelHeight(p figure.Panel) float64 {
	h := panelTop + panelGap
	if len(p.Bandwidth) > 0 {
		h += bandHeight
	}
	if len(p.Latency) > 0 {
		h += lateHeight
	}
	return h + bandHeight*float64(len(p.Values))
}

func (d *timeline) grid(bottom float64) {
	for _, v := range d.x.ticks(12) {
		d.line(d.x.at(v), 4, d.x.at(v), bottom, "grid")
	}
}

// timeAxis draws the axis of time of a figure.
func timeAxis(s *svg, x scale, y float64) {
	s.line(x.lo, y, x.hi, y, "axis")
	for _, v := range x.ticks(12) {
		s.text(x.at(v), y+14, "tick mid", fmt.Sprintf("%g", v/1e9))
	}
	s.text(x.hi, y+29, "tick end", "seconds since the start of the run")
}

// plot draws lines on one axis of their own.
func (d *timeline) plot(lines []figure.Line, y scale, ticks int, unit func(float64) string, what string,
	classes map[string]string) {
	for _, v := range y.ticks(ticks) {
		d.line(leftMargin, y.at(v), rightEdge, y.at(v), "grid")
		d.text(leftMargin-8, y.at(v)+4, "tick end", unit(v))
	}
	d.line(leftMargin, y.lo, rightEdge, y.lo, "hair")
	for _, l := range lines {
		d.path(d.points(l, y), classes[lineName(l)], l.Name+" "+what)
	}
}

func (d *timeline) points(l figure.Line, y scale) [][2]float64 {
	var ps [][2]float64
	for i, p := range l.Points {
		if i > 0 && p.From > l.Points[i-1].To+(p.To-p.From) {
			ps = append(ps, [2]float64{0, math.NaN()})
		}
		// The value holds over the whole interval.
		ps = append(ps, [2]float64{d.x.at(float64(p.From)), y.at(p.Value)},
			[2]float64{d.x.at(float64(p.To)), y.at(p.Value)})
	}
	return ps
}

func greatest(lines []figure.Line) float64 {
	v := 0.0
	for _, l := range lines {
		for _, p := range l.Points {
			v = max(v, p.Value)
		}
	}
	return max(v, 1)
}

// extent returns the values that an axis of lines has, among them 0.
func extent(lines []figure.Line) (lo, hi float64) {
	for _, l := range lines {
		for _, p := range l.Points {
			lo, hi = min(lo, p.Value), max(hi, p.Value)
		}
	}
	if lo == hi {
		hi = 1
	}
	return lo, hi
}

func least(lines []figure.Line) float64 {
	v := math.Inf(1)
	for _, l := range lines {
		for _, p := range l.Points {
			v = min(v, p.Value)
		}
	}
	return max(v, 1)
}
