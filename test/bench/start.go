package main

import (
	"context"
	"time"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// start measures the time from the start of the command to its first op, of a run of a built-in driver.
func start(ctx context.Context, e *env) (table, error) {
	var t table
	var first []float64 // ns
	for range max(e.blocks, 20) {
		trial, err := e.run(ctx, e.creations(50, 1, ""))
		if err != nil {
			return t, err
		}
		clock := trial.bundle.Run.Clock
		first = append(first, float64(clock.Start.Add(time.Duration(trial.bundle.Run.BarrierAt)).Sub(trial.began)))
		trial.remove()
	}
	low, high := extremes(first)
	median := stats.Median(first)
	t.add("from the command to the barrier, after which ops are due, median", ms(median), "≤ 150 ms",
		metIf(median <= 150e6), len(first))
	t.info(len(first), "the same, least and most", "%s to %s", ms(low), ms(high))
	return t, nil
}
