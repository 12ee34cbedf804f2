package figure

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Make computes the figures of a bundle. The ops with the wanted ids are among Figures.Ops.
func Make(b *bundle.Bundle, wanted []int64) (*Figures, error) {
	d, err := dataset.Read(b)
	if err != nil {
		return nil, fmt.Errorf("figures of %s: %w", b.Dir, err)
	}
	return Of(d, wanted)
}

// Of is Make of data that is already read.
func Of(d *dataset.Data, wanted []int64) (*Figures, error) {
	f := &Figures{}
	if err := f.readOps(d, wanted); err != nil {
		return nil, fmt.Errorf("figures of %s: %w", d.Bundle.Dir, err)
	}
	f.Timeline.panels(d)
	f.Timeline.addQueries(d)
	f.Timeline.extend(d)
	f.Timeline.reduce()
	return f, nil
}

// extend sets the time span of all bars and points.
func (t *Timeline) extend(d *dataset.Data) {
	first := true
	add := func(from, to op.Time) {
		if first {
			t.From, t.To, first = from, to, false
		}
		t.From, t.To = min(t.From, from), max(t.To, to)
	}
	for _, l := range t.Lanes {
		if l.Heat.busy() {
			add(l.Heat.First, l.Heat.Last)
		}
	}
	panels := t.Panels
	if t.All != nil { // of those without a panel too
		panels = append(slices.Clone(panels), *t.All)
	}
	for _, p := range panels {
		for _, l := range p.Lines() {
			for _, x := range l.Points {
				add(x.From, x.To)
			}
		}
	}
	if d.Bundle.Run.BarrierAt.Known() && !first {
		add(d.Bundle.Run.BarrierAt, d.Bundle.Run.BarrierAt)
	}
}
