package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/shape"
	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// reached are the times until each milestone of an op by its base name, once and without those of calls, in order of
// time.
func reached(o *op.Op) (list []span.Span) {
	for i := range o.Milestones {
		base, _ := o.Milestones[i].Split()
		if strings.HasSuffix(base, ".start") || strings.HasSuffix(base, ".end") {
			continue
		}
		if !slices.ContainsFunc(o.Milestones[:i], func(before op.Milestone) bool {
			name, _ := before.Split()
			return name == base
		}) {
			list = append(list, span.Span{Name: base, From: "intended", To: base, At: o.Intended,
				Ns: int64(dataset.Milestone(o, base) - o.Intended)})
		}
	}
	return list
}

// spanSet gathers passages by name, in order of first appearance.
type spanSet struct {
	spans   []Span
	samples []*stats.Sample
	errs    []int64 // the greatest ± of each
}

// index is the place of a passage in the set, of which it becomes a part.
func (s *spanSet) index(p *span.Span) int {
	i := slices.IndexFunc(s.spans, func(x Span) bool { return x.Name == p.Name && x.From == p.From })
	if i < 0 {
		i = len(s.spans)
		s.spans = append(s.spans, Span{Name: p.Name, From: p.From, To: p.To})
		s.samples = append(s.samples, &stats.Sample{})
		s.errs = append(s.errs, 0)
	}
	return i
}

func (s *spanSet) add(i int, ns, err int64) {
	s.samples[i].Add(ns)
	s.errs[i] = max(s.errs[i], err)
}

// passage is one of all ops of a shape.
type passage struct {
	index    int     // in a spanSet
	from, to op.Time // places
	errs     []int   // milestones whose ± add up to its own
}

// passages are those of the spans of a sketch.
func (s *spanSet) passages(spans []span.Span) (list []passage) {
	for _, p := range spans {
		list = append(list, passage{s.index(&p), p.At, p.End(), shape.Errors(p.Err)})
	}
	return list
}

// addPassages adds those of an op with these instants.
func (s *spanSet) addPassages(list []passage, o *op.Op, at []op.Time) {
	for _, p := range list {
		err := int64(0)
		for _, i := range p.errs {
			err += o.Milestones[i].Err
		}
		s.add(p.index, int64(at[p.to]-at[p.from]), err)
	}
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
