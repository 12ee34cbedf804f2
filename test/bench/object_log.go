package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// objectLog measures what the log of operations costs an operation, by CPU time of the whole client: runs with and
// without it on one null server, by turns.
func objectLog(ctx context.Context, e *env) (table, error) {
	var t table
	address, stop, err := e.nullServer(ctx)
	if err != nil {
		return t, err
	}
	defer func() { warn(stop()) }()
	logged := tool{"CNSBench with the log", func(ctx context.Context, e *env, address, method string,
		length time.Duration) (*exec.Cmd, func(), error) {
		c, after, err := ours.command(ctx, e, address, method, length)
		if err == nil {
			c.Args = append(c.Args, "--log-operations")
		}
		return c, after, err
	}}
	arms := []tool{ours, logged}
	length := pick(e, 3*time.Second, 2*time.Second) // short: the speed of a shared machine differs from minute to minute
	cost, speed, rss := make([][]float64, 2), make([][]float64, 2), make([]float64, 2)
	n := int64(0)
	for _, order := range append([][]int{nil}, mirrored(2, max(6, pick(e, 5*e.blocks, 6)), e.seed)...) {
		warming := order == nil // values of this block are discarded
		if warming {
			order = indices(2)
		}
		for _, i := range order {
			m, err := e.once(ctx, arms[i], address, methodGet, length)
			if err != nil {
				return t, fmt.Errorf("%s: %w", arms[i].name, err)
			}
			if !warming {
				cost[i] = append(cost[i], float64(m.perOp)/1e3)
				speed[i] = append(speed[i], m.perSecond)
				rss[i] = max(rss[i], float64(m.rss)/1e6)
				n += m.requests
			}
		}
	}
	for i, k := range arms {
		t.info(len(cost[i]), k.name+": CPU per operation", "%.2f µs (%.2f to %.2f)", stats.Median(cost[i]),
			slices.Min(cost[i]), slices.Max(cost[i]))
		t.info(len(speed[i]), k.name+": operations per second", "%s", spread(speed[i]))
		t.info(len(speed[i]), k.name+": resident memory, at most", "%.1f MB", rss[i])
	}
	d, ok := rank.PairedShift(cost[0], cost[1], 0.90)
	if !ok || !d.Bounded() {
		return t, errors.New("the difference has no interval: it needs 5 pairs")
	}
	t.add("CPU that the log adds to an operation", fmt.Sprintf("%.2f µs [%.2f, %.2f]", d.Value, d.Low, d.High),
		"interval ≤ 1 µs", metIf(d.High <= 1), int(n))
	t.note("GETs of 4 KiB by %d workers; CPU is that of the client's process, over the middle nine tenths of its requests.",
		objectWorkers)
	return t, nil
}
