package dataset

import (
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// AddLatencies adds an op to samples of its response and service time: a value if it was ok,
// a lower bound if it timed out or was censored, and an infinite response if it was
// dropped. A failed op has no latency. service may be nil.
func AddLatencies(o *op.Op, response, service *stats.Sample) {
	add := func(s *stats.Sample, latency func() (int64, bool)) {
		ns, known := latency()
		switch {
		case !known || s == nil:
		case o.Outcome == op.OK:
			s.Add(ns)
		case o.Outcome == op.Timeout || o.Outcome == op.Censored:
			s.AddAtLeast(ns)
		}
	}
	if o.Outcome == op.Dropped {
		response.AddInfinite(1)
		return
	}
	add(response, o.Response)
	add(service, o.Service)
}
