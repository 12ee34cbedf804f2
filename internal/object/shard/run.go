package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/rendezvous"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Company is whom a part waits for: the barrier of the run and the other parts.
// It is a rendezvous.Client.
type Company interface {
	Wait(ctx context.Context, m rendezvous.Rendezvous) (a rendezvous.Reply, at time.Time, err error)
	Barrier(ctx context.Context) (at time.Time, err error)
	ReportStart() error
}

// Config of a part.
type Config struct {
	Order *Order
	Index int // of this part, from 0
	Parts int // that go together
	// Group names them among all that meet in the run.
	Group   string
	Company Company // nil: there is no run around it, and one part
	Out     io.Writer
	Version string // of the program
	Open    func(*model.Store) (client.Store, error)
	Clock   op.Clock
	// Sleep waits for an instant; false if ctx ended first.
	Sleep func(ctx context.Context, until time.Time) bool
}

// Run carries the part out. When ctx ends, or a stage fails, here or in another
// part, or another part is lost, what is left is skipped but for the stages that
// clean up, which the parts that are left do together; when hard ends, those too.
func Run(ctx, hard context.Context, c Config) error {
	if c.Index < 0 || c.Index >= c.Parts || c.Parts > 1 && c.Company == nil {
		return fmt.Errorf("there is no part %d of %d here", c.Index, c.Parts)
	}
	share, err := c.Order.Workload.Share(c.Index, make([]string, c.Parts))
	if err != nil {
		return err
	}
	p := &part{Config: c, share: share, first: First(&c.Order.Workload), out: &writer{to: c.Out}}
	p.out.row(row{Head: &Head{Format: Format, Version: c.Version, Index: c.Index, Parts: c.Parts, Seed: c.Order.Seed, Wall: c.Clock.Start().UnixNano(), Workload: *share}})
	p.runner = loadgen.NewRunner(loadgen.Config{Workload: share, Open: c.Open, Clock: c.Clock, Sleep: c.Sleep, Seed: c.Order.Seed,
		Grace: c.Order.Grace, Observer: p, Begin: p.begin})
	for k := range share.Stages {
		p.stage(ctx, hard, k)
	}
	p.out.row(row{Done: &done{Err: text(p.failed), Interrupted: ctx.Err() != nil}})
	return errors.Join(p.failed, p.out.err)
}

// part is a run of one.
type part struct {
	Config
	share  *model.Workload
	first  int // stage that begins at the barrier
	runner *loadgen.Runner
	out    *writer
	failed error

	// Of the stage under way.
	k       int
	works   []model.Work // that are not the share's
	started bool         // begin was called
	hard    context.Context
}

// stage carries one out, or skips it, as all parts do.
func (p *part) stage(ctx, hard context.Context, k int) {
	p.k, p.started, p.works, p.hard = k, false, nil, hard
	stage := &p.share.Stages[k]
	enter, err := p.meet(2*k, ctx.Err() != nil)
	if err != nil {
		p.fail(k, err)
	}
	failed := p.failed != nil || ctx.Err() != nil || enter.Failed
	if hard.Err() != nil || failed && !loadgen.Cleans(stage) {
		p.out.row(row{Ended: &ended{Stage: k, At: p.Clock.Now(), Skipped: true}})
		return
	}
	if len(enter.Present) < p.Parts && loadgen.Cleans(stage) {
		if stage, err = p.takeOver(k, enter.Present); err != nil {
			p.fail(k, err)
			return
		}
	}
	in := ctx
	if failed {
		in = hard
	}
	result := p.runner.Stage(in, hard, stage)
	if !p.started { // it failed before; nobody is to wait for it
		_, err := p.meet(2*k+1, true)
		result.Err = errors.Join(result.Err, err)
	}
	p.StageEnded(result)
	if result.Err != nil && ctx.Err() == nil {
		p.fail(k, result.Err)
	}
}

func (p *part) fail(k int, err error) {
	p.failed = errors.Join(p.failed, fmt.Errorf("stage %s: %w", p.share.Stages[k].Name, err))
}

// takeOver shares a stage anew among the parts that are left.
func (p *part) takeOver(k int, present []int) (*model.Stage, error) {
	i := slices.Index(present, p.Index)
	share, err := p.Order.Workload.Share(i, make([]string, len(present)))
	if err != nil {
		return nil, err
	}
	p.works = share.Stages[k].Works
	return &share.Stages[k], nil
}

// meet comes to a meeting of all parts; alone it takes place at once.
func (p *part) meet(step int, failed bool) (rendezvous.Reply, error) {
	a, _, err := p.meeting(step, failed)
	return a, err
}

func (p *part) meeting(step int, failed bool) (rendezvous.Reply, time.Time, error) {
	failed = failed || p.failed != nil
	if p.Parts == 1 {
		return rendezvous.Reply{Failed: failed, Present: []int{0}}, time.Now(), nil
	}
	return p.Company.Wait(p.hard, rendezvous.Rendezvous{Group: p.Group, Step: step, Index: p.Index, Members: p.Parts, Failed: failed})
}

// errOthers is why a part does not begin a stage that it could begin.
var errOthers = errors.New("another part has failed, or is lost")

// begin is called when all that the stage needs is ready, and waits until it
// begins: for the barrier, or for the other parts. Windows and what is due count
// from the instant that was agreed, also where this part comes late.
func (p *part) begin(ctx context.Context) (op.Time, error) {
	p.started = true
	atBarrier := p.k == p.first && p.failed == nil && p.Company != nil
	var at time.Time
	var err error
	if atBarrier {
		at, err = p.Company.Barrier(ctx)
	} else {
		var a rendezvous.Reply
		a, at, err = p.meeting(2*p.k+1, ctx.Err() != nil)
		if err == nil && a.Failed && !loadgen.Cleans(&p.share.Stages[p.k]) {
			err = errOthers
		}
	}
	if err == nil && !p.Sleep(ctx, at) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	now := p.Clock.Now()
	if err == nil && atBarrier {
		err = p.Company.ReportStart()
	}
	if err != nil {
		return now, err
	}
	p.out.row(row{Began: &began{Stage: p.k, At: now, Barrier: atBarrier, Works: p.works}})
	return min(now, p.Clock.Of(at)), nil
}

// StageBegan is load.Observer's; the works have not begun yet.
func (p *part) StageBegan(*model.Stage, op.Time) {}

// Interval is load.Observer's: the seconds have it.
func (p *part) Interval(string, *model.Work, op.Time, op.Time, loadgen.Cells) {}

// Second writes what ended in about a second.
func (p *part) Second(_ string, w *model.Work, from, to op.Time, cells loadgen.Cells) {
	p.out.row(row{Second: &second{Stage: p.k, Work: w.Name, From: from, To: to, Cells: cells, Usage: loadgen.UsageNow()}})
}

// StageEnded writes when the works were carried out.
func (p *part) StageEnded(s *loadgen.StageResult) {
	e := &ended{Stage: p.k, At: s.Ended, Err: text(s.Err), Usage: s.Usage}
	for i := range s.Works {
		w := &s.Works[i]
		e.Works = append(e.Works, span{Work: w.Work.Name, Began: w.Began, From: w.From, To: w.To, Ended: w.Ended, Err: text(w.Err)})
	}
	p.out.row(row{Ended: e})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
