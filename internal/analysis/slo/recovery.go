package slo

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/analysis/recovery"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// recovery is the longest time until a workload was back, or answered again, after ops of an action.
func (s *source) recovery(q expr.Query) (expr.Value, error) {
	ws, err := s.data.Windows() // of all actions: the next op ends the search
	if err != nil {
		return expr.Value{}, err
	}
	share := q.Q
	if q.Func == expr.Outage {
		share = recovery.Share
	}
	var v expr.Value
	for _, r := range recovery.Of(s.data, ws, share) {
		if r.Control != q.Windows[0].Action || r.Action != q.Metric.Action ||
			r.Metric != q.Metric.Name && r.Metric != q.Metric.Name+metric.IOPS {
			continue
		}
		t := &r.Recovered
		if q.Func == expr.Outage {
			t = r.Serving
		}
		v.N++
		if t == nil {
			continue
		}
		v.Number = max(v.Number, float64(t.Ns))
		if t.AtLeast {
			v.AtLeast, v.High = true, math.Inf(1)
		}
	}
	if v.N == 0 {
		return v, fmt.Errorf("%w: no op of %s had 3 values of %s in the 10 s before it", expr.ErrNoData, q.Windows[0].Action,
			q.Metric)
	}
	return v, nil
}
