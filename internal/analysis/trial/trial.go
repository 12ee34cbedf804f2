// Package trial reads what a comparison needs of a bundle: one value for each metric, and the series within it.
package trial

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/recovery"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Value is the value of one metric of a bundle.
type Value struct {
	Query  expr.Query
	Metric observation.Metric
	Value  float64
	State  observation.State
	// Objective says that an objective of the run names the metric.
	Objective bool
}

// Values are the medians of the latencies of each action and of its I/O, their rates, how much the ops of each action
// with a rate disturb the canaries, the highest rate that a search found, and what else the parsers of workloads
// declare.
func Values(d *dataset.Data) ([]Value, error) {
	queries, err := queriesOf(d)
	if err != nil {
		return nil, err
	}
	return valuesOf(d, queries, nil)
}

// ValuesAndObjectives are the Values, and those of the figures that the run's objectives name.
func ValuesAndObjectives(d *dataset.Data) ([]Value, error) {
	queries, err := queriesOf(d)
	if err != nil {
		return nil, err
	}
	return valuesOf(d, queries, objectives(d))
}

// objectives are the queries of the objectives; an expression that is not valid has none.
func objectives(d *dataset.Data) (queries []expr.Query) {
	for _, s := range d.Spec.SLOs {
		if p, err := expr.Compile(s.Expr, expr.Env{}); err == nil {
			queries = append(queries, p.Queries()...)
		}
	}
	return queries
}

// queriesOf are the queries of Values.
func queriesOf(d *dataset.Data) (queries []expr.Query, err error) {
	for _, a := range d.Spec.Actions {
		queries = append(queries, expr.Query{Func: expr.Quantile, Q: 0.5, Metric: expr.Metric{Action: a.Name}})
		if a.RateName != "" {
			queries = append(queries, expr.Query{Func: expr.Rate, Metric: expr.Metric{Action: a.Name}})
		}
	}
	for _, m := range operations(d) {
		queries = append(queries, expr.Query{Func: expr.Quantile, Q: 0.5, Metric: m})
		if m.Name != metric.CanaryRead && m.Name != metric.CanaryWrite { // the canary has a fixed rate
			queries = append(queries, expr.Query{Func: expr.IOPS, Metric: m}, expr.Query{Func: expr.Throughput, Metric: m})
			continue
		}
		for _, a := range d.Spec.Actions {
			if a.RateName != "" && a.Name != m.Action {
				queries = append(queries, expr.InterferenceOf(m, a.Name))
			}
		}
	}
	for _, s := range d.Scalars {
		q := expr.Query{Func: expr.FindMax, Metric: expr.Metric{Action: s.Action}}
		if s.Metric == s.Action+"."+string(expr.FindMax) {
			queries = append(queries, q)
		}
	}
	for _, a := range d.Spec.Actions {
		for _, f := range d.Figures(dataset.Selection{Instance: func(instance string, _ int) bool {
			return dataset.ActionOf(instance) == a.Name
		}}) {
			queries = append(queries, expr.Query{Func: expr.ValueOf, Metric: expr.Metric{Action: a.Name, Name: f.Metric}})
		}
	}
	after, err := recoveries(d)
	if err != nil {
		return nil, err
	}
	return append(queries, after...), nil
}

// valuesOf answers queries, and those of objectives that are not among them. A query of an objective that has no answer
// has no value.
func valuesOf(d *dataset.Data, queries, objectives []expr.Query) ([]Value, error) {
	named, known := map[string]bool{}, map[string]bool{}
	for _, q := range queries {
		known[q.String()] = true
	}
	own := len(queries)
	for _, q := range objectives {
		name := q.String()
		if named[name] = true; !known[name] {
			queries, known[name] = append(queries, q), true
		}
	}
	answers, err := slo.Answers(d, queries)
	if err != nil {
		return nil, err
	}
	var list []Value
	for i, a := range answers {
		v := Value{Query: queries[i], Value: a.Value.Number, Objective: named[queries[i].String()],
			Metric: observation.Metric{Name: queries[i].String(),
				Unit: cmp.Or(queries[i].Func.Unit(), a.Value.Unit), Better: string(a.Value.Better)}}
		switch {
		case errors.Is(a.Err, expr.ErrNoData), a.Err != nil && i >= own:
			continue // the run has no such figure
		case a.Err != nil:
			return nil, a.Err
		case math.IsInf(v.Value, 1):
			v.State = observation.Infinite
		case slo.TooFew(v.Query, a.Value):
			v.State = observation.Few
		case a.Value.AtLeast:
			v.State = observation.AtLeast
		}
		list = append(list, v)
	}
	return list, nil
}

// OfSearch is the highest rate that a search by runs found: a lower bound if the condition held at all rates, and no
// value if at none.
func OfSearch(found *summary.FindMax) Value {
	q := expr.Query{Func: expr.FindMax, Metric: expr.Metric{Action: found.Stage}}
	v := Value{Query: q, Metric: observation.Metric{Name: q.String(), Unit: q.Func.Unit()}}
	switch {
	case found.PerSecond == nil:
		v.State = observation.Missing
	case found.AbovePerSecond == nil:
		v.Value, v.State = *found.PerSecond, observation.AtLeast
	default:
		v.Value = *found.PerSecond
	}
	return v
}

// operations are the kinds of I/O of which the bundle has figures, in order of appearance.
func operations(d *dataset.Data) []expr.Metric {
	var list []expr.Metric
	add := func(action, name string) {
		m := expr.Metric{Action: action, Name: name}
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	for _, h := range d.Totals {
		if h.Unit == metric.Nanoseconds {
			add(h.Action, h.Metric)
		}
	}
	for _, s := range d.Scalars {
		if name, ok := metric.RateOf(s.Metric); ok {
			add(s.Action, name)
		}
	}
	for _, s := range d.Series { // of a tool that left nothing else, since it was killed
		if name, ok := metric.RateOf(s.Metric); ok {
			add(s.Action, name)
		}
	}
	for _, c := range d.Canaries {
		for _, io := range c.IOs {
			add(c.Action, metric.Canary(io.Write))
		}
	}
	return list
}

// Series are the latencies within a bundle in order of time: of each kind of I/O by time step, and of ops one by one.
// Ops and I/Os that did not succeed are not in them.
func Series(d *dataset.Data) ([]compare.SeriesOf, error) {
	type stream struct{ metric, instance, volume string }
	steps := map[stream][]stats.Timed{}
	var order []stream
	add := func(m expr.Metric, instance, volume string, at op.Time, counts stats.Counts) {
		s := stream{m.String(), instance, volume}
		if steps[s] == nil {
			order = append(order, s)
		}
		steps[s] = append(steps[s], stats.Timed{At: int64(at), Counts: counts})
	}
	for _, h := range d.Slices {
		if h.Unit != metric.Nanoseconds {
			continue
		}
		add(expr.Metric{Action: h.Action, Name: h.Metric}, h.Instance, "", h.From, stats.OfHistogram(h.Hist))
	}
	for _, c := range d.Canaries {
		for _, io := range c.IOs {
			if io.Errno == 0 && io.Ended.Known() {
				add(expr.Metric{Action: c.Action, Name: metric.Canary(io.Write)}, c.Instance, c.Volume, io.Intended,
					stats.One(int64(io.Ended-io.Intended)))
			}
		}
	}
	for o, err := range d.Bundle.Ops() {
		if err != nil {
			return nil, err
		}
		if ns, known := o.Response(); known && o.Outcome == op.OK {
			add(expr.Metric{Action: o.Action}, "", "", o.Intended, stats.One(ns))
		}
	}
	var list []compare.SeriesOf
	streams := map[string][][]stats.Timed{}
	for _, s := range order {
		if streams[s.metric] == nil {
			list = append(list, compare.SeriesOf{Metric: s.metric})
		}
		streams[s.metric] = append(streams[s.metric], steps[s])
	}
	for i := range list {
		list[i].Steps = stats.InTime(streams[list[i].Metric]...)
	}
	return list, nil
}

// Read reads a bundle for a comparison, which is of the values that a function returns: Values or ValuesAndObjectives.
func Read(b *bundle.Bundle, of func(*dataset.Data) ([]Value, error)) (*dataset.Data, []Value, error) {
	d, err := dataset.Read(b)
	if err != nil {
		return nil, nil, err
	}
	values, err := of(d)
	return d, values, err
}

// recoveries are the queries for how long workloads were away after ops, and until they were back at their level.
func recoveries(d *dataset.Data) (queries []expr.Query, err error) {
	if len(d.Series) == 0 {
		return nil, nil
	}
	ws, err := d.Windows()
	if err != nil {
		return nil, err
	}
	for _, g := range recovery.Groups(recovery.Of(d, ws, recovery.Share), recovery.Share) {
		m := expr.Metric{Action: g.Action, Name: strings.TrimSuffix(g.Metric, metric.IOPS)}
		queries = append(queries, expr.Recovered(m, g.Control))
		if g.Serving.N > 0 {
			queries = append(queries, expr.OutageOf(m, g.Control))
		}
	}
	return queries, nil
}
