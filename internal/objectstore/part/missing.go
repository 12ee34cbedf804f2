package part

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/objectstore/load"
	"github.com/cnsbench/cnsbench/internal/objectstore/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Missing accounts for the share of a part that was lost: for each work that it
// did not end, what it had to do, what is kept of it and what is not. Operations
// of an open loop that were due, or were to be, after the last that is known of
// it are added to the work as lost.
func (p *Part) Missing() []string {
	var list []string
	for i := range p.Stages {
		s := &p.Stages[i]
		if s.Over {
			continue
		}
		stage := &p.Workload.Stages[i]
		for j := range stage.Works {
			w := &stage.Works[j]
			if w.Kind == model.Delay {
				continue
			}
			var r *load.WorkResult
			if k, err := s.work(w.Name); err == nil {
				r = &s.Works[k]
			}
			list = append(list, fmt.Sprintf("stage %s, work %s: %s", s.Name, w.Name, missing(s.Name, p.Seed, w, r)))
		}
	}
	return list
}

// missing is what a lost part had as its share of a work; r is nil if it had not
// begun.
func missing(stage string, seed uint64, w *model.Work, r *load.WorkResult) string {
	text := fmt.Sprintf("its %d of %d workers ", w.Workers, w.AllWorkers())
	if r == nil {
		return text + "had not begun"
	}
	var kept int64
	for k, c := range r.Cells {
		if k.Label != load.Dropped && k.Check == "" {
			kept += c.N
		}
	}
	until := time.Duration(r.Ended - r.Began)
	text += fmt.Sprintf("did %d operations that are kept, in %.1f s", kept, until.Seconds())
	switch planned := w.Planned(); {
	case w.Rate != nil:
		if n := load.LoseUnknown(r, stage, seed); n > 0 {
			text += fmt.Sprintf("; %d that were due and are not kept count as lost", n)
		}
	case planned > 0:
		text += fmt.Sprintf("; %d are missing", max(0, planned-kept))
	default:
		_, _, end := w.Windows()
		text += fmt.Sprintf("; those of the other %.1f s are missing", max(0, end-until).Seconds())
	}
	return text
}

// Shift moves all instants of the part by d.
func (p *Part) Shift(d op.Time) {
	move := func(list ...*op.Time) {
		for _, t := range list {
			if t.Known() {
				*t += d
			}
		}
	}
	move(&p.Barrier, &p.Last)
	for i := range p.Stages {
		s := &p.Stages[i]
		move(&s.Began, &s.Ended)
		for j := range s.Works {
			move(&s.Works[j].Began, &s.Works[j].From, &s.Works[j].To, &s.Works[j].Ended)
		}
		for j := range s.Seconds {
			move(&s.Seconds[j].From, &s.Seconds[j].To)
		}
	}
}
