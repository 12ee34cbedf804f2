package imported

import "github.com/cnsbench/cnsbench/internal/observation"

// Figure is one figure that a tool printed.
type Figure struct {
	observation.Metric
	Value float64
}

// figureOf makes a figure.
func figureOf(name, unit string, x float64) Figure {
	return Figure{Metric: observation.Metric{Name: name, Unit: unit}, Value: x}
}
