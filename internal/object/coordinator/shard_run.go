package coordinator

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

// Rendezvous is where a shard waits for the run's barrier and for the other shards.
type Rendezvous interface {
	Wait(ctx context.Context, m rendezvous.Rendezvous) (a rendezvous.Reply, at time.Time, err error)
	Barrier(ctx context.Context) (at time.Time, err error)
	ReportStart() error
}

// ShardConfig of one shard.
type ShardConfig struct {
	Order *ShardOrder
	Index int // of this shard, from 0
	Parts int // shards of the workload
	// Group names the shards among all that meet in the run.
	Group      string
	Rendezvous Rendezvous // nil: no run, and one shard
	Out        io.Writer
	Version    string // of the program
	Open       func(*model.Store) (client.Store, error)
	Clock      op.Clock
	// Sleep waits for an instant; false if ctx ended first.
	Sleep func(ctx context.Context, until time.Time) bool
	Log   OperationLog // closed when the shard has ended; nil: none
}

// OperationLog is a loadgen.Log that must be closed. dropped is the number of operations that are missing in it.
type OperationLog interface {
	loadgen.Log
	Close() (dropped int64, err error)
}

// RunShard runs a shard. When ctx ends, a stage fails in any shard, or a shard is lost, it skips the remaining stages
// except for those that clean up, which the remaining shards share. When hard ends it skips those too.
func RunShard(ctx, hard context.Context, c ShardConfig) error {
	if c.Index < 0 || c.Index >= c.Parts || c.Parts > 1 && c.Rendezvous == nil {
		return fmt.Errorf("invalid shard %d of %d", c.Index, c.Parts)
	}
	share, err := c.Order.Workload.Share(c.Index, make([]string, c.Parts))
	if err != nil {
		return err
	}
	p := &shardRun{ShardConfig: c, share: share, first: firstMeasured(&c.Order.Workload), out: &rowWriter{to: c.Out}}
	p.out.row(row{Head: &ShardHead{Format: shardFormat, Version: c.Version, Index: c.Index, Parts: c.Parts,
		Seed: c.Order.Seed, Wall: c.Clock.Start().UnixNano(), Workload: *share}})
	p.runner = loadgen.NewRunner(loadgen.Config{Workload: share, Open: c.Open, Clock: c.Clock, Sleep: c.Sleep,
		Seed:  c.Order.Seed,
		Grace: c.Order.Grace, Observer: p, Log: c.Log, Begin: p.begin})
	for k := range share.Stages {
		p.stage(ctx, hard, k)
	}
	end := &done{Err: text(p.failed), Interrupted: ctx.Err() != nil}
	if c.Log != nil {
		dropped, err := c.Log.Close()
		end.Unlogged, end.LogErr = dropped, text(err)
	}
	p.out.row(row{Done: end})
	return errors.Join(p.failed, p.out.err)
}

// shardRun is the state of RunShard.
type shardRun struct {
	ShardConfig
	share  *model.Workload
	first  int // stage that begins at the barrier
	runner *loadgen.Runner
	out    *rowWriter
	failed error

	// Of the stage in progress.
	k       int
	works   []model.Work // that are not the share's
	started bool         // begin was called
	hard    context.Context
}

// stage runs one, or skips it, as all shards do.
func (p *shardRun) stage(ctx, hard context.Context, k int) {
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
	if !p.started { // it failed before: the other shards must not wait for it
		_, err := p.meet(2*k+1, true)
		result.Err = errors.Join(result.Err, err)
	}
	p.out.row(row{Ended: endedOf(k, result)})
	if result.Err != nil && ctx.Err() == nil {
		p.fail(k, result.Err)
	}
}

func (p *shardRun) fail(k int, err error) {
	p.failed = errors.Join(p.failed, fmt.Errorf("stage %s: %w", p.share.Stages[k].Name, err))
}

// takeOver divides a stage again among the remaining shards.
func (p *shardRun) takeOver(k int, present []int) (*model.Stage, error) {
	i := slices.Index(present, p.Index)
	share, err := p.Order.Workload.Share(i, make([]string, len(present)))
	if err != nil {
		return nil, err
	}
	p.works = share.Stages[k].Works
	return &share.Stages[k], nil
}

// meet waits for all shards; a single shard does not wait.
func (p *shardRun) meet(step int, failed bool) (rendezvous.Reply, error) {
	a, _, err := p.meeting(step, failed)
	return a, err
}

func (p *shardRun) meeting(step int, failed bool) (rendezvous.Reply, time.Time, error) {
	failed = failed || p.failed != nil
	if p.Parts == 1 {
		return rendezvous.Reply{Failed: failed, Present: []int{0}}, time.Now(), nil
	}
	return p.Rendezvous.Wait(p.hard, rendezvous.Rendezvous{Group: p.Group, Step: step, Index: p.Index, Members: p.Parts,
		Failed: failed})
}

// errOthers is why a shard does not begin a stage that it could begin.
var errOthers = errors.New("another shard failed or was lost")

// begin is called when the stage is ready, and waits for the barrier or for the other shards. Windows and due
// times count from the agreed instant, also where this shard is late.
func (p *shardRun) begin(ctx context.Context) (op.Time, error) {
	p.started = true
	atBarrier := p.k == p.first && p.failed == nil && p.Rendezvous != nil
	var at time.Time
	var err error
	if atBarrier {
		at, err = p.Rendezvous.Barrier(ctx)
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
		err = p.Rendezvous.ReportStart()
	}
	if err != nil {
		return now, err
	}
	p.out.row(row{Began: &began{Stage: p.k, At: now, Barrier: atBarrier, Works: p.works}})
	return min(now, p.Clock.Of(at)), nil
}

// StageBegan implements loadgen.Observer; the works have not begun yet.
func (p *shardRun) StageBegan(*model.Stage, op.Time) {}

// Second writes what ended in about a second.
func (p *shardRun) Second(_ string, w *model.Work, from, to op.Time, cells loadgen.Cells) {
	p.out.row(row{Second: secondOf(p.k, w, from, to, cells)})
}
