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
	by     map[string]*meter                 // by action
}

// meter has the operations of an action.
type meter struct {
	loops map[int64]dataset.Span // nil: the rate is not closed
	ended []dataset.Span         // failed ones too
	ok    int                    // those that succeeded
	// Once known is set, they are the result, and ended is empty.
	known, some bool
	perSecond   float64
}

// NewMeters returns the meters of a run. Operations without an end last until the end of the run.
func NewMeters(d *dataset.Data) *Meters {
	m := &Meters{until: d.End(), closed: map[string]string{}, loops: map[string]map[int64]dataset.Span{},
		by: map[string]*meter{}}
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
	x := m.by[o.Action]
	if x == nil {
		x = &meter{loops: m.loops[m.closed[o.Action]]}
		m.by[o.Action] = x
	}
	s := dataset.Span{From: o.Started, To: o.Ended}
	if s.To.Known() {
		if n := len(x.ended); n == cap(x.ended) { // append alone copies several times as much
			x.ended = slices.Grow(x.ended, max(64, n))
		}
		x.ended = append(x.ended, s)
	} else {
		s.To = max(s.From, m.until)
	}
	if o.Outcome == op.OK {
		x.ok++
	}
	if x.loops == nil {
		return
	}
	if before, again := x.loops[o.Episode]; again {
		s = dataset.Span{From: min(s.From, before.From), To: max(s.To, before.To)}
	}
	x.loops[o.Episode] = s
}

// PerSecond returns how many operations of an action succeeded per second, and how many did; false with fewer than
// two. Operations of the action must not be added after it.
func (m *Meters) PerSecond(action string) (perSecond float64, n int, ok bool) {
	x := m.by[action]
	if x == nil {
		return 0, 0, false
	}
	if !x.known {
		x.perSecond, x.some = m.Of(action, x.ended, x.ok)
		x.known, x.ended = true, nil
	}
	return x.perSecond, x.ok, x.some
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
