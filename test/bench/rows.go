package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// compareRows imports a CSV file with as many rows as import takes, in four levels and five occasions, and compares it:
// the time and the greatest resident memory of the two processes.
func compareRows(ctx context.Context, e *env) (table, error) {
	var t table
	rows := pick(e, 10_000_000, 1_000_000)
	file, dir := filepath.Join(e.tmp, "rows.csv"), filepath.Join(e.tmp, "rows")
	if err := writeRows(file, rows, e.seed); err != nil {
		return t, err
	}
	for _, step := range []struct {
		name string
		args []string
	}{
		{"import csv", []string{"import", "csv", file, "--out", dir, "--factor", "provider", "--occasion", "day", "--value",
			"v"}},
		{"compare", []string{"compare", dir}},
	} {
		c := exec.CommandContext(ctx, e.cnsbench(), step.args...)
		if text, err := c.CombinedOutput(); err != nil {
			return t, fmt.Errorf("%s: %w: %s", step.name, err, lastLines(string(text), 5))
		}
		used := c.ProcessState
		peak := float64(used.SysUsage().(*syscall.Rusage).Maxrss) * 1024 // Linux counts KiB
		t.info(1, fmt.Sprintf("%s of %d rows", step.name, rows), "%.1f s of CPU time, at most %.0f MB, %.0f B per row",
			(used.UserTime() + used.SystemTime()).Seconds(), peak/1e6, peak/float64(rows))
	}
	return t, nil
}

// writeRows writes values of four providers on five days, equally many of each.
func writeRows(file string, rows int, seed uint64) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w, random := bufio.NewWriterSize(f, 1<<20), rand.New(rand.NewPCG(seed, 0))
	fmt.Fprintln(w, "provider,day,v")
	for i := range rows {
		provider, day := i%4, i/4%5
		fmt.Fprintf(w, "p%d,%d,%.3f\n", provider, day, 100+float64(provider)+10*random.Float64())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
