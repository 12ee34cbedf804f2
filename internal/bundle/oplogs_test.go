package bundle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/oplog"
)

// TestOpLogs checks that what is recorded is read again, and that the bundle verifies.
func TestOpLogs(t *testing.T) {
	w := newWriter(t)
	about := oplog.About{Failed: 7, FailedKept: 1, Notes: []string{"a note"}}
	record := oplog.Record{ID: 3, Why: oplog.Failed, From: -5, To: 10, Lines: []oplog.Line{{At: 1, Source: "s",
		Line: "\x1b\x00é", Named: true}}, Omitted: []oplog.Omission{{Source: "s", Lines: 2, Bytes: 9}}}
	w.OpLogs(about, []oplog.Record{record})
	must(t, w.Close(nil))
	b, err := Open(w.Dir())
	must(t, err)
	got, err := b.OpLogs()
	must(t, err)
	want := OpLogs{About: about, Ops: []oplog.Record{record}, Collected: true}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(oplog.Record{})); diff != "" {
		t.Error(diff)
	}
	if _, ok := got.Of(3); !ok {
		t.Error("op 3 has no lines")
	}
	if _, ok := got.Of(4); ok {
		t.Error("op 4 has lines")
	}
	must(t, b.Verify())
}

// TestOpLogsNone checks that a bundle of an earlier version says that it has none.
func TestOpLogsNone(t *testing.T) {
	w := newWriter(t)
	must(t, w.Close(nil))
	b, err := Open(w.Dir())
	must(t, err)
	if got, err := b.OpLogs(); err != nil || got.Collected || len(got.Ops) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestOpLogsTorn checks that a killed writer's last line is dropped.
func TestOpLogsTorn(t *testing.T) {
	w := newWriter(t)
	w.OpLogs(oplog.About{}, []oplog.Record{{ID: 1}, {ID: 2}})
	must(t, w.Flush())
	dir := filepath.Join(t.TempDir(), "killed")
	must(t, os.CopyFS(dir, os.DirFS(w.Dir())))
	path := filepath.Join(dir, "logs", "ops.jsonl")
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, text[:len(text)-4], 0o644))
	b, err := Open(dir)
	must(t, err)
	if got, err := b.OpLogs(); err != nil || len(got.Ops) != 1 || len(b.Warnings) < 2 {
		t.Errorf("got %+v, %v, %q", got, err, b.Warnings)
	}
}

// TestReadWhileWriting checks that an open bundle's ops and log lines are read, all that were recorded before.
func TestReadWhileWriting(t *testing.T) {
	w := newWriter(t)
	if ops := collect(t, w.EndedOps()); len(ops) > 0 {
		t.Errorf("%d ops before the first", len(ops))
	}
	if lines := collect(t, w.Logged()); len(lines) > 0 {
		t.Errorf("%d lines before the first", len(lines))
	}
	for i := range int64(1000) {
		w.Op(op.Op{ID: i, Action: "a", Intended: op.Time(i), Started: op.Time(i), Ended: op.Time(i)})
		w.Log(op.Time(i), "s", "line")
	}
	ops, lines := collect(t, w.EndedOps()), collect(t, w.Logged())
	if len(ops) != 1000 || ops[999].ID != 999 || len(lines) != 1000 || lines[999].At != 999 {
		t.Errorf("%d ops, %d lines", len(ops), len(lines))
	}
	w.Op(op.Op{ID: 1000})
	if ops := collect(t, w.EndedOps()); len(ops) != 1001 {
		t.Errorf("%d ops after one more", len(ops))
	}
}
