package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/trace"
	"github.com/cnsbench/cnsbench/internal/trace/fit"
)

// sampleTrace reads the committed trace: one minute of a cluster of 1000 hosts.
func (e *env) sampleTrace() (path string, records []trace.Record, err error) {
	path = filepath.Join(e.root, "examples", "traces", "churn.csv.gz")
	records, err = readTrace(path)
	return path, records, err
}

func readTrace(path string) ([]trace.Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return trace.Read(f)
}

// replay plays the sample trace on null in the order CNSBench, bare, bare, CNSBench. The bare loop
// waits for the same instants and does nothing.
func replay(ctx context.Context, e *env) (table, error) {
	var t table
	path, records, err := e.sampleTrace()
	if err != nil {
		return t, err
	}
	scale := pick(e, 1.0, 0.1)
	var due []time.Duration // of the records that the Benchmark replays: those from time 0 on
	for _, r := range records {
		if r.Time >= 0 && r.Op != trace.End {
			due = append(due, time.Duration(float64(r.Time)*scale))
		}
	}
	var ours, bare []int64
	for _, step := range []string{"ours", "bare", "bare", "ours"} {
		if step == "bare" {
			bare = append(bare, timerLoop(ctx, due)...)
			continue
		}
		late, err := t.replayed(ctx, e, path, scale, due)
		if err != nil {
			return t, err
		}
		ours = append(ours, late...)
	}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	n := len(ours)
	a, b := quantile(ours, 0.99), quantile(bare, 0.99)
	t.add("p99 of lateness", fmt.Sprintf("%s; bare loop %s (%+.3f ms)", ms(a), ms(b), float64(a-b)/1e6),
		"≤ bare loop + 0.5 ms", metIf(a <= b+500_000), n)
	t.info(n, "p50 of lateness", "%s; bare loop %s", ms(quantile(ours, 0.5)), ms(quantile(bare, 0.5)))
	t.info(n, "operations per second", "%.0f", float64(len(due))/due[len(due)-1].Seconds())
	return t, nil
}

// replayed does one replay and returns its lateness. It checks that each record of the trace became
// an op that was due at the time of the record.
func (t *table) replayed(ctx context.Context, e *env, path string, scale float64, due []time.Duration) ([]int64,
	error) {
	trial, err := e.run(ctx, fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-replay}
spec:
  actions:
    - {name: volumes, rateName: t, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}
    - {name: snapshots, rateName: t, snapshotSpec: {actionName: volumes}}
    - {name: deletions, rateName: t, deleteSpec: {actionName: volumes}}
    - {name: forgets, rateName: t, deleteSpec: {actionName: snapshots}}
  rates:
    - {name: t, maxInFlight: 0, traceRateSpec: {source: %q, timeScale: %g}}
`, path, scale))
	if err != nil {
		return nil, err
	}
	defer trial.remove()
	barrier := trial.bundle.Run.BarrierAt
	var intended []time.Duration
	var late []int64
	dropped, failed, waited := 0, 0, 0
	for o, err := range trial.bundle.Ops() {
		if err != nil {
			return nil, err
		}
		if o.Intended < barrier {
			continue // existed before the trace began
		}
		intended = append(intended, time.Duration(o.Intended-barrier))
		switch {
		case o.Outcome == op.Dropped:
			dropped++
		case o.Outcome != op.OK:
			failed++
		}
		if o.Milestone(op.Unblocked).Known() {
			waited++
		}
		if l, ok := o.Lateness(); ok {
			late = append(late, l)
		}
	}
	slices.Sort(intended)
	same := slices.Equal(intended, due)
	counts := trial.bundle.Run.Rates[0]
	t.add("ops that the trace has, each intended at its very instant",
		fmt.Sprintf("%d of %d; %v", len(intended), len(due), same), "all", metIf(same), len(due))
	t.add("dropped, by the ops and by the count", fmt.Sprintf("%d, %d; failed %d", dropped, counts.Dropped, failed),
		"equal, none", metIf(dropped == 0 && counts.Dropped == 0 && failed == 0), len(due))
	t.info(len(intended), "waited for what they act on", "%d", waited)
	return late, nil
}

// profile fits a Benchmark to the sample trace, runs it, records its trace, and compares the rates
// and lifetimes of both traces.
func profile(ctx context.Context, e *env) (table, error) {
	var t table
	path, records, err := e.sampleTrace()
	if err != nil {
		return t, err
	}
	const share, scale = 0.2, 1.0 / 15
	length, warmUp := pick(e, 180*time.Second, 30*time.Second), 10*time.Second
	file := filepath.Join(e.tmp, "profile.yaml")
	if err := e.call(ctx, "trace", "profile", path, "-o", file, "--share", fmt.Sprint(share), "--time-scale",
		fmt.Sprint(scale), "--storage-class", "null"); err != nil {
		return t, err
	}
	trial, err := e.runFile(ctx, file, "--set", "spec.runtime="+(length+warmUp).String(), "--set",
		fmt.Sprintf("spec.seed=%d", e.seed))
	if err != nil {
		return t, err
	}
	defer trial.remove()
	again := filepath.Join(e.tmp, "again.csv.gz")
	if err := e.call(ctx, "trace", "record", "--from-bundle", trial.bundle.Dir, "-o", again); err != nil {
		return t, err
	}
	replayed, err := readTrace(again)
	if err != nil {
		return t, err
	}
	want, got := fit.Describe(records), fit.Describe(trace.After(replayed, int64(warmUp)))
	for _, a := range want.Ops {
		i := slices.IndexFunc(got.Ops, func(b fit.OpStats) bool { return a.Op == b.Op && a.Kind == b.Kind })
		if i < 0 {
			return t, fmt.Errorf("the replay has no %s of a %s", a.Op, a.Kind)
		}
		expected := a.PerSecond * share / scale
		t.near(fmt.Sprintf("%s of %ss per second", a.Op, a.Kind), got.Ops[i].PerSecond, expected,
			fmt.Sprintf("%.4g", got.Ops[i].PerSecond), fmt.Sprintf("%.4g", expected), got.Ops[i].N)
	}
	for _, a := range want.Objects {
		i := slices.IndexFunc(got.Objects, func(b fit.KindStats) bool { return a.Kind == b.Kind })
		if i < 0 {
			return t, fmt.Errorf("the replay has no %ss", a.Kind)
		}
		for _, v := range []struct {
			what     string
			got, has time.Duration
		}{{"mean", got.Objects[i].Lifetimes.Mean, a.Lifetimes.Mean}, {"median", got.Objects[i].Lifetimes.Median,
			a.Lifetimes.Median}} {
			expected := time.Duration(float64(v.has) * scale)
			t.near(fmt.Sprintf("%s lifetime of a %s", v.what, a.Kind), v.got.Seconds(), expected.Seconds(), v.got.Round(time.Millisecond).String(), expected.Round(time.Millisecond).String(), got.Objects[i].Lifetimes.Ended)
		}
	}
	return t, nil
}

// near compares a figure with its expected value.
func (t *table) near(what string, got, want float64, gotText, wantText string, n int) {
	t.add(what, fmt.Sprintf("%s; trace %s (%s)", gotText, wantText, percent(got/want)), "± 5 %",
		metIf(math.Abs(got/want-1) <= 0.05), n)
}

// call runs the cnsbench program for the files that it writes.
func (e *env) call(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, e.cnsbench(), args...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cnsbench %s: %w: %s", args[0], err, lastLines(string(text), 5))
	}
	return nil
}
