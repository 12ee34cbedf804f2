package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Stage runs a stage on all hosts together, for loadgen.Sequence. A lost host fails it; the other hosts do its share
// of a stage that cleans up. The observer receives everything except the stage's end.
func (f *Controller) Stage(ctx, hard context.Context, spec *model.Stage) *loadgen.StageResult {
	return f.stage(ctx, hard, spec, 0)
}

// OnNullServers is Stage, but that each host goes to a null server of its own,
// with objects of so many bytes.
func (f *Controller) OnNullServers(size int64) func(ctx, hard context.Context, spec *model.Stage) *loadgen.StageResult {
	return func(ctx, hard context.Context, spec *model.Stage) *loadgen.StageResult {
		return f.stage(ctx, hard, spec, size)
	}
}

func (f *Controller) stage(ctx, hard context.Context, spec *model.Stage, nullSize int64) *loadgen.StageResult {
	t := newTally(f, spec)
	f.Observer.StageBegan(spec, t.result.Began)
	var failed error
	todo := []*model.Stage{spec}
	for again := true; again && failed == nil && len(todo) > 0; {
		var left []*model.Stage
		left, failed = f.round(ctx, hard, t, todo[0], nullSize)
		todo = append(todo[1:], left...)
		again = loadgen.Cleans(spec) && ctx.Err() == nil
	}
	r := t.conclude(failed, len(todo) == 0)
	if spec.Closure > 0 && r.Err == nil {
		f.Sleep(ctx, f.Clock.At(f.Clock.Now()+op.Time(spec.Closure)))
	}
	r.Ended = f.Clock.Now()
	return r
}

// round is one attempt to have a stage, or a part of one, run.
type round struct {
	*Controller
	tally   *tally
	null    int64                  // size of the objects of null servers; 0: use the stores
	shares  map[*peer]*model.Stage // of those that have not ended
	ready   map[*peer]bool
	started bool
	stopped bool
	failed  error          // why it could not begin
	left    []*model.Stage // shares of lost hosts
}

// round returns the shares that lost hosts did not end.
func (f *Controller) round(ctx, hard context.Context, t *tally, todo *model.Stage, nullSize int64) ([]*model.Stage,
	error) {
	r := &round{Controller: f, tally: t, null: nullSize, ready: map[*peer]bool{}}
	if err := r.order(todo); err != nil {
		return nil, err
	}
	soft, atOnce, giveUp := ctx.Done(), hard.Done(), (<-chan time.Time)(nil)
	for len(r.shares) > 0 {
		select {
		case <-soft:
			soft = nil
			r.stop(false)
		case <-atOnce:
			atOnce = nil
			r.stop(true)
			giveUp = time.After(f.Silence)
		case <-giveUp:
			for p := range r.shares {
				r.lose(p, errors.New("it did not stop in time"))
			}
		case e := <-f.inbox:
			r.take(e)
		}
		if !r.started && !r.stopped && len(r.ready) == len(r.shares) && len(r.shares) > 0 {
			r.start()
		}
	}
	if !r.started && len(r.left) > 0 {
		r.left = []*model.Stage{todo} // no host has begun
	}
	return r.left, r.failed
}

// order gives each host its share.
func (r *round) order(todo *model.Stage) error {
	peers := r.alive()
	if len(peers) == 0 {
		return errors.New("no hosts left")
	}
	var names []string
	for _, p := range peers {
		names = append(names, p.Name)
	}
	part := *todo
	part.Closure, part.Works = 0, slices.Clone(todo.Works)
	for i := range part.Works {
		if w := &part.Works[i]; loadgen.Cleans(todo) && !slices.Contains(names, w.Driver) {
			w.Driver = "" // that host is lost: any host may clean up
		}
	}
	r.shares = map[*peer]*model.Stage{}
	for i, p := range peers {
		share, err := (&model.Workload{Stages: []model.Stage{part}}).Share(i, names)
		if err != nil {
			return err
		}
		r.shares[p] = &share.Stages[0]
	}
	for p, s := range r.shares {
		r.tally.begin(p)
		r.send(p, &frame{Order: r.orderOf(s)})
	}
	return nil
}

// orderOf is a share as the host gets it. Only all hosts together can say
// whether too much failed.
func (r *round) orderOf(s *model.Stage) *order {
	o := &order{Stage: *s, NullSize: r.null}
	o.Stage.Works = slices.Clone(s.Works)
	for i := range o.Stage.Works {
		w := &o.Stage.Works[i]
		w.MaxFailures = 1e6
		secrets := w.Store.Secrets
		if r.OwnCredentials || r.null > 0 {
			secrets = nil
		}
		o.Secrets = append(o.Secrets, secrets)
	}
	return o
}

// send writes to a host; the reader notices an error.
func (r *round) send(p *peer, l *frame) {
	if err := p.conn.Write(l); err != nil {
		_ = p.conn.Close()
	}
}

// lead is how long before the start of a stage the hosts receive it, without the time that the network takes;
// leadEach is added for each host.
const (
	lead     = 250 * time.Millisecond
	leadEach = 200 * time.Microsecond
)

// start has all hosts begin at the same instant.
func (r *round) start() {
	var worst int64
	for p := range r.shares {
		_, plusMinus := p.hostTime(r.Clock.Now())
		worst = max(worst, plusMinus)
	}
	at := r.Clock.Now() + op.Time(lead+leadEach*time.Duration(len(r.shares))) + op.Time(4*worst)
	r.started = true
	r.tally.start(at, r.shares)
	for p := range r.shares {
		on, _ := p.hostTime(at)
		r.send(p, &frame{Start: &start{At: on}})
	}
}

// stop ends the works of all hosts.
func (r *round) stop(atOnce bool) {
	r.stopped, r.tally.stopped = true, true
	for p := range r.shares {
		r.send(p, &frame{Stop: &stop{AtOnce: atOnce}})
	}
}

// abandon ends a stage that one of the hosts cannot begin.
func (r *round) abandon() {
	if !r.started && !r.stopped {
		r.stop(false)
	}
}

// lose counts a host as lost.
func (r *round) lose(p *peer, why error) {
	if p.gone != nil {
		return
	}
	p.gone = why
	_ = p.conn.Close()
	s, busy := r.shares[p]
	if !busy {
		return
	}
	delete(r.shares, p)
	delete(r.ready, p)
	r.tally.lose(p, s, why)
	r.left = append(r.left, s)
	r.abandon()
}

// take handles a message of a host.
func (r *round) take(e event) {
	p := e.from
	if p.gone != nil {
		return
	}
	s := r.shares[p]
	var err error
	switch {
	case e.lost != nil:
		err = e.lost
	case s == nil:
		err = errors.New("unexpected message: it has no share of the stage")
	case e.Ready != nil && !r.started:
		r.ready[p] = true
	case e.Began != nil && r.started:
		r.tally.began(p, s, e.Began.At)
	case e.Second != nil && r.started:
		err = r.tally.second(p, e.Second)
	case e.Ended != nil:
		err = r.end(p, e.Ended)
	default:
		err = errors.New("unexpected message")
	}
	if err != nil {
		r.lose(p, err)
	}
}

// end takes what a host's share came to.
func (r *round) end(p *peer, e *ended) error {
	if r.started {
		if err := r.tally.end(p, e); err != nil {
			return err
		}
	} else if !r.stopped && r.failed == nil {
		r.failed = fmt.Errorf("host %s: %s", label(p.Host), e.Err)
	}
	delete(r.shares, p)
	delete(r.ready, p)
	r.abandon()
	return nil
}
