package table

import (
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/timeline"
)

// Series returns the table of what was measured of workloads over time: one row a point. A
// value holds over [at_ns, at_ns + step_ns).
func Series(b *bundle.Bundle) (*Table, error) {
	d, err := dataset.Read(b)
	if err != nil {
		return nil, err
	}
	lines, err := timeline.Of(d, b.Samples())
	if err != nil {
		return nil, err
	}
	return &Table{
		Columns: []Column{{"run_id", Text}, {"instance", Text}, {"action", Text}, {"phase", Int}, {"source", Text},
			{"metric", Text}, {"unit", Text}, {"at_ns", Int}, {"step_ns", Int}, {"value", Float}},
		Rows: func(yield func([]any, error) bool) {
			for _, l := range lines {
				for _, p := range l.Points {
					if !yield([]any{b.Run.ID, l.Instance, l.Action, int64(l.Phase), l.Source, l.Metric, l.Unit, int64(p.At),
						p.Step, p.Value}, nil) {
						return
					}
				}
			}
		},
	}, nil
}
