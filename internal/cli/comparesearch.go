package cli

import (
	"fmt"
	"maps"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
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

// searchOrigin has the runs of the steps of a search, and what they were asked for: all but the searched rate and the
// time of a step, which depends on it.
func searchOrigin(label, dir string) (origin, error) {
	o := newOrigin(label)
	d, err := study.Open(dir)
	if err != nil {
		return o, err
	}
	for _, t := range d.Trials {
		if b := d.Bundle(t); b != nil {
			if err := o.addRun(nil, &b.Run, d.Of(t)); err != nil {
				return o, err
			}
		}
	}
	c := o.cell(nil)
	maps.DeleteFunc(c.workload, func(name string, values []string) bool {
		return len(values) > 1 || name == "spec.runtime" || strings.HasPrefix(name, "spec.rates."+d.Search.Rate+".")
	})
	c.workload["find-max.condition"] = []string{d.Search.Condition}
	c.workload["find-max.window"] = []string{d.Search.Window.String()}
	return o, nil
}
