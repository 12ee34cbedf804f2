package plan

import (
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/plan/validate"
)

const studyKind = "Study"

// Study is a Study in a file.
type Study struct {
	v1alpha1.Study
	File string // that has it, for messages
	// Order lists the factors in the order of the file.
	Order []string
}

// LoadStudy returns the Study in files. Without a Study it returns nil and no problems.
// It does not check the Benchmark: Load does so for each trial.
func LoadStudy(files []File) (*Study, []Problem) {
	report := &parse.Report{}
	var found *Study
	for _, f := range files {
		docs, problems := parse.Documents(f)
		report.Add(problems...)
		for _, d := range docs {
			if d.Value["kind"] != studyKind {
				continue
			}
			report.Document = d
			if found != nil {
				report.Fail("kind", "one file, one study", "this is a second Study")
				continue
			}
			found = &Study{Study: *validate.Study(report), File: f.Name}
			line := func(factor string) int { return d.Line("spec.factors." + factor) }
			found.Order = slices.Sorted(maps.Keys(found.Spec.Factors))
			slices.SortStableFunc(found.Order, func(a, b string) int { return line(a) - line(b) })
		}
	}
	if len(report.Problems) > 0 {
		return nil, parse.Sorted(report.Problems)
	}
	return found, nil
}
