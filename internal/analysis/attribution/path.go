package attribution

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Interval is a part of an op's critical path.
type Interval struct {
	Component string
	// Step is the milestone at its end, by its base name, or "ended".
	Step     string
	From, To op.Time
}

// Ns is the length of the interval; not negative.
func (i *Interval) Ns() int64 { return int64(i.To - i.From) }

// Intervals returns the critical path of an op that has an end, from the end back: intervals that follow each other
// from the intended instant to the end.
func Intervals(o *op.Op) []Interval {
	path := make([]Interval, 0, len(o.Milestones)+2)
	add := func(component, step string, from, to op.Time) {
		if to > from {
			path = append(path, Interval{component, step, from, to})
		}
	}
	walk(o, add)
	if late, ok := o.Lateness(); ok {
		add(Runner, started, o.Started-op.Time(late), o.Started)
	}
	if unblocked := o.Milestone(op.Unblocked); unblocked.Known() {
		add(Dependency, op.Unblocked, o.Intended, unblocked)
	}
	return path
}

// walk goes back from the end of an op to its start.
func walk(o *op.Op, add func(component, step string, from, to op.Time)) {
	at, name := o.Ended, last(o)
	if name == "" {
		add(Unknown, ended, o.Started, at)
		return
	}
	reached := latest(o, name, at)
	add(owner(o, name), ended, reached, at) // from the last milestone to the op's end
	at = reached
	visited := []string{name} // of this instant, whose milestones may precede each other
	for at > o.Started {
		s, known := stepOf(o, name)
		if !known {
			add(Unknown, name, o.Started, at)
			return
		}
		before := at
		if s.begins {
			before-- // an end at the same instant is this call's own, not of an earlier attempt
		}
		next, when := predecessor(o, s.after, before, visited)
		add(s.component(o, name, next), name, when, at)
		if next == "" {
			return
		}
		if when < at {
			visited = visited[:0]
		}
		name, at, visited = next, when, append(visited, next)
	}
}

func owner(o *op.Op, name string) string {
	if s, ok := stepOf(o, name); ok {
		return s.by
	}
	return Unknown
}

// last returns the base name of the op's latest milestone before its end. Of those at one instant op.Gone, which is
// seen with what it waited for, is the last.
func last(o *op.Op) string {
	name, at := "", op.Never
	for i := range o.Milestones {
		if m := &o.Milestones[i]; m.At <= o.Ended && m.At >= at && (m.At > at || name != op.Gone) &&
			m.Name != op.Unblocked {
			name, at = base(m), m.At
		}
	}
	return name
}

// latest returns the last instant of a milestone up to by; ops on several volumes and
// repeated attempts have it several times.
func latest(o *op.Op, name string, by op.Time) op.Time {
	at := op.Never
	for i := range o.Milestones {
		if m := &o.Milestones[i]; m.At <= by && m.At > at && m.Is(name) {
			at = m.At
		}
	}
	return at
}

// predecessor returns the latest of the named milestones up to by, or the op's start; of several at one instant the
// first of the names. Those in visited are no predecessors at the instant by.
func predecessor(o *op.Op, names []string, by op.Time, visited []string) (name string, at op.Time) {
	at = min(o.Started, by)
	rank := -1 // of name in names
	for i := range o.Milestones {
		m := &o.Milestones[i]
		if !m.At.Known() || m.At > by || m.At < at || m.At == at && rank < 0 {
			continue
		}
		if m.At == by && slices.Contains(visited, base(m)) {
			continue
		}
		if r := slices.Index(names, base(m)); r >= 0 && (m.At > at || r < rank) {
			name, at, rank = names[r], m.At, r
		}
	}
	return name, at
}
