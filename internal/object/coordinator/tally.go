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

// tally sums up a stage, for each host and for all together.
type tally struct {
	controller *Controller
	spec       *model.Stage
	result     *loadgen.StageResult
	hosts      []*hostTally // by number; nil: it has no part in the stage
	at         op.Time      // when the works of this round begin
	// stopped: the hosts were stopped early.
	stopped bool
}

// hostTally is that of one host.
type hostTally struct {
	loadgen.HostResult
	works []*progress // by work of spec; nil: it has no part in the work
}

// progress is what a host has done of its part of a work.
type progress struct {
	loadgen.WorkResult
	open  bool // there is more to come
	until op.Time
}

func newTally(f *Controller, spec *model.Stage) *tally {
	return &tally{controller: f, spec: spec, at: op.Never, hosts: make([]*hostTally, len(f.peers)),
		result: &loadgen.StageResult{Name: spec.Name, Began: f.Clock.Now()}}
}

// work is the number of a share's work in the whole stage.
func (t *tally) work(w *model.Work) int {
	return slices.IndexFunc(t.spec.Works, func(o model.Work) bool { return o.Name == w.Name })
}

// begin notes what share a host has got.
func (t *tally) begin(p *peer, s *model.Stage) {
	h := t.hosts[p.index]
	if h == nil {
		h = &hostTally{HostResult: loadgen.HostResult{Host: p.Name, Start: op.Never, Intended: op.Never,
			StageResult: loadgen.StageResult{Name: s.Name, Began: op.Never}},
			works: make([]*progress, len(t.spec.Works))}
		t.hosts[p.index] = h
	}
	for i := range s.Works {
		w := &s.Works[i]
		if w.Kind == model.Delay {
			continue
		}
		g := &h.works[t.work(w)]
		if *g == nil {
			*g = &progress{WorkResult: loadgen.WorkResult{Work: w, Began: op.Never, From: op.Never, To: op.Never,
				Ended: op.Never, Cells: loadgen.Cells{}}}
		}
		(*g).open = true
	}
}

// start records when a round begins.
func (t *tally) start(at op.Time) {
	if !t.at.Known() {
		t.result.Began = at
	}
	t.at, t.stopped = at, false
	for _, g := range t.all() {
		if !g.open {
			continue
		}
		from, to, _ := g.Work.Windows()
		if g.until = at; g.Began.Known() {
			continue // it does more of it now
		}
		if g.Began, g.From = at, at+op.Time(from); to > 0 {
			g.To = at + op.Time(to)
		}
	}
}

// all are the parts of all hosts in all works.
func (t *tally) all() (all []*progress) {
	for _, h := range t.hosts {
		if h == nil {
			continue
		}
		for _, g := range h.works {
			if g != nil {
				all = append(all, g)
			}
		}
	}
	return all
}

// began notes when a host did begin.
func (t *tally) began(p *peer, s *model.Stage, at op.Time) {
	h := t.hosts[p.index]
	if h.Start.Known() {
		return
	}
	h.Start, h.StartErr = p.runTime(at)
	h.Intended, h.Began = t.at, h.Start
	t.controller.Observer.Host(p.index).Began(s, t.at, h.Start, h.StartErr)
}

// second takes in what a host did of a work in about a second.
func (t *tally) second(p *peer, s *model.Stage, m *second) error {
	n := slices.IndexFunc(s.Works, func(w model.Work) bool { return w.Name == m.Work })
	if n < 0 {
		return fmt.Errorf("invalid report: work %q is not one of its share", m.Work)
	}
	w := &s.Works[n]
	for k := range m.Cells {
		if k.Op >= len(w.Ops) {
			return fmt.Errorf("invalid report: operation %d of %d of work %s", k.Op, len(w.Ops), w.Name)
		}
	}
	g := t.hosts[p.index].works[t.work(w)]
	if !m.From.Known() || m.To < m.From || g == nil || !g.open {
		return errors.New("invalid report: a second outside of its work")
	}
	end, _ := p.runTime(m.To)
	to := max(end, g.until) // the estimate of its clock changes, by less than ±
	from := to - (m.To - m.From)
	if err := g.Cells.Merge(m.Cells); err != nil {
		return err
	}
	g.until = to
	t.controller.Observer.Host(p.index).Second(t.spec.Name, w, from, to, m.Cells, m.Usage)
	return nil
}

// end takes in how a host ended its share.
func (t *tally) end(p *peer, s *model.Stage, e *ended) error {
	h := t.hosts[p.index]
	var works []*progress
	for i := range s.Works {
		if s.Works[i].Kind != model.Delay {
			works = append(works, h.works[t.work(&s.Works[i])])
		}
	}
	if len(e.Works) != len(works) && e.Err == "" {
		return fmt.Errorf("invalid report: %d works of %d", len(e.Works), len(works))
	}
	for i := range e.Works {
		if x := &e.Works[i]; !x.Began.Known() || x.From < x.Began || x.To < x.From || x.Ended < x.Began {
			return fmt.Errorf("invalid report: times of work %d", i)
		}
	}
	if e.Err != "" {
		h.Err = errors.Join(h.Err, errors.New(e.Err))
	}
	for i, g := range works {
		if g.open = false; i < len(e.Works) {
			g.ended(p, &e.Works[i])
		}
	}
	h.Ended, _ = p.runTime(e.At)
	u := &h.Usage
	u.CPU, u.Waited, u.Wall, u.CPUs, u.RSS = u.CPU+e.Usage.CPU, u.Waited+e.Usage.Waited, u.Wall+e.Usage.Wall,
		e.Usage.CPUs, e.Usage.RSS
	return nil
}

// ended sets the instants of a part as the host had them.
func (g *progress) ended(p *peer, s *span) {
	end, _ := p.runTime(s.Ended)
	began, from, to := end-(s.Ended-s.Began), end-(s.Ended-s.From),
		end-(s.Ended-s.To) // by one join, so that their differences stay
	if g.Ended.Known() { // it did more of it
		began, from, to = min(began, g.Began), min(from, g.From), max(to, g.To)
	}
	g.Began, g.From, g.To, g.Ended = began, from, to, end
	if s.Err != "" {
		g.Err = errors.Join(g.Err, errors.New(s.Err))
	}
}

// lose accounts for a host that is lost.
func (t *tally) lose(p *peer, s *model.Stage, why error) {
	h := t.hosts[p.index]
	h.Lost, h.Ended = why, t.controller.Clock.Now()
	for i := range s.Works {
		w := &s.Works[i]
		if w.Kind == model.Delay {
			continue
		}
		g := h.works[t.work(w)]
		if g.open = false; g.Began.Known() {
			if g.Ended = g.until; !g.To.Known() || g.To > g.until {
				g.To = max(g.From, g.until)
			}
		}
		h.Missing = append(h.Missing, fmt.Sprintf("work %s: %s", w.Name,
			loadgen.LostShare(w, &g.WorkResult, t.stopped, t.spec.Name, t.controller.Seed)))
	}
}

// conclude makes the results of all rounds those of the stage. done: no share is left.
func (t *tally) conclude(failed error, done bool) *loadgen.StageResult {
	r := t.result
	r.Err = failed
	for i, h := range t.hosts {
		if h == nil {
			continue
		}
		for _, g := range h.works {
			if g != nil && g.Began.Known() {
				h.Works = append(h.Works, g.WorkResult)
			}
		}
		if h.Lost != nil {
			h.Err = fmt.Errorf("host %s is lost: %w", label(t.controller.peers[i].Host), h.Lost)
			if done {
				h.Missing = append(h.Missing, "the other hosts did what was left of it")
			}
			r.Err = errors.Join(r.Err, h.Err)
		} else if h.Err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("host %s: %w", label(t.controller.peers[i].Host), h.Err))
		}
		addUsage(&r.Usage, h.Usage)
		t.controller.Observer.Host(i).Ended(&h.HostResult)
		r.Hosts = append(r.Hosts, h.HostResult)
	}
	for i := range t.spec.Works {
		if w, any := t.together(i); any {
			r.Works = append(r.Works, *w)
			if w.Err != nil {
				r.Err = errors.Join(r.Err, fmt.Errorf("work %s: %w", w.Work.Name, w.Err))
			}
		}
	}
	return r
}

// together is what all hosts did of a work; false if none did anything.
func (t *tally) together(i int) (*loadgen.WorkResult, bool) {
	all := &loadgen.WorkResult{Work: &t.spec.Works[i], Began: math.MaxInt64, From: math.MaxInt64, To: op.Never,
		Ended: op.Never, Cells: loadgen.Cells{}}
	any := false
	for _, h := range t.hosts {
		if h == nil || h.works[i] == nil || !h.works[i].Began.Known() {
			continue
		}
		g := h.works[i]
		any = true
		all.Began, all.From, all.To, all.Ended = min(all.Began, g.Began), min(all.From, g.From), max(all.To, g.To),
			max(all.Ended, g.Ended)
		all.Err = errors.Join(all.Err, all.Cells.Merge(g.Cells))
	}
	if all.Err == nil {
		all.Err = all.Judge(t.stopped)
	}
	return all, any
}

// addUsage adds that of a host: its CPUs are others than those of all before.
func addUsage(sum *loadgen.Usage, u loadgen.Usage) {
	sum.CPU, sum.Waited, sum.CPUs, sum.RSS = sum.CPU+u.CPU, sum.Waited+u.Waited, sum.CPUs+u.CPUs, sum.RSS+u.RSS
	sum.Wall = max(sum.Wall, u.Wall)
}
