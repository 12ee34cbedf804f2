package coordinator

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// share is what a process has done of a stage, put together from its reports. All times are of one clock. The end of a
// work that has not ended is its last known second.
type share struct {
	loadgen.StageResult
	// Over: it has ended, or was skipped.
	Over bool
}

// begin sets when the works of a stage begin.
func (s *share) begin(m *model.Stage, at op.Time) {
	s.Began, s.Works = at, nil
	for i := range m.Works {
		w := &m.Works[i]
		if w.Kind == model.Delay {
			continue
		}
		from, to, _ := w.Windows()
		r := loadgen.WorkResult{Work: w, Began: at, From: at + op.Time(from), To: op.Never, Ended: at,
			Cells: loadgen.Cells{}}
		if to > 0 {
			r.To = at + op.Time(to)
		}
		s.Works = append(s.Works, r)
	}
}

// work is the number of a work that has begun.
func (s *share) work(name string) (int, error) {
	i := slices.IndexFunc(s.Works, func(w loadgen.WorkResult) bool { return w.Work.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("invalid report: stage %q has no work %q that has begun", s.Name, name)
	}
	return i, nil
}

// second adds what ended in a second of a work, exactly.
func (s *share) second(x *second) error {
	i, err := s.work(x.Work)
	if err != nil {
		return err
	}
	w := &s.Works[i]
	for k := range x.Cells {
		if k.Op >= len(w.Work.Ops) {
			return fmt.Errorf("invalid report: operation %d of %d of work %s", k.Op, len(w.Work.Ops), x.Work)
		}
	}
	if !x.From.Known() || x.To < x.From || s.Over {
		return fmt.Errorf("invalid report: a second outside of work %s", x.Work)
	}
	w.Ended = max(w.Ended, x.To)
	if err := w.Cells.Merge(x.Cells); err != nil {
		return fmt.Errorf("work %q: %w", x.Work, err)
	}
	return nil
}

// end sets when the works were run and measured.
func (s *share) end(x *ended) error {
	s.Ended, s.Skipped, s.Usage, s.Over, s.Outages = x.At, x.Skipped, x.Usage, true, x.Outages
	s.TokenRequests = x.TokenRequests
	if x.Err != "" {
		s.Err = errors.New(x.Err)
	}
	for _, w := range x.Works {
		i, err := s.work(w.Work)
		if err != nil {
			return err
		}
		if !w.valid() {
			return fmt.Errorf("invalid report: times of work %s", w.Work)
		}
		r := &s.Works[i]
		r.Began, r.From, r.To, r.Ended, r.Steady = w.Began, w.From, w.To, w.Ended, w.Steady
		if w.Err != "" {
			r.Err = errors.New(w.Err)
		}
	}
	return nil
}

// cut ends the measured windows of a lost share with the last known second.
func (s *share) cut() {
	for i := range s.Works {
		if w := &s.Works[i]; !w.To.Known() || w.To > w.Ended {
			w.To = max(w.From, w.Ended)
		}
	}
}

// missing accounts for a lost share of the stage m: for each work, what is known and what is not. Operations of an
// open loop that were due after the last known one are added to the work as lost, unless it was stopped.
func (s *share) missing(m *model.Stage, stopped bool, seed uint64) (list []string) {
	for i := range m.Works {
		w := &m.Works[i]
		if w.Kind == model.Delay {
			continue
		}
		var r *loadgen.WorkResult
		if k, err := s.work(w.Name); err == nil {
			r = &s.Works[k]
		}
		list = append(list, fmt.Sprintf("work %s: %s", w.Name, loadgen.LostShare(w, r, stopped, s.Name, seed)))
	}
	return list
}

// together is what several shares came to of a work; false if it has begun in none.
func together(w *model.Work, shares []*share) (*loadgen.WorkResult, bool) {
	all := &loadgen.WorkResult{Work: w, Began: math.MaxInt64, From: math.MaxInt64, To: op.Never, Ended: op.Never,
		Cells: loadgen.Cells{}}
	any := false
	for _, s := range shares {
		i, err := s.work(w.Name)
		if err != nil {
			continue
		}
		r := &s.Works[i]
		any = true
		all.Began, all.From, all.To, all.Ended = min(all.Began, r.Began), min(all.From, r.From), max(all.To, r.To),
			max(all.Ended, r.Ended)
		all.Err = errors.Join(all.Err, all.Cells.Merge(r.Cells))
	}
	return all, any
}
