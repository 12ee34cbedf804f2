package cli

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/observation"
	ratesearch "github.com/cnsbench/cnsbench/internal/stats/search"
	"github.com/cnsbench/cnsbench/internal/study"
)

// foundAt is the result of a search of control operations whose steps are in a directory, also of an interrupted one;
// nil: the directory has a study of another kind.
func foundAt(dir string) (*summary.FindMax, error) {
	d, err := study.Open(dir)
	if err != nil || d.Search == nil {
		return nil, err
	}
	return d.Found()
}

// searchAt is the result of a complete search for a comparison; nil: the directory has none.
func searchAt(dir string) (*summary.FindMax, error) {
	if !hasFile(dir, studyFile) {
		return nil, nil
	}
	found, err := foundAt(dir)
	if err == nil && found != nil && ratesearch.Verdict(found.Verdict) == ratesearch.Interrupted {
		return nil, fmt.Errorf("the search of %s %w: repeat its command to continue it", dir, errIncomplete)
	}
	return found, err
}

// addSearch adds the highest rate that a search found, as one trial of a cell: a lower bound if the condition held at
// all rates, no value if at none.
func addSearch(b *observation.Builder, levels []string, found *summary.FindMax) {
	q := expr.Query{Func: expr.FindMax, Metric: expr.Metric{Action: found.Stage}}
	row := observation.Row{Levels: levels, Metric: observation.Metric{Name: q.String(), Unit: q.Func.Unit()}}
	switch {
	case found.PerSecond == nil:
		row.State = observation.Missing
	case found.AbovePerSecond == nil:
		row.Value, row.State = *found.PerSecond, observation.AtLeast
	default:
		row.Value = *found.PerSecond
	}
	b.Add(row)
}
