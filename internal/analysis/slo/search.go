package slo

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/expr"
)

func isSearch(q expr.Query) bool { return q.Func == expr.FindMax || q.Func == expr.Knee }

// search returns the result of a capacity search of a stage. A rate without one above it that failed is a lower
// bound.
func (s *source) search(q expr.Query) (expr.Value, error) {
	name := q.Metric.Action + "." + string(q.Func)
	v, bounded := expr.Value{}, q.Func != expr.FindMax
	for _, x := range s.data.Scalars {
		switch {
		case x.Action != q.Metric.Action:
		case x.Metric == name:
			v.Number, v.N = x.Value, 1
		case x.Metric == name+".above":
			bounded = true
		}
	}
	if v.N == 0 {
		return v, fmt.Errorf("%w: %s was not searched, or has no result", expr.ErrNoData, q)
	}
	v.High, v.AtLeast = v.Number, !bounded
	return v, nil
}
