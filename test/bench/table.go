package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

// table is the result of one bench.
type table struct {
	figures []figure
	notes   []string
}

// figure is one row: a measured value and its target.
type figure struct {
	what, value, target string
	met                 verdict
	n                   int
}

type verdict string

const (
	yes  verdict = "yes"
	no   verdict = "**no**"
	none verdict = "" // without a target
)

// add adds a figure with a target.
func (t *table) add(n int, what, value, target string, met bool) {
	v := no
	if met {
		v = yes
	}
	t.figures = append(t.figures, figure{what, value, target, v, n})
}

// info adds a figure without a target.
func (t *table) info(n int, what, format string, args ...any) {
	t.figures = append(t.figures, figure{what, fmt.Sprintf(format, args...), "", none, n})
}

// ratio adds b/a over pairs: the Hodges-Lehmann estimate with its 90 % interval, which is to lie within [least, most];
// 0: no bound. Fewer than five pairs are an error.
func (t *table) ratio(what string, a, b []float64, least, most float64) error {
	r, ok := rank.PairedRatio(a, b, 0.90)
	if !ok || !r.Bounded() {
		return fmt.Errorf("%s: %d and %d values: an interval needs 5 pairs of positive values", what, len(a), len(b))
	}
	value := fmt.Sprintf("× %.3f [%.3f, %.3f]", r.Value, r.Low, r.High)
	if least == 0 && most == 0 {
		t.info(len(a), what, "%s", value)
		return nil
	}
	target := fmt.Sprintf("interval within × %.2f to × %.2f", least, most)
	if least == 0 {
		target = fmt.Sprintf("interval ≤ × %.2f", most)
	} else if most == 0 {
		target = fmt.Sprintf("interval ≥ × %.2f", least)
	}
	t.add(len(a), what, value, target, r.Low >= least && (most == 0 || r.High <= most))
	return nil
}

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *table) missed() bool {
	return slices.ContainsFunc(t.figures, func(f figure) bool { return f.met == no })
}

func (t *table) write(w io.Writer, b bench, took time.Duration) {
	fmt.Fprintf(w, "\n### %s\n\n%s. Took %.0f s.\n\n", b.name, b.what, took.Seconds())
	if len(t.figures) > 0 {
		fmt.Fprintf(w, "| figure | measured | target | met | n |\n|---|---|---|---|---|\n")
	}
	for _, f := range t.figures {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %d |\n", f.what, f.value, f.target, f.met, f.n)
	}
	if len(t.notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range t.notes {
		fmt.Fprintf(w, "- %s\n", n)
	}
}

// ms formats nanoseconds as milliseconds.
func ms[T ~int64 | ~float64](ns T) string { return fmt.Sprintf("%.3f ms", float64(ns)/1e6) }

// mb formats bytes as megabytes.
func mb[T ~int64 | ~float64](bytes T) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

// percent formats a ratio as its distance from 1.
func percent(ratio float64) string { return fmt.Sprintf("%+.2f %%", 100*(ratio-1)) }

// spread formats the median of the runs with their minimum and maximum.
func spread(format string, values []float64) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+")", stats.Median(values), slices.Min(values), slices.Max(values))
}

// quantile returns the value of rank ⌈q·n⌉, as bundles define it.
func quantile[T cmp.Ordered](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[hist.Rank(q, int64(len(sorted)))-1]
}

// most returns the largest of what of returns for each element; there must be one.
func most[T any, V cmp.Ordered](list []T, of func(T) V) V { return slices.Max(each(list, of)) }

func each[T, V any](list []T, of func(T) V) []V {
	out := make([]V, len(list))
	for i, x := range list {
		out[i] = of(x)
	}
	return out
}
