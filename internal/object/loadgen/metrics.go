package loadgen

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Metrics are the metrics of works in a bundle. The response of an operation called read is the metric read; its
// phases are read.service, read.connect and so on, its failures read!LABEL.
type Metrics struct {
	Histograms []metric.Histogram
	Scalars    []metric.Scalar
}

// Metrics of a work, over its measured window.
func (w *WorkResult) Metrics() (Metrics, error) {
	figures, err := w.Figures()
	var m Metrics
	if err != nil {
		return m, err
	}
	for i := range figures {
		m.of(w, &figures[i])
	}
	cells, err := w.Cells.whole()
	if err != nil {
		return m, err
	}
	for _, k := range sortedKeys(cells) {
		if c := cells[k]; !k.OK && !k.Ramp && k.Whole() && c.Response.N() > 0 {
			m.histogram(w.Work.Ops[k.Op].Name+"!"+k.Label, "response", c.Response, w.From, w.To)
		}
	}
	if w.Steady != nil && w.Steady.Steady {
		m.Scalars = append(m.Scalars, metric.Scalar{Metric: "steadyAfter", Unit: metric.Nanoseconds,
			Value: float64(w.To - w.From)})
	}
	for _, name := range w.Cells.endpoints() {
		if err := m.endpoint(w, name); err != nil {
			return m, err
		}
	}
	return m, nil
}

// endpoint adds the response and the counts of each operation at one of several endpoints. What was due and never
// started went to none.
func (m *Metrics) endpoint(w *WorkResult, name string) error {
	own := *w
	own.Cells = Cells{}
	for k, c := range w.Cells {
		if k.Endpoint == name {
			own.Cells[k] = c
		}
	}
	figures, err := own.Figures()
	if err != nil {
		return err
	}
	for i := range figures {
		f := &figures[i]
		f.Name = metric.OfEndpoint(f.Name, name)
		if f.Cell.Response.N() > 0 {
			m.histogram(f.Name, "response", f.Cell.Response, w.From, w.To)
		}
		m.counts(f)
	}
	return nil
}

func (m *Metrics) histogram(name, basis string, h *hist.Histogram, from, to op.Time) {
	m.Histograms = append(m.Histograms,
		metric.Histogram{Metric: name, Unit: metric.Nanoseconds, Basis: basis, From: from, To: to, Hist: h})
}

// of adds one operation's.
func (m *Metrics) of(w *WorkResult, f *Figures) {
	c := f.Cell
	for _, h := range []struct {
		suffix, basis string
		h             *hist.Histogram
	}{{"", "response", c.Response}, {metric.Service, "service", c.Service}, {".connect", "connect",
		c.Connect}, {".firstByte", "firstByte", c.First},
		{".drain", "drain", c.Drain}, {".late", "late", c.Late}} {
		if h.h.N() > 0 {
			m.histogram(f.Name+h.suffix, h.basis, h.h, w.From, w.To)
		}
	}
	m.counts(f)
	scalar := func(suffix string, v float64) {
		m.Scalars = append(m.Scalars, metric.Scalar{Metric: f.Name + suffix, Value: v})
	}
	scalar(".attempts", float64(f.Attempts))
	if ratio, ok := f.SuccessRatio(); ok {
		scalar(successRatio, ratio)
	}
	for i := range f.Steps {
		s := &f.Steps[i]
		name := "." + string(s.Step)
		scalar(name+metric.Completed, float64(s.OK))
		scalar(name+metric.Failed, float64(s.Failed))
		if s.Cell.Service.N() > 0 {
			m.histogram(f.Name+name, "service", s.Cell.Service, w.From, w.To)
		}
	}
	for i := range f.Checks {
		c := &f.Checks[i]
		name := "." + string(c.Check)
		scalar(name+".checks", float64(c.Done))
		scalar(name+".violations", float64(c.Violated()))
		scalar(name+".unanswered", float64(c.Unanswered))
		scalar(name+".skipped", float64(c.Skipped))
		for _, v := range c.Violations {
			scalar(name+"."+v.Kind, float64(v.N))
			scalar(name+"."+v.Kind+".lasting", float64(v.Lasting))
			if v.Until.N() > 0 {
				m.histogram(f.Name+name+"."+v.Kind, "consistent", v.Until, w.Began, w.Ended)
			}
		}
	}
}

// counts adds the rates and the numbers of an operation.
func (m *Metrics) counts(f *Figures) {
	scalar := func(suffix, unit string, v float64) {
		m.Scalars = append(m.Scalars, metric.Scalar{Metric: f.Name + suffix, Unit: unit, Value: v})
	}
	scalar(metric.IOPS, metric.PerSecond, f.PerSecond())
	scalar(metric.Bandwidth, metric.BytesPerSecond, f.Bandwidth())
	scalar(metric.Completed, "", float64(f.OK))
	scalar(metric.Failed, "", float64(f.Failed))
	scalar(metric.Lost, "", float64(f.Lost))
	scalar(metric.Transferred, metric.Bytes, float64(f.Bytes))
}

// TokenRequests is the suffix, behind a stage's name, of the number of requests that were sent for tokens.
const TokenRequests = ".tokenRequests"

// successRatio is the suffix of the share of operations that succeeded.
const successRatio = ".successRatio"

// Together merges the metrics of concurrent works: histograms exactly, counts by addition. Rates are over the time
// from the start of the first window to the end of the last.
func Together(works []Metrics) (Metrics, error) {
	if len(works) == 1 {
		return works[0], nil
	}
	histograms, scalars := map[string]*metric.Histogram{}, map[string]*metric.Scalar{}
	for _, w := range works {
		for _, h := range w.Histograms {
			sum := histograms[h.Metric]
			if sum == nil {
				copied := h
				copied.Hist = hist.New()
				sum = &copied
				histograms[h.Metric] = sum
			}
			sum.From, sum.To = min(sum.From, h.From), max(sum.To, h.To)
			if err := sum.Hist.Merge(h.Hist); err != nil {
				return Metrics{}, fmt.Errorf("%s: %w", h.Metric, err)
			}
		}
		for _, x := range w.Scalars {
			if scalars[x.Metric] == nil {
				scalars[x.Metric] = &metric.Scalar{Metric: x.Metric, Unit: x.Unit}
			}
			scalars[x.Metric].Value += x.Value
		}
	}
	var all Metrics
	for _, name := range slices.Sorted(maps.Keys(histograms)) {
		all.Histograms = append(all.Histograms, *histograms[name])
	}
	for _, name := range slices.Sorted(maps.Keys(scalars)) {
		x := *scalars[name]
		operation, suffix := name, ""
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			operation, suffix = name[:i], name[i:]
		}
		var long time.Duration
		if h := histograms[operation]; h != nil {
			long = time.Duration(h.To - h.From)
		}
		switch suffix {
		case successRatio:
			ok := scalars[operation+metric.Completed].Value
			x.Value = ok / (ok + scalars[operation+metric.Failed].Value + scalars[operation+metric.Lost].Value)
		case metric.IOPS:
			x.Value = perSecond(scalars[operation+metric.Completed].Value, long)
		case metric.Bandwidth:
			x.Value = perSecond(scalars[operation+metric.Transferred].Value, long)
		}
		all.Scalars = append(all.Scalars, x)
	}
	return all, nil
}

// Rates are what ended in a second of a work, ramps too: completions and bytes
// of what was done, failures, and what was given up as lost, a second.
func Rates(w *model.Work, from, to op.Time, cells Cells) []metric.Scalar {
	span := time.Duration(to - from).Seconds()
	if span <= 0 {
		return nil
	}
	type sums struct{ ok, failed, lost, bytes int64 }
	of := make([]sums, len(w.Ops))
	for k, c := range cells {
		if !k.Whole() {
			continue
		}
		s := &of[k.Op]
		switch {
		case k.OK:
			s.ok, s.bytes = s.ok+c.N, s.bytes+c.Bytes
		case k.Lost:
			s.lost += c.N
		default:
			s.failed += c.N
		}
	}
	var list []metric.Scalar
	for i, s := range of {
		name := w.Ops[i].Name
		list = append(list,
			metric.Scalar{Metric: name + metric.IOPS, Unit: metric.PerSecond, Value: float64(s.ok) / span},
			metric.Scalar{Metric: name + metric.Bandwidth, Unit: metric.BytesPerSecond, Value: float64(s.bytes) / span},
			metric.Scalar{Metric: name + metric.Failed, Unit: metric.PerSecond, Value: float64(s.failed) / span},
			metric.Scalar{Metric: name + metric.Lost, Unit: metric.PerSecond, Value: float64(s.lost) / span})
	}
	return list
}

// Slices are the distributions of the responses of a work by its intervals, from its seconds.
type Slices struct {
	from, to op.Time
	cells    Cells // nil: no interval has begun
}

// Add takes in a second, and returns the distributions of the interval that it completes.
func (s *Slices) Add(w *model.Work, from, to op.Time, cells Cells) ([]metric.Histogram, error) {
	if s.cells == nil {
		s.from, s.cells = from, Cells{}
	}
	s.to = to
	if err := s.cells.Merge(cells); err != nil || !w.IntervalOver(time.Duration(to-s.from)) {
		return nil, err
	}
	return s.End(w), nil
}

// End returns the distributions of an incomplete interval, by operation.
func (s *Slices) End(w *model.Work) []metric.Histogram {
	var m Metrics
	cells, err := s.cells.whole()
	if err != nil {
		cells = nil // impossible: the histograms are alike
	}
	for _, k := range sortedKeys(cells) {
		if c := cells[k]; k.OK && !k.Ramp && k.Whole() && c.Response.N() > 0 {
			m.histogram(w.Ops[k.Op].Name, "response", c.Response, s.from, s.to)
		}
	}
	s.cells = nil
	return m.Histograms
}

// sortedKeys in an order that does not change.
func sortedKeys(cells Cells) []Key {
	return slices.SortedFunc(maps.Keys(cells), func(a, b Key) int {
		ramp := func(k Key) int {
			if k.Ramp {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Label, b.Label), cmp.Compare(ramp(a), ramp(b)),
			cmp.Compare(a.Check, b.Check), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Endpoint, b.Endpoint))
	})
}
