package slo

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/expr"
)

// interference is a quantile of a workload's I/O while ops were in progress ÷ the same while none was.
func (s *source) interference(q expr.Query) (expr.Value, error) {
	if !s.isIO(q.Metric) {
		return expr.Value{}, fmt.Errorf("%w: %s is no I/O over time that was recorded", expr.ErrNoData, q.Metric)
	}
	side := q
	side.Func = expr.Quantile
	in, err := s.io(side)
	if err != nil {
		return expr.Value{}, err
	}
	side.Windows = []expr.Window{{Action: q.Windows[0].Action}}
	out, err := s.io(side)
	switch {
	case err != nil:
		return expr.Value{}, err
	case out.AtLeast || math.IsInf(out.Number, 0) || !(out.Number > 0):
		return expr.Value{}, fmt.Errorf("%w: the quantile of %s outside of ops of %s is not known", expr.ErrNoData,
			q.Metric, q.Windows[0].Action)
	}
	v := expr.Value{Number: in.Number / out.Number, N: min(in.N, out.N), AtLeast: in.AtLeast, High: in.High / out.Number,
		Warning: join(in.Warning, out.Warning)}
	if in.Few != nil || out.Few != nil {
		v.Few = &expr.Bounds{Low: bounds(in).Low / bounds(out).High, High: bounds(in).High / bounds(out).Low}
	}
	return v, nil
}

// bounds are those of a value with too few values, else the value itself.
func bounds(v expr.Value) expr.Bounds {
	if v.Few != nil {
		return *v.Few
	}
	return expr.Bounds{Low: v.Number, High: v.Number}
}
