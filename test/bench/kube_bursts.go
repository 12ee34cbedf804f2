package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// kubeBursts creates claims, 100 in flight, and compares the instants at which they were bound, and the errors that
// CNSBench states for them, with the audit log. Latencies would not do: the API server takes up requests of a burst
// late, and the log does not have that wait.
func kubeBursts(ctx context.Context, e *env) (t table, err error) {
	k := &kubePeer{env: e}
	if k.kubeconfig, k.audit, err = e.testbed(); err != nil {
		return t, err
	}
	n := pick(e, 400, 100)
	var wrong, taken, stated []int64
	covered := 0
	for range e.rounds() {
		from, err := sizeOfFile(k.audit)
		if err != nil {
			return t, err
		}
		rate := fmt.Sprintf("concurrencySpec: {parallelism: %d}, limit: %d", kubeParallel, n)
		trial, err := e.onCluster(ctx, k.ours(ofClaims.ours, rate))
		if err != nil {
			return t, err
		}
		defer trial.remove()
		ops, err := trial.ops("object")
		if err != nil {
			return t, err
		}
		audited, err := k.auditedReadiness(from, &ofClaims)
		if err != nil {
			return t, err
		}
		start := trial.bundle.Run.Clock.Start
		for i := range ops {
			a, ok := audited["cnsb-"+trial.bundle.Run.ID+"-"+ops[i].Object]
			at, within := milestoneOf(&ops[i], op.Bound)
			if !ok || !at.Known() {
				continue
			}
			off := start.Add(time.Duration(at)).Sub(a.end)
			wrong, stated = append(wrong, int64(max(off, -off))), append(stated, within)
			taken = append(taken, int64(a.began.Sub(start.Add(time.Duration(ops[i].Started)))))
			if off <= time.Duration(within) {
				covered++
			}
		}
	}
	if len(wrong) < n {
		return t, fmt.Errorf("%d instants are in the results and in the audit log, want some of %d", len(wrong), n)
	}
	const what = "PVC, 100 in flight: "
	p99 := quantile(wrong, 0.99)
	t.add(what+"difference of the instant at which it was bound, p99", ms(p99), "≤ 15 ms",
		metIf(p99 <= int64(15*time.Millisecond)), len(wrong))
	t.info(len(wrong), what+"differences, p50 and largest; stated errors, p50 and largest", "%s, %s; %s, %s",
		ms(quantile(wrong, 0.5)), ms(slices.Max(wrong)), ms(quantile(stated, 0.5)), ms(slices.Max(stated)))
	ratio := float64(quantile(stated, 0.5)) / float64(p99)
	t.add(what+"median of the stated errors / p99 of the differences", fmt.Sprintf("× %.2f", ratio), "× 0.33 to × 3",
		metIf(ratio >= 1./3 && ratio <= 3), len(wrong))
	share := 100 * float64(covered) / float64(len(wrong))
	t.add(what+"within the stated error", fmt.Sprintf("%.1f %%", share), "≥ 99 %", metIf(share >= 99), len(wrong))
	t.info(len(wrong), what+"from the request to its receipt by the API server, p50 and p99", "%s, %s",
		ms(quantile(taken, 0.5)), ms(quantile(taken, 0.99)))
	return t, nil
}
