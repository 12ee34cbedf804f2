package cli

import (
	"errors"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// compared holds the values that compare reads from its arguments, and what their source declares about them.
type compared struct {
	table         *observation.Table
	factor        string // the compared one; "": that of --factor
	preferred     string // the compared one without --factor
	trial         string // what a trial is called; "": repetition
	paired        bool   // by design
	assumeBlock   float64
	margins       map[string]float64           // declared, by metric
	directions    map[string]verdict.Direction // declared, by metric
	arms          map[string][][2]string       // A/A pairs by factor
	distributions []compare.Distribution
	times         *compare.Times // nil: not known
	sentences     []string
	notes         []string
	costs         costed
	origins       []origin       // of the values
	unlike        string         // why the workloads cannot be compared; empty: they can
	flags         []compare.Flag // of an import
	quantiles     *compare.Quantiles
	least         map[string]int64 // operations that a quantile needs, by metric
	objectives    []string         // metrics that objectives name
}

// errIncomplete says that a run is no trial.
var errIncomplete = errors.New("did not complete: its figures are no trial")

// merged joins two lists, each text once.
func merged(a, b []string) []string {
	for _, text := range b {
		if !slices.Contains(a, text) {
			a = append(a, text)
		}
	}
	return a
}
