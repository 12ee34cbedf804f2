package analysistest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// Stopped writes the bundle of what fio wrote while it was stopped by SIGSTOP, as an op hang of an instance of fio:
// name is stopped (200 reads and 100 writes per second, for 4 s) or stopped-busy (for 2 s). The op lasts as long.
func Stopped(t testing.TB, name string, slos string) (b *bundle.Bundle, stopped, resumed op.Time) {
	t.Helper()
	dir := filepath.Join(root(t), "internal", "workload", "parser", "testdata", "fio", name)
	text, err := os.ReadFile(filepath.Join(dir, "truth"))
	if err != nil {
		t.Fatal(err)
	}
	var from, to int64
	if _, err := fmt.Sscan(string(text), &from, &to); err != nil {
		t.Fatal(err)
	}
	const at = 10 * Second
	start := from - int64(at)
	r, err := parser.Fio(parser.Input{Files: os.DirFS(dir), Instance: "fio-0", Started: Barrier,
		AtWall: func(unix int64) op.Time { return op.Time(unix - start) }})
	if err != nil {
		t.Fatal(err)
	}
	w := create(t, `{"actions":[{"name":"fio","createObjSpec":{"workload":"fio"}},
		{"name":"hang","startAfter":"8s","killSpec":{"actionName":"fio","signal":"SIGSTOP"}}],"slos":[`+slos+`]}`)
	stopped, resumed = at, op.Time(to-start)
	w.Started(op.InstanceStart{Instance: "fio-0", Container: "fio", Intended: Barrier, At: Barrier})
	w.Op(op.Op{ID: 1, Episode: 1, Action: "fio", Kind: op.Create, Target: "fio-0", Intended: 0, Started: 0, Ended: Second,
		Outcome: op.OK})
	w.Op(op.Op{ID: 2, Episode: 2, Action: "hang", Kind: op.Kill, Target: "fio-0", Intended: stopped, Started: stopped,
		Ended: resumed, Outcome: op.OK})
	of, end := labels("fio-0", "fio"), op.Time(0)
	for _, h := range r.Totals {
		w.Histogram(bundle.HistogramSlice{Labels: of, Histogram: h, Total: true})
		end = max(end, h.To)
	}
	for _, h := range r.Slices {
		w.Histogram(bundle.HistogramSlice{Labels: of, Histogram: h})
	}
	for _, s := range r.Series {
		w.Series(bundle.Series{Labels: of, Series: s})
	}
	for _, s := range r.Scalars {
		w.Scalar(bundle.Scalar{Labels: of, Scalar: s})
	}
	w.Ended(op.InstanceEnd{Instance: "fio-0", At: end, OK: true})
	return finish(t, w, func(r *bundle.Run) { r.EndedAt = end + Second }), stopped, resumed
}

// root is the directory of the module.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err = os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		err = nil
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}
