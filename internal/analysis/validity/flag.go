package validity

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Severities of a flag.
const (
	Info    = "info"    // worth knowing
	Warning = "warning" // weakens a figure
	Invalid = "invalid" // a figure must not be used
)

func flag(name, severity, format string, args ...any) bundle.Flag {
	return bundle.Flag{Name: name, Severity: severity, Evidence: fmt.Sprintf(format, args...)}
}

func ns(v int64) string { return units.Duration(float64(v)) }
