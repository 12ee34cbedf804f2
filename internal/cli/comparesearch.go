package cli

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
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

// addSearch adds the result of a search, as one trial of a cell.
func addSearch(b *observation.Builder, levels []string, found *summary.FindMax) {
	v := trial.OfSearch(found)
	b.Add(observation.Row{Levels: levels, Metric: v.Metric, Value: v.Value, State: v.State})
}
