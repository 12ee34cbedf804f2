package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// exitWorse is the exit code of compare with --fail-on worse.
const exitWorse = 5

// guardMargin is the difference that matters.
const guardMargin = "10%"

// guard measures what the runner can do and costs, of the programs in -base and of those in bin, in the same blocks,
// and lets compare judge them. With -keep the figures of bin become an entry of a history, which compare searches for
// changes.
func guard(ctx context.Context, e *env) (table, error) {
	var t table
	if e.base == "" {
		return t, errors.New("-base is missing: the directory with the programs to compare with (make guard builds them)")
	}
	before := *e
	before.bin = e.base
	arms := []struct {
		version string
		e       *env
	}{{"before", &before}, {"now", e}}
	rows, own := [][]string{guardColumns}, [][]string{guardColumns}
	for block, order := range mirrored(len(arms), max(e.blocks, 8), e.seed) {
		for _, i := range order {
			figures, err := arms[i].e.ceilings(ctx)
			if err != nil {
				return t, fmt.Errorf("%s: %w", arms[i].version, err)
			}
			for _, f := range figures {
				row := []string{arms[i].version, strconv.Itoa(block), f.metric, f.unit,
					strconv.FormatFloat(f.value, 'g', -1, 64)}
				rows = append(rows, row)
				if arms[i].version == "now" {
					own = append(own, row)
				}
			}
		}
	}
	study := filepath.Join(e.tmp, "guard")
	if err := e.importRows(ctx, rows, study); err != nil {
		return t, err
	}
	out, code, err := e.judge(ctx, study, "--factor", "version", "--paired")
	if err != nil {
		return t, err
	}
	t.add("ceilings of bin against those of "+e.base, fmt.Sprintf("exit code %d of compare --fail-on worse", code),
		"nothing worse by more than "+guardMargin, metIf(code != exitWorse), max(e.blocks, 8))
	t.note("%s", strings.ReplaceAll(out, "\n", "\n  "))
	if e.keep == "" {
		return t, nil
	}
	if err := os.MkdirAll(e.keep, 0o755); err != nil {
		return t, err
	}
	name := time.Now().UTC().Format("20060102-150405") + "-" + commit(ctx)
	if err := e.importRows(ctx, own, filepath.Join(e.keep, name)); err != nil {
		return t, err
	}
	if entries, err := os.ReadDir(e.keep); err != nil || len(entries) < 2 {
		return t, err
	}
	out, code, err = e.judge(ctx, "--history", e.keep)
	if err != nil {
		return t, err
	}
	t.info(1, "history with this run", "exit code %d", code)
	t.note("%s", strings.ReplaceAll(out, "\n", "\n  "))
	return t, nil
}

// commit is the one that is checked out, as git describes it.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// ceiling is one figure of a run.
type ceiling struct {
	metric, unit string
	value        float64
}

// ceilings runs a closed loop and an open one of 1000 ops/s on null.
func (e *env) ceilings(ctx context.Context) ([]ceiling, error) {
	length := pick(e, 4*time.Second, 2*time.Second)
	trial, err := e.run(ctx, e.closedBenchmark(length))
	if err != nil {
		return nil, err
	}
	loop, err := closedFigures(trial, length)
	if err != nil {
		return nil, err
	}
	var memory int64
	for _, u := range trial.process {
		memory = max(memory, u.rss)
	}
	start := trial.bundle.Run.Clock.Start.Add(time.Duration(trial.bundle.Run.BarrierAt)).Sub(trial.began)
	trial.remove()
	if trial, err = e.run(ctx, e.touches(length)); err != nil {
		return nil, err
	}
	defer trial.remove()
	ops, err := trial.ops("touch")
	if err != nil {
		return nil, err
	}
	var late []int64
	for _, o := range ops {
		l, _ := o.Lateness()
		late = append(late, l)
	}
	if len(late) == 0 {
		return nil, errors.New("no op succeeded")
	}
	cpu := cpuWhile(trial, trial.bundle.Run.BarrierAt, trial.bundle.Run.BarrierAt+op.Time(length))
	return []ceiling{
		{"volumes of a closed loop", "volumes/s", loop.perSecond},
		{"CPU time of the runner per volume", "us", float64(loop.cpu) / 1e3},
		{"peak memory of the runner", "MiB", float64(memory) / (1 << 20)},
		{"from the command to the barrier", "ms", float64(start) / 1e6},
		{"p99 of lateness at 1000 ops/s", "us", float64(quantile(late, 0.99)) / 1e3},
		{"CPU time of the runner per op at 1000 ops/s", "us", cpu * length.Seconds() / float64(len(late)) * 1e6},
	}, nil
}

var guardColumns = []string{"version", "block", "metric", "unit", "value"}

// importRows makes a study of rows, which have guardColumns.
func (e *env) importRows(ctx context.Context, rows [][]string, dir string) error {
	f, err := os.Create(filepath.Join(e.tmp, "guard.csv"))
	if err != nil {
		return err
	}
	if err := errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close()); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, e.cnsbench(), "import", "csv", f.Name(), "--out", dir, "--factor", "version",
		"--block", "block", "--metric", "metric", "--unit", "unit", "--value", "value").CombinedOutput()
	if err != nil {
		return fmt.Errorf("cnsbench import: %w: %s", err, out)
	}
	return nil
}

// judge compares with the margin. The exit code is 0 or exitWorse.
func (e *env) judge(ctx context.Context, args ...string) (text string, code int, err error) {
	cmd := exec.CommandContext(ctx, e.cnsbench(), append([]string{"compare", "--margin", guardMargin, "--fail-on", "worse",
		"--direction", "peak memory of the runner=lower", "--output", "markdown"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	code = cmd.ProcessState.ExitCode()
	if err != nil && code != exitWorse {
		return "", code, fmt.Errorf("cnsbench compare: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), code, nil
}
