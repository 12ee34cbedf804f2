package attribution

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/op"
)

// InOrder returns the critical path of an op in order of time, from its intended instant to its end; empty unless the
// op was ok. With oneMachine the time of Kubernetes' components is the engine's, as in a Tally.
func InOrder(o *op.Op, oneMachine bool) []Interval {
	if o.Outcome != op.OK || !o.Ended.Known() || !o.Intended.Known() {
		return nil
	}
	path := Intervals(o)
	slices.Reverse(path)
	slices.SortStableFunc(path, func(a, b Interval) int { return int(a.From - b.From) })
	if oneMachine {
		for i := range path {
			path[i].Component = onOneMachine(path[i].Component)
		}
	}
	return path
}

// ComponentOf returns the component that took the time of a span of an op, from one milestone to another, by their base
// names, also where the span is not on the critical path.
func ComponentOf(o *op.Op, from, to string, oneMachine bool) string {
	s, known := stepOf(o, to)
	by := Unknown
	if known {
		by = s.component(o, to, from)
	}
	if oneMachine {
		by = onOneMachine(by)
	}
	return by
}
