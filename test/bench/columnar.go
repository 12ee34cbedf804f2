package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// columnar runs the benchmark of package bundle, which opens a closed bundle of ten million events
// and computes a quantile of the response time.
func columnar(ctx context.Context, e *env) (table, error) {
	var t table
	rounds, events := pick(e, 5, 2), pick(e, 10_000_000, 2_000_000)
	args := []string{"test", "-run", "^$", "-bench", "^BenchmarkQuantile10M$", "-benchtime", fmt.Sprintf("%dx", rounds),
		"-timeout", "20m"}
	if e.quick {
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./internal/bundle")...)
	cmd.Dir = e.root
	text, err := cmd.CombinedOutput()
	if err != nil {
		return t, fmt.Errorf("go test: %w: %s", err, lastLines(string(text), 5))
	}
	seen := map[string]bool{} // go test can print a line again with its metrics
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		name, ok := strings.CutPrefix(line, "BenchmarkQuantile10M/")
		if !ok || len(f) < 4 || f[3] != "ns/op" {
			continue
		}
		ns, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			return t, fmt.Errorf("go test said %q", line)
		}
		if seen[f[0]] {
			continue
		}
		seen[f[0]] = true
		what := fmt.Sprintf("p99 over %d events, %s", events, strings.SplitN(strings.Fields(name)[0], "-", 2)[0])
		target, met := "about a second (≤ 1.5 s)", metIf(ns <= 1.5e9)
		if e.quick {
			target, met = "", none
		}
		t.add(what, fmt.Sprintf("%.2f s", ns/1e9), target, met, rounds)
	}
	if len(t.figures) == 0 {
		return t, fmt.Errorf("go test printed no figure: %s", lastLines(string(text), 5))
	}
	return t, nil
}
