// Package opfile writes each operation of an object workload to Parquet files, one row an operation.
package opfile

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/parquet-go/parquet-go"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	batchSize = 256 // small, to stay in the caches of the CPUs
	// batches bounds what waits to be written: a second of 128 000 operations.
	batches = 512
	// rowsPerFile bounds what a killed run loses: a file without its end is not readable.
	rowsPerFile  = 1 << 20
	rowsPerGroup = 64 << 10
)

// row is an operation. Instants are nanoseconds since the time in the file's metadata ClockKey, durations nanoseconds.
type row struct {
	Stage     string `parquet:"stage,dict"`
	Work      string `parquet:"work,dict"`
	Operation string `parquet:"operation,dict"`
	Endpoint  string `parquet:"endpoint,dict"` // empty: the store has only one
	Worker    int64  `parquet:"worker"`
	// Due is when the operation was to start; in a closed loop, when it did. Started is -1 if it did not.
	Due       int64 `parquet:"due"`
	Started   int64 `parquet:"started"`
	FirstByte int64 `parquet:"first_byte"` // of the answer; -1 without
	Ended     int64 `parquet:"ended"`      // -1 if it did not start
	Connect   int64 `parquet:"connect"`
	Drain     int64 `parquet:"drain"` // from the first to the last byte of the answer
	Bytes     int64 `parquet:"bytes"`
	Keys      int64 `parquet:"keys"`
	Attempts  int64 `parquet:"attempts"`
	// Outcome is that of the table of outcomes, such as "200", "404 NoSuchKey" or "dropped".
	Outcome string `parquet:"outcome,dict"`
	OK      bool   `parquet:"ok"`
	Ramp    bool   `parquet:"ramp"` // it was due outside the measured window
}

// ClockKey is the key of a file's metadata that has the time of instant 0, in nanoseconds since 1970.
const ClockKey = "cnsbench.clockStart"

// Writer is a loadgen.Log that writes files. A goroutine of its own encodes; workers only hand batches over. If it
// falls behind by more than batches, it drops operations and counts them.
type Writer struct {
	create func(name string) (io.WriteCloser, error)
	start  int64 // wall clock at instant 0

	full  chan batch
	empty chan []loadgen.Operation
	done  chan struct{}

	mu      sync.Mutex
	closed  bool
	dropped int64

	// Of the goroutine.
	err   error
	files int
	rows  int // in the file
	file  io.WriteCloser
	out   *parquet.GenericWriter[row]
	buf   []row
}

// batch has operations of one work.
type batch struct {
	stage string
	work  *model.Work
	list  []loadgen.Operation
}

// New makes a Writer of files that create opens: operations-0001.parquet, and so on.
func New(clock op.Clock, create func(name string) (io.WriteCloser, error)) *Writer {
	w := &Writer{create: create, start: clock.Start().UnixNano(), full: make(chan batch, batches),
		empty: make(chan []loadgen.Operation, batches), done: make(chan struct{}), buf: make([]row, 0, batchSize)}
	go w.run()
	return w
}

// Add implements loadgen.Log. Operations that are added after Close are counted as dropped.
func (w *Writer) Add(stage string, work *model.Work, list []loadgen.Operation) []loadgen.Operation {
	if len(list) > 0 && !w.hand(batch{stage, work, list}) {
		return list[:0]
	}
	select {
	case next := <-w.empty:
		return next
	default:
		return make([]loadgen.Operation, 0, batchSize)
	}
}

// hand reports whether the batch was taken.
func (w *Writer) hand(b batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		select {
		case w.full <- b:
			return true
		default:
		}
	}
	w.dropped += int64(len(b.list))
	return false
}

// Close writes what was added. dropped is the number of operations that are missing.
func (w *Writer) Close() (dropped int64, err error) {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.full)
	}
	w.mu.Unlock()
	<-w.done
	return w.dropped, w.err
}

// run writes until Close. After an error it only counts.
func (w *Writer) run() {
	defer close(w.done)
	for b := range w.full {
		if w.err == nil {
			w.err = w.write(b)
		}
		if w.err != nil {
			w.mu.Lock()
			w.dropped += int64(len(b.list))
			w.mu.Unlock()
		}
		if cap(b.list) == batchSize {
			select {
			case w.empty <- b.list[:0]:
			default:
			}
		}
	}
	if w.file != nil {
		w.err = errors.Join(w.err, w.end())
	}
}

func (w *Writer) write(b batch) error {
	if w.file == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.buf = w.buf[:0]
	for i := range b.list {
		o := &b.list[i]
		w.buf = append(w.buf, row{Stage: b.stage, Work: b.work.Name, Operation: b.work.Ops[o.Op].Name,
			Endpoint: o.Endpoint, Worker: int64(o.Worker), Due: instant(o.Due), Started: instant(o.Started),
			FirstByte: instant(o.First), Ended: instant(o.Ended), Connect: o.Connect, Drain: o.Drain, Bytes: o.Bytes,
			Keys: int64(o.Keys), Attempts: int64(o.Attempts), Outcome: o.Outcome, OK: o.OK, Ramp: o.Ramp})
	}
	if _, err := w.out.Write(w.buf); err != nil {
		return fmt.Errorf("log of operations: %w", err)
	}
	if w.rows += len(w.buf); w.rows >= rowsPerFile {
		return w.end()
	}
	return nil
}

func instant(t op.Time) int64 {
	if !t.Known() {
		return -1
	}
	return int64(t)
}

// begin opens the next file.
func (w *Writer) begin() (err error) {
	w.files++
	if w.file, err = w.create(fmt.Sprintf("operations-%04d.parquet", w.files)); err != nil {
		w.file = nil
		return fmt.Errorf("log of operations: %w", err)
	}
	w.rows = 0
	w.out = parquet.NewGenericWriter[row](w.file, parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.DefaultEncodingFor(parquet.Int64, &parquet.DeltaBinaryPacked), parquet.CreatedBy("cnsbench", "1", ""),
		parquet.DataPageStatistics(false), // the index has the bounds of each page; to find them takes a sixth of the time
		parquet.KeyValueMetadata(ClockKey, strconv.FormatInt(w.start, 10)))
	return nil
}

// end completes the file.
func (w *Writer) end() error {
	err := errors.Join(w.out.Close(), w.file.Close())
	w.file, w.out = nil, nil
	if err != nil {
		return fmt.Errorf("log of operations: %w", err)
	}
	return nil
}
