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
	var longest longest
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
		longest.add(t, r.StepNs)
	}
	if v.N == 0 {
		return v, fmt.Errorf("%w: no op of %s had 3 values of %s in the 10 s before it", expr.ErrNoData, q.Windows[0].Action,
			q.Metric)
	}
	n := v.N
	v = longest.value()
	v.N = n
	return v, nil
}

// longest is the greatest of several times, each with its bounds.
type longest struct {
	greatest, low, high float64
	coarse              bool
}

// add adds a time, or nil: no outage was seen in slices of a length, in which one of less than two may be hidden.
func (l *longest) add(t *recovery.Time, step int64) {
	if t == nil {
		t = &recovery.Time{ErrorNs: 2 * step}
	}
	low, high := t.Bounds()
	l.greatest, l.low, l.high = max(l.greatest, float64(t.Ns)), max(l.low, low), max(l.high, high)
	l.coarse = l.coarse || t.LowNs != nil || t.AtLeast
}

// value is the greatest with its error, or what is known of it: the least and the most that it can be.
func (l *longest) value() expr.Value {
	switch {
	case !l.coarse:
		return expr.Value{Number: l.greatest, Within: l.high - l.greatest}
	case math.IsInf(l.high, 1):
		return expr.Value{Number: l.low, AtLeast: true, High: l.high}
	}
	return expr.Value{Number: l.low, AtLeast: true, High: l.high,
		Warning: "a slice of the tool was longer than its interval, which says nothing of what was inside it"}
}
