package slo

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/expr"
)

// elapsed is how long the instances of a workload ran, the mean. One whose end was not seen makes it a lower bound; one
// that failed did not do its work and has no time.
func (s *source) elapsed(action string) (expr.Value, error) {
	var v expr.Value
	sum, failed := 0.0, 0
	for _, i := range s.data.Instances {
		from := s.data.MeasuredFrom(i.Name)
		if dataset.ActionOf(i.Name) != action || !from.Known() {
			continue
		}
		end := s.data.End()
		switch {
		case i.End == nil || !i.End.At.Known():
			v.AtLeast, v.High = true, math.Inf(1)
		case !i.End.OK:
			failed++
			continue
		default:
			end = i.End.At
		}
		sum += float64(max(0, end-from))
		v.N++
	}
	if v.N == 0 {
		return v, fmt.Errorf("%w: no instance of %s ran to its end (%d failed)", expr.ErrNoData, action, failed)
	}
	v.Number = sum / float64(v.N)
	if failed > 0 {
		v.Warning = fmt.Sprintf("%d more failed", failed)
	}
	return v, nil
}
