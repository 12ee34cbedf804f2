package slo

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
)

// prometheus answers value(NAME) of a query: the mean over the time after the barrier, of all its series. Instants
// without a value are left out, and said.
func (s *source) prometheus(q expr.Query) (expr.Value, error) {
	answers := s.data.Query(q.Metric.Action)
	if answers == nil {
		return expr.Value{}, fmt.Errorf("%w: nothing was recorded of query %s", expr.ErrNoData, q.Metric.Action)
	}
	f := answers.Over(func(at op.Time) bool { return s.data.Measured(at) && s.inside(q.Windows, at, at) })
	if f.N == 0 {
		return expr.Value{}, fmt.Errorf("%w: query %s had no value at %d instants%s", expr.ErrNoData, q.Metric.Action,
			f.Instants, inWindow(q))
	}
	v := expr.Value{Number: f.Mean, N: f.N}
	if f.Gaps > 0 {
		v.Warning = fmt.Sprintf("without a value: %d of %d instants", f.Gaps, f.Instants)
	}
	return v, nil
}
