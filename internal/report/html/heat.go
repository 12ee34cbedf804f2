package html

import (
	"fmt"
	"maps"
	"math"
	"slices"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Measures of a heat map in pixels.
const (
	heatTop     = 24.0 // the legend
	notOKHeight = 11.0
	stripGap    = 14.0
	stripHeight = 48.0
	heatLevels  = 5
	stripBins   = 4 // bins of time in one bar of rates
)

// heatMap is a heat map with a strip of rates below, on one axis of time.
type heatMap struct {
	svg
	*figure.Heat
	x, y   scale
	lo, hi int // rows
	bounds []int
	bottom float64 // of the cells
}

// heatChart draws latency over time, and the rates offered and achieved. It is empty where all ops were due at once.
func heatChart(a figure.Action, from, to op.Time) template.HTML {
	h := &heatMap{Heat: &a.Heat, x: scale{min: float64(from), max: float64(to), lo: leftMargin, hi: rightEdge}}
	most, notOK := h.measure()
	if h.Spread() < 2 || to <= from || most == 0 {
		return ""
	}
	rows := float64(h.hi - h.lo + 1)
	top, row := heatTop, min(14, max(5, 170/rows))
	if notOK {
		top += notOKHeight + 3
	}
	h.bottom, h.bounds = top+rows*row, heatBounds(most)
	least, _ := figure.RowNs(h.lo)
	_, greatest := figure.RowNs(h.hi)
	h.y = scale{min: least, max: greatest, lo: h.bottom, hi: top, log: true}
	base := h.bottom + stripGap + stripHeight
	h.open(width, base+axisHeight, "Latency over time of "+a.Name, "data-action", a.Name, "data-from",
		fmt.Sprint(int64(from)), "data-to", fmt.Sprint(int64(to)), "data-left", num(leftMargin), "data-right", num(rightEdge))
	h.legend()
	for _, t := range h.y.ticks(5) {
		h.line(leftMargin, h.y.at(t), rightEdge, h.y.at(t), "grid")
		h.text(leftMargin-8, h.y.at(t)+4, "tick end", units.Duration(t))
	}
	for i := range h.Bins {
		h.cells(i, row, notOK)
	}
	if notOK {
		h.text(leftMargin-8, heatTop+9, "tick end", "not ok")
	}
	h.strip(base)
	timeAxis(&h.svg, h.x, base)
	return h.close()
}

// measure sets the rows, and returns the greatest count of a cell, and whether an op was not ok.
func (h *heatMap) measure() (most int, notOK bool) {
	h.lo, h.hi = math.MaxInt, math.MinInt
	for _, b := range h.Bins {
		for row, n := range b.Rows {
			h.lo, h.hi, most = min(h.lo, row), max(h.hi, row), max(most, n)
		}
		notOK = notOK || b.NotOK > 0
	}
	for h.hi >= h.lo && h.hi-h.lo < 5 { // a single row would be a line
		h.lo, h.hi = h.lo-1, h.hi+1
	}
	return most, notOK
}

// heatBounds returns the least count of each level, ascending.
func heatBounds(most int) []int {
	var list []int
	for k := range heatLevels {
		n := k + 1
		if most > heatLevels {
			n = int(math.Ceil(math.Pow(float64(most+1), float64(k)/heatLevels)))
		}
		if n <= most && (len(list) == 0 || n > list[len(list)-1]) {
			list = append(list, n)
		}
	}
	return list
}

// level is the style class of a count: the highest level for the greatest counts.
func level(bounds []int, n int) string {
	k := heatLevels - len(bounds)
	for _, least := range bounds {
		if n >= least {
			k++
		}
	}
	return fmt.Sprintf("h%d", k)
}

// span returns the pixels of n bins from the i-th, within the axis.
func (h *heatMap) span(i, n int) (x, w float64) {
	x = min(h.x.hi, max(h.x.lo, h.x.at(float64(h.From(i)))))
	return x, max(1, min(h.x.hi, h.x.at(float64(h.From(i+n))))-x)
}

func (h *heatMap) cells(i int, row float64, notOK bool) {
	b, due := h.Bins[i], fmt.Sprintf("due from %s s to %s s", seconds(h.From(i)), seconds(h.From(i+1)))
	x, w := h.span(i, 1)
	at := []string{"data-from", fmt.Sprint(int64(h.From(i))), "data-to", fmt.Sprint(int64(h.From(i + 1)))}
	for _, r := range slices.Sorted(maps.Keys(b.Rows)) {
		least, most := figure.RowNs(r)
		h.rect(x, h.y.at(most), w, row, "heat "+level(h.bounds, b.Rows[r]),
			fmt.Sprintf("%d ops %s took %s to %s", b.Rows[r], due, units.Duration(least), units.Duration(most)), at...)
	}
	if notOK && b.NotOK > 0 {
		h.rect(x, heatTop, w, notOKHeight, "bar error", fmt.Sprintf("%d ops %s were not ok", b.NotOK, due), at...)
	}
}

// legend explains the colours.
func (h *heatMap) legend() {
	x := rightEdge
	for k := len(h.bounds) - 1; k >= 0; k-- {
		label := fmt.Sprint(h.bounds[k])
		if k+1 < len(h.bounds) && h.bounds[k+1]-1 > h.bounds[k] {
			label = fmt.Sprintf("%d–%d", h.bounds[k], h.bounds[k+1]-1)
		} else if k+1 == len(h.bounds) {
			label = "≥ " + label
		}
		x -= 10 + 6.2*float64(len([]rune(label)))
		h.text(x, 13, "tick", label)
		x -= 17
		h.rect(x, 4, 13, 10, "heat "+level(h.bounds, h.bounds[k]), "")
	}
	h.text(x-8, 13, "tick end", "ops in a cell")
	h.text(leftMargin, 13, "tick", "response time, by the instant at which the op was due")
}

// strip draws the rates below the cells.
func (h *heatMap) strip(base float64) {
	var due, ok []int
	most := 0
	for i := 0; i < len(h.Bins); i += stripBins {
		d, o := 0, 0
		for _, b := range h.Bins[i:min(i+stripBins, len(h.Bins))] {
			d, o = d+b.Due, o+b.OK
		}
		due, ok, most = append(due, d), append(ok, o), max(most, d, o)
	}
	rate := func(n int) float64 { return h.PerSecond(n) / stripBins }
	y := scale{max: rate(most) * 1.05, lo: base, hi: base - stripHeight}
	for _, v := range y.ticks(2) {
		h.line(leftMargin, y.at(v), rightEdge, y.at(v), "grid")
		h.text(leftMargin-8, y.at(v)+4, "tick end", units.Count(v)+"/s")
	}
	var line [][2]float64
	for i := range due {
		x, w := h.span(i*stripBins, stripBins)
		h.rect(x, y.at(rate(ok[i])), w, base-y.at(rate(ok[i])), "achieved",
			fmt.Sprintf("from %s s: offered %s/s, achieved %s/s", seconds(h.From(i*stripBins)), units.Count(rate(due[i])),
				units.Count(rate(ok[i]))))
		line = append(line, [2]float64{x, y.at(rate(due[i]))}, [2]float64{x + w, y.at(rate(due[i]))})
	}
	h.path(line, "c1", "offered")
}
