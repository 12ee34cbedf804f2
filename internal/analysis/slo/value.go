package slo

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/expr"
)

// Value answers one query.
func (s *source) Value(q expr.Query) (expr.Value, error) {
	for _, w := range q.Windows {
		if len(s.windows[w.Action]) == 0 {
			return expr.Value{}, fmt.Errorf("%w: no op of %s was ever in progress", expr.ErrNoData, w.Action)
		}
	}
	if isSearch(q) {
		return s.search(q)
	}
	if q.Func == expr.Interference {
		return s.interference(q)
	}
	if q.AfterOps() {
		return s.recovery(q)
	}
	if q.OfTenant() {
		return s.tenant(q)
	}
	if q.OfPrometheus() {
		return s.prometheus(q)
	}
	if q.Func == expr.ValueOf {
		return s.figure(q)
	}
	if q.Func == expr.Elapsed {
		return s.elapsed(q.Metric.Action)
	}
	if s.isIO(q.Metric) {
		return s.io(q)
	}
	if q.Phase != nil {
		return expr.Value{}, fmt.Errorf("%s has no phases: only a workload's I/O has", q.Metric)
	}
	if q.Metric.Name != "" && !isMilestone(q.Metric.Name) {
		of := dataset.Selection{Instance: func(instance string, _ int) bool {
			return dataset.ActionOf(instance) == q.Metric.Action
		}}
		if f, ok := s.data.Figure(q.Metric.Name, of); ok {
			return expr.Value{}, fmt.Errorf("%s is a %s and has no latencies: ask for value(%s)", q.Metric, f.Kind, q.Metric)
		}
	}
	t, ok := s.ops[q.String()]
	if !ok {
		return expr.Value{}, fmt.Errorf("query %s is unknown to this source", q)
	}
	if q.Func == expr.Rate && t.ops > 0 {
		return s.rate(q)
	}
	return t.value(q)
}
