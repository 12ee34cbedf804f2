package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// million measures show and report on a bundle of a million ops and an hour of series of 200 instances, and the page of
// the report in Chromium.
func million(ctx context.Context, e *env, t *table) error {
	plain, dir, page := filepath.Join(e.tmp, "plain"), filepath.Join(e.tmp, "hour"), filepath.Join(e.tmp, "report.html")
	for _, b := range []struct {
		dir    string
		canary bool
	}{{plain, false}, {dir, true}} {
		h := newHour(pick(e, 1_000_000, 20_000), pick(e, 200, 20), pick(e, 3600, 120), e.seed)
		h.canary = b.canary
		start := time.Now()
		if err := h.write(ctx, b.dir); err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
		syscall.Sync() // what writes it back would compete with the commands
		t.info(1, fmt.Sprintf("bundle of %d ops, and %d s of %d instances, canaries %v", h.ops, h.seconds, h.instances,
			b.canary), "written in %.0f s", time.Since(start).Seconds())
	}
	if err := errors.Join(
		t.command(ctx, e, "show, no canary", 2*time.Second, 0, "show", plain),
		t.command(ctx, e, "show", 1500*time.Millisecond, 0, "show", dir),
		t.command(ctx, e, "show --output json", 1500*time.Millisecond, 0, "show", "--output", "json", dir),
		t.command(ctx, e, "report", 5*time.Second, 400e6, "report", "--out", page, dir)); err != nil {
		return err
	}
	st, err := os.Stat(page)
	if err != nil {
		return err
	}
	t.add(1, "size of the report", fmt.Sprintf("%.2f MB", float64(st.Size())/1e6), "< 2 MB", st.Size() < 2e6)
	return t.page(ctx, e, page)
}

// command runs a command five times, and adds the medians of its wall time, CPU time and greatest resident memory. A
// peak of 0 is no target.
func (t *table) command(ctx context.Context, e *env, name string, wall time.Duration, peak float64,
	args ...string) error {
	type cost struct{ wall, cpu, peak float64 } // seconds, bytes
	got, err := interleave(ctx, e, 5, arm[cost]{name, func(ctx context.Context) (cost, error) {
		p, err := execute(exec.CommandContext(ctx, e.cnsbench(), args...), nil)
		return cost{p.wall.Seconds(), p.cpu.Seconds(), p.peak()}, err
	}})
	if err != nil {
		return err
	}
	walls := each(got[0], func(c cost) float64 { return c.wall })
	cpu := stats.Median(each(got[0], func(c cost) float64 { return c.cpu }))
	memory := stats.Median(each(got[0], func(c cost) float64 { return c.peak }))
	t.add(len(walls), name+": time in s", fmt.Sprintf("%s, %.2f s of CPU time", spread("%.2f", walls), cpu),
		"≤ "+wall.String(), stats.Median(walls) <= wall.Seconds())
	if what := name + ": greatest resident memory"; peak > 0 {
		t.add(len(walls), what, mb(memory), "≤ "+mb(peak), memory <= peak)
	} else {
		t.info(len(walls), what, "%s", mb(memory))
	}
	return nil
}

// page measures the page of a report in Chromium by web/test/pan.mjs: the time until it can be used, and the frames of
// panning. Without Node.js or the modules of web/ its rows are missing.
func (t *table) page(ctx context.Context, e *env, page string) error {
	web := filepath.Join(e.root, "web")
	if _, err := os.Stat(filepath.Join(web, "node_modules", "playwright-core")); errors.Is(err, os.ErrNotExist) {
		t.note("The page was not measured: run `make test-web` first, which installs the modules of web/.")
		return nil
	}
	cmd := exec.CommandContext(ctx, "node", "test/pan.mjs", page, "--json")
	cmd.Dir = web
	p, err := execute(cmd, nil)
	if err != nil {
		return err
	}
	var got struct {
		UsableMs []float64
		Pans     []struct {
			Zoom, PerSecond, P90Ms, CPUMs float64
			Frames                        int
		}
	}
	if err := json.Unmarshal(p.output, &got); err != nil || len(got.UsableMs) == 0 {
		return fmt.Errorf("pan.mjs printed %q: %w", p.output, err)
	}
	usable := stats.Median(got.UsableMs)
	t.add(len(got.UsableMs), "page: time until it can be used", fmt.Sprintf("%.2f s", usable/1e3), "≤ 2 s", usable <= 2000)
	for _, p := range got.Pans {
		t.add(p.Frames, fmt.Sprintf("page: panning at zoom %g", p.Zoom), fmt.Sprintf("%.1f frames per second, 90 %% within "+
			"%.1f ms; %.1f ms of CPU time each", p.PerSecond, p.P90Ms, p.CPUMs), "≥ 30 per second", p.PerSecond >= 30)
	}
	return nil
}
