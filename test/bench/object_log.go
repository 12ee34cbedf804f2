package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/opfile"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// objectLog measures what the log of operations costs an operation, by the CPU time of a client in this process: short
// stages with and without it take turns, because the speed of a shared machine differs from minute to minute. All stages
// with it write to one log.
func objectLog(ctx context.Context, e *env) (table, error) {
	var t table
	address, stop, err := e.nullServer(ctx)
	if err != nil {
		return t, err
	}
	defer func() { warn(stop()) }()
	c, err := newLogClient(e, address)
	if err != nil {
		return t, err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(40)) // as in the client's program
	cost, speed := make([][]float64, 2), make([][]float64, 2)
	n := 0
	for _, order := range append([][]int{{0, 1}}, mirrored(2, max(6, pick(e, 10*e.blocks, 6)), e.seed)...) {
		for _, i := range order {
			m, err := c.run(ctx, i == 1)
			if err != nil {
				return t, err
			}
			cost[i], speed[i] = append(cost[i], m.micros), append(speed[i], m.perSecond)
			n += m.ops
		}
	}
	if dropped, err := c.log.Close(); err != nil || dropped > 0 {
		return t, errors.Join(err, fmt.Errorf("%d operations are missing in the log", dropped))
	}
	for i, name := range []string{"without the log", "with the log"} {
		cost[i], speed[i] = cost[i][1:], speed[i][1:] // the first ones were to warm up
		t.info(len(cost[i]), name+": CPU per operation", "%.2f µs (%.2f to %.2f)", stats.Median(cost[i]),
			slices.Min(cost[i]), slices.Max(cost[i]))
		t.info(len(speed[i]), name+": operations per second", "%s", spread(speed[i]))
	}
	d, ok := rank.PairedShift(cost[0], cost[1], 0.90)
	if !ok || !d.Bounded() {
		return t, errors.New("the difference has no interval: it needs 5 pairs")
	}
	t.add("CPU that the log adds to an operation", fmt.Sprintf("%.2f µs [%.2f, %.2f]", d.Value, d.Low, d.High),
		"interval ≤ 1 µs", metIf(d.High <= 1), n)
	t.note("GETs of 4 KiB by %d workers; CPU is that of the client's process, from the connections of a stage to its end.",
		objectWorkers)
	return t, nil
}

// logClient runs one stage again and again.
type logClient struct {
	workload *model.Workload
	opener   backend.Opener
	log      *opfile.Writer
	seed     uint64
}

// logStage is what a stage cost.
type logStage struct {
	micros, perSecond float64 // CPU time of an operation; operations
	ops               int
}

func newLogClient(e *env, address string) (*logClient, error) {
	text := fmt.Sprintf(`<workload name="bench">%s<workflow><workstage name="main"><work name="main" workers="%d" runtime="%d">%s</work>
</workstage></workflow></workload>`, s3Store(address, "bench", "benchbench"), objectWorkers, pick(e, 2, 1), fmt.Sprintf(get4K, 100))
	w, problems := cosbench.Parse([]byte(text), cosbench.Options{Getenv: os.LookupEnv})
	if problems.Fatal() {
		return nil, fmt.Errorf("the workload of the bench: %v", problems)
	}
	clock := op.NewClock()
	log := opfile.New(clock, func(name string) (io.WriteCloser, error) { return os.Create(filepath.Join(e.tmp, name)) })
	return &logClient{workload: w, opener: backend.Opener{Clock: clock, Getenv: os.Getenv}, log: log, seed: e.seed}, nil
}

// run runs the stage once.
func (c *logClient) run(ctx context.Context, logged bool) (m logStage, err error) {
	config := loadgen.Config{Workload: c.workload, Open: c.opener.Store, Clock: c.opener.Clock, Sleep: run.PreciseSleep,
		Seed: c.seed, Grace: 10 * time.Second, Observer: unseen{}}
	if logged {
		config.Log = c.log
	}
	runtime.GC()
	before := loadgen.UsageNow()
	r := loadgen.NewRunner(config).Stage(ctx, ctx, &c.workload.Stages[0])
	if err := errors.Join(ctx.Err(), r.Err); err != nil {
		return m, err
	}
	used := loadgen.UsageNow().CPU - before.CPU
	w := &r.Works[0]
	for k, cell := range w.Cells {
		if !k.OK {
			return m, fmt.Errorf("%d operations failed: %s", cell.N, k.Label)
		}
		m.ops += int(cell.N)
	}
	m.micros = float64(used) / float64(m.ops) / 1e3
	m.perSecond = float64(m.ops) / (float64(w.Ended-w.Began) / 1e9)
	return m, w.Err
}

// unseen is an observer that does nothing.
type unseen struct{}

func (unseen) StageBegan(*model.Stage, op.Time)                            {}
func (unseen) Second(string, *model.Work, op.Time, op.Time, loadgen.Cells) {}
