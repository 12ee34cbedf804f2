package parser

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Place sets when scalars were measured, of those of which the parser does not say it: over the time of the histogram
// of their operation, else that of all histograms, else that of the series. A rate times that time is what was done, by
// which the lives of a workload that restarts are put together.
func (r *Result) Place() {
	of := map[string]*extent{}
	all, series := &extent{}, &extent{}
	for _, h := range r.Totals {
		if of[h.Metric] == nil {
			of[h.Metric] = &extent{}
		}
		of[h.Metric].add(h.From, h.To)
		all.add(h.From, h.To)
	}
	for _, s := range r.Series {
		if n := len(s.Points); n > 1 { // the last may end before its step does
			series.add(s.Points[0].At, s.Points[n-1].At)
		}
	}
	for i := range r.Scalars {
		s := &r.Scalars[i]
		operation := s.Metric[:max(0, strings.LastIndexByte(s.Metric, '.'))]
		for _, e := range []*extent{of[operation], all, series} {
			if s.From == 0 && s.To == 0 && e != nil {
				s.From, s.To = e.from, e.to
			}
		}
	}
}

// extent is the time from the first start to the last end; the zero value is empty.
type extent struct{ from, to op.Time }

func (e *extent) add(from, to op.Time) {
	switch {
	case to <= from:
	case *e == extent{}:
		*e = extent{from, to}
	default:
		*e = extent{min(e.from, from), max(e.to, to)}
	}
}
