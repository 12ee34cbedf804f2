package summary

import (
	"fmt"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// reached calls f for each milestone of an op by its base name, once and without those of
// calls, in order of time.
func reached(o *op.Op, f func(name string)) {
	for i := range o.Milestones {
		base, _ := o.Milestones[i].Split()
		if strings.HasSuffix(base, ".start") || strings.HasSuffix(base, ".end") {
			continue
		}
		first := true
		for k := range i {
			first = first && !o.Milestones[k].Is(base)
		}
		if first {
			f(base)
		}
	}
}

// spanSet gathers passages by name, in order of first appearance.
type spanSet struct {
	spans   []Span
	samples []*stats.Sample
	errs    []int64 // the greatest ± of each
}

func (s *spanSet) add(p *span.Span) {
	i := 0
	for i < len(s.spans) && (s.spans[i].Name != p.Name || s.spans[i].From != p.From) {
		i++
	}
	if i == len(s.spans) {
		s.spans = append(s.spans, Span{Name: p.Name, From: p.From, To: p.To})
		s.samples = append(s.samples, &stats.Sample{})
		s.errs = append(s.errs, 0)
	}
	s.samples[i].Add(p.Ns)
	s.errs[i] = max(s.errs[i], p.Err)
}

func (s *spanSet) list() []Span {
	for i := range s.spans {
		s.spans[i].Latency = latencyOf(s.samples[i])
	}
	return s.spans
}

// doubtful lists the spans whose ± is more than a share of their median.
func (s *spanSet) doubtful() []string {
	var list []string
	for i, x := range s.samples {
		if e, ok := x.Quantile(0.5); ok && float64(s.errs[i]) > validity.ClockShare*float64(e.Value) {
			list = append(list, fmt.Sprintf("%s (%s ± %s)", s.spans[i].Name, ns(e.Value), ns(s.errs[i])))
		}
	}
	return list
}
