// Package run has the one loop: it makes what the plan wants at the start,
// opens the barrier, lets the rates trigger actions, and ends cleanly however
// the run ends. It sees an engine and a recorder, never a platform or a file.
//
// The loop is open: a trigger is dispatched when it is due whether or not
// earlier ops have ended, and what could not be started is a record too.
package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// Recorder keeps what happens. Its methods must not block on a disk.
type Recorder interface {
	Op(o op.Op)
	Started(s op.InstanceStart)
	Ended(e op.InstanceEnd)
	Sample(s op.Sample)
	Machine(m op.Machine)
	Canary(instance, volume string, ios []op.CanaryIO)
	Raw(instance, container, file string, data []byte) error
	Log(at op.Time, source, line string)
	Histogram(h bundle.HistogramSlice)
	Series(s bundle.Series)
	Scalar(s bundle.Scalar)
	// Flush returns when everything so far can be read from the bundle.
	Flush() error
}

// Observer is told what a person would like to see while the run goes on. It
// is called from many goroutines and must not block.
type Observer interface {
	Phase(p Phase)
	OpEnded(o *op.Op)
	Log(source, line string)
}

// Phase is where a run stands.
type Phase string

// The phases, in order.
const (
	Opening  Phase = "opening"    // the engine makes its platform ready
	SetUp    Phase = "setting up" // actions without a rate
	Running  Phase = "running"    // the barrier is open, rates trigger
	Draining Phase = "draining"   // ops in flight may still end
	Stopping Phase = "stopping"   // workloads end, outputs come in
	Removing Phase = "removing"   // what was made is removed
)

// Config is one run.
type Config struct {
	RunID    string
	Plan     *plan.Plan
	Engine   engine.Engine
	Clock    op.Clock
	Session  engine.Session // Sink is set by Run
	Record   Recorder
	RawDir   string // where Record keeps what workloads write, instance/container/file
	Observer Observer
	Keep     bool  // leave everything in place
	Sleep    Sleep // how dispatchers wait; nil: TimerSleep
	// Parsers of workloads' outputs, beside the built-in ones.
	Parsers map[string]parser.Func
	// Watch reads this machine until ctx ends, and returns why it cannot; nil: it is
	// not read.
	Watch func(ctx context.Context, keep func(op.Machine)) error
	// Opened is called once the engine is open; its error ends the run. nil: nothing.
	// It takes the place of a wrapper around Engine, which would hide the optional
	// interfaces that it does not implement.
	Opened func(ctx context.Context) error
}

// Result is how the run went, for run.json and the exit status.
type Result struct {
	State     bundle.State
	Reason    string // why it is not complete
	BarrierAt op.Time
	StopAt    op.Time // rates stopped here: what counts lies between
	EndedAt   op.Time // ops and workloads have ended; removing comes after
	Rates     []RateCount
	Flags     []bundle.Flag // what parsers and the engine found doubtful
	// Distributions are what others counted of the whole run.
	Distributions []op.Distribution
	// Bounds are what limited the stages of object storage.
	Bounds []bundle.Bound
	// Leftovers is what could not be removed; nil when nothing is left.
	Leftovers error
}

// RateCount says what became of a rate's triggers.
type RateCount struct {
	Rate      string
	Triggers  int64           // due within the run
	Ops       int64           // wanted by them
	Started   int64           // of those, started
	OK        int64           // of those, done
	Active    time.Duration   // from the rate's start to its last trigger, or to the run's stop
	Dropped   int64           // saturated, without a target, or overtaken by the end
	QueuedMax int64           // longest queue
	Late      int64           // started more than 10 ms after they were due
	Lateness  *hist.Histogram // of those started by an open loop, ns
}

// ErrInterrupted is the cause of a run that a user ended.
var ErrInterrupted = errors.New("interrupted")

// Run carries the plan out. Ending ctx (cause ErrInterrupted or another) is
// a clean stop: no new ops, those in flight have the plan's grace, workloads
// are stopped, everything is removed. Ending hard as well skips the grace,
// still removing everything. Run always returns a Result; an error inside the
// run is its Reason.
func Run(ctx, hard context.Context, c Config) Result {
	r := &runner{Config: c, hard: hard, outputs: newOutputs(c.Plan.MaxOutput), inventory: newInventory(c.Plan.Seed),
		instances: newInstances(),
		actions:   map[string]*plan.Action{}, same: map[sameFlag]int{}}
	for i := range c.Plan.Actions {
		r.actions[c.Plan.Actions[i].Name] = &c.Plan.Actions[i]
	}
	r.result.BarrierAt, r.result.StopAt = op.Never, op.Never
	r.unwatch = func() {}
	if r.Sleep == nil {
		r.Sleep = TimerSleep
	}
	ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	r.soft = ctx
	// Ops outlive the stop by the grace; they end with opsCtx.
	r.opsCtx, r.cancelOps = context.WithCancelCause(context.WithoutCancel(ctx))
	defer r.cancelOps(nil)
	r.Session.Sink, r.Session.Hurry = &sink{runner: r}, hard

	err := r.runUntilStop(ctx)
	r.wind(err)
	return r.result
}

type runner struct {
	Config
	hard      context.Context
	soft      context.Context // ends with an interrupt and with a failure
	opsCtx    context.Context
	cancelOps context.CancelCauseFunc
	fail      context.CancelCauseFunc

	actions   map[string]*plan.Action
	inventory *inventory
	instances *instances
	outputs   *outputs
	ends      ends
	ids       atomic.Int64
	episodes  atomic.Int64
	counters  sync.Map // action → *atomic.Int64, next instance number
	ops       sync.WaitGroup
	rates     []*rateRunner
	mortal    atomic.Pointer[[]*rateRunner] // the rates, once they run, if one has lifetimes
	opened    bool
	unwatch   func()           // ends the reading of this machine
	flags     sync.Mutex       // of result.Flags and same
	same      map[sameFlag]int // at which index of result.Flags
	result    Result
}

// runUntilStop goes from opening to the moment at which the rates stop.
func (r *runner) runUntilStop(ctx context.Context) error {
	r.Observer.Phase(Opening)
	r.opened = true
	if err := r.Engine.Open(ctx, r.Session); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx) // which is why it did not open
		}
		return fmt.Errorf("engine: %w", err)
	}
	if r.Opened != nil {
		if err := r.Opened(ctx); err != nil {
			return fmt.Errorf("engine: %w", err)
		}
	}
	r.watch()
	r.Observer.Phase(SetUp)
	r.makeRates()
	first, err := r.setUp(ctx)
	if err != nil {
		return err
	}
	if err := r.openBarrier(ctx, first); err != nil {
		return err
	}
	r.Observer.Phase(Running)
	return r.measure(ctx)
}

// watch reads this machine until unwatch is called.
func (r *runner) watch() {
	if r.Watch == nil {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(r.soft))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Watch(ctx, r.Record.Machine); err != nil {
			r.log("run", fmt.Sprintf("this machine cannot be read: %v", err))
		}
	}()
	r.unwatch = func() { stop(); <-done }
}

// measure runs the rates until the runtime is over, the workloads have ended
// or, where there are none, the rates have.
func (r *runner) measure(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if r.Plan.Runtime > 0 {
		timer := time.AfterFunc(time.Until(r.Clock.At(r.result.BarrierAt))+r.Plan.Runtime, func() { stop(errRuntime) })
		defer timer.Stop()
	}
	rates := r.startRates(ctx)
	if r.instances.any() {
		go func() {
			r.instances.wait(ctx)
			stop(errWorkloadsEnded)
		}()
	} else {
		go func() {
			rates.Wait()
			r.ops.Wait()
			stop(errRatesEnded)
		}()
	}
	<-ctx.Done()
	r.result.StopAt = r.Clock.Now()
	rates.Wait()
	for _, name := range r.ends.never() {
		r.warn("notBegun", fmt.Sprintf("what was to begin when an op of %s had ended never did: none has", name))
	}
	cause := context.Cause(ctx)
	for _, regular := range []error{errRuntime, errWorkloadsEnded, errRatesEnded} {
		if errors.Is(cause, regular) {
			return nil
		}
	}
	return cause
}

var (
	errRuntime        = errors.New("runtime is over")
	errWorkloadsEnded = errors.New("workloads have ended")
	errRatesEnded     = errors.New("rates have ended")
	errGraceOver      = errors.New("the run ended before the op did")
)

// wind ends the run: ops in flight, workloads, everything made. It runs after
// success and failure alike and ignores the cancellation of the run's context.
func (r *runner) wind(err error) {
	r.note(err)
	r.Observer.Phase(Draining)
	r.drain()
	r.result.EndedAt = r.Clock.Now()
	if !r.opened {
		return
	}
	ctx := context.WithoutCancel(r.hard)
	if r.result.State == bundle.Complete {
		r.note(r.failedSince(ctx))
	}
	r.Observer.Phase(Stopping)
	if names := r.instances.running(); len(names) > 0 {
		grace := r.Plan.Grace
		if r.hard.Err() != nil {
			grace = 0
		}
		stopCtx, cancel := context.WithTimeout(ctx, grace+stopLimit)
		if err := r.Engine.Stop(stopCtx, names, grace); err != nil {
			r.log("run", fmt.Sprintf("stopping workloads: %v", err))
		}
		cancel()
	}
	r.unwatch() // before the end, so that the last reading is within the run
	r.result.EndedAt = r.Clock.Now()
	r.collect()
	r.flagOutputs()
	if !r.Keep {
		r.Observer.Phase(Removing)
		downCtx, cancel := context.WithTimeout(ctx, removeLimit)
		r.result.Leftovers = r.Engine.Teardown(downCtx, r.Session.Ledger)
		cancel()
	}
	r.collectReport(ctx)
	if err := r.Engine.Close(); err != nil {
		r.result.Leftovers = errors.Join(r.result.Leftovers, err)
	}
}

// failedSince says what failed since the rates have stopped, or before without
// being noticed: a platform that dies takes its ops with it before anyone
// learns of its death. An interrupt while the last ops end changes nothing.
func (r *runner) failedSince(ctx context.Context) error {
	if cause := context.Cause(r.soft); cause != nil && !errors.Is(cause, ErrInterrupted) {
		return cause
	}
	p, ok := r.Engine.(engine.Prober)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	if err := p.Lost(ctx); err != nil {
		return lost(err)
	}
	return nil
}

// Limits on steps that a broken platform could hang for ever.
const (
	probeLimit  = 10 * time.Second
	stopLimit   = 30 * time.Second
	removeLimit = 5 * time.Minute
	reportLimit = 30 * time.Second
)

// collectReport adds the engine's report on the whole run to the result.
func (r *runner) collectReport(ctx context.Context) {
	reporter, ok := r.Engine.(engine.Reporter)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	report := reporter.Report(ctx)
	for _, f := range report.Findings {
		r.log("engine", f.Evidence)
		r.result.Flags = append(r.result.Flags, bundle.Flag{Name: f.Name, Severity: f.Severity, Evidence: f.Evidence})
	}
	r.result.Distributions = report.Distributions
}

func (r *runner) note(err error) {
	switch {
	case err == nil:
		r.result.State = bundle.Complete
	case errors.Is(err, ErrInterrupted):
		r.result.State, r.result.Reason = bundle.Interrupted, "interrupted by the user"
	default:
		r.result.State, r.result.Reason = bundle.Failed, err.Error()
	}
	if r.result.StopAt == op.Never {
		r.result.StopAt = r.Clock.Now()
	}
}

// drain waits for the ops in flight, at most the grace; a failed run and a
// second interrupt do not wait.
func (r *runner) drain() {
	done := make(chan struct{})
	go func() { r.ops.Wait(); close(done) }()
	grace := r.Plan.Grace
	if r.result.State == bundle.Failed {
		grace = 0
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	case <-r.hard.Done():
	}
	r.cancelOps(errGraceOver)
	<-done
}

func (r *runner) log(source, line string) {
	r.Record.Log(r.Clock.Now(), source, line)
	r.Observer.Log(source, line)
}
