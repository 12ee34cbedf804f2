package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// integrityImages counts the snapshots of each built-in driver that are not crash-consistent, of a volume that is
// written at full speed.
func integrityImages(ctx context.Context, e *env, t *table) error {
	snapshots := pick(e, 20, 4)
	for _, c := range []struct{ driver, size, direct string }{
		{"hostdir", "1Mi", "true"}, {"hostdir", "16Mi", "true"}, {"hostdir", "16Mi", "false"}, {"hostdir", "64Mi", "true"},
		{"btrfs", "16Mi", "true"}, {"btrfs", "16Mi", "false"},
		{"loopfile-xfs", "16Mi", "true"}, {"loopfile-xfs", "16Mi", "false"},
	} {
		if err := t.images(ctx, e, c.driver, c.size, c.direct, snapshots); err != nil {
			return err
		}
	}
	return nil
}

// images runs one Benchmark and adds its figures.
func (t *table) images(ctx context.Context, e *env, driver, size, direct string, snapshots int) error {
	trial, err := e.run(ctx, e.benchmark(`  actions:
    - name: writer
      createObjSpec:
        workload: integrity
        vars: {storageClass: %s, volumeSize: 512Mi, fileSize: %s, direct: "%s", duration: %d}
    - {name: snapshots, rateName: r, snapshotSpec: {actionName: writer}, then: [restores, checks, deletions]}
    - {name: restores, restoreSpec: {actionName: snapshots}}
    - {name: checks, checkSpec: {actionName: restores}}
    - {name: deletions, deleteSpec: {actionName: restores}}
  rates: [{name: r, limit: %d, constantRateSpec: {interval: 1s}}]
`, driver, size, direct, snapshots+5, snapshots))
	if err != nil {
		return err
	}
	defer trial.remove()
	checks, writes := map[string][]float64{}, 0.0 // by metric
	for s, err := range trial.bundle.Scalars() {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(s.Instance, "checks-"):
			checks[s.Metric] = append(checks[s.Metric], s.Value)
		case s.Metric == "write.iops":
			writes = s.Value
		}
	}
	n := len(checks["violations"])
	if n == 0 {
		return fmt.Errorf("%s: no snapshot was checked", driver)
	}
	bad, others, reordered := 0, 0.0, 0.0
	for i, v := range checks["violations"] {
		if v > 0 {
			bad++
		}
		others += v - checks["stale"][i]
		reordered += checks["reordered"][i]
	}
	stale, ages := checks["stale"], checks["age"]
	cache := map[string]string{"true": "direct", "false": "page cache"}[direct]
	t.info(n, fmt.Sprintf("%s, %s of blocks, %s", driver, size, cache), "%d of %d with violations; stale blocks of one: "+
		"median %.0f, maximum %.0f of %.0f; other violations %.0f; reordered in all %.0f; age %v; %.0f writes/s", bad, n,
		stats.Median(stale), slices.Max(stale), checks["blocks"][0], others, reordered,
		time.Duration(stats.Median(ages)).Round(time.Millisecond), writes)
	return nil
}
