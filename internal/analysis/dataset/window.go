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
	s := spanOf(o.Started, o.Ended)
	return Window{Op: o.ID, Action: o.Action, Target: o.Target, Instance: o.Instance, Kind: o.Kind, From: s.From, To: s.To}
}

// spanOf is the time in which an op was in progress that was started.
func spanOf(started, ended op.Time) Span {
	if !ended.Known() {
		ended = math.MaxInt64
	}
	return Span{started, ended}
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
	all := map[string]*Progress{}
	for c, err := range d.Bundle.Columns() {
		if err != nil {
			return nil, err
		}
		for i, at := range c.Started {
			name := c.Names[c.Action[i]]
			if !at.Known() || !slices.Contains(actions, name) {
				continue
			}
			if all[name] == nil {
				all[name] = &Progress{}
			}
			all[name].Add(spanOf(at, c.Ended[i]))
		}
	}
	unions := map[string]Union{}
	for action, p := range all {
		unions[action] = p.Union()
	}
	return unions, nil
}

// Within returns how much of [from, to] is in the set, in ns.
func (u Union) Within(from, to op.Time) int64 {
	var sum op.Time
	for i := sort.Search(len(u), func(i int) bool { return u[i].To >= from }); i < len(u) && u[i].From < to; i++ {
		sum += min(to, u[i].To) - max(from, u[i].From)
	}
	return int64(sum)
}

// Outside returns what of a span is not in the set.
func (u Union) Outside(s Span) (rest []Span) {
	for i := sort.Search(len(u), func(i int) bool { return u[i].To > s.From }); i < len(u) && u[i].From < s.To; i++ {
		if u[i].From > s.From {
			rest = append(rest, Span{s.From, u[i].From})
		}
		s.From = u[i].To
	}
	if s.From < s.To {
		rest = append(rest, s)
	}
	return rest
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

// Progress joins spans as they are added, in the memory of their union where they are in order of their ends, as ops in
// a bundle are. The zero value is empty.
type Progress struct {
	joined Union
	late   []Span // that end before the last of joined, and begin before it
}

// Add adds a span.
func (p *Progress) Add(s Span) {
	n := len(p.joined)
	if n > 0 && s.To < p.joined[n-1].To {
		if s.From < p.joined[n-1].From {
			p.late = append(p.late, s)
		}
		return
	}
	for ; n > 0 && p.joined[n-1].To >= s.From; n-- {
		s.From = min(s.From, p.joined[n-1].From)
	}
	p.joined = append(p.joined[:n], s)
}

// Union returns the spans that were added. Add must not be called after it.
func (p *Progress) Union() Union {
	if len(p.late) > 0 {
		p.joined, p.late = Join(slices.Concat(p.joined, p.late)), nil
	}
	return p.joined
}
