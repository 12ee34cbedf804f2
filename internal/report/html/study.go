package html

import (
	_ "embed"
	"fmt"
	"io"
	"slices"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/sweep"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/visible"
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
	Causes    []StudyCauses
	Boxes     []BoxPlot
}

// StudyCauses say what takes the time of the operations of one action, in a row for each cell.
type StudyCauses struct {
	Action string
	Rows   []CauseRow
}

// CauseRow is one cell: its levels, and in words the times of the components and what stands out.
type CauseRow struct {
	Levels           []string
	Trials           int
	Times, StandsOut string
}

// StudyRow is a cell: levels, number of trials, and responses as text.
type StudyRow struct{ Cells []string }

// WriteStudy writes the page of a study.
func WriteStudy(w io.Writer, s *Study) error {
	t, err := template.New("study").Funcs(functions).Funcs(studyFunctions).Parse(studyText)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return t.Execute(&visible.Writer{To: w}, studyPage{s, sweep.Note, template.CSS(style)}) //nolint:gosec // our own file
}

// studyPage is the data of the template of a study.
type studyPage struct {
	*Study
	SweepNote string
	Style     template.CSS
}

// studyFunctions are those of the template of a study alone.
var studyFunctions = template.FuncMap{
	"cdfs": levelCDFs, "rates": rateChart, "states": statesChart,
	"boxHeading": BoxPlot.Heading, "boxMeans": BoxPlot.means, "boxLog": BoxPlot.log, "boxChart": BoxPlot.chart,
	"boxFigures": BoxPlot.Figures,
	"numbered":   func(i int) string { return fmt.Sprintf("c%d", i%colours) },
}

// levelCDFs draws the distributions of the response, one line per level.
func levelCDFs(s sweep.Series) template.HTML {
	var curves [][]stats.Step
	for _, p := range s.Points {
		curves = append(curves, p.CDF)
	}
	c := newCDFChart("Distributions of the response, "+s.Name, curves...)
	for i, p := range s.Points {
		c.path(staircase(p.CDF, c.x, c.y), Class(i), p.Label)
	}
	return c.close()
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
	v := newChart("Operations a minute by "+s.Factor,
		scale{min: min(0, slices.Min(levels)), max: max(slices.Max(levels), 1)}, scale{max: most * 1.05})
	v.counts()
	for _, l := range slices.Compact(slices.Sorted(slices.Values(levels))) {
		v.tick(l, units.Count(l))
	}
	for i, series := range s.Series {
		var line [][2]float64
		for _, p := range series.Points {
			if len(p.PerMinute) == 0 {
				continue
			}
			line = append(line, v.at(p.Level, p.Rate()))
			low, high := v.at(p.Level, slices.Min(p.PerMinute)), v.at(p.Level, slices.Max(p.PerMinute))
			beside := 4 * (float64(i) - float64(len(s.Series)-1)/2) // pixels, so that the bars of a level do not overlap
			low[0], high[0] = low[0]+beside, high[0]+beside
			v.path([][2]float64{low, high}, Class(i),
				fmt.Sprintf("%s, %s: %s a minute, %d trials", series.Name, p.Label, units.Count(p.Rate()),
					len(p.PerMinute)))
		}
		v.path(line, Class(i), series.Name)
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
	v := newChart("Pods by state over time at "+p.Label,
		scale{min: float64(s.At[0]), max: float64(s.At[len(s.At)-1])}, scale{max: 1.05 * float64(most)})
	v.whole()
	v.times()
	for i, counts := range [][]int{s.Pending, s.Creating, s.Running} {
		var line [][2]float64
		for j, n := range counts {
			line = append(line, v.at(float64(s.At[j]), float64(n)))
		}
		v.path(line, Class(i), []string{"pending", "creating", "running"}[i])
	}
	return v.close()
}
