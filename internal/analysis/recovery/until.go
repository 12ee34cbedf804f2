package recovery

import (
	"slices"
	"sort"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
)

// of returns the part of a curve that tells of the first of its instance's ops: since the phase of the workload began, up
// to the next op or the next phase, whose effects would be taken for those of the op, and to the start of a process that
// has left nothing.
func (c curve) of(d *dataset.Data, ops []dataset.Window) curve {
	part, from := *c.Curve, ops[0].From
	if i := slices.IndexFunc(ops, func(w dataset.Window) bool { return w.From > from }); i > 0 {
		part.Until = min(part.Until, ops[i].From)
	}
	for _, u := range c.unreported {
		if u.From > from {
			part.Until = min(part.Until, u.From)
		}
	}
	for phase := range len(d.Phases(c.Action)) + 1 {
		begin, _, ok := d.PhaseSpan(c.Instance, phase)
		switch {
		case !ok:
		case begin > from:
			part.Until = min(part.Until, begin)
		default:
			part.From = max(part.From, begin)
		}
	}
	n := sort.Search(len(part.Points), func(i int) bool { return part.Points[i].At >= part.Until })
	part.Points = slices.Clip(part.Points[:n])
	c.cut = part.Until < c.Until
	c.Curve = &part
	return c
}
