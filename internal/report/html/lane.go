package html

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Measures of a lane that has no bars, in pixels: ops in flight, and below them outcomes.
const (
	flightHeight  = 34.0
	outcomeHeight = 22.0
)

func laneHeight(l figure.Lane) float64 {
	if len(l.Bars) == 0 {
		return flightHeight + 6 + outcomeHeight
	}
	return float64(l.Rows) * rowHeight
}

// lane draws the ops of one action; a dropped op is a tick.
func (d *timeline) lane(l figure.Lane) {
	h := laneHeight(l)
	d.line(leftMargin, d.y+h+laneGap/2, rightEdge, d.y+h+laneGap/2, "hair")
	if len(l.Bars) == 0 {
		d.aggregate(l)
	} else {
		d.text(leftMargin-10, d.y+h/2+4, "label end", clip(l.Action, 17))
	}
	for _, b := range l.Bars {
		d.bar(b)
	}
	d.y += h + laneGap
}

// bar draws one op, with a link to its entry if it has one.
func (d *timeline) bar(b figure.Bar) {
	x := d.x.at(float64(b.From))
	title := fmt.Sprintf("%s on %s: %s, %s from %s s", b.Name, b.Target, b.Outcome, units.Duration(float64(b.To-b.From)),
		seconds(b.From))
	if d.linked[b.ID] {
		d.element("a", "href", fmt.Sprintf("#op-%d", b.ID))
	}
	d.rect(x, d.y+float64(b.Row)*rowHeight+1, max(1.5, d.x.at(float64(b.To))-x), rowHeight-2,
		"bar "+outcomeClass(b.Outcome), title, "id", fmt.Sprintf("bar-%d", b.ID), "data-op", fmt.Sprint(b.ID),
		"data-from", fmt.Sprint(int64(b.From)),
		"data-to", fmt.Sprint(int64(b.To)), "data-instance", b.Target)
	if d.linked[b.ID] {
		d.WriteString("</a>")
	}
}

// aggregate draws how many ops were in flight, and below how those that ended in each bin had ended.
func (d *timeline) aggregate(l figure.Lane) {
	h := l.Heat
	inFlight, ended := 1.0, 1
	for i, b := range h.Bins {
		inFlight, ended = max(inFlight, h.InFlight(i)), max(ended, b.OK+b.Failed+b.Late+b.Dropped)
	}
	y := scale{max: inFlight, lo: d.y + flightHeight, hi: d.y}
	d.text(leftMargin-10, d.y+13, "label end", clip(l.Action, 17))
	d.text(leftMargin-10, d.y+27, "tick end", "in flight, ≤ "+units.Count(inFlight))
	base := d.y + laneHeight(l)
	d.text(leftMargin-10, base-6, "tick end", "ended, ≤ "+units.Count(h.PerSecond(ended))+"/s")
	var line [][2]float64
	for i, b := range h.Bins {
		x := max(d.x.lo, d.x.at(float64(h.From(i))))
		w := min(d.x.hi, d.x.at(float64(h.From(i+1)))) - x
		v := h.InFlight(i)
		line = append(line, [2]float64{x, y.at(v)}, [2]float64{x + w, y.at(v)})
		title := fmt.Sprintf("from %s s: %s in flight; ended: %d ok, %d failed, %d timed out or not ended, %d never started",
			seconds(h.From(i)), units.Count(v), b.OK, b.Failed, b.Late, b.Dropped)
		at := base
		for _, part := range []struct {
			n       int
			outcome op.Outcome
		}{{b.OK, op.OK}, {b.Failed, op.Error}, {b.Late, op.Timeout}, {b.Dropped, op.Dropped}} {
			if part.n > 0 {
				height := outcomeHeight * float64(part.n) / float64(ended)
				at -= height
				d.rect(x, at, max(0.5, w-0.5), max(0.7, height), "bar "+outcomeClass(part.outcome), title)
			}
		}
	}
	d.line(leftMargin, y.lo, rightEdge, y.lo, "hair")
	d.path(line, "c0", "ops in flight")
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
