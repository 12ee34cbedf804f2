package slo

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// rateSuffix has the suffixes of the metrics that functions ask for.
var rateSuffix = map[expr.Func]string{expr.IOPS: metric.IOPS, expr.Throughput: metric.Bandwidth}

func isCanary(name string) bool { return name == metric.CanaryRead || name == metric.CanaryWrite }

func (s *source) io(q expr.Query) (expr.Value, error) {
	canary := isCanary(q.Metric.Name)
	switch q.Func {
	case expr.IOPS, expr.Throughput:
		if canary {
			return expr.Value{}, fmt.Errorf("%s has a fixed rate: %s is not a measurement", q.Metric.Name, q.Func)
		}
		return s.perSecond(q)
	}
	var sample stats.Sample
	if canary {
		s.canaries(q, &sample)
	} else {
		// An open loop has both views; the histogram of the response has the metric's name.
		if service := q.Metric.Name + metric.Service; hasMetric(s.data.Totals,
			expr.Metric{Action: q.Metric.Action, Name: service}) {
			if q.Metric.View == expr.Service {
				q.Metric.Name = service
			}
		} else if q.Metric.View == expr.Response {
			return expr.Value{}, fmt.Errorf("%s is of a closed loop, which has the service view only: remove .response",
				q.Metric)
		}
		if err := s.histograms(q, &sample); err != nil {
			return expr.Value{}, err
		}
	}
	failed := s.failedIO(q)
	if sample.N() == 0 && failed > 0 {
		return expr.Value{}, fmt.Errorf("%w: all %d operations of %s failed", expr.ErrNoData, failed, q.Metric)
	}
	if sample.N() == 0 {
		return expr.Value{}, fmt.Errorf("%w: no I/O of %s was recorded%s", expr.ErrNoData, q.Metric, inWindow(q))
	}
	if q.Func == expr.Count {
		return expr.Value{Number: float64(sample.Known()), N: sample.N()}, nil
	}
	v, err := summarise(&sample, q)
	if failed > 0 {
		v.Warning = join(v.Warning, fmt.Sprintf("failed: %d of %d", failed, failed+sample.N()))
	}
	return v, err
}

// failedIO counts the operations of a metric that failed, which have no latency; 0 for a window, of which they are not
// known.
func (s *source) failedIO(q expr.Query) (n int64) {
	name := strings.TrimSuffix(q.Metric.Name, metric.Service) + metric.Failed
	for _, x := range s.data.Scalars {
		if x.Action == q.Metric.Action && x.Metric == name && len(q.Windows) == 0 && inPhase(q, x.Phase) {
			n += int64(x.Value)
		}
	}
	return n
}

// histograms merges the totals of the instances, or the slices with windows.
func (s *source) histograms(q expr.Query, sample *stats.Sample) error {
	list := s.data.Totals
	if len(q.Windows) > 0 || !hasMetric(list, q.Metric) {
		list = s.data.Slices
	}
	for _, h := range list {
		if h.Action != q.Metric.Action || h.Metric != q.Metric.Name || !inPhase(q, h.Phase) ||
			!s.insideIO(q.Windows, h.Instance, h.From, h.To) {
			continue
		}
		if err := sample.AddHistogram(h.Hist); err != nil {
			return fmt.Errorf("%s of %s: %w", h.Metric, h.Instance, err)
		}
	}
	for _, x := range s.data.Scalars { // operations that were due and never done are infinite
		if x.Action == q.Metric.Action && x.Metric == q.Metric.Name+metric.Lost && len(q.Windows) == 0 &&
			q.Phase == nil {
			sample.AddInfinite(int64(x.Value))
		}
	}
	return nil
}

// inPhase reports whether a query includes a phase.
func inPhase(q expr.Query, phase int) bool { return q.Phase == nil || *q.Phase == phase }

func hasMetric(list []bundle.HistogramSlice, m expr.Metric) bool {
	return slices.ContainsFunc(list, func(h bundle.HistogramSlice) bool {
		return h.Action == m.Action && h.Metric == m.Name
	})
}

// canaries adds canary I/Os. Failed ones have no latency; one that had not ended is a lower
// bound.
func (s *source) canaries(q expr.Query, sample *stats.Sample) {
	for _, c := range s.data.Canaries {
		if c.Action != q.Metric.Action {
			continue
		}
		watched := s.data.WatchedUntil(&c)
		begin, end := op.Time(math.MinInt64), op.Time(math.MaxInt64)
		if q.Phase != nil {
			begin, end, _ = s.data.PhaseSpan(c.Instance, *q.Phase)
		}
		windows := s.cursors(q.Windows)
		var behind dataset.Cursor
		if s.keptUp {
			behind.Of = c.Behind(q.Metric.Name == metric.CanaryWrite)
		}
		for i := range c.IOs {
			io := &c.IOs[i]
			from := io.Intended
			if q.Metric.View == expr.Service {
				from = io.Started
			}
			if io.Write != (q.Metric.Name == metric.CanaryWrite) || io.Errno != 0 || !from.Known() ||
				io.Intended < begin ||
				io.Intended >= end || behind.Overlaps(io.Intended, io.Intended) ||
				!windows.inside(io.Intended, endOf(io)) {
				continue
			}
			if io.Ended.Known() {
				sample.Add(int64(io.Ended - from))
			} else {
				sample.AddAtLeast(int64(max(0, watched(*io)-from)))
			}
		}
	}
}

// cursors ask windows for intervals in order of their begins.
type cursors []cursor

type cursor struct {
	dataset.Cursor
	inside bool
}

func (s *source) cursors(ws []expr.Window) (list cursors) {
	for _, w := range ws {
		list = append(list, cursor{dataset.Cursor{Of: s.windows[w.Action]}, w.Inside})
	}
	return list
}

func (c cursors) inside(from, to op.Time) bool {
	for i := range c {
		if c[i].Overlaps(from, to) != c[i].inside {
			return false
		}
	}
	return true
}

func endOf(io *op.CanaryIO) op.Time {
	if io.Ended.Known() {
		return io.Ended
	}
	return math.MaxInt64
}

// perSecond is the rate or the bandwidth of an operation.
func (s *source) perSecond(q expr.Query) (expr.Value, error) {
	name := q.Metric.Name + rateSuffix[q.Func]
	f, err := s.figureOf(name, q)
	return expr.Value{Number: f.Value, N: f.N}, err
}

// figureOf returns a metric of the workload of a query: the tool's scalars, or with windows and several phases its
// series.
func (s *source) figureOf(name string, q expr.Query) (dataset.Figure, error) {
	of := dataset.Selection{Instance: func(instance string, phase int) bool {
		return dataset.ActionOf(instance) == q.Metric.Action && inPhase(q, phase)
	}}
	changes := q.Phase == nil && len(s.data.Phases(q.Metric.Action)) > 0
	if len(q.Windows) > 0 || changes {
		of.Slice = func(instance string, from, to op.Time) bool {
			return from >= s.data.MeasuredFrom(instance) && s.inside(q.Windows, from, to)
		}
	}
	f, ok := s.data.Figure(name, of)
	switch {
	case !ok && changes:
		return f, fmt.Errorf("%w: no %s over time was recorded, and %s has phases: ask for one, by phase(1)",
			expr.ErrNoData, name, q.Metric.Action)
	case !ok:
		return f, fmt.Errorf("%w: no %s of %s was recorded%s", expr.ErrNoData, name, q.Metric.Action, inWindow(q))
	}
	return f, nil
}

// figure answers ValueOf.
func (s *source) figure(q expr.Query) (expr.Value, error) {
	f, err := s.figureOf(q.Metric.Name, q)
	if err != nil && hasMetric(s.data.Totals, q.Metric) {
		return expr.Value{}, fmt.Errorf("%s is a distribution: ask for p99(%s) or another of its latencies", q.Metric,
			q.Metric)
	}
	return expr.Value{Number: f.Value, N: f.N, Unit: f.Unit, Better: f.Better}, err
}

// interference is a quantile of a workload's I/O while ops were in progress ÷ the same while none was.
func (s *source) interference(q expr.Query) (expr.Value, error) {
	if !s.isIO(q.Metric) {
		return expr.Value{}, fmt.Errorf("%w: %s is no I/O over time that was recorded", expr.ErrNoData, q.Metric)
	}
	side := q
	side.Func = expr.Quantile
	kept := *s
	kept.keptUp = true
	s = &kept
	in, err := s.io(side)
	if err != nil {
		return expr.Value{}, err
	}
	side.Windows = []expr.Window{{Action: q.Windows[0].Action}}
	out, err := s.io(side)
	most := out.Number // of the quantile outside of ops, which may be known from below only
	if out.AtLeast {
		most = max(most, out.High)
	}
	switch {
	case err != nil:
		return expr.Value{}, err
	case math.IsInf(most, 0) || !(out.Number > 0):
		return expr.Value{}, fmt.Errorf("%w: the quantile of %s outside of ops of %s is not known", expr.ErrNoData,
			q.Metric, q.Windows[0].Action)
	}
	v := expr.Value{Number: in.Number / most, N: min(in.N, out.N), AtLeast: in.AtLeast || out.AtLeast,
		High: max(in.Number, in.High) / out.Number, Warning: join(in.Warning, out.Warning)}
	if in.Few != nil || out.Few != nil {
		v.Few = &expr.Bounds{Low: bounds(in).Low / bounds(out).High, High: bounds(in).High / bounds(out).Low}
	}
	return v, nil
}

// bounds are those of a value with too few values, else the value itself.
func bounds(v expr.Value) expr.Bounds {
	if v.Few != nil {
		return *v.Few
	}
	return expr.Bounds{Low: v.Number, High: v.Number}
}
