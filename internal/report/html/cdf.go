package html

import (
	"fmt"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// cdfChart draws one action's distribution, response and service; empty without a latency.
func cdfChart(f figure.Action) template.HTML {
	if f.N == 0 {
		return ""
	}
	c := newTailChart("Distribution of the latency of "+f.Name, f.N, f.Response, f.Service)
	c.path(staircase(f.Service, c.x, c.y), "c1 dashed", "service")
	c.path(staircase(f.Response, c.x, c.y), "c0", "response")
	return c.close()
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

// Curve is the distribution of one level.
type Curve struct {
	Label string
	N     int64
	Steps []stats.Step
}

// colours is the number of line colours in the style.
const colours = 5

// Class returns the style class of the i-th line of a figure; lines beyond the colours are dashed.
func Class(i int) string {
	c := fmt.Sprintf("c%d", i%colours)
	if i >= colours {
		c += " dashed"
	}
	return c
}

// Overlay draws the distributions of several levels over each other, with an axis that shows the tail.
func Overlay(title string, curves []Curve) template.HTML {
	var n int64
	var steps [][]stats.Step
	for _, c := range curves {
		n = max(n, c.N)
		steps = append(steps, c.Steps)
	}
	chart := newTailChart(title, n, steps...)
	for i, c := range curves {
		chart.path(staircase(c.Steps, chart.x, chart.y), Class(i), c.Label)
	}
	return chart.close()
}
