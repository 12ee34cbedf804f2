package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
)

// dispatch modifies one volume of null a thousand times per second and compares this with an empty
// loop on the same schedule. The order is CNSBench, bare, bare, CNSBench.
func dispatch(ctx context.Context, e *env) (table, error) {
	var t table
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
			return t, err
		}
		ops, err := trial.ops("touch")
		if err != nil {
			return t, err
		}
		a, err := trial.action("touch")
		if err != nil {
			return t, err
		}
		if int64(len(ops)) != a.N {
			return t, fmt.Errorf("%d of %d ops were ok", len(ops), a.N)
		}
		schedule = nil
		for _, o := range ops {
			late, _ := o.Lateness()
			ours = append(ours, late)
			schedule = append(schedule, time.Duration(o.Intended-trial.bundle.Run.BarrierAt))
		}
		slices.Sort(schedule)
		cpu = append(cpu, cpuWhile(trial, trial.bundle.Run.BarrierAt, trial.bundle.Run.EndedAt))
		trial.remove()
	}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	got, base := quantile(ours, 0.99), quantile(bare, 0.99)
	t.add("p99 of lateness", fmt.Sprintf("%s; bare loop %s (%+.3f ms)", ms(got), ms(base), float64(got-base)/1e6),
		"≤ bare loop + 0.5 ms", metIf(got-base <= 500_000), len(ours))
	for _, q := range []float64{0.5, 0.999} {
		t.info(len(ours), fmt.Sprintf("p%g of lateness", 100*q), "%s; bare loop %s", ms(quantile(ours, q)),
			ms(quantile(bare, q)))
	}
	t.info(len(cpu), "CPUs that the runner used", "%.2f, %.2f", cpu[0], cpu[1])
	return t, nil
}

// touches is a Benchmark that modifies one volume of null a thousand times per second.
func (e *env) touches(length time.Duration) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-dispatch}
spec:
  seed: %d
  actions:
    - name: volume
      createObjSpec: {volume: {storageClass: "null", size: 1Gi}}
    - name: touch
      rateName: fast
      modifySpec: {actionName: volume, parameters: {iops: "100"}}
  rates:
    - {name: fast, duration: %v, poissonRateSpec: {perSecond: 1000}}
`, e.seed, length)
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
		ended.Add(1)
		go func() {
			late[i] = int64(time.Since(start) - due)
			ended.Done()
		}()
	}
	ended.Wait()
	return late
}

// cpuWhile returns the average number of CPUs that the runner used between two instants.
func cpuWhile(t *trial, from, to op.Time) float64 {
	var inside []usage
	for _, u := range t.process {
		if at := t.runTime(u.at.UnixNano()); at >= from && at <= to {
			inside = append(inside, u)
		}
	}
	if len(inside) < 2 {
		return 0
	}
	first, last := inside[0], inside[len(inside)-1]
	return (last.cpu - first.cpu).Seconds() / last.at.Sub(first.at).Seconds()
}
