package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

const memoryParallel = 8

// memory creates and deletes volumes on null in a closed loop and measures the runner's resident
// memory after a number of ops. Few volumes exist at any time, so a growth of this memory is what
// the runner keeps of ended ops.
func memory(ctx context.Context, e *env) (table, error) {
	var t table
	marks := pick(e, []int{10_000, 100_000, 1_000_000}, []int{10_000, 30_000, 100_000})
	last := marks[len(marks)-1]
	trial, err := e.run(ctx, fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-memory}
spec:
  seed: %d
  actions:
    - name: create
      rateName: loop
      createObjSpec: {volume: {storageClass: "null", size: 1Gi}}
    - name: remove
      rateName: loop
      deleteSpec: {actionName: create}
  rates:
    - {name: loop, limit: %d, concurrencySpec: {parallelism: %d, until: running}}
`, e.seed, last+last/50, memoryParallel))
	if err != nil {
		return t, err
	}
	defer trial.remove()
	ends, alive, err := endsOf(trial)
	if err != nil {
		return t, err
	}
	if len(ends) < last {
		return t, fmt.Errorf("%d ops were carried out, not %d", len(ends), last)
	}
	var resident []float64
	for _, n := range marks {
		mib, samples := residentAround(trial, ends[n-1])
		if samples == 0 {
			return t, fmt.Errorf("no sample of the runner's memory near op %d", n)
		}
		resident = append(resident, mib)
		t.info(samples, fmt.Sprintf("resident memory after %d ops", n), "%.1f MiB", mib)
	}
	first, final := resident[0], resident[len(resident)-1]
	t.add(fmt.Sprintf("growth from %d to %d ops", marks[0], last),
		fmt.Sprintf("× %.2f, %+.0f B per op", final/first, (final-first)*(1<<20)/float64(last-marks[0])),
		"≤ × 1.25", metIf(final <= 1.25*first), len(ends))
	var peak, own int64
	for _, u := range trial.process {
		peak, own = max(peak, u.rss), max(own, u.own)
	}
	t.add("peak until the summary was printed; without pages of files, such as the program",
		fmt.Sprintf("%.1f MB; %.1f MB", float64(peak)/1e6, float64(own)/1e6), "≤ 150 MB", metIf(peak <= 150e6),
		len(trial.process))
	t.info(alive, "volumes that existed at once, at most", "%d", alive)
	return t, nil
}

// endsOf returns the instants at which ops ended, in order, and the maximum number of volumes.
func endsOf(trial *trial) (ends []op.Time, alive int, err error) {
	type change struct {
		at op.Time
		by int
	}
	var changes []change
	for o, err := range trial.bundle.Ops() {
		if err != nil {
			return nil, 0, err
		}
		if o.Outcome != op.OK {
			continue
		}
		ends = append(ends, o.Ended)
		by := 1
		if o.Kind == op.Delete {
			by = -1
		}
		changes = append(changes, change{o.Ended, by})
	}
	slices.Sort(ends)
	slices.SortFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	n := 0
	for _, c := range changes {
		n += c.by
		alive = max(alive, n)
	}
	return ends, alive, nil
}

// residentAround returns the median in MiB of the samples within half a second of an instant. The
// median is needed because the size varies between garbage collections.
func residentAround(trial *trial, at op.Time) (mib float64, samples int) {
	const half = op.Time(500 * time.Millisecond)
	var sizes []float64
	for _, u := range trial.process {
		if d := trial.runTime(u.at.UnixNano()) - at; d >= -half && d <= half {
			sizes = append(sizes, float64(u.rss)/(1<<20))
		}
	}
	if len(sizes) == 0 {
		return 0, 0
	}
	slices.Sort(sizes)
	return stats.Median(sizes), len(sizes)
}
