package slo

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/throughput"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// source answers queries about ops in one pass over them, and queries about I/O from
// histograms, series and canaries.
type source struct {
	data    *dataset.Data
	windows map[string]dataset.Union
	ops     map[string]*tally // by the query's text
	asked   []*tally
	meters  *throughput.Meters
	metered bool // another adds the ops to meters
	keptUp  bool // without the I/Os of canaries that were late because of themselves, see dataset.Lag
}

// NewSource answers these queries from a run. The error is one of reading the bundle.
func NewSource(d *dataset.Data, queries []expr.Query) (expr.Source, error) {
	s, err := newSource(d, queries)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newSource(d *dataset.Data, queries []expr.Query) (*source, error) {
	s, err := withoutOps(d, queries)
	if err != nil || len(s.asked) == 0 {
		return s, err
	}
	for o, err := range d.Bundle.Ops() {
		if err != nil {
			return nil, err
		}
		s.add(&o)
	}
	return s, nil
}

// withoutOps returns a source that has no ops yet.
func withoutOps(d *dataset.Data, queries []expr.Query) (*source, error) {
	s := &source{data: d, ops: map[string]*tally{}, meters: throughput.NewMeters(d), metered: true}
	var actions []string
	for _, q := range queries {
		for _, w := range q.Windows {
			actions = append(actions, w.Action)
		}
		if _, known := s.ops[q.String()]; !known && !s.isIO(q.Metric) && !isSearch(q) &&
			!q.OfTenant() && !q.AfterOps() && q.Func != expr.ValueOf && q.Func != expr.Elapsed {
			t := &tally{of: q, milestone: isMilestone(q.Metric.Name)}
			s.ops[q.String()], s.asked = t, append(s.asked, t)
			s.metered = s.metered && q.Func != expr.Rate // no query asks for a rate
		}
	}
	if len(actions) == 0 {
		return s, nil
	}
	var err error
	s.windows, err = d.InProgress(actions...)
	return s, err
}

// add adds an op.
func (s *source) add(o *op.Op) {
	if !s.metered {
		s.meters.Add(o)
	}
	for _, t := range s.asked {
		if o.Action == t.of.Metric.Action && s.inside(t.of.Windows, begin(o), finish(o)) {
			t.add(o, t.of.Metric)
		}
	}
}

// begin and finish return an op's interval.
func begin(o *op.Op) op.Time {
	if o.Started.Known() {
		return o.Started
	}
	return o.Intended
}

func finish(o *op.Op) op.Time {
	switch {
	case o.Ended.Known():
		return o.Ended
	case o.Started.Known():
		return math.MaxInt64
	}
	return o.Intended
}

func (s *source) inside(ws []expr.Window, from, to op.Time) bool {
	for _, w := range ws {
		if s.windows[w.Action].Overlaps(from, to) != w.Inside {
			return false
		}
	}
	return true
}

// insideIO is inside for a time slice of an instance's I/O. I/O before the instance was
// measured is neither during ops nor outside.
func (s *source) insideIO(ws []expr.Window, instance string, from, to op.Time) bool {
	return len(ws) == 0 || from >= s.data.MeasuredFrom(instance) && s.inside(ws, from, to)
}

func isSearch(q expr.Query) bool { return q.Func == expr.FindMax || q.Func == expr.Knee }

func (s *source) isIO(m expr.Metric) bool {
	if isCanary(m.Name) {
		return true
	}
	if m.Name == "" || m.From != "" {
		return false
	}
	if hasMetric(s.data.Totals, m) || hasMetric(s.data.Slices, m) {
		return true
	}
	// A parser may know rates and no latencies, and of a tool that was killed only a series.
	rate := func(action, name string) bool {
		operation, ok := metric.RateOf(name)
		return ok && action == m.Action && operation == m.Name
	}
	return slices.ContainsFunc(s.data.Scalars, func(x bundle.Scalar) bool { return rate(x.Action, x.Metric) }) ||
		slices.ContainsFunc(s.data.Series, func(x bundle.Series) bool { return rate(x.Action, x.Metric) })
}

// tally sums the ops of one query.
type tally struct {
	of                                 expr.Query
	sample                             stats.Sample
	ops, ok, failed, dropped, censored int64
	withoutMilestone                   int64 // ok, but without the milestone
	milestone                          bool  // the metric is a milestone
}

// milestones that an engine may report, besides those of calls; any other name in an
// expression is of I/O.
var milestones = []string{
	"intended", "started", "ended",
	op.Acked, op.Provisioned, op.Bound, op.Scheduled, op.Attached, op.Staged, op.Published, op.Delivered,
	op.Initialized,
	op.Running, op.Ready, op.FirstWrite, op.FirstPut, op.FirstRead, op.Taken, op.Controller, op.Node, op.Modified,
	op.Checked, op.Unpublished, op.Unstaged, op.Detached, op.Gone,
	op.Signalled, op.Resumed, op.Replaced, op.Cordoned, op.Evicted, op.ObjectReady,
}

func isMilestone(name string) bool {
	base, _, _ := strings.Cut(name, "/")
	return slices.Contains(milestones, base) || strings.HasSuffix(base, ".start") || strings.HasSuffix(base, ".end")
}

func (t *tally) add(o *op.Op, m expr.Metric) {
	t.ops++
	switch o.Outcome {
	case op.OK:
		t.ok++
	case op.Error:
		t.failed++
		return // the instants of a failure are no latencies
	case op.Timeout:
		t.failed++
	case op.Censored:
		t.censored++
	case op.Dropped:
		t.dropped++
		if m.View != expr.Service && m.From == "" {
			t.sample.AddInfinite(1)
		}
		return
	}
	t.latency(o, m)
}

func (t *tally) latency(o *op.Op, m expr.Metric) {
	from, to := instants(o, m)
	switch {
	case !from.Known():
		t.withoutMilestone++
	case to.Known():
		t.sample.Add(int64(to - from))
	case o.Outcome != op.OK && o.Ended.Known():
		t.sample.AddAtLeast(int64(o.Ended - from))
	default:
		t.withoutMilestone++
	}
}

// instants returns the begin and the end of a metric in an op. An op that did not succeed
// has no end.
func instants(o *op.Op, m expr.Metric) (from, to op.Time) {
	if m.From != "" {
		return instant(o, m.From), instant(o, m.To)
	}
	from = o.Intended
	if m.View == expr.Service {
		from = o.Started
	}
	if m.Name == "" {
		return from, instant(o, "ended")
	}
	return from, instant(o, m.Name)
}

func instant(o *op.Op, name string) op.Time {
	switch name {
	case "intended":
		return o.Intended
	case "started":
		return o.Started
	case "ended":
		if o.Outcome != op.OK {
			return op.Never
		}
		return o.Ended
	}
	return dataset.Milestone(o, name)
}

func (t *tally) value(q expr.Query) (expr.Value, error) {
	if t.ops == 0 {
		return expr.Value{}, fmt.Errorf("%w: no op of %s was recorded%s", expr.ErrNoData, q.Metric.Action, inWindow(q))
	}
	count := func(n int64) (expr.Value, error) { return expr.Value{Number: float64(n), N: t.ops}, nil }
	switch q.Func {
	case expr.Ops:
		return count(t.ops)
	case expr.Errors:
		return count(t.failed)
	case expr.Dropped:
		return count(t.dropped)
	case expr.Censored:
		return count(t.censored)
	case expr.Count:
		if q.Metric.Name != "" || q.Metric.From != "" {
			return count(t.sample.Known())
		}
		return count(t.ok)
	case expr.IOPS, expr.Throughput:
		return expr.Value{}, fmt.Errorf("%w: no I/O metric %q of %s was recorded", expr.ErrNoData, q.Metric.Name,
			q.Metric.Action)
	}
	if t.sample.N() == 0 && q.Metric.Name != "" && !t.milestone {
		return expr.Value{}, fmt.Errorf("%w: %s reported no %s latency%s", expr.ErrNoData, q.Metric.Action,
			q.Metric.Name,
			inWindow(q))
	}
	if t.sample.N() == 0 {
		return expr.Value{}, fmt.Errorf("%w: of %d ops of %s none has that latency (%d failed, %d without the milestone)",
			expr.ErrNoData, t.ops, q.Metric.Action, t.failed, t.withoutMilestone)
	}
	v, err := summarise(&t.sample, q)
	if t.withoutMilestone > 0 {
		v.Warning = join(v.Warning, fmt.Sprintf("without the milestone, so not in it: %d", t.withoutMilestone))
	}
	if t.failed > 0 {
		v.Warning = join(v.Warning, fmt.Sprintf("failed: %d of %d", t.failed, t.ops))
	}
	return v, err
}

// rate returns completed operations per second.
func (s *source) rate(q expr.Query) (expr.Value, error) {
	if len(q.Windows) > 0 {
		return expr.Value{}, errors.New("rate does not accept windows")
	}
	v, n, ok := s.meters.PerSecond(q.Metric.Action)
	if !ok {
		return expr.Value{}, fmt.Errorf("%w: a rate needs two successful ops, %s had %d", expr.ErrNoData,
			q.Metric.Action, n)
	}
	return expr.Value{Number: v, N: int64(n)}, nil
}

func inWindow(q expr.Query) string {
	if len(q.Windows) > 0 {
		return " in the window"
	}
	return ""
}

// summarise evaluates the functions of a latency.
func summarise(s *stats.Sample, q expr.Query) (expr.Value, error) {
	v := expr.Value{N: s.N()}
	if q.Func == expr.Mean {
		return mean(s)
	}
	at, ok := map[expr.Func]float64{expr.Quantile: q.Q, expr.Max: 1, expr.Min: 0}[q.Func]
	if !ok {
		return v, fmt.Errorf("%s is not a latency", q.Func)
	}
	if q.Func == expr.Quantile && s.N() < stats.MinN(q.Q) {
		v.Warning = fmt.Sprintf("an interval of p%g needs n ≥ %d", 100*q.Q, stats.MinN(q.Q))
		low, high := s.OneSided(q.Q)
		v.Few = &expr.Bounds{Low: number(low), High: number(high)}
	}
	low, high, _ := s.BoundsOf(at)
	v.Number, v.High = number(low), number(high)
	v.AtLeast = v.Number != v.High
	if low.Infinite {
		v.Warning = join(v.Warning, fmt.Sprintf("never started, so infinite: %d", s.Infinite()))
	}
	return v, nil
}

func number(e stats.Estimate) float64 {
	if e.Infinite {
		return math.Inf(1)
	}
	return float64(e.Value)
}

// mean is infinite with a dropped op, and a lower bound with ops that had not ended.
func mean(s *stats.Sample) (expr.Value, error) {
	v := expr.Value{Number: s.Mean(), N: s.N(), AtLeast: s.Bounds() > 0, High: math.Inf(1)}
	switch {
	case s.Infinite() > 0:
		v.Number, v.AtLeast = math.Inf(1), false
	case s.Known() == 0:
		return v, fmt.Errorf("%w: no latency is known to its end", expr.ErrNoData)
	}
	return v, nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
