package perfetto

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/op"
)

// survey is what has to be known of all ops before the first is written.
type survey struct {
	first op.Time // the earliest instant, or 0 if that is earlier
	end   op.Time // of the run; the last instant of one that was killed
	// targets has the targets of each action; nil: too many for a track each.
	targets map[string]map[string]bool
	periods *interference.Periods
	windows []dataset.Window // of ops that may overlap a stall
}

// look reads all ops once.
func look(d *dataset.Data) (*survey, error) {
	s := &survey{end: d.End(), targets: map[string]map[string]bool{}}
	s.periods = interference.Find(d, d.End())
	around := s.periods.Around()
	for o, err := range d.Bundle.Ops() {
		if err != nil {
			return nil, err
		}
		s.add(&o)
		if !o.Started.Known() {
			continue
		}
		if w := dataset.WindowOf(&o); around.Overlaps(w.From, w.To) {
			s.windows = append(s.windows, w)
		}
	}
	dataset.SortWindows(s.windows)
	for _, i := range d.Instances {
		for _, start := range i.Starts {
			s.see(start.At)
		}
		if i.End != nil {
			s.see(i.End.At)
		}
	}
	for _, x := range d.Series {
		for _, p := range x.Points {
			s.see(p.At)
			s.see(p.At + op.Time(x.Step))
		}
	}
	for _, x := range slices.Concat(d.Slices, d.Totals) {
		s.see(x.From)
	}
	for i := range d.Samples {
		for _, c := range d.Samples[i].CPU {
			s.see(c.At)
		}
	}
	if at := d.Bundle.Run.EndedAt; at.Known() {
		s.end = max(0, at)
	}
	return s, nil
}

// see widens the time of the trace.
func (s *survey) see(t op.Time) {
	if t.Known() {
		s.first, s.end = min(s.first, t), max(s.end, t)
	}
}

func (s *survey) add(o *op.Op) {
	s.see(o.Intended)
	s.see(o.Started)
	s.see(o.Ended)
	for _, m := range o.Milestones {
		s.see(m.At)
	}
	targets, known := s.targets[o.Action]
	if !known {
		targets = map[string]bool{}
		s.targets[o.Action] = targets
	}
	if targets == nil || o.Target == "" {
		return
	}
	targets[o.Target] = true
	if len(targets) > maxTracks {
		s.targets[o.Action] = nil
	}
}
