package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// record writes two million operations to a bundle as fast as it takes them. The files are synced each second meanwhile,
// and the time ends when all are written.
func record(_ context.Context, e *env) (table, error) {
	var t table
	wanted := pick(e, int64(2_000_000), 200_000)
	dir := filepath.Join(e.tmp, "record")
	w, err := bundle.Create(dir, bundle.Run{ID: "bench", Engine: "local"})
	if err != nil {
		return t, err
	}
	defer func() { warn(os.RemoveAll(dir)) }()
	clock, before := op.NewClock(), ownCPU()
	for n := range wanted {
		at := clock.Now()
		w.Op(op.Op{ID: n, Episode: n, Action: "create", Kind: op.Create, Node: "node-1", Intended: at, Started: at,
			Ended: at + 1_000_000, Attempts: 1, Outcome: op.OK, Object: fmt.Sprintf("cnsbench-bench-create-%d", n),
			Milestones: []op.Milestone{{Name: "acked", At: at + 300_000}, {Name: "provisioned", At: at + 600_000},
				{Name: "ready", At: at + 1_000_000}}})
	}
	err = w.Flush()
	took, cpu := time.Duration(clock.Now()), ownCPU()-before
	if err := errors.Join(err, w.Close(nil)); err != nil {
		return t, err
	}
	rate := float64(wanted) / took.Seconds()
	t.add("operations with three milestones recorded per second", fmt.Sprintf("%.0f", rate), "≥ 200 000",
		metIf(rate >= 200e3), int(wanted))
	t.info(int(wanted), "CPU time of each, all threads", "%.2f µs", float64(cpu)/float64(wanted)/1e3)
	t.info(1, "closing the bundle, with its columns", "%.2f s", (time.Duration(clock.Now()) - took).Seconds())
	return t, nil
}
