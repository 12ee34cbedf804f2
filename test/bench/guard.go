package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// exitWorse is the exit code of compare with --fail-on worse.
const exitWorse = 5

// guardMargin is the difference that matters.
const guardMargin = "10%"

// guard measures what the runner can do and costs, of the programs in -base and of those in bin, in the same blocks,
// and lets compare judge them. With -keep the figures of bin become an entry of a history, which compare searches for
// changes.
func guard(ctx context.Context, e *env, t *table) error {
	if e.base == "" {
		return errors.New("-base is missing: the directory with the programs to compare with (make guard builds them)")
	}
	before := *e
	before.bin, before.blocks = e.base, max(e.blocks, 8) // with fewer, compare has no verdicts
	got, err := interleave(ctx, &before, 8, arm[[]ceiling]{"before", before.ceilings}, arm[[]ceiling]{"now", e.ceilings})
	if err != nil {
		return err
	}
	study := filepath.Join(e.tmp, "guard")
	if err := e.importRows(ctx, study, []string{"before", "now"}, got); err != nil {
		return err
	}
	code, err := t.judge(ctx, e, study, "--factor", "version", "--paired")
	if err != nil {
		return err
	}
	t.add(len(got[0]), "ceilings of bin against those of "+e.base, fmt.Sprintf("exit code %d of compare --fail-on worse",
		code), "nothing worse by more than "+guardMargin, code != exitWorse)
	if e.keep == "" {
		return nil
	}
	if err := os.MkdirAll(e.keep, 0o755); err != nil {
		return err
	}
	name := time.Now().UTC().Format("20060102-150405") + "-" + commit(ctx)
	if err := e.importRows(ctx, filepath.Join(e.keep, name), []string{"now"}, got[1:]); err != nil {
		return err
	}
	if entries, err := os.ReadDir(e.keep); err != nil || len(entries) < 2 {
		return err
	}
	code, err = t.judge(ctx, e, "--history", e.keep)
	t.info(1, "history with this run", "exit code %d", code)
	return err
}

// ceiling is one figure of a run.
type ceiling struct {
	metric, unit string
	value        float64
}

// ceilings runs a closed loop and an open one of 1000 ops/s on null.
func (e *env) ceilings(ctx context.Context) ([]ceiling, error) {
	length := pick(e, 4*time.Second, 2*time.Second)
	loop, err := e.run(ctx, e.closedBenchmark(length))
	if err != nil {
		return nil, err
	}
	defer loop.remove()
	volumes, err := closedFigures(loop, length)
	if err != nil {
		return nil, err
	}
	open, err := e.run(ctx, e.touches(length))
	if err != nil {
		return nil, err
	}
	defer open.remove()
	ops, err := open.ops("touch")
	if err != nil {
		return nil, err
	}
	cpu := open.cpus(open.barrier(), open.barrier().Add(length)) * length.Seconds() / float64(len(ops))
	return []ceiling{
		{"volumes of a closed loop", "volumes/s", volumes.perSecond},
		{"CPU time of the runner per volume", "us", 1e6 * volumes.cpu},
		{"peak memory of the runner", "MiB", loop.peak() / (1 << 20)},
		{"from the command to the barrier", "ms", loop.barrier().Sub(loop.began).Seconds() * 1e3},
		{"p99 of lateness at 1000 ops/s", "us", float64(quantile(lateness(ops), 0.99)) / 1e3},
		{"CPU time of the runner per op at 1000 ops/s", "us", 1e6 * cpu},
	}, nil
}

// importRows makes a study of the ceilings of each block of versions; compare compares each with the first.
func (e *env) importRows(ctx context.Context, dir string, versions []string, of [][][]ceiling) error {
	rows := [][]string{{"version", "block", "metric", "unit", "value"}}
	for i, version := range versions {
		for block, ceilings := range of[i] {
			for _, c := range ceilings {
				rows = append(rows, []string{version, strconv.Itoa(block), c.metric, c.unit,
					strconv.FormatFloat(c.value, 'g', -1, 64)})
			}
		}
	}
	f, err := os.Create(filepath.Join(e.tmp, "guard.csv"))
	if err != nil {
		return err
	}
	if err := errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close()); err != nil {
		return err
	}
	_, err = e.call(ctx, "import", "csv", f.Name(), "--out", dir, "--factor", "version", "--block", "block", "--metric",
		"metric", "--unit", "unit", "--value", "value")
	return err
}

// judge compares with the margin, and notes what compare says. The exit code is 0 or exitWorse.
func (t *table) judge(ctx context.Context, e *env, args ...string) (code int, err error) {
	p, err := execute(interruptible(ctx, e.cnsbench(), append([]string{"compare", "--margin", guardMargin, "--fail-on",
		"worse", "--direction", "peak memory of the runner=lower", "--output", "markdown"}, args...)...), nil)
	if err != nil && p.code != exitWorse {
		return p.code, err
	}
	t.note("%s", strings.ReplaceAll(strings.TrimSpace(string(p.output)), "\n", "\n  "))
	return p.code, nil
}
