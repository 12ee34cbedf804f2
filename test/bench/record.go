package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/op"
)

// record writes two million operations to a bundle as fast as it takes them. The files are synced each second
// meanwhile, and the time ends when all are written.
func record(_ context.Context, e *env, t *table) error {
	wanted := pick(e, int64(2_000_000), 200_000)
	dir := filepath.Join(e.tmp, "record")
	w, err := bundle.Create(dir, bundle.Run{ID: "bench", Engine: "local"})
	if err != nil {
		return err
	}
	defer func() { warn(os.RemoveAll(dir)) }()
	clock, before := op.NewClock(), loadgen.UsageNow().CPU
	for n := range wanted {
		at := clock.Now()
		w.Op(op.Op{ID: n, Episode: n, Action: "create", Kind: op.Create, Node: "node-1", Intended: at, Started: at,
			Ended: at + 1_000_000, Attempts: 1, Outcome: op.OK, Object: fmt.Sprintf("cnsbench-bench-create-%d", n),
			Milestones: []op.Milestone{{Name: "acked", At: at + 300_000}, {Name: "provisioned", At: at + 600_000},
				{Name: "ready", At: at + 1_000_000}}})
	}
	err = w.Flush()
	took, cpu := time.Duration(clock.Now()), loadgen.UsageNow().CPU-before
	if err := errors.Join(err, w.Close(nil)); err != nil {
		return err
	}
	rate := float64(wanted) / took.Seconds()
	t.add(int(wanted), "operations with three milestones recorded per second", fmt.Sprintf("%.0f", rate), "≥ 200 000",
		rate >= 200e3)
	t.info(int(wanted), "CPU time of each, all threads", "%.2f µs", float64(cpu)/float64(wanted)/1e3)
	closing := time.Duration(clock.Now()) - took
	t.add(1, "closing the bundle, with its columns", fmt.Sprintf("%.2f s", closing.Seconds()), "≤ 5 s",
		closing <= 5*time.Second)
	return nil
}

// columnar runs the benchmark of package bundle, which opens a closed bundle of ten million events
// and computes a quantile of the response time.
func columnar(ctx context.Context, e *env, t *table) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkQuantile10M$", "-benchtime",
		pick(e, "5x", "2x"), fmt.Sprint("-short=", e.quick), "-timeout", "20m", "./internal/bundle")
	cmd.Dir = e.root
	p, err := execute(cmd, nil)
	if err != nil {
		return err
	}
	seen := map[string]bool{} // go test can print a line again with its metrics
	for line := range strings.Lines(string(p.output)) {
		f := strings.Fields(line)
		name, ok := strings.CutPrefix(line, "BenchmarkQuantile10M/")
		if !ok || len(f) < 4 || f[3] != "ns/op" || seen[f[0]] {
			continue
		}
		ns, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			return fmt.Errorf("go test said %q", line)
		}
		seen[f[0]] = true
		name, _, _ = strings.Cut(strings.Fields(name)[0], "-")
		t.add(pick(e, 5, 2), "p99 of a bundle with "+pick(e, "ten", "two")+" million events, "+name,
			fmt.Sprintf("%.2f s", ns/1e9), "about a second (≤ 1.5 s)", ns <= 1.5e9)
	}
	if len(t.figures) == 0 {
		return fmt.Errorf("go test printed no figure: %s", lastLines(string(p.output), 5))
	}
	return nil
}
