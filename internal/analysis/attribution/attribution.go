// Package attribution computes which component took the time of an op. It walks
// the op's critical path back from its end, milestone by milestone, and gives each
// interval to the component that produces the milestone at its end. The intervals
// cover the op from its intended instant to its end: the shares add up to one.
//
// The predecessor of a milestone on the path is the latest of its declared
// dependencies.
package attribution

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/shape"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Share is the time of one component.
type Share struct {
	Component string `json:"component"`
	// Share of the time of all ops together, 0 to 1.
	Share float64 `json:"share"`
	// MeanNs is the component's mean time per op.
	MeanNs float64 `json:"meanNs"`
}

// Tally sums ops. The zero value is ready to use; it is not safe for concurrent use.
type Tally struct {
	// OneMachine gives the time of Kubernetes' components to the engine, which
	// does their work where all runs on one machine.
	OneMachine bool

	n     int64
	total int64
	by    []taken
	paths shape.Cache[[]part]
}

// part is the time of a component between two places of a shape.
type part struct {
	by       int // in Tally.by
	from, to op.Time
}

// taken is the time of one component.
type taken struct {
	component string
	ns        int64
}

// Add adds an op. Ops that did not succeed are ignored: they have no path to an end.
func (t *Tally) Add(o *op.Op) {
	if o.Outcome != op.OK || !o.Ended.Known() || !o.Intended.Known() {
		return
	}
	t.n++
	if t.paths.Make == nil {
		t.paths.Make = t.parts
	}
	parts, at, ok := t.paths.Of(o)
	if !ok {
		for _, p := range t.parts(o) {
			t.add(p.by, int64(p.to-p.from))
		}
		return
	}
	for _, p := range parts {
		t.add(p.by, int64(at[p.to]-at[p.from]))
	}
}

func (t *Tally) add(by int, ns int64) {
	t.by[by].ns += ns
	t.total += ns
}

// parts are those of the critical path of an op.
func (t *Tally) parts(o *op.Op) (list []part) {
	for _, x := range Intervals(o) {
		by := slices.IndexFunc(t.by, func(by taken) bool { return by.component == x.Component })
		if by < 0 {
			by = len(t.by)
			t.by = append(t.by, taken{component: x.Component})
		}
		list = append(list, part{by, x.From, x.To})
	}
	return list
}

// Shares returns the components, largest share first; none without ops.
func (t *Tally) Shares() []Share {
	all := map[string]int64{}
	for _, by := range t.by {
		if t.OneMachine {
			by.component = onOneMachine(by.component)
		}
		all[by.component] += by.ns
	}
	var list []Share
	for by, ns := range all {
		if ns > 0 {
			list = append(list, Share{by, float64(ns) / float64(t.total), float64(ns) / float64(t.n)})
		}
	}
	slices.SortFunc(list, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Component, b.Component))
	})
	return list
}
