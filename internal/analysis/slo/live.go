package slo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Live judges the conditions of triggers while a run is in progress, over the last interval of each. Ops and canaries
// count as in objectives; iops and throughput are those of the workloads' processes, by samples of their counters;
// queries to Prometheus are answered as they come.
// Its methods are safe for concurrent use and do not block: those that take measurements append to a list.
type Live struct {
	conditions map[string]*condition
	keep       op.Time // the longest interval

	mu      sync.Mutex
	actions map[string]*liveAction // those that an expression names
	queries map[string]*liveQuery  // likewise
}

// LiveCondition is the condition of a rate; Reset may be empty.
type LiveCondition struct {
	Rate, When, Reset string
	Interval          time.Duration
}

type condition struct {
	when, reset *expr.Program // reset may be nil
	interval    op.Time
}

type liveAction struct {
	ops       []liveOp
	instances map[string]*liveInstance // that have started and not ended
}

type liveOp struct {
	op.Op
	at op.Time // when it was known
}

type liveInstance struct {
	started  op.Time
	samples  []op.Sample // in order of their times
	canaries map[string]*liveCanary
}

type liveCanary struct {
	ios  []op.CanaryIO
	open []op.CanaryIO // not in ios yet; of the last report
	at   op.Time       // of the last report
}

// NewLive compiles the conditions.
func NewLive(list []LiveCondition) (*Live, error) {
	l := &Live{conditions: map[string]*condition{}, actions: map[string]*liveAction{},
		queries: map[string]*liveQuery{}}
	for _, c := range list {
		own := &condition{interval: op.Time(c.Interval)}
		for _, e := range []struct {
			text string
			to   **expr.Program
		}{{c.When, &own.when}, {c.Reset, &own.reset}} {
			if e.text == "" {
				continue
			}
			p, err := expr.Compile(e.text, expr.Env{})
			if err != nil {
				return nil, fmt.Errorf("rate %s: %w", c.Rate, err)
			}
			for _, q := range p.Queries() {
				if q.OfPrometheus() {
					l.queries[q.Metric.Action] = &liveQuery{judged: op.Never}
					continue
				}
				l.actions[q.Metric.Action] = &liveAction{instances: map[string]*liveInstance{}}
			}
			*e.to = p
		}
		l.conditions[c.Rate], l.keep = own, max(l.keep, own.interval)
	}
	return l, nil
}

// Op adds an op that has ended or was dropped, at the time at which that is known.
func (l *Live) Op(o *op.Op, at op.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.actions[o.Action]
	if a == nil {
		return
	}
	old := 0
	for old < len(a.ops) && a.ops[old].at <= at-l.keep {
		old++
	}
	a.ops = append(slices.Delete(a.ops, 0, old), liveOp{*o, at})
}

// Started adds a workload instance, whose samples are missing if they do not come. Each of its containers starts; the
// canary begins with one of the last.
func (l *Live) Started(e op.InstanceStart) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.actions[dataset.ActionOf(e.Instance)]
	if a == nil {
		return
	}
	if a.instances[e.Instance] == nil {
		a.instances[e.Instance] = &liveInstance{canaries: map[string]*liveCanary{}}
	}
	a.instances[e.Instance].started = e.At
}

// Ended removes a workload instance.
func (l *Live) Ended(e op.InstanceEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.actions[dataset.ActionOf(e.Instance)]; a != nil {
		delete(a.instances, e.Instance)
	}
}

// instance returns a workload instance that an expression names and that has not ended. The caller holds mu.
func (l *Live) instance(name string) *liveInstance {
	if a := l.actions[dataset.ActionOf(name)]; a != nil {
		return a.instances[name]
	}
	return nil
}

// Sample adds a sample. If a counter goes back, by a restart, or its time by a longest interval, by a step of a clock,
// the samples before are not comparable and are dropped. One that is a little older than the last is not used: samples
// of the containers of an instance come on different connections.
func (l *Live) Sample(s op.Sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.instance(s.Instance)
	if i == nil {
		return
	}
	if n := len(i.samples); n > 0 {
		switch last := i.samples[n-1]; {
		case restarted(last, s) || s.At <= last.At-l.keep:
			i.samples = nil
		case s.At <= last.At:
			return
		}
	}
	old := 0
	for old < len(i.samples) && i.samples[old].At < s.At-2*l.keep {
		old++
	}
	i.samples = append(slices.Delete(i.samples, 0, old), s)
}

// restarted reports whether a counter of b, which is not older than a, is below that of a.
func restarted(a, b op.Sample) bool {
	return b.At > a.At && (b.ReadBytes < a.ReadBytes || b.WriteBytes < a.WriteBytes || b.ReadOps < a.ReadOps ||
		b.WriteOps < a.WriteOps)
}

// Canary adds I/Os of the canary. They are open no more.
func (l *Live) Canary(instance, volume string, ios []op.CanaryIO) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.canaryOf(instance, volume)
	if c == nil || len(ios) == 0 {
		return
	}
	last := ios[len(ios)-1]
	c.open = slices.DeleteFunc(c.open, func(io op.CanaryIO) bool {
		return io.Intended < last.Intended || io.Intended == last.Intended && slices.ContainsFunc(ios,
			func(x op.CanaryIO) bool { return x.Intended == io.Intended && x.Write == io.Write })
	})
	old := 0
	for old < len(c.ios) && c.ios[old].Intended < last.Intended-2*l.keep {
		old++
	}
	c.ios = append(slices.Delete(c.ios, 0, old), ios...)
}

// CanaryOpen replaces the I/Os that were due at an instant and that Canary has not added.
func (l *Live) CanaryOpen(instance, volume string, open []op.CanaryIO, at op.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.canaryOf(instance, volume); c != nil {
		c.open, c.at = open, at
	}
}

// canaryOf returns the canary of an instance, or nil if no expression names its action. The caller holds mu.
func (l *Live) canaryOf(instance, volume string) *liveCanary {
	i := l.instance(instance)
	if i == nil {
		return nil
	}
	if i.canaries[volume] == nil {
		i.canaries[volume] = &liveCanary{at: op.Never}
	}
	return i.canaries[volume]
}

// Judge returns what is known of the condition of a rate at a time.
func (l *Live) Judge(rate string, now op.Time) schedule.Reading {
	c := l.conditions[rate]
	src := &liveSource{Live: l, now: now, interval: c.interval, measured: op.Never}
	when := c.when.Judge(src, true)
	r := schedule.Reading{When: truth(when.Status), Measured: time.Duration(now)}
	if src.measured.Known() {
		r.Measured = time.Duration(src.measured)
	}
	if c.reset != nil {
		r.Reset = truth(c.reset.Judge(src, true).Status)
	}
	var observed []string
	for _, o := range when.Observed {
		observed = append(observed, o.String())
	}
	r.Observed, r.Missing = strings.Join(observed, "; "), strings.Join(src.missing, "; ")
	return r
}

func truth(s expr.Status) schedule.Truth {
	switch s {
	case expr.Pass:
		return schedule.True
	case expr.Fail:
		return schedule.False
	}
	return schedule.Unknown
}

// liveSource answers queries at one time.
type liveSource struct {
	*Live
	now, interval op.Time
	measured      op.Time  // of the newest measurement used
	missing       []string // samples that were due
}

// Value answers a query over the last interval. It holds the lock while it gathers values, not while it computes.
func (s *liveSource) Value(q expr.Query) (expr.Value, error) {
	a := s.actions[q.Metric.Action]
	switch {
	case q.LiveProblem() != "":
		return expr.Value{}, fmt.Errorf("%s", q.LiveProblem())
	case q.OfPrometheus():
		return s.query(q.Metric.Action)
	case q.Func == expr.IOPS || q.Func == expr.Throughput:
		return s.perSecond(a, q)
	case isCanary(q.Metric.Name):
		return s.canary(a, q)
	}
	return s.ops(a, q)
}

// ops answers a query about ops that ended in the interval. None is a known number, but has no latency.
func (s *liveSource) ops(a *liveAction, q expr.Query) (expr.Value, error) {
	t := tally{milestone: true}
	s.mu.Lock()
	for i := range a.ops {
		if o := &a.ops[i]; o.at > s.now-s.interval {
			t.add(&o.Op, q.Metric)
			s.measured = max(s.measured, o.at)
		}
	}
	s.mu.Unlock()
	switch {
	case q.Func == expr.Rate:
		return expr.Value{Number: float64(t.ok) / time.Duration(s.interval).Seconds(), N: t.ops}, nil
	case t.ops == 0 && q.Func.Unit() == "":
		return expr.Value{}, nil
	}
	return t.value(q)
}

// canary answers a query about the canaries of all instances. An I/O that has not ended is a lower bound.
func (s *liveSource) canary(a *liveAction, q expr.Query) (expr.Value, error) {
	sample, stale := s.addCanaries(a, q)
	switch {
	case stale || sample.N() == 0:
		return expr.Value{}, fmt.Errorf("%w: no I/O of %s in the last %v", expr.ErrNoData, q.Metric,
			time.Duration(s.interval))
	case q.Func == expr.Count:
		return expr.Value{Number: float64(sample.Known()), N: sample.N()}, nil
	}
	return summarise(sample, q)
}

// addCanaries gathers the latencies of the interval. stale: there is nothing new of a canary.
func (s *liveSource) addCanaries(a *liveAction, q expr.Query) (sample *stats.Sample, stale bool) {
	sample = &stats.Sample{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, i := range a.instances {
		if len(i.canaries) == 0 && s.now-i.started > s.interval {
			s.lacks("%s: nothing of its canary", name)
			stale = true
		}
		for volume, c := range i.canaries {
			newest := max(s.addCanary(c, c.ios, q, sample), s.addCanary(c, c.open, q, sample))
			if newest < s.now-s.interval {
				s.lacks("%s: nothing of its canary on %s in the last %v", name, volume, time.Duration(s.interval))
				stale = true
			}
			s.measured = max(s.measured, newest)
		}
	}
	return sample, stale
}

// young is the part of an interval for which an I/O must have been open to count as a lower bound. The next report
// has the latency of nearly all others, which would leave the interval's quantiles undecided until then.
const young = 10

// addCanary adds those I/Os of a canary that are of the interval, and returns the time of the newest report.
func (s *liveSource) addCanary(c *liveCanary, ios []op.CanaryIO, q expr.Query, sample *stats.Sample) op.Time {
	newest := c.at
	for _, io := range ios {
		if io.Ended.Known() {
			newest = max(newest, io.Ended)
		}
		from := io.Intended
		if q.Metric.View == expr.Service {
			from = io.Started
		}
		if io.Write != (q.Metric.Name == metric.CanaryWrite) || io.Errno != 0 || !from.Known() {
			continue
		}
		switch {
		case io.Ended.Known() && io.Ended > s.now-s.interval:
			sample.Add(int64(io.Ended - from))
		case !io.Ended.Known() && c.at >= s.now-s.interval && c.at-from >= s.interval/young:
			sample.AddAtLeast(int64(c.at - from))
		}
	}
	return newest
}

// perSecond sums the rates of the instances over the last interval. Without one of them it is a lower bound.
func (s *liveSource) perSecond(a *liveAction, q expr.Query) (expr.Value, error) {
	var v expr.Value
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, i := range a.instances {
		rate, measured := s.rateOf(name, i, q)
		if math.IsNaN(rate) {
			v.AtLeast, v.High = true, math.Inf(1)
			continue
		}
		v.Number, v.N = v.Number+rate, v.N+1
		s.measured = max(s.measured, measured)
	}
	if v.N == 0 {
		return v, fmt.Errorf("%w: no instance of %s has samples of the last %v", expr.ErrNoData, q.Metric.Action,
			time.Duration(s.interval))
	}
	return v, nil
}

// rateOf is the rate of one instance, or NaN: it has no samples of a whole interval. They are missing if it runs for
// longer.
func (s *liveSource) rateOf(name string, i *liveInstance, q expr.Query) (rate float64, measured op.Time) {
	n := len(i.samples)
	if n == 0 || s.now-i.samples[n-1].At > s.interval {
		if s.now-i.started > 2*s.interval {
			s.lacks("%s: no sample of its processes in the last %v", name, time.Duration(s.interval))
		}
		return math.NaN(), op.Never
	}
	last := i.samples[n-1]
	// A twentieth less, since the times of samples vary.
	at, exact := slices.BinarySearchFunc(i.samples, last.At-s.interval+s.interval/20, func(x op.Sample, t op.Time) int {
		return cmp.Compare(x.At, t)
	})
	if !exact {
		at--
	}
	if at < 0 {
		return math.NaN(), op.Never
	}
	first := i.samples[at]
	if last.At-first.At > 2*s.interval {
		s.lacks("%s: no sample of its processes for %v", name, time.Duration(i.samples[at+1].At-first.At))
		return math.NaN(), op.Never
	}
	return float64(counter(last, q)-counter(first, q)) / time.Duration(last.At-first.At).Seconds(), last.At
}

// counter is the counter of a sample that a query asks for.
func counter(x op.Sample, q expr.Query) int64 {
	switch write := q.Metric.Name == metric.Write; {
	case q.Func == expr.Throughput && write:
		return x.WriteBytes
	case q.Func == expr.Throughput:
		return x.ReadBytes
	case write:
		return x.WriteOps
	}
	return x.ReadOps
}

func (s *liveSource) lacks(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.missing, text) {
		s.missing = append(s.missing, text)
	}
}
