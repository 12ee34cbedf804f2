package html

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Measures of a chart in pixels.
const (
	chartWidth, chartHeight = 520.0, 250.0
	chartLeft, chartRight   = 56.0, chartWidth - 14
	chartTop, chartBottom   = 12.0, chartHeight - 34
	halfCharacter           = 3.2 // half the width of a character of a label, at most
)

// chart is a figure with two axes.
type chart struct {
	svg
	x, y scale
}

// newChart opens a chart with its horizontal axis. The scales need no pixels.
func newChart(title string, x, y scale) *chart {
	if x.hi == 0 {
		x.lo, x.hi = chartLeft, chartRight
	}
	y.lo, y.hi = chartBottom, chartTop
	c := &chart{x: x, y: y}
	c.open(chartWidth, chartHeight, title)
	c.line(chartLeft, chartBottom, chartRight, chartBottom, "axis")
	return c
}

// newCDFChart opens a chart of distribution functions of values in ns.
func newCDFChart(title string, curves ...[]stats.Step) *chart {
	lo, hi := extremes(curves)
	c := newChart(title, scale{min: lo, max: hi, log: logarithmic(lo, hi)}, scale{max: 1})
	for _, p := range []float64{0, 0.25, 0.5, 0.75, 0.9, 1} {
		c.gridLine(p, fmt.Sprintf("%g %%", 100*p))
	}
	c.times()
	return c
}

// newTailChart is newCDFChart of n values, with an axis that shows the tail.
func newTailChart(title string, n int64, curves ...[]stats.Step) *chart {
	lo, hi := extremes(curves)
	// The greatest of n values is drawn half a value below 100 %.
	c := newChart(title, scale{min: lo, max: hi, log: logarithmic(lo, hi)},
		scale{max: max(1.05, math.Log10(2*float64(n))), tail: true})
	c.gridLine(0, "0 %")
	c.gridLine(0.5, "50 %")
	for nines := 1.0; nines <= c.y.max; nines++ {
		p := 1 - math.Pow(10, -nines)
		c.gridLine(p, strconv.FormatFloat(100*p, 'f', int(max(0, nines-2)), 64)+" %")
	}
	c.times()
	return c
}

// at returns the pixels of a point.
func (c *chart) at(x, y float64) [2]float64 { return [2]float64{c.x.at(x), c.y.at(y)} }

func (c *chart) gridLine(y float64, label string) {
	c.line(chartLeft, c.y.at(y), chartRight, c.y.at(y), "grid")
	c.text(chartLeft-6, c.y.at(y)+4, "tick end", label)
}

// tick labels a point of the horizontal axis. A label at the right edge ends there.
func (c *chart) tick(x float64, label string) {
	if at := c.x.at(x); at+halfCharacter*float64(utf8.RuneCountInString(label)) <= chartWidth {
		c.text(at, chartBottom+15, "tick mid", label)
		return
	}
	c.text(chartWidth, chartBottom+15, "tick end", label)
}

// times draws the grid and labels of a horizontal scale in ns.
func (c *chart) times() {
	last := ""
	for _, t := range c.x.ticks(7) {
		c.line(c.x.at(t), chartTop, c.x.at(t), chartBottom, "grid")
		if label := units.Duration(t); label != last { // ticks may be equal in three digits
			c.tick(t, label)
			last = label
		}
	}
}

// counts draws the grid and labels of a vertical scale of numbers.
func (c *chart) counts() {
	for _, n := range c.y.ticks(5) {
		c.gridLine(n, units.Count(n))
	}
}

// whole is counts of what has no parts.
func (c *chart) whole() {
	for _, n := range c.y.ticks(5) {
		if n == math.Trunc(n) {
			c.gridLine(n, units.Count(n))
		}
	}
}

// extremes returns the range of the curves with a margin; it is never empty.
func extremes(curves [][]stats.Step) (lo, hi float64) {
	lo, hi = 1e18, 1
	for _, steps := range curves {
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

// logarithmic reports whether a scale from lo to hi is logarithmic.
func logarithmic(lo, hi float64) bool { return hi > 4*lo }
