package throughput

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Meters measures the throughput of each action of a run. It is not safe for concurrent use.
type Meters struct {
	until  op.Time
	closed map[string]string                 // closed rate of an action, or of the action that it follows
	loops  map[string]map[int64]dataset.Span // triggers of closed rates, by episode
	ended  map[string][]dataset.Span         // operations by action, failed ones too
	ok     map[string]int                    // those that succeeded
}

// NewMeters returns the meters of a run. Operations without an end last until the end of the run.
func NewMeters(d *dataset.Data) *Meters {
	m := &Meters{until: d.End(), closed: map[string]string{}, loops: map[string]map[int64]dataset.Span{},
		ended: map[string][]dataset.Span{}, ok: map[string]int{}}
	for _, a := range d.Spec.Actions {
		if !slices.ContainsFunc(d.Spec.Rates, func(r dataset.Rate) bool {
			return r.Name == a.RateName && r.Concurrency != nil
		}) {
			continue
		}
		m.loops[a.RateName] = map[int64]dataset.Span{}
		for _, name := range append([]string{a.Name}, a.Then...) {
			m.closed[name] = a.RateName
		}
	}
	return m
}

// Add adds an operation. Those of one action may come in any order.
func (m *Meters) Add(o *op.Op) {
	if !o.Started.Known() {
		return
	}
	s := dataset.Span{From: o.Started, To: o.Ended}
	if s.To.Known() {
		m.ended[o.Action] = append(m.ended[o.Action], s)
	} else {
		s.To = max(s.From, m.until)
	}
	if o.Outcome == op.OK {
		m.ok[o.Action]++
	}
	loops := m.loops[m.closed[o.Action]]
	if loops == nil {
		return
	}
	if before, again := loops[o.Episode]; again {
		s = dataset.Span{From: min(s.From, before.From), To: max(s.To, before.To)}
	}
	loops[o.Episode] = s
}

// PerSecond returns how many operations of an action succeeded per second, and how many did; false with fewer than
// two.
func (m *Meters) PerSecond(action string) (perSecond float64, n int, ok bool) {
	n = m.ok[action]
	perSecond, ok = m.Of(action, m.ended[action], n)
	return perSecond, n, ok
}

// Of is PerSecond of n that succeeded of other intervals, such as whole episodes that begin with an operation of the
// action.
func (m *Meters) Of(action string, ended []dataset.Span, n int) (perSecond float64, ok bool) {
	if n < 2 {
		return 0, false
	}
	if loops := m.loops[m.closed[action]]; loops != nil {
		spans := make([]dataset.Span, 0, len(loops))
		for _, s := range loops {
			spans = append(spans, s)
		}
		return OfLoops(spans, n)
	}
	perSecond, ok = OfSchedule(ended)
	return perSecond * float64(n) / float64(len(ended)), ok
}
