package dataset

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Window is the time in which an op was in progress: [From, To].
type Window struct {
	Op             int64
	Action, Target string
	Instance       int
	Kind           op.Kind
	From, To       op.Time
}

// Windows returns the windows of the ops of the named actions (none: all), in order of
// From. To of an op without an end is math.MaxInt64.
func (d *Data) Windows(actions ...string) ([]Window, error) {
	var ws []Window
	for o, err := range d.Bundle.Briefs() {
		if err != nil {
			return nil, err
		}
		if o.Started.Known() && (len(actions) == 0 || slices.Contains(actions, o.Action)) {
			ws = append(ws, WindowOf(&o))
		}
	}
	SortWindows(ws)
	return ws, nil
}

// WindowOf returns the window of an op that was started.
func WindowOf(o *op.Op) Window {
	w := Window{Op: o.ID, Action: o.Action, Target: o.Target, Instance: o.Instance, Kind: o.Kind, From: o.Started,
		To: o.Ended}
	if !w.To.Known() {
		w.To = math.MaxInt64
	}
	return w
}

// SortWindows sorts windows in order of From.
func SortWindows(ws []Window) {
	slices.SortStableFunc(ws, func(a, b Window) int { return cmp.Compare(a.From, b.From) })
}

// Union is a set of instants: disjoint intervals in order.
type Union []Span

// Span is an interval of time, both ends included.
type Span struct{ From, To op.Time }

// UnionOf merges windows that are in order of From.
func UnionOf(ws []Window) Union {
	var u Union
	for _, w := range ws {
		if n := len(u); n > 0 && w.From <= u[n-1].To {
			u[n-1].To = max(u[n-1].To, w.To)
			continue
		}
		u = append(u, Span{w.From, w.To})
	}
	return u
}

// InProgress returns when ops of each of the actions were in progress.
func (d *Data) InProgress(actions ...string) (map[string]Union, error) {
	all := map[string]Union{}
	for o, err := range d.Bundle.Briefs() {
		if err != nil {
			return nil, err
		}
		if o.Started.Known() && slices.Contains(actions, o.Action) {
			w := WindowOf(&o)
			all[o.Action] = append(all[o.Action], Span{w.From, w.To})
		}
	}
	for action, spans := range all {
		all[action] = Join(spans)
	}
	return all, nil
}

// Within returns how much of [from, to] is in the set, in ns.
func (u Union) Within(from, to op.Time) int64 {
	var sum op.Time
	for i := sort.Search(len(u), func(i int) bool { return u[i].To >= from }); i < len(u) && u[i].From < to; i++ {
		sum += min(to, u[i].To) - max(from, u[i].From)
	}
	return int64(sum)
}

// Overlaps reports whether [from, to] intersects the set.
func (u Union) Overlaps(from, to op.Time) bool {
	i := sort.Search(len(u), func(i int) bool { return u[i].To >= from })
	return i < len(u) && u[i].From <= to
}

// Join merges spans in any order; it sorts them.
func Join(spans []Span) Union {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	n := 0
	for _, s := range spans {
		if n > 0 && s.From <= spans[n-1].To {
			spans[n-1].To = max(spans[n-1].To, s.To)
			continue
		}
		spans[n] = s
		n++
	}
	return slices.Clip(slices.Clone(spans[:n]))
}
