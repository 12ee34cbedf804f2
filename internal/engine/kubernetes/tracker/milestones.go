package tracker

import (
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Milestones has the first instant of each milestone, by its name and object.
type Milestones map[string]map[string]op.Milestone

// Add adds the instant of a watch event unless one is known.
func (s Milestones) Add(name, id string, ev watch.Event) {
	source := "watch"
	if ev.Interval {
		source = "list" // seen after a gap: somewhere in it
	}
	s.Set(name, id, op.Milestone{At: ev.At, Err: ev.Err, Source: source})
}

// Set sets an instant. The first one counts, but one from an agent replaces one from a watch.
func (s Milestones) Set(name, id string, m op.Milestone) {
	of := s[name]
	if of == nil {
		of = map[string]op.Milestone{}
		s[name] = of
	}
	if old, known := of[id]; known && (m.Source != "agent" || old.Source == "agent") {
		return
	}
	of[id] = m
}

// Last returns the latest instant of the given milestones, or Never.
func (s Milestones) Last(names ...string) op.Time {
	at := op.Never
	for _, n := range names {
		for _, m := range s[n] {
			at = max(at, m.At)
		}
	}
	return at
}

// Fill writes the milestones to a trace. A milestone of several objects is written for each, and by its plain name
// when all objects have reached it.
func (s Milestones) Fill(tr *op.Trace, ids map[string][]string) {
	for name, of := range s {
		latest := op.Milestone{At: op.Never}
		for id, m := range of {
			if len(ids[name]) > 1 {
				tr.MarkAt(name+"/"+id, m.At, m.Err, m.Source)
			}
			if m.At > latest.At {
				latest = m
			}
		}
		if len(of) >= max(1, len(ids[name])) {
			tr.MarkAt(name, latest.At, latest.Err, latest.Source)
		}
	}
}

// MilestoneOf returns the instant of an event.
func MilestoneOf(ev watch.Event) op.Milestone {
	source := "watch"
	if ev.Interval {
		source = "list"
	}
	return op.Milestone{At: ev.At, Err: ev.Err, Source: source}
}
