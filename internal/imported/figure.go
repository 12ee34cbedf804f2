package imported

import "github.com/cnsbench/cnsbench/internal/observation"

// Figure is one figure that a tool printed.
type Figure struct {
	observation.Metric
	Value float64
	// Levels are those of factors that the tool's output has beside that of the file.
	Levels []Level
}

// Level is a level of a factor.
type Level struct{ Factor, Level string }

// figureOf makes a figure.
func figureOf(name, unit string, x float64) Figure {
	return Figure{Metric: observation.Metric{Name: name, Unit: unit}, Value: x}
}

// Flag is a validity flag of the figures of one file.
type Flag struct {
	Name     string `json:"name"`
	Severity string `json:"severity"` // warning or invalid
	Level    string `json:"level"`
	Source   string `json:"source"` // name of the file
	Evidence string `json:"evidence"`
}
