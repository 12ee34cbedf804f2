package bundle

import (
	"iter"
	"slices"

	"github.com/cnsbench/cnsbench/internal/op"
)

// collectLatencies collects one view of the selected ops.
func collectLatencies(columns iter.Seq2[*Columns, error], v View, f Filter) (Latencies, error) {
	var l Latencies
	for c, err := range columns {
		if err != nil {
			return Latencies{}, err
		}
		f.collect(c, v, &l)
	}
	return l, nil
}

// columns returns the columns that the filter and the view need.
func (f *Filter) columns(v View) []string {
	want := []string{"outcome", "intended"}
	if v != Response {
		want = append(want, "started")
	}
	if v != Lateness {
		want = append(want, "ended")
	}
	if len(f.Actions) > 0 {
		want = append(want, "action")
	}
	if len(f.Kinds) > 0 {
		want = append(want, "kind")
	}
	return want
}

// collect adds one block, which has the columns that f.columns names.
func (f *Filter) collect(c *Columns, v View, l *Latencies) {
	action, kind := f.selected(c.Names)
	outcome := make([]op.Outcome, len(c.Names))
	for i, n := range c.Names {
		outcome[i] = op.Outcome(n)
	}
	if free := cap(l.OK) - len(l.OK); free < len(c.Intended) {
		l.OK = slices.Grow(l.OK, max(len(l.OK), len(c.Intended))) // twice: over millions append grows too timidly
	}
	starts, ends := v.columns(c)
	for i := range c.Intended {
		if action != nil && !action[c.Action[i]] || kind != nil && !kind[c.Kind[i]] || !f.inRange(c.Intended[i]) {
			continue
		}
		l.count(outcome[c.Outcome[i]], v, starts[i], ends[i])
	}
}

// count adds one op whose view lasts from one instant to the other.
func (l *Latencies) count(o op.Outcome, v View, from, to op.Time) {
	known := from.Known() && to.Known()
	switch {
	case o == op.Dropped:
		l.Dropped++
	case v == Lateness && known, o == op.OK && known:
		l.OK = append(l.OK, int64(to-from))
	case o == op.Error:
		l.Errors++
	case !known:
		l.Unknown++
	default:
		l.Bounds = append(l.Bounds, int64(to-from))
	}
}

func (f *Filter) inRange(t op.Time) bool {
	return (f.From == 0 || t >= f.From) && (f.To == 0 || t < f.To)
}

// selected returns, by number of name, the selected actions and kinds; nil means all.
func (f *Filter) selected(names []string) (action, kind []bool) {
	if len(f.Actions) > 0 {
		action = make([]bool, len(names))
	}
	if len(f.Kinds) > 0 {
		kind = make([]bool, len(names))
	}
	for i, n := range names {
		if action != nil {
			action[i] = slices.Contains(f.Actions, n)
		}
		if kind != nil {
			kind[i] = slices.Contains(f.Kinds, op.Kind(n))
		}
	}
	return action, kind
}

// columns returns the start and end instants of the view.
func (v View) columns(c *Columns) (from, to []op.Time) {
	switch v {
	case Service:
		return c.Started, c.Ended
	case Lateness:
		return c.Intended, c.Started
	default:
		return c.Intended, c.Ended
	}
}
