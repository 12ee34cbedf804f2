package volume

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/integrity"
)

func newWriter(t *testing.T) *Writer {
	t.Helper()
	return &Writer{Path: t.TempDir(), Out: t.TempDir(), Direct: true, Duration: 50 * time.Millisecond,
		Stream: integrity.Stream{ID: 1, Seed: 2, Blocks: 300, BlockSize: 4096, SyncEvery: 10}}
}

func read(t *testing.T, w *Writer, name string) (r integrity.Report) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.Out, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWriter fills a directory, writes, and continues twice; each start and end is as the last end.
func TestWriter(t *testing.T) {
	w := newWriter(t)
	must(t, w.Fill(t.Context()))
	newest := w.Stream.Blocks
	for range 3 {
		must(t, w.Run(t.Context()))
		start, end := read(t, w, StartFile), read(t, w, EndFile)
		if start.Newest != newest || start.Checked != w.Stream.Blocks || start.Violations() != 0 {
			t.Fatalf("start %+v, want newest %d", start, newest)
		}
		if newest = end.Newest; newest <= start.Newest || end.Violations() != 0 || end.Synced != newest {
			t.Fatalf("end %+v after %d", end, start.Newest)
		}
		must(t, w.Fill(t.Context())) // changes nothing
	}
	text, err := os.Open(filepath.Join(w.Out, AcksFile))
	must(t, err)
	defer text.Close()
	r, err := Check(t.Context(), w.Path)
	if err != nil || r.Newest != newest || r.Stream != w.Stream {
		t.Fatalf("%+v, %v", r, err)
	}
}

// TestDamage changes bytes of the file below the writer.
func TestDamage(t *testing.T) {
	w := newWriter(t)
	must(t, w.Fill(t.Context()))
	path := filepath.Join(w.Path, Name)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("damage"), 5*4096+2000)
	must(t, err)
	must(t, f.Truncate(299*4096-100))
	r, err := Check(t.Context(), w.Path)
	must(t, err)
	if r.Counts[integrity.KindTorn] != 2 || r.First.Offset != 5*4096 || r.Newest != 298 {
		t.Errorf("%+v", r)
	}
	must(t, os.Remove(path))
	if r, err = Check(t.Context(), w.Path); err != nil || r.Checked != 0 {
		t.Errorf("no file: %+v, %v", r, err)
	}
}

// TestStart finds what the image has lost at a start, and continues.
func TestStart(t *testing.T) {
	w := newWriter(t)
	must(t, w.Fill(t.Context()))
	must(t, w.Run(t.Context()))
	end := read(t, w, EndFile)
	g := w.Stream.Floor(end.Newest) // synced
	b := make([]byte, 4096)
	w.Stream.Encode(b, w.Stream.Last(w.Stream.At(g), g-1))
	f, err := os.OpenFile(filepath.Join(w.Path, Name), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt(b, w.Stream.At(g)*4096)
	must(t, err)
	must(t, w.Run(t.Context()))
	if r := read(t, w, StartFile); r.Counts[integrity.KindStale] != 1 || r.First.Want != g {
		t.Errorf("%+v %v", r, r.First)
	}
}

// TestSyncFails: writes whose sync failed are not acknowledged.
func TestSyncFails(t *testing.T) {
	w := newWriter(t)
	must(t, w.Fill(t.Context()))
	f, err := open(w.Path, os.O_RDWR, false)
	must(t, err)
	must(t, f.Close()) // so that a sync fails
	acks, err := w.openAcks()
	must(t, err)
	if _, err := w.write(t.Context(), f, acks, w.Stream.Blocks+1); err == nil {
		t.Error("no error of the sync")
	}
	must(t, acks.Close())
	text, err := os.ReadFile(filepath.Join(w.Out, AcksFile))
	must(t, err)
	if head := integrity.AcksHead(w.Stream); string(text) != head {
		t.Errorf("acknowledged after a failed sync: %q", text)
	}
}

// TestReportIsWhole: a report that cannot be written does not take the place of one.
func TestReportIsWhole(t *testing.T) {
	w := newWriter(t)
	must(t, os.Mkdir(filepath.Join(w.Out, EndFile+".part"), 0o755)) // so that the write fails
	if err := w.report(EndFile, &integrity.Report{}); err == nil {
		t.Error("no error of the write")
	}
	if _, err := os.Stat(filepath.Join(w.Out, EndFile)); err == nil {
		t.Error("the report is there")
	}
}
