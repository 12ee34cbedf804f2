package html

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
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
	axisHeight = 34.0
)

// timeline is a figure with one time axis.
type timeline struct {
	svg
	x      scale
	stalls []interference.Stall
	y      float64 // current offset from the top
}

// timelineChart draws operations as bars, and below them throughput and latency of each
// instance with its stalls. It is empty without data.
func timelineChart(t figure.Timeline, stalls []interference.Stall) template.HTML {
	if t.To <= t.From {
		return ""
	}
	height := axisHeight + 8
	for _, l := range t.Lanes {
		height += float64(l.Rows)*rowHeight + laneGap
	}
	for _, p := range t.Panels {
		height += panelHeight(p)
	}
	d := &timeline{
		x:      scale{min: float64(t.From), max: float64(t.To), lo: leftMargin, hi: rightEdge},
		stalls: stalls, y: 8,
	}
	d.open(width, height, "Control operations, I/O and stalls over time")
	d.grid(height - axisHeight)
	for _, l := range t.Lanes {
		d.lane(l)
	}
	for i, p := range t.Panels {
		d.panel(p, i)
	}
	d.axis(height - axisHeight)
	return d.close()
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
	for _, v := range d.timeTicks() {
		d.line(d.x.at(v), 4, d.x.at(v), bottom, "grid")
	}
}

func (d *timeline) timeTicks() []float64 { return d.x.ticks(12) }

func (d *timeline) axis(y float64) {
	d.line(leftMargin, y, rightEdge, y, "axis")
	for _, v := range d.timeTicks() {
		d.text(d.x.at(v), y+14, "tick mid", fmt.Sprintf("%g", v/1e9))
	}
	d.text(rightEdge, y+29, "tick end", "seconds since the start of the run")
}

// lane draws the ops of one action; a dropped op is a tick.
func (d *timeline) lane(l figure.Lane) {
	h := float64(l.Rows) * rowHeight
	d.text(leftMargin-10, d.y+h/2+4, "label end", clip(l.Action, 17))
	d.line(leftMargin, d.y+h+laneGap/2, rightEdge, d.y+h+laneGap/2, "hair")
	for _, b := range l.Bars {
		x := d.x.at(float64(b.From))
		w := max(1.5, d.x.at(float64(b.To))-x)
		title := fmt.Sprintf("%s on %s: %s, %s from %s s", b.Name, b.Target, b.Outcome,
			units.Duration(float64(b.To-b.From)), seconds(b.From))
		if b.N > 1 {
			title = fmt.Sprintf("%d ops from %s s, the first %s: %s", b.N, seconds(b.From), b.Name, b.Outcome)
		}
		d.rect(x, d.y+float64(b.Row)*rowHeight+1, w, rowHeight-2, "bar "+outcomeClass(b.Outcome), title)
	}
	d.y += h + laneGap
}

// outcomeClass returns the style class of an outcome, never text from a file.
func outcomeClass(o op.Outcome) string {
	switch o {
	case op.OK:
		return "ok"
	case op.Error:
		return "error"
	case op.Timeout, op.Censored:
		return "late"
	}
	return "dropped"
}

// panel draws one instance.
func (d *timeline) panel(p figure.Panel, n int) {
	top := d.y + panelTop
	height := panelHeight(p) - panelTop - panelGap
	d.text(leftMargin, d.y+20, "label strong", clip(p.Instance, 40))
	legend := leftMargin + 14 + 7.5*float64(min(40, len([]rune(p.Instance))))
	d.mark(p, top, height)
	classes := lineClasses(p)
	if len(p.Bandwidth) > 0 {
		d.plot(p.Bandwidth, scale{min: 0, max: greatest(p.Bandwidth) * 1.08, lo: top + bandHeight - 4, hi: top,
			binary: true}, 3, units.Bandwidth, "bandwidth", classes)
		top += bandHeight
	}
	for _, b := range p.Values {
		lo, hi := extent(b.Lines)
		d.plot(b.Lines, scale{min: lo, max: hi + (hi-lo)*0.08, lo: top + bandHeight - 4, hi: top + 4}, 3,
			func(v float64) string { return summary.Amount(v, b.Unit) }, "over time", classes)
		top += bandHeight
	}
	if len(p.Latency) > 0 {
		lo, hi := least(p.Latency)/1.3, greatest(p.Latency)*1.3
		d.plot(p.Latency, scale{min: lo, max: hi, lo: top + lateHeight - 4, hi: top + 4, log: true}, 4, units.Duration,
			"latency", classes)
	}
	room := rightEdge
	if n == 0 {
		caption := "above: bandwidth · below: latency, p99 of each time slice"
		switch {
		case len(p.Values) > 0 && len(p.Bandwidth) > 0:
			caption = "bandwidth · the tool's metrics · p99 of each time slice"
		case len(p.Values) > 0:
			caption = "above: the tool's metrics · below: p99 of each time slice"
		}
		if slices.ContainsFunc(p.Latency, func(l figure.Line) bool { return hasWord(l.Name, "canary") }) {
			caption += " and the canary's worst"
		}
		d.text(rightEdge, d.y+20, "tick end", caption)
		room -= 5.5 * float64(len(caption))
	}
	d.legend(p, classes, legend, d.y+20, room)
	d.y += panelHeight(p)
}

// mark shades the stalls of an instance.
func (d *timeline) mark(p figure.Panel, top, height float64) {
	for _, s := range d.stalls {
		if s.Instance != p.Instance {
			continue
		}
		to := s.To
		if !to.Known() {
			to = op.Time(d.x.max)
		}
		x := d.x.at(float64(s.From))
		d.rect(x, top, max(2, d.x.at(float64(to))-x), height, "stall", stallTitle(s))
	}
}

func stallTitle(s interference.Stall) string {
	t := fmt.Sprintf("%s stall of %s at %s s", s.Direction, units.Duration(float64(s.LengthNs)), seconds(s.From))
	if s.OwnOps+s.OtherOps > 0 {
		t += ", during " + s.Named()
	}
	return t
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

// lineClass returns the colour class of reads and writes; empty for other lines.
func lineClass(name string) string {
	switch {
	case hasWord(name, "canary", "write"):
		return "c3 thin"
	case hasWord(name, "canary", "read"):
		return "c2 thin"
	case hasWord(name, "write"):
		return "c1"
	case hasWord(name, "read"):
		return "c0"
	}
	return ""
}

// otherClasses are the classes of other lines, in order.
var otherClasses = []string{"c4", "c4 dashed", "c2", "c3", "c2 dashed", "c3 dashed"}

// lineName returns the operation of a line.
func lineName(l figure.Line) string {
	return strings.TrimSuffix(strings.TrimSuffix(l.Name, " p99"), " max")
}

// lineClasses returns the classes of a panel's lines by operation.
func lineClasses(p figure.Panel) map[string]string {
	classes, others := map[string]string{}, 0
	for _, l := range p.Lines() {
		name := lineName(l)
		if classes[name] != "" {
			continue
		}
		if classes[name] = lineClass(name); classes[name] == "" {
			classes[name] = otherClasses[others%len(otherClasses)]
			others++
		}
	}
	return classes
}

// legend names each operation once, and the canaries of all volumes once, as far as there
// is room.
func (d *timeline) legend(p figure.Panel, classes map[string]string, x, y, end float64) {
	seen := map[string]bool{}
	for _, l := range p.Lines() {
		name := lineName(l)
		class := classes[name]
		if seen[class] {
			continue
		}
		seen[class] = true
		name = clip(name, 30)
		width := 36 + 6.2*float64(len([]rune(name)))
		if x+width > end {
			d.text(x, y, "tick", "…")
			return
		}
		d.line(x, y-4, x+16, y-4, "line "+class)
		d.text(x+21, y, "tick", name)
		x += width
	}
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
