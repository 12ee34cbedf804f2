package recovery

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Missing is an op on an instance without a recovery, and why it has none.
type Missing struct {
	Op       int64   `json:"op"`
	Control  string  `json:"control"` // action of the op
	Kind     op.Kind `json:"kind"`
	Instance string  `json:"instance"`
	Action   string  `json:"action"` // of the instance
	Reason   string  `json:"reason"`
}

// MissingFrom returns the disruptive ops on instances that have no recovery in a list, in order of the ops. ws are those
// from which the list was made.
func MissingFrom(list []Recovery, d *dataset.Data, ws []dataset.Window) (missing []Missing) {
	type key struct {
		op       int64
		instance string
	}
	has := map[key]bool{}
	for _, r := range list {
		has[key{r.Op, r.Instance}] = true
	}
	curves := map[string][]*dataset.Curve{}
	for _, c := range d.Curves() {
		curves[c.Instance] = append(curves[c.Instance], c)
	}
	for i := range ws {
		w := &ws[i]
		if !Disruptive(w.Kind) {
			continue
		}
		for _, x := range d.Instances {
			if !has[key{w.Op, x.Name}] && d.Owns(x.Name, "", w.Target) {
				missing = append(missing, Missing{w.Op, w.Action, w.Kind, x.Name, dataset.ActionOf(x.Name),
					reason(curves[x.Name], d.Unreported(x.Name, curves[x.Name]...), w)})
			}
		}
	}
	slices.SortStableFunc(missing, func(a, b Missing) int { return cmp.Compare(a.Op, b.Op) })
	return missing
}

// reason says why an op has no recovery on an instance with these curves.
func reason(curves []*dataset.Curve, unreported dataset.Union, w *dataset.Window) string {
	switch {
	case len(curves) == 0:
		return "its tool has no rate over time"
	case unreported.Overlaps(w.From-before, w.From-1):
		return "its tool left no rate of the time before it: a tool that is killed loses what it had not written"
	}
	most, done := 0, false
	for _, c := range curves {
		n := 0
		for _, p := range c.Points {
			if p.At >= max(c.From, w.From-before) && c.End(p) <= w.From {
				n, done = n+1, done || p.Value > 0
			}
		}
		most = max(most, n)
	}
	switch {
	case most < fewest:
		return fmt.Sprintf("its tool has %d values of its rate in the 10 s before it: want %d", most, fewest)
	case !done:
		return "it did nothing in the 10 s before it"
	}
	return "its rate was mostly 0 in the 10 s before it, or its tool ran tests in turn"
}
