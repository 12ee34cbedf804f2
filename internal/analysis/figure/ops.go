package figure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// tally sums the ops of one action; its memory does not grow with their number beyond that of the samples.
type tally struct {
	name              string
	response, service stats.Sample
	bars              []Bar // nil once there were more than maxBars
	tooMany           bool
	heat              Heat
	median            nearest
	slowest           nearest
}

// nearest is the op whose response is nearest to a target; of several the first by id.
type nearest struct {
	target, distance int64
	op               op.Op
	found            bool
}

func (n *nearest) add(o *op.Op, response int64) {
	d := max(response-n.target, n.target-response)
	if !n.found || d < n.distance || d == n.distance && o.ID < n.op.ID {
		n.op, n.distance, n.found = *o, d, true
	}
}

// readOps reads the ops once for distributions, heat maps and lanes, and again for single ops.
func (f *Figures) readOps(d *dataset.Data, wanted []int64) error {
	byAction := map[string]*tally{}
	end := d.End()
	s := newStates(d.Instances)
	near := dataset.BoundsOf(&d.Bundle.Run)
	for o, err := range d.Bundle.Briefs() {
		if err != nil {
			return err
		}
		t := byAction[o.Action]
		if t == nil {
			t = &tally{name: o.Action}
			byAction[o.Action] = t
		}
		if !near.Has(o.Intended, o.Started, o.Ended) { // it has no place on the axes; its latency counts elsewhere
			continue
		}
		t.add(&o, end)
		s.add(&o, end)
	}
	f.Timeline.States = s.panel(end)
	if len(byAction) == 0 {
		return nil
	}
	if err := f.pick(d, byAction, wanted); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(byAction)) {
		t := byAction[name]
		t.heat.limit()
		a := Action{Name: name, Heat: t.heat, Median: -1, Slowest: -1}
		if t.response.Known() > 0 {
			a.N, a.Response, a.Service = t.response.N(), t.response.CDF(steps), t.service.CDF(steps)
		}
		if t.median.found {
			a.Median, a.Slowest = t.median.op.ID, t.slowest.op.ID
			f.Ops = append(f.Ops, t.median.op, t.slowest.op)
		}
		f.Actions = append(f.Actions, a)
		f.Timeline.Lanes = append(f.Timeline.Lanes, lane(t))
	}
	slices.SortFunc(f.Ops, func(a, b op.Op) int { return cmp.Compare(a.ID, b.ID) })
	f.Ops = slices.CompactFunc(f.Ops, func(a, b op.Op) bool { return a.ID == b.ID })
	return nil
}

// pick finds the median and the slowest op of each action, and the wanted ops.
func (f *Figures) pick(d *dataset.Data, byAction map[string]*tally, wanted []int64) error {
	for _, t := range byAction {
		e, _ := t.response.Quantile(0.5)
		if t.median.target = e.Value; e.Infinite {
			t.median.target, _ = t.response.MedianKnown()
		}
		t.slowest.target, _ = t.response.Max()
	}
	ids := map[int64]bool{}
	for _, id := range wanted {
		ids[id] = true
	}
	for o, err := range d.Bundle.Ops() {
		if err != nil {
			return err
		}
		if ns, ok := o.Response(); ok && o.Outcome == op.OK {
			t := byAction[o.Action]
			t.median.add(&o, ns)
			t.slowest.add(&o, ns)
		}
		if ids[o.ID] {
			f.Ops = append(f.Ops, o)
		}
	}
	return nil
}

func (t *tally) add(o *op.Op, end op.Time) {
	dataset.AddLatencies(o, &t.response, &t.service)
	t.heat.add(o, end)
	if t.tooMany = t.tooMany || len(t.bars) == maxBars; t.tooMany {
		t.bars = nil
		return
	}
	from, to := busy(o, end)
	t.bars = append(t.bars, Bar{From: from, To: to, ID: o.ID, Name: fmt.Sprintf("%s/%d", o.Action, o.Instance),
		Target: o.Target, Outcome: o.Outcome})
}

// lane places overlapping bars in the first free row.
func lane(t *tally) Lane {
	l := Lane{Action: t.name, Bars: t.bars, Rows: 1, Heat: t.heat}
	slices.SortStableFunc(l.Bars, func(a, b Bar) int { return cmp.Compare(a.From, b.From) })
	var free []op.Time // when each row is free again
	for i := range l.Bars {
		b := &l.Bars[i]
		row := slices.IndexFunc(free, func(t op.Time) bool { return t <= b.From })
		switch {
		case row >= 0:
		case len(free) < maxRows:
			row = len(free)
			free = append(free, 0)
		default: // overlap in the row that is free first
			row = slices.Index(free, slices.Min(free))
		}
		b.Row, free[row] = row, max(free[row], b.To)
	}
	l.Rows = max(1, len(free))
	return l
}
