package table

import (
	"maps"
	"slices"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/recovery"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The bounds of a figure say how the true value relates to the figure's.
const (
	Exact    = "exact"    // it is the same
	AtLeast  = "atLeast"  // it is as great or greater: some ops had not ended
	Infinite = "infinite" // it is infinite, and the figure has no value: some ops never started
)

// Figure is one number of a summary.
type Figure struct {
	Scope     string // "action", "episode", "workload", "variant", "instance", "rate", "interference", "rateEffect", …
	Subject   string // its name
	Phase     *int64 // of a workload; nil: all
	Metric    string // "response", "span.ready", "read", …
	Statistic string // "p99", "count", "rate", …
	Value     *float64
	Unit      string
	Bound     string
	N         *int64 // of values that the statistic is of
	Low, High *float64
	// Confidence of [Low, High], 0 to 1; nil without an interval.
	Confidence *float64
}

// Summary returns the table of a summary's figures: one row a figure. Figures that were not
// known, such as a quantile of too few values, have no row.
func Summary(b *bundle.Bundle) (*Table, error) {
	s, err := summary.Make(b)
	if err != nil {
		return nil, err
	}
	return FiguresOf(s), nil
}

// FiguresOf is Summary for a summary that was made already.
func FiguresOf(s *summary.Summary) *Table {
	return &Table{
		Columns: []Column{{"run_id", Text}, {"scope", Text}, {"subject", Text}, {"phase", Int}, {"metric", Text},
			{"statistic", Text}, {"value", Float}, {"unit", Text}, {"bound", Text}, {"n", Int}, {"low", Float},
			{"high", Float}, {"confidence", Float}},
		Rows: func(yield func([]any, error) bool) {
			for _, f := range Figures(s) {
				if !yield([]any{s.RunID, f.Scope, f.Subject, optional(f.Phase), f.Metric, f.Statistic, optional(f.Value),
					f.Unit, f.Bound, optional(f.N), optional(f.Low), optional(f.High), optional(f.Confidence)}, nil) {
					return
				}
			}
		},
	}
}

func optional[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

// Figures lists the figures of a summary in its order.
func Figures(s *summary.Summary) []Figure {
	var l list
	for _, a := range s.Actions {
		l.action(&a)
	}
	for _, e := range s.Episodes {
		of := Figure{Scope: "episode", Subject: e.Name}
		l.outcomes(of, e.Outcomes)
		l.value(of.of("response"), "rate", e.AchievedPerSecond, metric.PerSecond)
		l.latency(of.of("response"), e.Response)
		for _, step := range e.Steps {
			l.latency(of.of("step."+step.Action), step.Latency)
			l.value(of.of("step."+step.Action), "share", &step.Share, "1")
		}
	}
	for _, w := range s.Workloads {
		l.workload(&w)
	}
	for _, r := range s.Rates {
		of := Figure{Scope: "rate", Subject: r.Name}
		for _, c := range []struct {
			name string
			n    int64
		}{{"triggers", r.Triggers}, {"started", r.Started}, {"dropped", r.Dropped}, {"late", r.Late}} {
			l.count(of.of(c.name), c.n)
		}
		l.value(of.of("offered"), "rate", &r.Offered, metric.PerSecond)
		l.value(of.of("achieved"), "rate", &r.Achieved, metric.PerSecond)
		l.ns(of.of("lateness"), "p99", &r.LateP99Ns)
	}
	for _, e := range s.Interference {
		l.effect(&e)
	}
	for _, e := range s.RateEffects {
		l.rateEffect(&e)
	}
	for i := range s.Recoveries {
		l.recovery(&s.Recoveries[i])
	}
	if m := s.FindMax; m != nil && m.PerSecond != nil {
		l.value(Figure{Scope: "search", Subject: m.Stage, Metric: "findMax"}, "rate", m.PerSecond, metric.PerSecond)
		if m.AbovePerSecond == nil {
			l[len(l)-1].Bound = AtLeast
		}
	}
	return l
}

// list collects figures.
type list []Figure

// of returns the figure's place with another metric.
func (f Figure) of(metric string) Figure {
	f.Metric = metric
	return f
}

// value adds a figure; nil adds none.
func (l *list) value(of Figure, statistic string, v *float64, unit string) {
	if v == nil {
		return
	}
	of.Statistic, of.Value, of.Unit, of.Bound = statistic, v, unit, Exact
	*l = append(*l, of)
}

func (l *list) ns(of Figure, statistic string, v *int64) {
	if v != nil {
		f := float64(*v)
		l.value(of, statistic, &f, metric.Nanoseconds)
	}
}

func (l *list) count(of Figure, n int64) {
	f := float64(n)
	l.value(of, "count", &f, "1")
}

func (l *list) outcomes(of Figure, outcomes map[op.Outcome]int64) {
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		l.count(of.of("outcome."+string(o)), outcomes[o])
	}
}

func (l *list) action(a *summary.Action) {
	of := Figure{Scope: "action", Subject: a.Name}
	l.count(of.of("ops"), a.N)
	l.outcomes(of, a.Outcomes)
	l.value(of.of("offered"), "rate", a.OfferedPerSecond, metric.PerSecond)
	l.value(of.of("achieved"), "rate", a.AchievedPerSecond, metric.PerSecond)
	l.latency(of.of("lateness"), a.Lateness)
	l.latency(of.of("response"), a.Response)
	l.latency(of.of("service"), a.Service)
	for _, m := range a.Milestones {
		l.latency(of.of("milestone."+m.Name), m.Latency)
	}
	for _, s := range a.Spans {
		l.latency(of.of("span."+s.Name+" from "+s.From), s.Latency)
	}
	for _, s := range a.Attribution {
		l.value(of.of("attribution."+s.Component), "share", &s.Share, "1")
		l.value(of.of("attribution."+s.Component), "mean", &s.MeanNs, metric.Nanoseconds)
	}
}

func (l *list) workload(w *summary.Workload) {
	l.metrics(Figure{Scope: "workload", Subject: w.Action}, w.Metrics, w.Values, w.Phases)
	for _, v := range w.Variants {
		l.metrics(Figure{Scope: "variant", Subject: w.Action + " " + v.Vars}, v.Metrics, v.Values, nil)
	}
	for _, in := range w.Instances {
		l.metrics(Figure{Scope: "instance", Subject: in.Name}, in.Metrics, in.Values, in.Phases)
		l.value(Figure{Scope: "instance", Subject: in.Name, Metric: "cpu"}, "mean", in.CPUs, "CPUs")
	}
}

func (l *list) metrics(of Figure, ms []summary.Metric, values []dataset.Figure, phases []summary.Phase) {
	for _, m := range ms {
		name := m.Name
		if m.Volume != "" {
			name += "/" + m.Volume
		}
		l.value(of.of(name), "rate", m.PerSecond, metric.PerSecond)
		l.value(of.of(name), "bandwidth", m.BandwidthBytesSec, metric.BytesPerSecond)
		l.count(of.of(name+".errors"), m.Errors)
		l.latency(of.of(name), m.Latency)
	}
	for _, v := range values {
		one := of.of(v.Metric)
		one.N = &v.N
		l.value(one, "value", &v.Value, v.Unit)
	}
	for _, p := range phases {
		n := int64(p.Phase)
		of.Phase = &n
		l.metrics(of, p.Metrics, p.Values, nil)
	}
}

func (l *list) latency(of Figure, x summary.Latency) {
	of.N = &x.N
	l.ns(of, "min", x.MinNs)
	l.value(of, "mean", x.MeanNs, metric.Nanoseconds)
	for _, q := range []struct {
		name string
		q    summary.Quantile
	}{{"p50", x.P50}, {"p90", x.P90}, {"p99", x.P99}, {"p999", x.P999}} {
		f := of
		if i := x.MedianInterval; q.name == "p50" && i != nil {
			f.Low, f.High, f.Confidence = asFloat(i.LowNs), asFloat(i.HighNs), &i.Confidence
		}
		f.Statistic, f.Value, f.Unit, f.Bound = q.name, asFloat(q.q.Ns), metric.Nanoseconds, Exact
		switch {
		case q.q.Infinite:
			f.Bound, f.Value = Infinite, nil
		case q.q.Ns == nil:
			continue
		case q.q.AtLeast:
			f.Bound = AtLeast
		}
		*l = append(*l, f)
	}
	l.ns(of, "max", x.MaxNs)
	if x.MaxAtLeastNs != nil {
		l.ns(of, "max", x.MaxAtLeastNs)
		(*l)[len(*l)-1].Bound = AtLeast
	}
}

func asFloat(v *int64) *float64 {
	if v == nil {
		return nil
	}
	f := float64(*v)
	return &f
}

// recovery adds the times until a workload served again, and until it had its former throughput.
func (l *list) recovery(r *summary.Recoveries) {
	for _, of := range []struct {
		name string
		recovery.Spread
	}{{"serving", r.Serving}, {"recovered", r.Recovered}} {
		if of.N == 0 {
			continue
		}
		n := int64(of.N)
		f := Figure{Scope: "recovery", Subject: r.Control + " on " + r.Action, Metric: r.Metric + "." + of.name, N: &n}
		for _, v := range []struct {
			name string
			recovery.Time
		}{{"p50", of.Median}, {"max", of.Max}} {
			l.ns(f, v.name, &v.Ns)
			if v.LowNs != nil && !v.AtLeast {
				last := &(*l)[len(*l)-1]
				last.Low, last.High = asFloat(v.LowNs), asFloat(&v.Ns)
			}
			if v.AtLeast {
				(*l)[len(*l)-1].Bound = AtLeast
			}
		}
	}
}

// effect adds the latencies during and outside the ops of an action, and their ratios.
func (l *list) effect(e *interference.Effect) {
	of := Figure{Scope: "interference", Subject: e.Control + " on " + e.Action, Metric: e.Metric}
	for _, side := range []struct {
		name string
		interference.Side
		ratio *interference.Ratio
	}{{"own", e.Own, e.OwnRatio}, {"bystander", e.Bystander, e.BystanderRatio}, {"outside", e.Outside, nil}} {
		f := of.of(e.Metric + "." + side.name)
		f.N = &side.N
		l.ns(f, "p50", side.P50Ns)
		l.ns(f, "p90", side.P90Ns)
		l.ns(f, "p99", side.P99Ns)
		l.ns(f, "max", side.MaxNs)
		if r := side.ratio; r != nil {
			l.ratio(f, "ratio.p"+strconv.FormatFloat(100*r.Quantile, 'g', -1, 64), r)
		}
	}
}

// rateEffect adds the throughput during and outside the ops of an action, and its ratios.
func (l *list) rateEffect(e *interference.RateEffect) {
	of := Figure{Scope: "rateEffect", Subject: e.Control + " on " + e.Action}
	if e.Instance != "" {
		of.Subject += " " + e.Instance
	}
	for _, side := range []struct {
		name string
		interference.RateSide
		ratio *interference.Ratio
	}{{"own", e.Own, e.OwnRatio}, {"bystander", e.Bystander, e.BystanderRatio}, {"outside", e.Outside, nil}} {
		if side.N == 0 {
			continue
		}
		f, n := of.of(e.Metric+"."+side.name), int64(side.N)
		f.N = &n
		l.value(f, "mean", &side.Mean, e.Unit)
		if side.ratio != nil {
			l.ratio(f, "ratio.mean", side.ratio)
		}
	}
}

// ratio adds a ratio with its 95 % interval.
func (l *list) ratio(of Figure, statistic string, r *interference.Ratio) {
	confidence := 0.95
	of.Low, of.High, of.Confidence = &r.Low, &r.High, &confidence
	l.value(of, statistic, &r.Value, "1")
}
