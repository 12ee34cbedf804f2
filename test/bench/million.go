package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// command is a command that million measures, with its targets; 0: none.
type command struct {
	name string
	args []string
	wall time.Duration
	peak int64 // bytes
}

// million measures show and report on a bundle of a million ops and an hour of series of 200 instances, and the page of
// the report in Chromium.
func million(ctx context.Context, e *env) (table, error) {
	var t table
	plain, dir, page := filepath.Join(e.tmp, "plain"), filepath.Join(e.tmp, "hour"), filepath.Join(e.tmp, "report.html")
	if err := errors.Join(t.hour(ctx, e, plain, false), t.hour(ctx, e, dir, true)); err != nil {
		return t, err
	}
	for _, c := range []command{
		{"show, no canary", []string{"show", plain}, 2 * time.Second, 0},
		{"show --output json, no canary", []string{"show", "--output", "json", plain}, 2 * time.Second, 0},
		{"show", []string{"show", dir}, 2 * time.Second, 0},
		{"show --output json", []string{"show", "--output", "json", dir}, 2 * time.Second, 0},
		{"report", []string{"report", "--out", page, dir}, 5 * time.Second, 400e6},
	} {
		if err := t.command(ctx, e, c); err != nil {
			return t, err
		}
	}
	st, err := os.Stat(page)
	if err != nil {
		return t, err
	}
	t.add("size of the report", fmt.Sprintf("%.2f MB", float64(st.Size())/1e6), "< 2 MB", metIf(st.Size() < 2e6), 1)
	return t, t.page(ctx, e, page)
}

// hour writes a bundle of an hour, with or without the I/Os of canaries.
func (t *table) hour(ctx context.Context, e *env, dir string, canary bool) error {
	h := newHour(pick(e, 1_000_000, 20_000), pick(e, 200, 20), pick(e, 3600, 120), e.seed)
	h.canary = canary
	start := time.Now()
	if err := h.write(ctx, dir); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	syscall.Sync() // what writes it back would compete with the commands
	with := "no canary"
	if canary {
		with = "canaries"
	}
	t.info(1, fmt.Sprintf("bundle of %d ops, and %d s of %d instances, %s", h.ops, h.seconds, h.instances, with),
		"%.0f MB, written in %.0f s", float64(sizeOf(dir))/1e6, time.Since(start).Seconds())
	return nil
}

// command runs a command five times, and adds the medians of its wall time, CPU time and greatest resident memory.
func (t *table) command(ctx context.Context, e *env, c command) error {
	const rounds = 5
	var walls, cpus, peaks []int64
	for range rounds {
		cmd := exec.CommandContext(ctx, e.cnsbench(), c.args...)
		var problems lastWritten
		cmd.Stderr = &problems
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", c.name, err, lastLines(string(problems), 5))
		}
		walls = append(walls, int64(time.Since(start)))
		used := cmd.ProcessState
		cpus = append(cpus, int64(used.UserTime()+used.SystemTime()))
		peaks = append(peaks, used.SysUsage().(*syscall.Rusage).Maxrss*1024) // Linux counts KiB
	}
	wall, peak := quantile(walls, 0.5), quantile(peaks, 0.5)
	t.add(c.name+": time", fmt.Sprintf("%.2f s (%.2f to %.2f), %.2f s of CPU time", float64(wall)/1e9,
		float64(slices.Min(walls))/1e9, float64(slices.Max(walls))/1e9, float64(quantile(cpus, 0.5))/1e9),
		atMost(c.wall > 0, c.wall.String()), metIfAsked(c.wall > 0, wall <= int64(c.wall)), rounds)
	t.add(c.name+": greatest resident memory", fmt.Sprintf("%.0f MB", float64(peak)/1e6),
		atMost(c.peak > 0, fmt.Sprintf("%d MB", c.peak/1e6)), metIfAsked(c.peak > 0, peak <= c.peak), rounds)
	return nil
}

func atMost(asked bool, text string) string {
	if !asked {
		return ""
	}
	return "≤ " + text
}

func metIfAsked(asked, ok bool) verdict {
	if !asked {
		return none
	}
	return metIf(ok)
}

// lastWritten keeps the end of what is written to it.
type lastWritten []byte

func (l *lastWritten) Write(b []byte) (int, error) {
	*l = append(*l, b...)
	*l = (*l)[max(0, len(*l)-4096):]
	return len(b), nil
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
	cmd.Dir, cmd.Stderr = web, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("pan.mjs: %w", err)
	}
	var got struct {
		UsableMs []float64
		Pans     []struct {
			Zoom, PerSecond, P90Ms, CPUMs float64
			Frames                        int
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.UsableMs) == 0 {
		return fmt.Errorf("pan.mjs printed %q: %w", text, err)
	}
	slices.Sort(got.UsableMs)
	usable := got.UsableMs[len(got.UsableMs)/2]
	t.add("page: time until it can be used", fmt.Sprintf("%.2f s", usable/1e3), "≤ 2 s", metIf(usable <= 2000),
		len(got.UsableMs))
	for _, p := range got.Pans {
		t.add(fmt.Sprintf("page: panning at zoom %g", p.Zoom),
			fmt.Sprintf("%.1f frames per second, 90 %% within %.1f ms; %.1f ms of CPU time each", p.PerSecond, p.P90Ms, p.CPUMs),
			"≥ 30 per second", metIf(p.PerSecond >= 30), p.Frames)
	}
	return nil
}

// sizeOf returns the bytes of the files in a directory.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error { // a missing file has no size
		if err == nil && d.Type().IsRegular() {
			if st, err := d.Info(); err == nil {
				n += st.Size()
			}
		}
		return nil
	})
	return n
}
