package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// objectMemoryLimit is the limit in bytes on the resident memory of a client with 16 workers.
const objectMemoryLimit = 64e6

// objectMemory measures the memory of CNSBench's client over ten minutes of GETs and PUTs of 4 KiB
// with 10⁹ keys, and the memory of warp for comparison.
func objectMemory(ctx context.Context, e *env) (table, error) {
	var t table
	address, stop, err := e.nullServer(ctx)
	if err != nil {
		return t, err
	}
	defer func() { warn(stop()) }()
	length := pick(e, 10*time.Minute, time.Minute)
	c, dir, err := e.objectCommand(ctx, s3Store(address, "bench", "benchbench"), "",
		fmt.Sprintf(get4K, 80)+fmt.Sprintf(put4K, 20), length)
	if err != nil {
		return t, err
	}
	defer func() { warn(os.RemoveAll(dir)) }()
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		return t, err
	}
	usages, end := watch(c.Process.Pid)
	err = c.Wait()
	end()
	if err != nil {
		return t, fmt.Errorf("cnsbench: %w: %s", err, lastLines(output.String(), 4))
	}
	read, err := figuresOf(dir, "read")
	if err != nil {
		return t, err
	}
	memoryFigures(&t, <-usages, int(read.response.N()))
	e.warpMemory(ctx, &t, address)
	return t, nil
}

// memoryFigures compares the first tenth of a run with its last tenth. The maximum is of the whole
// run, including its start and end.
func memoryFigures(t *table, all []usage, n int) {
	rss := make([]float64, len(all))
	for i, u := range all {
		rss[i] = float64(u.rss)
	}
	if len(rss) < 100 {
		t.note("**not judged**: the run was watched only %d times", len(rss))
		return
	}
	t.add("resident memory of CNSBench, at most", fmt.Sprintf("%.1f MB", slices.Max(rss)/1e6), "≤ 64 MB",
		metIf(slices.Max(rss) <= objectMemoryLimit), len(rss))
	own := slices.MaxFunc(all, func(a, b usage) int { return cmp.Compare(a.own, b.own) }).own
	t.info(len(rss), "of it without pages of files, such as the program, at most", "%.1f MB", float64(own)/1e6)
	steady := rss[len(rss)/20 : len(rss)*19/20]
	tenth := len(steady) / 10
	early, late := stats.Median(steady[:tenth]), stats.Median(steady[len(steady)-tenth:])
	t.add("last tenth / first tenth, medians", fmt.Sprintf("× %.3f (%.1f MB, %.1f MB)", late/early, early/1e6,
		late/1e6), "≤ × 1.1", metIf(late <= 1.1*early), len(steady))
	t.info(n, "GETs in that time", "%d", n)
}

// warpMemory measures the maximum resident memory of warp in a benchmark of one minute, or of 15 s
// in a quick measurement.
func (e *env) warpMemory(ctx context.Context, t *table, address string) {
	path := e.warpPath()
	if path == "" {
		t.note("**warp is missing**, so its memory is not shown: make object-peers.")
		return
	}
	c, after, err := warp(path, 4096, "bench", "benchbench").command(ctx, e, address, methodGet,
		pick(e, time.Minute, 15*time.Second))
	if err != nil {
		t.note("**warp was not measured**: %v", err)
		return
	}
	defer after()
	if err := c.Start(); err != nil {
		t.note("**warp was not measured**: %v", err)
		return
	}
	usages, end := watch(c.Process.Pid)
	err = c.Wait()
	end()
	all := <-usages
	if err != nil || len(all) == 0 {
		t.note("**warp was not measured**: %v", err)
		return
	}
	most := slices.MaxFunc(all, func(a, b usage) int { return int(a.rss - b.rss) })
	t.info(len(all), fmt.Sprintf("resident memory of warp (%s), GET, at most", moduleVersion(ctx, path)),
		"%.1f MB after %.0f s", float64(most.rss)/1e6, most.at.Sub(all[0].at).Seconds())
}
