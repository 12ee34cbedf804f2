package slo

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/tenant"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/expr"
)

// tenant answers violations and compliance. N is the number of whole seconds that were measured.
func (s *source) tenant(q expr.Query) (expr.Value, error) {
	list := tenant.Of(s.data, 0) // the seed is that of intervals, which are not used here
	i := slices.IndexFunc(list, func(t tenant.Tenant) bool { return t.Name == q.Metric.Action })
	switch {
	case i < 0:
		return expr.Value{}, fmt.Errorf("%w: the run has no tenant %q", expr.ErrNoData, q.Metric.Action)
	case list[i].ViolationsNs == nil:
		return expr.Value{}, fmt.Errorf("%w: tenant %q has no targets", expr.ErrNoData, q.Metric.Action)
	}
	for _, x := range list[i].Targets {
		if x.MeasuredNs == 0 {
			return expr.Value{}, fmt.Errorf("%w: no %s of tenant %q was measured over time", expr.ErrNoData, x.Metric,
				q.Metric.Action)
		}
	}
	t := &list[i]
	v := expr.Value{Number: float64(*t.ViolationsNs), N: t.MeasuredNs / 1e9}
	if q.Func == expr.Compliance {
		v.Number = compliance(*t.ViolationsNs, t.MeasuredNs)
	}
	for _, x := range t.Targets {
		if x.FewNs > 0 {
			v.Warning = join(v.Warning, fmt.Sprintf("in %s of the violations of %s p99 one I/O of fewer than 100 decides",
				units.Duration(float64(x.FewNs)), x.Metric))
		}
	}
	return v, nil
}

// compliance is the share of the measured time without violations, rounded down to four digits (of an hour 0.36 s): it
// is 1 only without any.
func compliance(violations, measured int64) float64 {
	return math.Floor(1e4*float64(measured-violations)/float64(measured)) / 1e4
}
