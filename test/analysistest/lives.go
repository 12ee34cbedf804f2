package analysistest

import (
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// Life is one life of the only instance of a workload: what a real tool wrote in it, and when it began.
type Life struct {
	Dir   string // its files
	Begin op.Time
}

// Lives writes the bundle of a workload tool-0 whose tool was started anew in each life, as collected by a run.
func Lives(t testing.TB, parserName, spec string, lives ...Life) *bundle.Bundle {
	t.Helper()
	w := create(t, spec)
	at := labels("tool-0", "tool")
	for i, l := range lives {
		w.Started(op.InstanceStart{Instance: at.Instance, Container: fmt.Sprintf("tool~%d", i), Intended: op.Never,
			At: l.Begin})
		r := l.read(t, parserName)
		r.Place()
		for _, h := range r.Totals {
			w.Histogram(bundle.HistogramSlice{Labels: at, Histogram: h, Total: true})
		}
		for _, h := range r.Slices {
			w.Histogram(bundle.HistogramSlice{Labels: at, Histogram: h})
		}
		for _, s := range r.Series {
			w.Series(bundle.Series{Labels: at, Series: s})
		}
		for _, s := range r.Scalars {
			w.Scalar(bundle.Scalar{Labels: at, Scalar: s})
		}
	}
	w.Ended(op.InstanceEnd{Instance: at.Instance, At: End, OK: true})
	return finish(t, w)
}

// read parses the files as if the tool had begun at Begin.
func (l *Life) read(t testing.TB, name string) parser.Result {
	t.Helper()
	in := parser.Input{Files: os.DirFS(l.Dir), Instance: "tool-0", AtWall: func(unix int64) op.Time { return op.Time(unix) }}
	parse := func() parser.Result {
		r, err := parser.Parsers(nil)[name](in)
		if err != nil {
			t.Fatalf("%s: %v", l.Dir, err)
		}
		return r
	}
	r, began := parse(), op.Time(math.MaxInt64)
	for _, h := range r.Totals {
		began = min(began, h.From)
	}
	for _, s := range r.Series {
		for _, p := range s.Points {
			began = min(began, p.At)
		}
	}
	in.Started = l.Begin
	in.AtWall = func(unix int64) op.Time { return op.Time(unix) - began + l.Begin }
	if began < 1e18 || began == math.MaxInt64 { // it has no wall clock
		in.AtWall = nil
	}
	return parse()
}
