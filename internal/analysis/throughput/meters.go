package throughput

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Meters measures the throughput of each action of a run. It is not safe for concurrent use.
type Meters struct {
	until  op.Time
	closed map[string]string    // closed rate of an action, or of the action that it follows
	loops  map[string]*triggers // of closed rates
	by     map[string]*meter    // by action
}

// meter has the operations of an action.
type meter struct {
	loops *triggers      // nil: the rate is not closed
	ended []dataset.Span // of other rates; failed ones too
	due   Extent         // of other rates: when operations were due, also those that never started
	ok    int            // those that succeeded
	// Once known is set, they are the result, and ended is empty.
	known, some bool
	perSecond   float64
}

// Extent has the first and last of N instants, of which AtFirst are at the first.
type Extent struct {
	First, Last op.Time
	N, AtFirst  int64
}

// Add adds an instant.
func (e *Extent) Add(t op.Time) {
	switch {
	case e.N == 0 || t < e.First:
		e.First, e.AtFirst = t, 1
	case t == e.First:
		e.AtFirst++
	}
	if e.N == 0 || t > e.Last {
		e.Last = t
	}
	e.N++
}

// PerSecond is the rate of those after the first instant over the time since it; false with fewer than two instants.
func (e *Extent) PerSecond() (rate float64, ok bool) {
	if e.Last <= e.First {
		return 0, false
	}
	return float64(e.N-e.AtFirst) / (float64(e.Last-e.First) / 1e9), true
}

// triggers are the times of the triggers of a closed rate, by episode. Episodes are numbered from 1 in a run, so that
// most are in pages, which never move.
type triggers struct {
	pages [][]dataset.Span // by episode; absent: none
	high  map[int64]dataset.Span
}

var absent = dataset.Span{From: op.Never, To: op.Never}

const (
	pageSize = 1 << 12
	// sparse is how many episodes of other rates may lie between those of a rate before the map is used.
	sparse = 1 << 12
)

func (t *triggers) add(episode int64, s dataset.Span) {
	n := int64(len(t.pages)) * pageSize
	if episode < 0 || episode > 2*n+sparse {
		if before, again := t.high[episode]; again {
			s = joined(before, s)
		}
		t.high[episode] = s
		return
	}
	for ; n <= episode; n += pageSize {
		t.pages = append(t.pages, slices.Repeat([]dataset.Span{absent}, pageSize))
	}
	at := &t.pages[episode/pageSize][episode%pageSize]
	if *at != absent {
		s = joined(*at, s)
	}
	*at = s
}

func joined(a, b dataset.Span) dataset.Span {
	return dataset.Span{From: min(a.From, b.From), To: max(a.To, b.To)}
}

// all yields the times in any order.
func (t *triggers) all(yield func(dataset.Span) bool) {
	for _, page := range t.pages {
		for _, s := range page {
			if s != absent && !yield(s) {
				return
			}
		}
	}
	for _, s := range t.high {
		if !yield(s) {
			return
		}
	}
}

// NewMeters returns the meters of a run. Operations without an end last until the end of the run.
func NewMeters(d *dataset.Data) *Meters {
	m := &Meters{until: d.End(), closed: map[string]string{}, loops: map[string]*triggers{},
		by: map[string]*meter{}}
	for _, a := range d.Spec.Actions {
		if !slices.ContainsFunc(d.Spec.Rates, func(r dataset.Rate) bool {
			return r.Name == a.RateName && r.Concurrency != nil
		}) {
			continue
		}
		m.loops[a.RateName] = &triggers{high: map[int64]dataset.Span{}}
		for _, name := range append([]string{a.Name}, a.Then...) {
			m.closed[name] = a.RateName
		}
	}
	return m
}

// Add adds an operation. Those of one action may come in any order.
func (m *Meters) Add(o *op.Op) {
	x := m.by[o.Action]
	if x == nil {
		x = &meter{loops: m.loops[m.closed[o.Action]]}
		m.by[o.Action] = x
	}
	if x.loops == nil {
		x.due.Add(o.Intended)
	}
	if !o.Started.Known() {
		return
	}
	if o.Outcome == op.OK {
		x.ok++
	}
	s := dataset.Span{From: o.Started, To: o.Ended}
	switch {
	case x.loops != nil:
		if !s.To.Known() {
			s.To = max(s.From, m.until)
		}
		x.loops.add(o.Episode, s)
	case s.To.Known():
		if n := len(x.ended); n == cap(x.ended) { // append alone copies several times as much
			x.ended = slices.Grow(x.ended, max(64, n))
		}
		x.ended = append(x.ended, s)
	}
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
		if due, ok := x.due.PerSecond(); ok { // a backlog that is worked off ends faster than it was asked for
			x.perSecond = min(x.perSecond, due*float64(x.ok)/float64(x.due.N))
		}
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
		return OfLoops(loops.all, n)
	}
	perSecond, ok = OfSchedule(ended)
	return perSecond * float64(n) / float64(len(ended)), ok
}
