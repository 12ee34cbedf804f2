package dataset

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// lives are the values of one metric of an instance. Its tool reports anew in each life: after an op that replaced its
// process or pod, in each phase, and in each of several pods at once.
type lives struct {
	data    *Data
	name    string
	of      Selection
	scalars []*bundle.Scalar // in order of arrival
	series  []*bundle.Series // that have points; one or more of a life
}

// mean is a mean over time.
type mean struct {
	sum, weight float64 // of values × ns, and of ns
	least, most float64
	n           int64
	time        Progress
}

func (m *mean) add(v float64, s Span) {
	long := float64(s.To - s.From)
	if m.n == 0 {
		m.least, m.most = v, v
	}
	m.least, m.most = min(m.least, v), max(m.most, v)
	m.sum, m.weight, m.n = m.sum+v*long, m.weight+long, m.n+1
	m.time.Add(s)
}

// value is the work of a rate over the time in which any of the lives was at work, the mean of a level, the sum of a
// quantity, or the extreme of what has no mean.
func (m *mean) value(kind metric.Kind, better metric.Direction) float64 {
	long := m.weight
	switch kind {
	case metric.Least, metric.Greatest, metric.Statistic:
		if leastCounts(kind, better) {
			return m.least
		}
		return m.most
	case metric.Quantity:
		return m.sum
	case metric.Rate:
		long = 0
		for _, s := range m.time.Union() {
			long += float64(s.To - s.From)
		}
	}
	if long == 0 {
		return 0
	}
	return m.sum / long
}

// instant is the span of a value whose time is unknown.
var instant = Span{0, 1}

// mean combines the values of the lives. Without any, its n is 0.
func (l *lives) mean(kind metric.Kind) *mean {
	m := &mean{}
	if len(l.scalars) == 0 {
		l.addSeries(m, kind, l.series)
		return m
	}
	if kind == metric.Quantity {
		for _, x := range l.scalars {
			m.sum, m.n = m.sum+x.Value, m.n+1
		}
		return m
	}
	spans := l.spans()
	unreported := l.unreported(spans)
	switch {
	case len(l.scalars) == 1 && len(unreported) == 0:
		m.add(l.scalars[0].Value, instant)
	case spans != nil:
		for i, x := range l.scalars {
			m.add(x.Value, spans[i])
		}
		l.addSeries(m, kind, unreported)
	case len(l.series) > 0 && len(l.scalars) > 1:
		l.addSeries(m, kind, l.series)
	default: // no more is known than that they are lives
		for i, x := range l.scalars {
			m.add(x.Value, Span{op.Time(i), op.Time(i) + 1})
		}
	}
	return m
}

// spans returns when each scalar was measured; nil: of one it is unknown.
func (l *lives) spans() (list []Span) {
	for _, x := range l.scalars {
		s := Span{x.From, x.To}
		if s.To <= s.From {
			var ok bool
			if s, ok = l.onlyHistogram(x); !ok {
				return nil
			}
		}
		list = append(list, s)
	}
	return list
}

// onlyHistogram returns the time of the histogram of a scalar's operation, if its instance has exactly one. Bundles of
// object storage, and older ones, do not say when a scalar was measured.
func (l *lives) onlyHistogram(x *bundle.Scalar) (span Span, ok bool) {
	operation := x.Metric[:max(0, strings.LastIndexByte(x.Metric, '.'))]
	for i := range l.data.Totals {
		h := &l.data.Totals[i]
		if h.Metric != operation || h.Instance != x.Instance || h.Phase != x.Phase {
			continue
		}
		if ok {
			return span, false
		}
		span, ok = Span{h.From, h.To}, true
	}
	return span, ok || x.Value == 0 // nothing was done
}

// unreported returns the series of lives whose tool has left no scalar, since it was killed: those of which no part is
// in the time of a scalar. Object workloads are not restarted, and have a series for each second.
func (l *lives) unreported(scalars []Span) (list []*bundle.Series) {
	if scalars == nil || l.data.IsObjectWorkload(l.scalars[0].Instance) {
		return nil
	}
	for _, x := range l.series {
		last := &x.Points[len(x.Points)-1]
		if !slices.ContainsFunc(scalars, func(s Span) bool {
			return x.Points[0].At < s.To && s.From < last.At+op.Time(x.Step)
		}) {
			list = append(list, x)
		}
	}
	return list
}

// addSeries adds the points of series from the start of the measurement on. The last slice of a series ends at the
// latest where the next life of its instance begins: its tool was cut off in it.
func (l *lives) addSeries(m *mean, kind metric.Kind, series []*bundle.Series) {
	series = slices.SortedStableFunc(slices.Values(series), func(a, b *bundle.Series) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Points[0].At, b.Points[0].At))
	})
	for i, x := range series {
		step := op.Time(max(1, x.Step))
		for j, p := range x.Points {
			s := Span{p.At, p.At + step}
			if j == len(x.Points)-1 {
				s.To = min(s.To, nextLife(series[i+1:], x.Instance, p.At, s.To))
			}
			switch {
			case l.of.Slice != nil && !l.of.Slice(x.Instance, p.At, p.At+step),
				l.of.Slice == nil && len(l.scalars) > 0 && p.At < l.data.MeasuredFrom(x.Instance):
			case kind == metric.Quantity:
				m.sum, m.n = m.sum+p.Value, m.n+1
			default:
				m.add(p.Value, s)
			}
		}
	}
}

// nextLife returns the first start of the series of an instance that is after an instant, at most until.
func nextLife(series []*bundle.Series, instance string, after, until op.Time) op.Time {
	i := sort.Search(len(series), func(i int) bool {
		return series[i].Instance != instance || series[i].Points[0].At > after
	})
	if i == len(series) || series[i].Instance != instance {
		return until
	}
	return series[i].Points[0].At
}
