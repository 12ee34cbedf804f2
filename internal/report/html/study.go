package html

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/sweep"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

//go:embed study.html
var studyText string

// Study is the data of a study's page.
type Study struct {
	Name      string
	Factors   []string
	Responses []string
	Order     string // of the trials
	Note      string // on the rows
	Rows      []StudyRow
	Sweeps    []sweep.Sweep
}

// StudyRow is a cell: levels, number of trials, and responses as text.
type StudyRow struct{ Cells []string }

// WriteStudy writes the page of a study.
func WriteStudy(w io.Writer, s *Study) error {
	t, err := template.New("study").Funcs(functions).Funcs(template.FuncMap{
		"cdfs": levelCDFs, "rates": rateChart, "states": statesChart, "numbered": func(i int) string { return fmt.Sprintf("c%d", i%colours) },
	}).Parse(studyText)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return t.Execute(w, struct {
		*Study
		SweepNote string
		Style     template.CSS
	}{s, sweep.Note, template.CSS(style)}) //nolint:gosec // our own file
}

// colours is the number of line colours in the style.
const colours = 5

// The measures of a chart.
const (
	chartWidth, chartHeight = 520.0, 250.0
	chartLeft, chartRight   = 56.0, 14.0
	chartTop, chartBottom   = 12.0, 34.0
)

// class returns the style class of the i-th line; lines beyond the colours are dashed.
func class(i int) string {
	c := fmt.Sprintf("c%d", i%colours)
	if i >= colours {
		c += " dashed"
	}
	return c
}

// levelCDFs draws the distributions of the response, one line per level.
func levelCDFs(s sweep.Series) template.HTML {
	lo, hi := 1e18, 1.0
	for _, p := range s.Points {
		for _, step := range p.CDF {
			lo, hi = min(lo, max(1, float64(step.V))), max(hi, float64(step.V))
		}
	}
	hi = max(hi, 1.01*lo)
	x := scale{min: lo, max: hi, lo: chartLeft, hi: chartWidth - chartRight, log: logarithmic(lo, hi)}
	y := scale{min: 0, max: 1, lo: chartHeight - chartBottom, hi: chartTop}
	var v svg
	v.open(chartWidth, chartHeight, "Distributions of the response, "+s.Name)
	for _, p := range []float64{0, 0.25, 0.5, 0.75, 1} {
		v.line(chartLeft, y.at(p), chartWidth-chartRight, y.at(p), "grid")
		v.text(chartLeft-6, y.at(p)+4, "tick end", fmt.Sprintf("%g %%", 100*p))
	}
	v.times(x)
	for i, p := range s.Points {
		v.path(staircase(p.CDF, x, y), class(i), p.Label)
	}
	return v.close()
}

// times draws the axis of a scale in ns.
func (s *svg) times(x scale) {
	last := ""
	for _, t := range x.ticks(7) {
		s.line(x.at(t), chartTop, x.at(t), chartHeight-chartBottom, "grid")
		if label := units.Duration(t); label != last {
			s.text(x.at(t), chartHeight-chartBottom+15, "tick mid", label)
			last = label
		}
	}
	s.line(chartLeft, chartHeight-chartBottom, chartWidth-chartRight, chartHeight-chartBottom, "axis")
}

// counts draws the grid of a scale of numbers.
func (s *svg) counts(y scale) {
	for _, n := range y.ticks(5) {
		s.line(chartLeft, y.at(n), chartWidth-chartRight, y.at(n), "grid")
		s.text(chartLeft-6, y.at(n)+4, "tick end", units.Count(n))
	}
}

// rateChart draws operations per minute by level, one line per series. A bar is the range
// of the trials.
func rateChart(s sweep.Sweep) template.HTML {
	var levels []float64
	most := 1.0
	for _, series := range s.Series {
		for _, p := range series.Points {
			levels = append(levels, p.Level)
			for _, r := range p.PerMinute {
				most = max(most, r)
			}
		}
	}
	if len(levels) == 0 {
		return ""
	}
	x := scale{min: min(0, slices.Min(levels)), max: max(slices.Max(levels), 1), lo: chartLeft, hi: chartWidth - chartRight}
	y := scale{min: 0, max: most * 1.05, lo: chartHeight - chartBottom, hi: chartTop}
	var v svg
	v.open(chartWidth, chartHeight, "Operations a minute by "+s.Factor)
	v.counts(y)
	for _, l := range slices.Compact(slices.Sorted(slices.Values(levels))) {
		v.text(x.at(l), chartHeight-chartBottom+15, "tick mid", units.Count(l))
	}
	v.line(chartLeft, chartHeight-chartBottom, chartWidth-chartRight, chartHeight-chartBottom, "axis")
	for i, series := range s.Series {
		var line [][2]float64
		for _, p := range series.Points {
			if len(p.PerMinute) == 0 {
				continue
			}
			line = append(line, [2]float64{x.at(p.Level), y.at(p.Rate())})
			v.path([][2]float64{{x.at(p.Level), y.at(slices.Min(p.PerMinute))}, {x.at(p.Level), y.at(slices.Max(p.PerMinute))}}, class(i),
				fmt.Sprintf("%s, %s: %s a minute, %d trials", series.Name, p.Label, units.Count(p.Rate()), len(p.PerMinute)))
		}
		v.path(line, class(i), series.Name)
	}
	return v.close()
}

// statesChart draws how many pods were in each state over time.
func statesChart(p sweep.Point) template.HTML {
	s := p.States
	if s == nil {
		return ""
	}
	most := 1
	for _, counts := range [][]int{s.Pending, s.Creating, s.Running} {
		most = max(most, slices.Max(counts))
	}
	x := scale{min: float64(s.At[0]), max: float64(s.At[len(s.At)-1]), lo: chartLeft, hi: chartWidth - chartRight}
	y := scale{min: 0, max: 1.05 * float64(most), lo: chartHeight - chartBottom, hi: chartTop}
	var v svg
	v.open(chartWidth, chartHeight, "Pods by state over time at "+p.Label)
	v.counts(y)
	v.times(x)
	for i, counts := range [][]int{s.Pending, s.Creating, s.Running} {
		var line [][2]float64
		for j, n := range counts {
			line = append(line, [2]float64{x.at(float64(s.At[j])), y.at(float64(n))})
		}
		v.path(line, class(i), []string{"pending", "creating", "running"}[i])
	}
	return v.close()
}
