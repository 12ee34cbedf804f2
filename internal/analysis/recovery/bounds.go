package recovery

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// between joins the earliest and the latest possible time. nil of serving: there was no time without operations.
func between(earliest, latest *Time) *Time {
	low := int64(0)
	switch {
	case latest == nil:
		return earliest
	case earliest != nil && *earliest == *latest:
		return latest
	case earliest != nil:
		low = max(0, earliest.Ns-earliest.ErrorNs)
	}
	t := *latest
	t.Ns += t.ErrorNs
	t.ErrorNs, t.LowNs = 0, &low
	return &t
}

// Bounds are the least and the greatest possible time in ns; the greatest is +Inf of a time that was not seen.
func (t Time) Bounds() (low, high float64) {
	low, high = float64(max(0, t.Ns-t.ErrorNs)), float64(t.Ns+t.ErrorNs)
	if t.LowNs != nil {
		low = float64(*t.LowNs)
	}
	if t.AtLeast {
		high = math.Inf(1)
	}
	return low, high
}

// soonest is the instant from which on a coarse slice could have had the limit: all its operations at its end.
func (c curve) soonest(p metric.Point, limit float64) op.Time {
	end := c.End(p)
	n := p.Value * float64(end-p.At)
	return end - op.Time(min(n/limit, float64(end-p.At)))
}
