package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// panel draws the n-th instance.
func (d *timeline) panel(p figure.Panel, n int) {
	top := d.y + panelTop
	height := panelHeight(p) - panelTop - panelGap
	d.element("g", "class", "panel", "data-instance", p.Instance)
	if n == d.explained {
		d.explain(p, top)
		top += captionHeight
	}
	d.text(leftMargin, d.y+20, "label strong", clip(p.Instance, 40))
	legend := leftMargin + 14 + 7.5*float64(min(40, len([]rune(p.Instance))))
	d.mark(p, top, height)
	classes := lineClasses(p)
	if len(p.Bandwidth) > 0 {
		d.plot(p.Bandwidth, scale{min: 0, max: d.limits["bandwidth"][1] * 1.08, lo: top + bandHeight - 4, hi: top,
			binary: true}, 3, units.Bandwidth, "bandwidth", classes)
		top += bandHeight
	}
	for _, b := range p.Values {
		lo, hi := d.limits[bandKey(b)][0], d.limits[bandKey(b)][1]
		d.plot(b.Lines, scale{min: lo, max: hi + (hi-lo)*0.08, lo: top + bandHeight - 4, hi: top + 4}, 3,
			func(v float64) string { return summary.Amount(v, b.Unit) }, "over time", classes)
		top += bandHeight
	}
	if len(p.Latency) > 0 {
		lo, hi := d.limits["latency"][0]/1.3, d.limits["latency"][1]*1.3
		d.plot(p.Latency, scale{min: lo, max: hi, lo: top + lateHeight - 4, hi: top + 10, log: true}, 4, units.Duration,
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
	d.WriteString("</g>")
	d.y += d.panelHeight(p, n)
}

// explain says above the longest stall of a panel what it is.
func (d *timeline) explain(p figure.Panel, top float64) {
	s := d.stalls[d.longest(p.Instance)]
	to := s.Until()
	x, anchor := (d.x.at(float64(s.From))+d.x.at(float64(to)))/2, " mid"
	switch {
	case x > rightEdge-230:
		x, anchor = rightEdge, " end"
	case x < leftMargin+230:
		x, anchor = leftMargin, ""
	}
	d.text(x, top+9, "caption"+anchor, "stall: I/O pending, none completed; the latency after it is the backlog")
	at := (d.x.at(float64(s.From)) + d.x.at(float64(to))) / 2
	d.path([][2]float64{{at - 4, top + 12}, {at, top + captionHeight}, {at + 4, top + 12}}, "pointer", "")
}

// mark shades the stalls of an instance.
func (d *timeline) mark(p figure.Panel, top, height float64) {
	for i, s := range d.stalls {
		if s.Instance != p.Instance {
			continue
		}
		to := s.Until()
		x := d.x.at(float64(s.From))
		d.shaded[i] = true
		d.rect(x, top, max(2, d.x.at(float64(to))-x), height, "stall", stallTitle(s), "id", fmt.Sprintf("shade-%d", i),
			"data-from", fmt.Sprint(int64(s.From)), "data-to", fmt.Sprint(int64(to)), "data-instance", s.Instance)
	}
}

func stallTitle(s interference.Stall) string {
	t := fmt.Sprintf("%s stall of %s at %s s", s.Direction, s.Length(), seconds(s.From))
	if s.OwnOps+s.OtherOps > 0 {
		t += ", during " + s.Named()
	}
	return t
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
