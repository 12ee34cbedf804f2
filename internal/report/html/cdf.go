package html

import (
	"fmt"
	"html/template"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// cdfChart draws one action's distribution, response and service.
func cdfChart(c figure.CDF) template.HTML {
	const width, height, left, right, top, bottom = 520.0, 250.0, 46.0, 14.0, 12.0, 34.0
	lo, hi := extremes(c)
	x := scale{min: lo, max: hi, lo: left, hi: width - right, log: logarithmic(lo, hi)}
	y := scale{min: 0, max: 1, lo: height - bottom, hi: top}
	var s svg
	s.open(width, height, "Distribution of the latency of "+c.Action)
	for _, p := range []float64{0, 0.25, 0.5, 0.75, 0.9, 1} {
		s.line(left, y.at(p), width-right, y.at(p), "grid")
		s.text(left-6, y.at(p)+4, "tick end", fmt.Sprintf("%g %%", 100*p))
	}
	last := ""
	for _, v := range x.ticks(7) {
		s.line(x.at(v), top, x.at(v), height-bottom, "grid")
		if label := units.Duration(v); label != last { // too fine for three digits
			s.text(x.at(v), height-bottom+15, "tick mid", label)
			last = label
		}
	}
	s.line(left, height-bottom, width-right, height-bottom, "axis")
	s.path(staircase(c.Service, x, y), "c1 dashed", "service")
	s.path(staircase(c.Response, x, y), "c0", "response")
	return s.close()
}

// logarithmic reports whether a scale from lo to hi is logarithmic.
func logarithmic(lo, hi float64) bool { return hi > 4*lo }

// extremes returns the range of the curves with a margin; it is never empty.
func extremes(c figure.CDF) (lo, hi float64) {
	lo, hi = 1e18, 1
	for _, steps := range [][]stats.Step{c.Response, c.Service} {
		for _, p := range steps {
			lo, hi = min(lo, max(1, float64(p.V))), max(hi, float64(p.V))
		}
	}
	hi = max(hi, lo)
	if logarithmic(lo, hi) {
		return max(1, lo/1.25), hi * 1.25
	}
	room := max(0.04*(hi-lo), 0.005*hi)
	return max(1, lo-room), hi + room
}

func staircase(steps []stats.Step, x, y scale) [][2]float64 {
	var points [][2]float64
	last := 0.0
	for i, p := range steps {
		if i == 0 {
			points = append(points, [2]float64{x.at(float64(p.V)), y.at(0)})
		} else {
			points = append(points, [2]float64{x.at(float64(p.V)), y.at(last)})
		}
		last = p.P
		points = append(points, [2]float64{x.at(float64(p.V)), y.at(last)})
	}
	if len(points) > 0 { // censored values are beyond the right edge
		points = append(points, [2]float64{x.hi, y.at(last)})
	}
	return points
}
