package tracker

import (
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// stamps are when each milestone was first seen of each object of an op.
type Milestones map[string]map[string]op.Milestone

// add notes what a watch event shows, unless it is known.
func (s Milestones) Add(name, id string, ev watch.Event) {
	source := "watch"
	if ev.Interval {
		source = "list" // seen after a gap: somewhere inside it
	}
	s.Set(name, id, op.Milestone{At: ev.At, Err: ev.Err, Source: source})
}

// set notes an instant; the first one counts, except that an agent's, who was
// there, replaces one that was only watched.
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

// last is the latest instant of the given milestones; Never if there is none.
func (s Milestones) Last(names ...string) op.Time {
	at := op.Never
	for _, n := range names {
		for _, m := range s[n] {
			at = max(at, m.At)
		}
	}
	return at
}

// fill writes the milestones to a trace. One that can be of several objects
// carries their names, and by its plain name it is when the last was there.
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

// milestone is the instant of an event.
func MilestoneOf(ev watch.Event) op.Milestone {
	source := "watch"
	if ev.Interval {
		source = "list"
	}
	return op.Milestone{At: ev.At, Err: ev.Err, Source: source}
}
