package imported

import "github.com/cnsbench/cnsbench/internal/observation"

// Figure is one figure that a tool printed.
type Figure struct {
	observation.Metric
	Value float64
	// Levels are those of factors that the tool's output has beside that of the file.
	Levels []Level
	// Options are what the tool says it ran with, of what decides whether figures can be compared. Figures of one metric
	// and level whose options differ are no repetitions: the options become part of the metric's name.
	Options map[string]string
}

// Level is a level of a factor.
type Level struct{ Factor, Level string }

// Severities of flags. A flag of severity Info says what was left out; a comparison does not show it.
const (
	Info    = "info"
	Warning = "warning"
	Invalid = "invalid"
)

// WorkloadsDiffer is the name of the flag of levels that did not run the same.
const WorkloadsDiffer = "workloadsDiffer"

// Flag is a validity flag of the figures of one file.
type Flag struct {
	Name     string `json:"name"`
	Severity string `json:"severity"`
	Level    string `json:"level"`
	Source   string `json:"source"` // name of the file
	Evidence string `json:"evidence"`
}

// Report is what a file of a tool says: the figures of one run, or of several, one after another.
type Report struct {
	Figures []Figure
	Flags   []Flag
}
