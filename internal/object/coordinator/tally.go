package coordinator

import (
	"errors"
	"fmt"
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
	shares []*share // one for each round; the last may not be over
}

func newTally(f *Controller, spec *model.Stage) *tally {
	return &tally{controller: f, spec: spec, at: op.Never, hosts: make([]*hostTally, len(f.peers)),
		result: &loadgen.StageResult{Name: spec.Name, Began: f.Clock.Now()}}
}

// begin notes that a host has got a share.
func (t *tally) begin(p *peer) {
	h := t.hosts[p.index]
	if h == nil {
		h = &hostTally{HostResult: loadgen.HostResult{Host: p.Name, Start: op.Never, Intended: op.Never,
			StageResult: loadgen.StageResult{Name: t.spec.Name, Began: op.Never}}}
		t.hosts[p.index] = h
	}
	h.shares = append(h.shares, &share{StageResult: loadgen.StageResult{Name: t.spec.Name, Began: op.Never}})
}

// share is what a host does in this round.
func (t *tally) share(p *peer) *share {
	shares := t.hosts[p.index].shares
	return shares[len(shares)-1]
}

// start records when a round begins.
func (t *tally) start(at op.Time, stages map[*peer]*model.Stage) {
	if !t.at.Known() {
		t.result.Began = at
	}
	t.at, t.stopped = at, false
	for p, s := range stages {
		t.share(p).begin(s, at)
	}
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
func (t *tally) second(p *peer, m *second) error {
	s, x := t.share(p), *m
	i, err := s.work(m.Work)
	if err != nil {
		return err
	}
	end, _ := p.runTime(m.To)
	x.To = max(end, s.Works[i].Ended) // the estimate of its clock changes, by less than ±
	if m.From.Known() {
		x.From = x.To - (m.To - m.From)
	}
	if err := s.second(&x); err != nil {
		return err
	}
	t.controller.Observer.Host(p.index).Second(t.spec.Name, s.Works[i].Work, x.From, x.To, m.Cells, m.Usage)
	return nil
}

// end takes in how a host ended its share.
func (t *tally) end(p *peer, e *ended) error {
	h, s, x := t.hosts[p.index], t.share(p), *e
	if len(e.Works) != len(s.Works) && e.Err == "" {
		return fmt.Errorf("invalid report: %d works of %d", len(e.Works), len(s.Works))
	}
	x.At, _ = p.runTime(e.At)
	x.Outages = slices.Clone(e.Outages)
	for i := range x.Outages {
		o := &x.Outages[i]
		o.From, o.To = o.From+(x.At-e.At), o.To+(x.At-e.At)
	}
	x.Works = nil
	for _, w := range e.Works {
		if w.valid() {
			end, _ := p.runTime(w.Ended) // by one join, so that the differences stay
			shift := end - w.Ended
			w.Began, w.From, w.To, w.Ended = w.Began+shift, w.From+shift, w.To+shift, end
		}
		x.Works = append(x.Works, w)
	}
	if err := s.end(&x); err != nil {
		return err
	}
	t.controller.Observer.Host(p.index).Idle()
	h.Ended, h.Err = s.Ended, errors.Join(h.Err, s.Err)
	u := &h.Usage
	u.CPU, u.Waited, u.Wall, u.CPUs, u.RSS = u.CPU+e.Usage.CPU, u.Waited+e.Usage.Waited, u.Wall+e.Usage.Wall,
		e.Usage.CPUs, e.Usage.RSS
	return nil
}

// lose accounts for a host that is lost.
func (t *tally) lose(p *peer, stage *model.Stage, why error) {
	h, s := t.hosts[p.index], t.share(p)
	t.controller.Observer.Host(p.index).Idle()
	h.Lost, h.Ended = why, t.controller.Clock.Now()
	s.cut()
	h.Missing = append(h.Missing, s.missing(stage, t.stopped, t.controller.Seed)...)
}

// conclude makes the results of all rounds those of the stage. done: no share is left.
func (t *tally) conclude(failed error, done bool) *loadgen.StageResult {
	r := t.result
	r.Err = failed
	var shares []*share
	for i, h := range t.hosts {
		if h == nil {
			continue
		}
		shares = append(shares, h.shares...)
		for _, s := range h.shares {
			h.Outages = append(h.Outages, s.Outages...)
			h.TokenRequests += s.TokenRequests
		}
		r.TokenRequests += h.TokenRequests
		r.Outages = append(r.Outages, h.Outages...)
		who := label(t.controller.peers[i].Host)
		h.Err = errors.Join(h.Err, h.sum(t.spec))
		if h.Lost != nil {
			h.Err = fmt.Errorf("host %s is lost: %w", who, h.Lost)
			if done {
				h.Missing = append(h.Missing, "the other hosts did what was left of it")
			}
			r.Err = errors.Join(r.Err, h.Err)
		} else if h.Err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("host %s: %w", who, h.Err))
		}
		addUsage(&r.Usage, h.Usage)
		t.controller.Observer.Host(i).Ended(&h.HostResult)
		r.Hosts = append(r.Hosts, h.HostResult)
	}
	r.Outages = loadgen.MergeOutages(r.Outages)
	for i := range t.spec.Works {
		w, any := together(&t.spec.Works[i], shares)
		if !any {
			continue
		}
		if w.Err == nil {
			w.Err = w.Judge(t.stopped)
		}
		r.Works = append(r.Works, *w)
		if w.Err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("work %s: %w", w.Work.Name, w.Err))
		}
	}
	return r
}

// sum makes the works of a host's shares those of the host.
func (h *hostTally) sum(spec *model.Stage) (err error) {
	if len(h.shares) == 1 {
		h.Works = h.shares[0].Works
		return nil
	}
	for i := range spec.Works {
		w, any := together(&spec.Works[i], h.shares)
		if !any {
			continue
		}
		err = errors.Join(err, w.Err)
		for _, s := range h.shares {
			if k, unknown := s.work(w.Work.Name); unknown == nil {
				w.Err = errors.Join(w.Err, s.Works[k].Err)
			}
		}
		h.Works = append(h.Works, *w)
	}
	return err
}

// addUsage adds that of a host: its CPUs are others than those of all before.
func addUsage(sum *loadgen.Usage, u loadgen.Usage) {
	sum.CPU, sum.Waited, sum.CPUs, sum.RSS = sum.CPU+u.CPU, sum.Waited+u.Waited, sum.CPUs+u.CPUs, sum.RSS+u.RSS
	sum.Wall = max(sum.Wall, u.Wall)
}
