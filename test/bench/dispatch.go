package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// start measures the time from the start of the command to its first op, of a run of a built-in driver.
func start(ctx context.Context, e *env, t *table) (err error) {
	got, err := interleave(ctx, e, 20, arm[float64]{"start", func(ctx context.Context) (float64, error) {
		trial, err := e.run(ctx, e.creations(50, 1, ""))
		if err != nil {
			return 0, err
		}
		defer trial.remove()
		return trial.barrier().Sub(trial.began).Seconds() * 1e3, nil
	}})
	if err != nil {
		return err
	}
	t.add(len(got[0]), "from the command to the barrier, after which ops are due, median in ms", spread("%.3f", got[0]),
		"≤ 200 ms", stats.Median(got[0]) <= 200)
	return nil
}

// dispatch modifies one volume of null a thousand times per second and compares this with an empty
// loop on the same schedule. The order is CNSBench, bare, bare, CNSBench.
func dispatch(ctx context.Context, e *env, t *table) error {
	var ours, bare []int64
	var schedule []time.Duration
	var cpu []float64
	for _, step := range []string{"ours", "bare", "bare", "ours"} {
		if step == "bare" {
			bare = append(bare, timerLoop(ctx, schedule)...)
			continue
		}
		trial, err := e.run(ctx, e.touches(pick(e, 30*time.Second, 5*time.Second)))
		if err != nil {
			return err
		}
		ops, err := trial.ops("touch")
		if err != nil {
			return err
		}
		if a, err := trial.action("touch"); err != nil || int64(len(ops)) != a.N {
			return fmt.Errorf("%d of %d ops were ok: %w", len(ops), a.N, err)
		}
		ours, schedule = append(ours, lateness(ops)...), nil
		for _, o := range ops {
			schedule = append(schedule, time.Duration(o.Intended-trial.bundle.Run.BarrierAt))
		}
		slices.Sort(schedule)
		cpu = append(cpu, trial.cpus(trial.barrier(), trial.at(trial.bundle.Run.EndedAt)))
		trial.remove()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	got, base := quantile(ours, 0.99), quantile(bare, 0.99)
	t.add(len(ours), "p99 of lateness", fmt.Sprintf("%s; bare loop %s (%+.3f ms)", ms(got), ms(base),
		float64(got-base)/1e6), "≤ bare loop + 0.5 ms", got-base <= 500_000)
	for _, q := range []float64{0.5, 0.999} {
		t.info(len(ours), fmt.Sprintf("p%g of lateness", 100*q), "%s; bare loop %s", ms(quantile(ours, q)),
			ms(quantile(bare, q)))
	}
	t.info(len(cpu), "CPUs that the runner used", "%.2f", cpu)
	return nil
}

// touches is a Benchmark that modifies one volume of null a thousand times per second.
func (e *env) touches(length time.Duration) string {
	return e.benchmark(`  actions:
    - {name: volume, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
    - {name: touch, rateName: fast, modifySpec: {actionName: volume, parameters: {iops: "100"}}}
  rates: [{name: fast, duration: %v, poissonRateSpec: {perSecond: 1000}}]
`, length)
}

// timerLoop waits for each instant as the dispatchers of `cnsbench run` do, and starts a goroutine
// that records when it runs.
func timerLoop(ctx context.Context, schedule []time.Duration) []int64 {
	late := make([]int64, len(schedule))
	var ended sync.WaitGroup
	start := time.Now()
	for i, due := range schedule {
		if !run.PreciseSleep(ctx, start.Add(due)) {
			break
		}
		ended.Go(func() { late[i] = int64(time.Since(start) - due) })
	}
	ended.Wait()
	return late
}
