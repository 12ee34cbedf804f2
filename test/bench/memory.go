package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// memory creates and deletes volumes on null in a closed loop and measures the runner's resident
// memory after a number of ops. Few volumes exist at any time, so a growth of this memory is what
// the runner keeps of ended ops.
func memory(ctx context.Context, e *env, t *table) error {
	marks := pick(e, []int{10_000, 100_000, 1_000_000}, []int{10_000, 30_000, 100_000})
	last := marks[len(marks)-1]
	trial, err := e.run(ctx, e.benchmark(`  actions:
    - {name: create, rateName: loop, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
    - {name: remove, rateName: loop, deleteSpec: {actionName: create}}
  rates: [{name: loop, limit: %d, concurrencySpec: {parallelism: 8, until: running}}]
`, last+last/50))
	if err != nil {
		return err
	}
	defer trial.remove()
	var ends []op.Time
	for o, err := range trial.bundle.Ops() {
		if err != nil {
			return err
		}
		if o.Outcome == op.OK {
			ends = append(ends, o.Ended)
		}
	}
	if len(ends) < last {
		return fmt.Errorf("%d ops were carried out, not %d", len(ends), last)
	}
	slices.Sort(ends)
	var resident []float64
	for _, n := range marks {
		// The median of a second is needed because the size varies between garbage collections.
		at := trial.at(ends[n-1]).Add(-time.Second / 2)
		samples := trial.between(at, at.Add(time.Second))
		resident = append(resident, stats.Median(each(samples, rssOf)))
		t.info(len(samples), fmt.Sprintf("resident memory after %d ops", n), "%s", mb(resident[len(resident)-1]))
	}
	first, final := resident[0], resident[len(resident)-1]
	t.add(len(ends), fmt.Sprintf("growth from %d to %d ops", marks[0], last), fmt.Sprintf("× %.2f, %+.0f B per op",
		final/first, (final-first)/float64(last-marks[0])), "≤ × 1.25", first > 0 && final <= 1.25*first)
	peak := trial.peak()
	t.add(len(trial.usages), "peak until the summary was printed; without pages of files, such as the program",
		mb(peak)+"; "+mb(most(trial.usages, ownOf)), "≤ 250 MB", peak <= 250e6)
	return nil
}

// soak makes, snapshots and deletes volumes of null for a long time and compares the resident memory and the open
// descriptors of the runner near the begin with those at the end.
func soak(ctx context.Context, e *env, t *table) error {
	length := pick(e, e.length, 20*time.Second)
	trial, err := e.run(ctx, e.benchmark(`  actions:
    - {name: create, rateName: users, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
    - {name: snap, rateName: backups, snapshotSpec: {actionName: create, select: newest, snapshotClass: "null"}}
    - {name: forget, rateName: pruning, deleteSpec: {actionName: snap}}
    - {name: remove, rateName: leavers, deleteSpec: {actionName: create}}
  rates:
    - {name: users, duration: %[1]v, poissonRateSpec: {perSecond: 85}}
    - {name: backups, startAfter: 2s, duration: %[1]v, poissonRateSpec: {perSecond: 15}}
    - {name: pruning, startAfter: 4s, duration: %[1]v, poissonRateSpec: {perSecond: 15}}
    - {name: leavers, startAfter: 5s, duration: %[1]v, poissonRateSpec: {perSecond: 85}}
`, length))
	if err != nil {
		return err
	}
	defer trial.remove()
	tenth := func(i time.Duration) []usage {
		return trial.between(trial.barrier().Add(i*length/10), trial.barrier().Add((i+1)*length/10))
	}
	early, late := tenth(1), tenth(9)
	if len(early) == 0 || len(late) == 0 {
		return fmt.Errorf("the runner was seen %d and %d times in these tenths", len(early), len(late))
	}
	for _, f := range []struct {
		what, target string
		of           func(usage) float64
		format       func(float64) string
		limit        func(early float64) float64
	}{
		{"resident memory", "≤ × 1.1", rssOf, mb[float64], func(v float64) float64 { return 1.1 * v }},
		{"open descriptors", "≤ + 4", func(u usage) float64 { return float64(u.fds) }, func(v float64) string {
			return fmt.Sprintf("%.0f", v)
		}, func(v float64) float64 { return v + 4 }},
	} {
		was, is := stats.Median(each(early, f.of)), stats.Median(each(late, f.of))
		t.add(len(late), f.what+", second and last tenth", f.format(was)+", "+f.format(is), f.target, is <= f.limit(was))
	}
	outcomes := map[op.Outcome]int{}
	for o, err := range trial.bundle.Ops() {
		if err != nil {
			return err
		}
		outcomes[o.Outcome]++
	}
	t.info(len(trial.usages), "operations by outcome", "%v", outcomes)
	t.info(len(trial.usages), "peak of the memory, with the summary at the end", "%s", mb(trial.peak()))
	return nil
}
