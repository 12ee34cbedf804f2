// Package run implements the main loop. It makes the objects that exist from the start, opens the barrier,
// lets the rates trigger actions, and cleans up after success, failure and interrupts alike. It uses an
// engine and a recorder, and does not access a platform or files itself.
//
// The loop is open: a trigger is dispatched when it is due even if earlier ops have not ended. Ops that could
// not be started are recorded too.
package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// Run executes the plan. When ctx ends (cause ErrInterrupted or another), the run stops cleanly: no new ops
// start, ops in flight have the plan's grace period, workloads are stopped, and all objects are removed. When
// hard ends too, the grace period is skipped, but all objects are still removed. Run always returns a Result;
// an error in the run is its Reason.
func Run(ctx, hard context.Context, c Config) Result {
	r := &runner{Config: c, hard: hard, outputs: newOutputs(c.Plan.MaxOutput), inventory: newInventory(c.Plan.Seed),
		instances: newInstances(), wallClocks: newWallClocks(), checks: newChecks(c.Plan),
		actions: map[string]*plan.Action{}, same: map[sameFlag]int{}}
	for i := range c.Plan.Actions {
		r.actions[c.Plan.Actions[i].Name] = &c.Plan.Actions[i]
	}
	r.result.BarrierAt, r.result.StopAt = op.Never, op.Never
	r.unwatch = func() {}
	if r.Live == nil {
		r.Live = discard{}
	}
	if r.Sleep == nil {
		r.Sleep = TimerSleep
	}
	r.overhead = r.newOverhead()
	ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	r.soft = ctx
	// Ops may continue after the stop for the grace period; they end with opsCtx.
	r.opsCtx, r.cancelOps = context.WithCancelCause(context.WithoutCancel(ctx))
	defer r.cancelOps(nil)
	r.Session.Sink, r.Session.Hurry = &sink{runner: r}, hard

	err := r.runUntilStop(ctx)
	r.finish(err)
	return r.result
}

// runUntilStop executes the run from the opening of the engine until the rates stop.
func (r *runner) runUntilStop(ctx context.Context) error {
	r.Observer.Phase(Opening)
	r.opened = true
	if err := r.Engine.Open(ctx, r.Session); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx) // the reason why the engine did not open
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

// measure runs the rates until the runtime is over or the workloads have ended. Without such workloads, it
// runs them until all rates and their ops have ended.
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
		r.warn("notBegun", fmt.Sprintf("no operation of %s has ended: what follows it never began", name))
	}
	cause := context.Cause(ctx)
	for _, regular := range []error{errRuntime, errWorkloadsEnded, errRatesEnded} {
		if errors.Is(cause, regular) {
			return nil
		}
	}
	return cause
}

// finish ends the run: the ops in flight, the workloads, and all objects. It runs after success and failure
// alike and ignores the cancellation of the run's context.
func (r *runner) finish(err error) {
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
	r.unwatch() // before EndedAt, so that the last reading is within the run
	r.result.EndedAt = r.Clock.Now()
	r.collect()
	r.flagOutputs()
	r.collectLogs(ctx)
	if !r.Keep {
		r.Observer.Phase(Removing)
		downCtx, cancel := context.WithTimeout(ctx, r.removalLimit())
		r.result.Leftovers = r.Engine.Teardown(downCtx, r.Session.Ledger)
		cancel()
	}
	r.collectReport(ctx)
	if err := r.Engine.Close(); err != nil {
		r.result.Leftovers = errors.Join(r.result.Leftovers, err)
	}
}

// failedSince returns a failure since the rates stopped, or an earlier loss of the platform that was not
// reported: when the platform is lost, its ops may end before the loss is detected. An interrupt while the
// last ops end is not a failure.
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

// Timeouts of steps that a broken platform could block forever.
const (
	probeLimit  = 10 * time.Second
	stopLimit   = 30 * time.Second
	removeLimit = 5 * time.Minute // and engine.ObjectRemoval for each object
	reportLimit = 30 * time.Second
)

// removalLimit bounds the removal of what the ledger has.
func (r *runner) removalLimit() time.Duration {
	if r.Session.Ledger == nil {
		return removeLimit
	}
	return removeLimit + time.Duration(len(r.Session.Ledger.Open()))*engine.ObjectRemoval
}

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

// drain waits for the ops in flight, at most for the grace period, and then cancels them. A failed run and a
// second interrupt cancel them at once.
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
