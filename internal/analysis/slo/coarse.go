package slo

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Bounds of coarseSlices: a window overlaps nearly all slices though its ops were not in
// progress for a part of their time.
const (
	nearlyAll    = 0.95 // of the slices
	leastOutside = 0.10 // of their time
)

// Coarse flags objectives with during() on a metric whose time slices are so long that
// ops overlap nearly all of them: the value is that of the whole run.
func (j *Judge) Coarse() (flags []bundle.Flag) {
	for i, p := range j.programs {
		if p == nil {
			continue // it is in the verdict
		}
		for _, q := range p.Queries() {
			if len(q.Windows) != 1 || !q.Windows[0].Inside {
				continue
			}
			action := q.Windows[0].Action
			if evidence, ok := coarse(slicesOf(j.data, q), j.source.windows[action]); ok {
				flags = append(flags, bundle.Flag{Name: "coarseSlices", Severity: validity.Warning,
					Evidence: fmt.Sprintf("objective %s: during(%q) takes %s: %s is close to the value of the whole run; "+
						"use shorter slices", j.verdicts[i].Name, action, evidence, q)})
			}
		}
	}
	return flags
}

// slicesOf returns the time slices of a query's metric, or the steps of its rate.
func slicesOf(d *dataset.Data, q expr.Query) []dataset.Span {
	var list []dataset.Span
	if rate := rateSuffix[q.Func]; rate != "" {
		for _, x := range d.Series {
			if x.Action == q.Metric.Action && x.Metric == q.Metric.Name+rate && inPhase(q, x.Phase) {
				for _, p := range x.Points {
					if p.At < d.MeasuredFrom(x.Instance) {
						continue
					}
					list = append(list, dataset.Span{From: p.At, To: p.At + op.Time(x.Step)})
				}
			}
		}
		return list
	}
	for _, h := range d.Slices {
		if h.Action == q.Metric.Action && h.Metric == q.Metric.Name && inPhase(q, h.Phase) &&
			h.From >= d.MeasuredFrom(h.Instance) {
			list = append(list, dataset.Span{From: h.From, To: h.To})
		}
	}
	return list
}

// coarse reports whether ops overlap nearly all slices while they cover only a part of
// the time.
func coarse(list []dataset.Span, ops dataset.Union) (evidence string, ok bool) {
	if len(list) == 0 || len(ops) == 0 {
		return "", false
	}
	in, long := 0, op.Time(0)
	whole := list[0]
	for _, s := range list {
		if ops.Overlaps(s.From, s.To) {
			in++
		}
		long += s.To - s.From
		whole = dataset.Span{From: min(whole.From, s.From), To: max(whole.To, s.To)}
	}
	var covered op.Time
	for _, o := range ops {
		covered += max(0, min(o.To, whole.To)-max(o.From, whole.From))
	}
	progress := float64(covered) / float64(max(1, whole.To-whole.From))
	return fmt.Sprintf("%d of %d time slices (of %s), though its ops were in progress for %.0f %% of the time",
			in, len(list), units.Duration(float64(long)/float64(len(list))), 100*progress),
		float64(in) >= nearlyAll*float64(len(list)) && 1-progress > leastOutside
}
