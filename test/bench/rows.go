package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// compareRows imports a CSV file with as many rows as import takes, in four levels and five occasions, and compares it:
// the CPU time and the greatest resident memory of the two processes.
func compareRows(ctx context.Context, e *env, t *table) error {
	rows := pick(e, 10_000_000, 1_000_000)
	file, dir := filepath.Join(e.tmp, "rows.csv"), filepath.Join(e.tmp, "rows")
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w, random := bufio.NewWriterSize(f, 1<<20), rand.New(rand.NewPCG(e.seed, 0))
	fmt.Fprintln(w, "provider,day,v")
	for i := range rows {
		fmt.Fprintf(w, "p%d,%d,%.3f\n", i%4, i/4%5, 100+float64(i%4)+10*random.Float64())
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"import", "csv", file, "--out", dir, "--factor", "provider", "--occasion", "day", "--value", "v"}, {"compare", dir},
	} {
		p, err := execute(interruptible(ctx, e.cnsbench(), args...), nil)
		if err != nil {
			return err
		}
		t.info(1, fmt.Sprintf("%s of %d rows", args[0], rows), "%.1f s of CPU time, at most %s, %.0f B per row",
			p.cpu.Seconds(), mb(p.peak()), p.peak()/float64(rows))
	}
	return nil
}
