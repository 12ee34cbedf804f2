package opfile

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// memory keeps files.
type memory struct{ files []*file }

type file struct {
	bytes.Buffer
	name   string
	closed bool
}

func (f *file) Close() error { f.closed = true; return nil }

func (m *memory) create(name string) (io.WriteCloser, error) {
	m.files = append(m.files, &file{name: name})
	return m.files[len(m.files)-1], nil
}

var work = &model.Work{Name: "main", Ops: []model.Op{{Name: "read"}, {Name: "write"}}}

// TestWriter: each operation is a row, with all that is known of it, and the file says when its clock began.
func TestWriter(t *testing.T) {
	clock, m := op.NewClock(), &memory{}
	w := New(clock, m.create)
	list := w.Add("main", work, nil)
	const n = 5000
	for i := range n {
		list = append(list, loadgen.Operation{Op: i % 2, Worker: i % 7, Due: op.Time(i), Started: op.Time(i + 1),
			First: op.Time(i + 2), Ended: op.Time(i + 3), Connect: 4, Drain: 5, Bytes: 6, Keys: 7, Attempts: 8,
			Endpoint: "a:1", Outcome: "200", OK: true, Ramp: i < 3})
		if len(list) == cap(list) {
			list = w.Add("main", work, list)
		}
	}
	list = append(list, loadgen.Operation{Due: 9, Started: op.Never, First: op.Never, Ended: op.Never,
		Outcome: loadgen.Dropped})
	w.Add("main", work, list)
	if dropped, err := w.Close(); dropped != 0 || err != nil {
		t.Fatal(dropped, err)
	}
	if len(m.files) != 1 || m.files[0].name != "operations-0001.parquet" || !m.files[0].closed {
		t.Fatalf("%+v", m.files)
	}
	data := m.files[0].Bytes()
	rows, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
	if err != nil || len(rows) != n+1 {
		t.Fatal(len(rows), err)
	}
	want := row{Stage: "main", Work: "main", Operation: "write", Endpoint: "a:1", Worker: 1, Due: 1, Started: 2,
		FirstByte: 3, Ended: 4, Connect: 4, Drain: 5, Bytes: 6, Keys: 7, Attempts: 8, Outcome: "200", OK: true, Ramp: true}
	if diff := cmp.Diff(want, rows[1]); diff != "" {
		t.Error(diff)
	}
	for i := range n {
		if rows[i].Due != int64(i) {
			t.Fatalf("row %d is that of %d", i, rows[i].Due)
		}
	}
	want = row{Stage: "main", Work: "main", Operation: "read", Due: 9, Started: -1, FirstByte: -1, Ended: -1,
		Outcome: loadgen.Dropped}
	if diff := cmp.Diff(want, rows[n]); diff != "" {
		t.Error(diff)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := f.Lookup(ClockKey); !ok || v != strconv.FormatInt(clock.Start().UnixNano(), 10) {
		t.Errorf("clock: %q", v)
	}
	column, _ := f.Schema().Lookup("due")
	index, err := f.RowGroups()[0].ColumnChunks()[column.ColumnIndex].ColumnIndex()
	if err != nil || index.NumPages() != 1 || index.MinValue(0).Int64() != 0 || index.MaxValue(0).Int64() != n-1 {
		t.Errorf("index of the instants: %v %v", index, err)
	}
}

// TestWriterNewFile: a file ends after rowsPerFile rows, so that a kill loses only those of the last one.
func TestWriterNewFile(t *testing.T) {
	m := &memory{}
	w := New(op.NewClock(), m.create)
	// The goroutine is not waited for: write as it does.
	b := batch{"main", work, make([]loadgen.Operation, batchSize)}
	direct := &Writer{create: m.create, rows: 0}
	if dropped, err := w.Close(); dropped != 0 || err != nil || len(m.files) != 0 {
		t.Fatal("files without operations:", dropped, err, len(m.files))
	}
	for range rowsPerFile/batchSize + 1 {
		if err := direct.write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := direct.end(); err != nil || len(m.files) != 2 {
		t.Fatal(err, len(m.files))
	}
	for i, want := range []int64{rowsPerFile, batchSize} {
		data := m.files[i].Bytes()
		f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil || f.NumRows() != want {
			t.Errorf("file %d: %v", i, err)
		}
	}
}

// stuck blocks its writer until it is released.
type stuck struct {
	file
	release chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) { <-s.release; return s.file.Write(p) }

// TestWriterBehind: if the file cannot be written, workers do not wait, and what is missing is counted.
func TestWriterBehind(t *testing.T) {
	s := &stuck{release: make(chan struct{})}
	w := New(op.NewClock(), func(string) (io.WriteCloser, error) { return s, nil })
	added := 0
	for range 2000 { // a row group of 256 batches fills the file's buffer, then the channel
		list := w.Add("main", work, nil)
		added += cap(list)
		w.Add("main", work, list[:cap(list)])
	}
	close(s.release)
	dropped, err := w.Close()
	if err != nil || dropped == 0 {
		t.Fatal(dropped, err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(s.Bytes()), int64(s.Len()))
	if err != nil || f.NumRows()+dropped != int64(added) {
		t.Errorf("%d of %d rows, %d dropped, %v", f.NumRows(), added, dropped, err)
	}
}

// TestWriterFails: after a failure all operations count as dropped, and Close returns the failure.
func TestWriterFails(t *testing.T) {
	full := errors.New("no space left")
	w := New(op.NewClock(), func(string) (io.WriteCloser, error) { return nil, full })
	for range 3 {
		list := w.Add("main", work, nil)
		w.Add("main", work, list[:10])
	}
	if dropped, err := w.Close(); dropped != 30 || !errors.Is(err, full) {
		t.Error(dropped, err)
	}
	w.Add("main", work, make([]loadgen.Operation, 5))
	if w.dropped != 35 {
		t.Error("added after Close:", w.dropped)
	}
}

// BenchmarkWriter is what a row costs the goroutine that encodes.
func BenchmarkWriter(b *testing.B) {
	list := make([]loadgen.Operation, batchSize)
	w := &Writer{create: func(string) (io.WriteCloser, error) { return discard{}, nil }}
	at := op.Time(0)
	for b.Loop() {
		for i := range list {
			at += 30_000 + op.Time(i*7919%1000)
			list[i] = loadgen.Operation{Op: i % 2, Worker: i % 64, Due: at, Started: at, First: at + 150_000,
				Ended: at + 200_000 + op.Time(i%1000), Drain: 50_000, Bytes: 4096, Attempts: 1, Outcome: "200", OK: true}
		}
		if err := w.write(batch{"main", work, list}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batchSize), "ns/row")
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
