package dataset

import (
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// addCutOffTotals adds totals of instances of an incomplete bundle that have slices and
// no totals: they were cut off, or still run. Latencies are merged from the slices,
// rates averaged from the series in that time.
func (d *Data) addCutOffTotals() {
	if d.Bundle.Complete {
		return
	}
	var totals []bundle.HistogramSlice
	for _, h := range d.Slices {
		if slices.ContainsFunc(d.Totals, func(t bundle.HistogramSlice) bool { return t.Instance == h.Instance }) {
			continue
		}
		if d.CutOff == nil {
			d.CutOff = map[string]bool{}
		}
		d.CutOff[h.Instance] = true
		i := slices.IndexFunc(totals, func(t bundle.HistogramSlice) bool {
			return t.Instance == h.Instance && t.Metric == h.Metric && t.Phase == h.Phase
		})
		if i < 0 {
			i = len(totals)
			t := h
			t.Total, t.Hist = true, hist.New()
			totals = append(totals, t)
		}
		t := &totals[i]
		_ = t.Hist.Merge(h.Hist) // counts of a run do not overflow
		t.From, t.To = min(t.From, h.From), max(t.To, h.To)
	}
	for i := range totals { // a slice may begin in the ramp, which it does not contain
		t := &totals[i]
		t.From = min(max(t.From, d.rampEnd(t.Instance, t.Action)), t.To)
	}
	d.Totals = append(d.Totals, totals...)
	d.addCutOffScalars(totals)
}

// rampEnd returns from when an instance of an object storage run was measured; op.Never
// if unknown.
func (d *Data) rampEnd(instance, action string) op.Time {
	at := op.Never
	for _, i := range d.Instances {
		for _, s := range i.Starts {
			if i.Name == instance && s.At.Known() {
				at = s.At
			}
		}
	}
	for _, s := range d.Stages(action) {
		for _, w := range s.Works {
			if at.Known() && d.Bundle.Run.ObjectsOnly() && (action == s.Name+"."+w.Name || action == s.Name &&
				w.Name == s.Name) {
				return at + op.Time(w.RampUpNs)
			}
		}
	}
	return op.Never
}

// countOf has the suffix of the scalar that a series integrates to.
var countOf = map[string]string{metric.IOPS: metric.Completed, metric.Bandwidth: metric.Transferred,
	metric.Failed: metric.Failed, metric.Lost: metric.Lost}

// addCutOffScalars adds the scalars that instances would have written at their end, over
// the time of their slices.
func (d *Data) addCutOffScalars(totals []bundle.HistogramSlice) {
	type key struct {
		instance, name string
		phase          int
	}
	means := map[key]*mean{}
	var order []bundle.Scalar
	for _, s := range d.Series {
		from, to := op.Time(math.MaxInt64), op.Never
		for _, t := range totals {
			if t.Instance == s.Instance && t.Phase == s.Phase {
				from, to = min(from, t.From), max(to, t.To)
			}
		}
		k := key{s.Instance, s.Metric, s.Phase}
		for _, p := range s.Points {
			if middle := p.At + op.Time(s.Step/2); middle < from || middle >= to {
				continue
			}
			if means[k] == nil {
				means[k] = &mean{}
				order = append(order, bundle.Scalar{
					Labels: bundle.Labels{Instance: s.Instance, Action: s.Action, Phase: s.Phase},
					Scalar: metric.Scalar{Metric: s.Metric, Unit: s.Unit},
				})
			}
			means[k].add(p.Value, Span{p.At, p.At + op.Time(s.Step)})
		}
	}
	for _, x := range order {
		k := key{x.Instance, x.Metric, x.Phase}
		i := max(0, strings.LastIndexByte(x.Metric, '.'))
		count, ok := countOf[x.Metric[i:]]
		if !ok || means[k].weight == 0 {
			continue
		}
		if count != x.Metric[i:] {
			x.Value = means[k].value(metric.Rate, "")
			d.Scalars = append(d.Scalars, x)
		}
		d.Scalars = append(d.Scalars, bundle.Scalar{
			Labels: bundle.Labels{Instance: x.Instance, Action: x.Action, Phase: x.Phase},
			Scalar: metric.Scalar{Metric: x.Metric[:i] + count, Value: math.Round(means[k].sum / 1e9)},
		})
	}
}
