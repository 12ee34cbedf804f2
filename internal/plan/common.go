package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// unsupported reports a field that the engine does not support.
func unsupported(report *parse.Report, has engine.Capabilities, path, what string) {
	hint := ""
	if !has.Cluster {
		hint = "--engine kubernetes has it"
	}
	message := "not offered"
	if !strings.HasSuffix(path, "."+what) {
		message = what + ": " + message
	}
	report.Fail(path, hint, "%s by engine %s", message, has.Engine)
}

// positive returns a duration, and reports it if it is not positive. It returns 0 if d
// is nil or not positive.
func positive(report *parse.Report, path string, d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if d.Duration.Duration <= 0 {
		report.Fail(path, "", "must be more than 0")
		return 0
	}
	return d.Duration.Duration
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func hasAll(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}
