package main

import (
	"fmt"
	"io"
	"math"
	"time"
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

func metIf(ok bool) verdict {
	if ok {
		return yes
	}
	return no
}

func (t *table) add(what, value, target string, met verdict, n int) {
	t.figures = append(t.figures, figure{what, value, target, met, n})
}

// info adds a figure without a target.
func (t *table) info(n int, what, format string, args ...any) {
	t.add(what, fmt.Sprintf(format, args...), "", none, n)
}

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *table) missed() bool {
	for _, f := range t.figures {
		if f.met == no {
			return true
		}
	}
	return false
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

// percent formats a ratio as its distance from 1.
func percent(ratio float64) string { return fmt.Sprintf("%+.2f %%", 100*(ratio-1)) }

// String formats the estimate with its interval as distances from 1.
func (i interval) String() string {
	return fmt.Sprintf("%s [%s, %s]", percent(i.estimate), percent(i.low), percent(i.high))
}

// within reports whether the whole interval is inside 1 ± margin.
func (i interval) within(margin float64) bool {
	return math.Abs(i.low-1) <= margin && math.Abs(i.high-1) <= margin
}
