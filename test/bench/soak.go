package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// soak makes, snapshots and deletes volumes of null for a long time and compares the resident memory and the open
// descriptors of the runner near the begin with those at the end.
func soak(ctx context.Context, e *env) (table, error) {
	var t table
	length := pick(e, e.length, 20*time.Second)
	trial, err := e.run(ctx, fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-soak}
spec:
  seed: %d
  actions:
    - {name: create, rateName: users, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
    - {name: snap, rateName: backups, snapshotSpec: {actionName: create, select: newest, snapshotClass: "null"}}
    - {name: forget, rateName: pruning, deleteSpec: {actionName: snap}}
    - {name: remove, rateName: leavers, deleteSpec: {actionName: create}}
  rates:
    - {name: users, duration: %[2]v, poissonRateSpec: {perSecond: 85}}
    - {name: backups, startAfter: 2s, duration: %[2]v, poissonRateSpec: {perSecond: 15}}
    - {name: pruning, startAfter: 4s, duration: %[2]v, poissonRateSpec: {perSecond: 15}}
    - {name: leavers, startAfter: 5s, duration: %[2]v, poissonRateSpec: {perSecond: 85}}
`, e.seed, length))
	if err != nil {
		return t, err
	}
	defer trial.remove()
	from := func(tenth int) op.Time {
		return trial.bundle.Run.BarrierAt + op.Time(length)*op.Time(tenth)/10
	}
	memory, files := make([]float64, 2), make([]float64, 2)
	var n int
	for i, tenth := range []int{1, 9} {
		var rss, fds []float64
		for _, u := range trial.process {
			if at := trial.runTime(u.at.UnixNano()); at >= from(tenth) && at < from(tenth+1) {
				rss, fds = append(rss, float64(u.rss)/(1<<20)), append(fds, float64(u.fds))
			}
		}
		if len(rss) == 0 {
			return t, fmt.Errorf("there is no sample of the runner in tenth %d", tenth+1)
		}
		memory[i], files[i], n = stats.Median(rss), stats.Median(fds), len(rss)
	}
	var peak int64
	for _, u := range trial.process {
		peak = max(peak, u.rss)
	}
	t.add("resident memory, second and last tenth", fmt.Sprintf("%.1f, %.1f MiB (× %.2f)", memory[0], memory[1],
		memory[1]/memory[0]), "≤ × 1.1", metIf(memory[1] <= 1.1*memory[0]), n)
	t.add("open descriptors, second and last tenth", fmt.Sprintf("%.0f, %.0f", files[0], files[1]), "≤ + 4",
		metIf(files[1] <= files[0]+4), n)
	ops := 0
	outcomes := map[op.Outcome]int{}
	for o, err := range trial.bundle.Ops() {
		if err != nil {
			return t, err
		}
		ops++
		outcomes[o.Outcome]++
	}
	t.info(ops, "operations per second", "%.0f", float64(ops)/length.Seconds())
	t.info(ops, "operations by outcome", "%v", outcomes)
	t.info(1, "peak of the memory, with the summary at the end", "%.1f MiB", float64(peak)/(1<<20))
	return t, nil
}
