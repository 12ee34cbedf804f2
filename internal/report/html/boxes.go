package html

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// BoxPlot has the values of one metric, a row for each combination of levels.
type BoxPlot struct {
	Metric, Unit string
	Rows         []boxRow
}

// boxRow is one combination of levels.
type boxRow struct {
	Levels []string
	Trials int // also those without a value
	values []float64
	box    *stats.Box // nil: there is no value
	// figures of the table
	N, Mean, SD, CV, CVOfMedian, Low, Q1, Median, Q3, High string
	Outliers                                               int
}

// Boxes returns the box plots of a table, in its order. Only known values are in them.
func Boxes(t *observation.Table) []BoxPlot {
	list := make([]BoxPlot, len(t.Metrics))
	for m, of := range t.Metrics {
		list[m] = BoxPlot{Metric: of.Name, Unit: of.Unit}
		for c, levels := range t.Cells {
			k := observation.Key{Metric: m, Cell: c}
			if series, ok := t.Series[k]; ok {
				list[m].Rows = append(list[m].Rows, rowOf(levels, of.Unit, series))
			} else if a, ok := t.Aggregates[k]; ok {
				list[m].Rows = append(list[m].Rows, rowOfMean(levels, of.Unit, a))
			}
		}
	}
	return list
}

func rowOf(levels []string, unit string, series []observation.Value) boxRow {
	r := boxRow{Levels: levels, Trials: len(series)}
	for _, v := range series {
		if v.State == observation.Known {
			r.values = append(r.values, v.Value)
		}
	}
	r.N = fmt.Sprint(len(r.values))
	if len(r.values) < r.Trials {
		r.N += fmt.Sprintf(" of %d", r.Trials)
	}
	d, ok := stats.Describe(r.values)
	box, known := stats.BoxOf(r.values)
	if !ok || !known {
		return r
	}
	r.box, r.Outliers = &box, len(box.Outliers)
	figure := func(x float64) string { return compare.Column(&x, unit) }
	r.Mean, r.Median, r.Q1, r.Q3 = figure(d.Mean), figure(box.Median), figure(box.Q1), figure(box.Q3)
	r.Low, r.High = figure(box.Low), figure(box.High)
	if d.N > 1 {
		r.SD, r.CV, r.CVOfMedian = figure(d.SD), percent(d.CVMean), percent(d.CVMedian)
	}
	return r
}

// rowOfMean is the row of values that are not known one by one.
func rowOfMean(levels []string, unit string, a observation.Aggregate) boxRow {
	r := boxRow{Levels: levels, N: "–", Mean: compare.Column(&a.Mean, unit)}
	if a.N > 0 {
		r.N = fmt.Sprint(a.N)
	}
	if !math.IsNaN(a.SD) {
		r.SD = compare.Column(&a.SD, unit)
		if a.Mean > 0 {
			r.CV = percent(a.SD / a.Mean)
		}
	}
	return r
}

// BoxFigures is the table of box plots, without the columns that are empty in all rows.
type BoxFigures struct {
	Names []string
	Rows  []boxCells
}

type boxCells struct{ Levels, Cells []string }

// Figures returns the table of the box plots.
func (p BoxPlot) Figures() BoxFigures {
	names := []string{"n", "mean", "sd", "CV (of mean)", "CV (of median)", "whisker", "Q1", "median", "Q3", "whisker",
		"outliers"}
	all := make([][]string, len(p.Rows))
	t := BoxFigures{Rows: make([]boxCells, len(p.Rows))}
	for i := range p.Rows {
		r := &p.Rows[i]
		outliers := ""
		if r.Trials > 0 {
			outliers = fmt.Sprint(r.Outliers)
		}
		all[i] = []string{r.N, r.Mean, r.SD, r.CV, r.CVOfMedian, r.Low, r.Q1, r.Median, r.Q3, r.High, outliers}
		t.Rows[i].Levels = r.Levels
	}
	for column, name := range names {
		if !slices.ContainsFunc(all, func(cells []string) bool { return cells[column] != "" }) {
			continue
		}
		t.Names = append(t.Names, name)
		for i := range all {
			t.Rows[i].Cells = append(t.Rows[i].Cells, all[i][column])
		}
	}
	return t
}

// percent has two decimals, as publications print a CV.
func percent(share float64) string {
	if math.IsNaN(share) {
		return ""
	}
	return fmt.Sprintf("%.2f %%", 100*share)
}

// Heading is the metric with its unit, unless figures have theirs.
func (p BoxPlot) Heading() string {
	if one := 1.0; p.Unit == "" || strings.HasSuffix(compare.Column(&one, p.Unit), p.Unit) {
		return p.Metric
	}
	return fmt.Sprintf("%s (%s)", p.Metric, p.Unit)
}

// means says that no value of the metric is known, only means.
func (p BoxPlot) means() bool {
	return !slices.ContainsFunc(p.Rows, func(r boxRow) bool { return r.Trials > 0 })
}

// Measures of a box plot in pixels, and what is drawn of its values.
const (
	boxWidth, boxLeft, boxRight = 900.0, 190.0, 886.0
	boxStep, boxHeight          = 34.0, 16.0
	allPoints                   = 20  // with up to so many values all are drawn
	mostPoints                  = 200 // of more outliers, the furthest
	logFrom                     = 20  // ratio of the extremes from which the axis is logarithmic
)

// log says that the axis is logarithmic.
func (p BoxPlot) log() bool {
	lo, hi := p.extremes()
	return lo > 0 && hi > logFrom*lo
}

func (p BoxPlot) extremes() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, r := range p.Rows {
		for _, v := range r.values {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	return lo, hi
}

// chart draws the boxes below each other; empty without values.
func (p BoxPlot) chart() template.HTML {
	lo, hi := p.extremes()
	if lo > hi {
		return ""
	}
	x := scale{min: lo, max: hi, lo: boxLeft, hi: boxRight, log: p.log(),
		binary: p.Unit == metric.Bytes || p.Unit == metric.BytesPerSecond}
	if x.log {
		x.min, x.max = lo/1.1, hi*1.1
	} else {
		margin := cmp.Or(0.03*(hi-lo), 0.05*math.Abs(hi), 1)
		x.min, x.max = lo-margin, hi+margin
	}
	bottom := 8 + boxStep*float64(len(p.Rows))
	s := &svg{}
	s.open(boxWidth, bottom+26, "Box plots of "+p.Metric)
	last := ""
	for _, t := range x.ticks(7) {
		s.line(x.at(t), 4, x.at(t), bottom, "grid")
		if label := compare.Column(&t, p.Unit); label != last {
			s.text(x.at(t), bottom+16, "tick mid", label)
			last = label
		}
	}
	s.line(boxLeft, bottom, boxRight, bottom, "axis")
	for i, r := range p.Rows {
		y := 8 + boxStep*(float64(i)+0.5)
		s.text(boxLeft-10, y+4, "label end", clip(strings.Join(r.Levels, " · "), 30))
		if r.box != nil {
			s.box(x, y, r, p.Unit)
		}
	}
	return s.close()
}

// box draws one box with its whiskers and points.
func (s *svg) box(x scale, y float64, r boxRow, unit string) {
	b := r.box
	if b.N > 1 {
		s.line(x.at(b.Low), y, x.at(b.Q1), y, "whisker")
		s.line(x.at(b.Q3), y, x.at(b.High), y, "whisker")
		for _, end := range []float64{b.Low, b.High} {
			s.line(x.at(end), y-boxHeight/4, x.at(end), y+boxHeight/4, "whisker")
		}
		s.rect(x.at(b.Q1), y-boxHeight/2, x.at(b.Q3)-x.at(b.Q1), boxHeight, "boxed",
			fmt.Sprintf("%s: n %s, median %s, quartiles %s and %s, whiskers %s and %s", strings.Join(r.Levels, ", "), r.N,
				r.Median, r.Q1, r.Q3, r.Low, r.High))
		s.line(x.at(b.Median), y-boxHeight/2, x.at(b.Median), y+boxHeight/2, "median")
	}
	points := b.Outliers
	if b.N <= allPoints {
		points = r.values
	} else if len(points) > mostPoints {
		points = slices.Concat(points[:mostPoints/2], points[len(points)-mostPoints/2:])
	}
	for i, v := range points {
		class, beside := "point", 0.0
		if v < b.Low || v > b.High {
			class = "outlier"
		} else if b.N > 1 {
			beside = 2.5 * float64(i%3-1) // equal values stand beside each other
		}
		s.circle(x.at(v), y+beside, class, compare.Column(&v, unit))
	}
}

func (s *svg) circle(x, y float64, class, title string) {
	fmt.Fprintf(s, `<circle cx="%s" cy="%s" r="2.6" class="%s"><title>%s</title></circle>`, num(x), num(y), class,
		html.EscapeString(title))
}
