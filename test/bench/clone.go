package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// clone measures the first use: git clone and make demo. It uses the module cache of the host, so
// that it does not measure the network. The build cache is empty, except in a quick run.
func clone(ctx context.Context, e *env) (table, error) {
	var t table
	dir := filepath.Join(e.tmp, "clone")
	if out, err := exec.CommandContext(ctx, "git", "clone", "-q", "--no-hardlinks", e.root,
		dir).CombinedOutput(); err != nil {
		return t, fmt.Errorf("git clone: %w: %s", err, lastLines(string(out), 3))
	}
	env := os.Environ()
	if !e.quick {
		env = append(env, "GOCACHE="+filepath.Join(e.tmp, "gocache"))
	}
	var total time.Duration
	for _, target := range []string{"deps", "build", "demo"} {
		cmd := interruptible(ctx, "make", "--no-print-directory", target)
		cmd.Dir, cmd.Env = dir, env
		start := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(start)
		total += took
		if err != nil {
			return t, fmt.Errorf("make %s: %w: %s", target, err, lastLines(string(out), 5))
		}
		t.info(1, "make "+target, "%.1f s", took.Seconds())
		if target == "deps" {
			t.note("`make deps` said: %s.", installed(string(out)))
		}
		if target == "demo" && !strings.Contains(string(out), "report: ") {
			return t, fmt.Errorf("make demo named no report: %s", lastLines(string(out), 5))
		}
	}
	t.info(1, "clean clone to report", "%.1f s", total.Seconds())
	t.note("Of the commit, not of the working tree; the module cache was warm, the build cache %s.",
		pick(e, "empty", "warm"))
	return t, nil
}

// installed returns the output of deps.sh, which prints nothing if no program was missing.
func installed(out string) string {
	if text := lastLines(out, 3); text != "" {
		return text
	}
	return "nothing, all programs were there"
}
