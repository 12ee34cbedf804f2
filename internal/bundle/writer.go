package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Writer writes the bundle of one run. Methods that record return at once, never wait for the disk, and are
// safe for concurrent use; records reach the file within 100 ms and are synced once a second. After a disk
// failure Err delivers it, later records are counted and refused, and written data stays readable.
type Writer struct {
	dir    string
	queue  *queue
	files  *files
	ledger *Ledger
	lock   *os.File

	stop    chan struct{} // closed by Close: write the rest and end
	flushes chan chan error
	ended   sync.WaitGroup
	failure failure
	text    *hiding
	broken  atomic.Bool // a write failed: write nothing more

	runMu  sync.Mutex
	run    Run
	closed bool
}

// failure keeps the first error and delivers it once.
type failure struct {
	mu  sync.Mutex
	err error
	ch  chan error
}

func (f *failure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.ch <- err
	}
}

func (f *failure) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

var errClosed = errors.New("bundle: the bundle is closed")

// Create creates the bundle's directory, which must be missing or empty, and writes run.json. It sets Format
// and State of r.
func Create(dir string, r Run) (*Writer, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	if err := prepareDir(dir); err != nil {
		return nil, err
	}
	lock, free, err := lockDir(dir, unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	if !free {
		return nil, fmt.Errorf("bundle: another run is writing to %s: choose another directory", dir)
	}
	r.Format, r.State = Version, Running
	w := &Writer{
		dir: dir, queue: newQueue(), files: newFiles(bounded.Dir(dir)), lock: lock, run: r,
		stop: make(chan struct{}), flushes: make(chan chan error),
		failure: failure{ch: make(chan error, 1)}, text: newHiding(),
	}
	if err := w.createFiles(); err != nil {
		return nil, errors.Join(fmt.Errorf("bundle: cannot write to %s: %w", dir, err), removeContents(dir),
			unlock(lock))
	}
	return w, nil
}

// Announce creates the directory of a bundle that is copied from elsewhere, as Create does, and writes
// run.json, by which a clean-up finds the run's objects however early the copy ended.
func Announce(dir string, r Run) error {
	if err := prepareDir(dir); err != nil {
		return err
	}
	r.Format, r.State = Version, Running
	if err := writeJSON(bounded.Dir(dir), runFile, r); err != nil {
		return fmt.Errorf("bundle: cannot write to %s: %w", dir, err)
	}
	return nil
}

// Announced reports whether a directory holds only what Announce has written.
func Announced(dir string) bool {
	entries, err := bounded.Dir(dir).ReadDir(".")
	return err == nil && len(entries) == 1 && entries[0].Name() == runFile
}

// Withdraw undoes Announce if nothing else was written.
func Withdraw(dir string) error {
	if !Announced(dir) {
		return nil
	}
	return errors.Join(os.Remove(filepath.Join(dir, runFile)), os.Remove(dir))
}

// removeContents removes what createFiles created in an empty directory, so that it can be reused.
func removeContents(dir string) error {
	entries, err := bounded.Dir(dir).ReadDir(".")
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// prepareDir creates dir if it does not exist and fails if it is not empty.
func prepareDir(dir string) error {
	entries, err := bounded.Dir(dir).ReadDir(".")
	if errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("bundle: cannot use %s for the bundle: %w", dir, err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("bundle: %s is not empty (it contains %s): choose another directory or remove it", dir,
			entries[0].Name())
	}
	return nil
}

// createFiles creates the first files and starts the goroutines.
func (w *Writer) createFiles() error {
	for _, d := range []string{eventsDir, "series", "histograms", "canary", rawDir} {
		if err := bounded.Dir(w.dir).MkdirAll(d); err != nil {
			return err
		}
	}
	// The reserve is freed when the disk is full, so that run.json can
	// still record why the run ended.
	if err := bounded.Dir(w.dir).WriteFile(reserveFile, make([]byte, 256<<10)); err != nil {
		return err
	}
	if w.run.OnCluster() {
		var err error
		if w.ledger, err = OpenLedgerIn(bounded.Dir(w.dir)); err != nil {
			return err
		}
	}
	if err := writeJSON(bounded.Dir(w.dir), runFile, w.run); err != nil {
		return errors.Join(err, w.closeLedger())
	}
	w.ended.Add(2)
	go w.writeLoop()
	go w.syncLoop()
	return nil
}

// Dir returns the bundle's absolute directory.
func (w *Writer) Dir() string { return w.dir }

// Ledger returns the ledger of a run on a cluster; nil: the registry of the run's machine has it. Close closes it.
func (w *Writer) Ledger() *Ledger { return w.ledger }

func (w *Writer) closeLedger() error {
	if w.ledger == nil {
		return nil
	}
	return w.ledger.Close()
}

// Err delivers the first disk failure, once; the run must end then.
func (w *Writer) Err() <-chan error { return w.failure.ch }

// Redacted returns an op as Op records it: its message is without secrets.
func (w *Writer) Redacted(o op.Op) op.Op {
	o.Message = w.text.clean(o.Message)
	return o
}

// Op records one op that has ended, timed out, failed, or was dropped or censored. Each op is recorded once. Its
// message is without secrets.
func (w *Writer) Op(o op.Op) {
	o = w.Redacted(o)
	b := opBuffers.Get().(*[]byte)
	*b = appendOp((*b)[:0], &o)
	w.enqueue(eventsDir, true, *b, "\n") // copies
	opBuffers.Put(b)
}

// opBuffers are buffers for encoding ops.
var opBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Sample records a counter reading.
func (w *Writer) Sample(s op.Sample) { w.line(samplesFile, &s) }

// Machine records a reading of a machine.
func (w *Writer) Machine(m op.Machine) { w.line(machinesFile, &m) }

// Query records the answer to a query. Its message is without secrets.
func (w *Writer) Query(r op.QueryReading) {
	r.Message = w.text.clean(r.Message)
	w.line(queriesFile, &r)
}

// Canary records canary I/Os of one volume; it does not keep ios.
func (w *Writer) Canary(instance, volume string, ios []op.CanaryIO) {
	w.enqueue(canaryFile, true, appendCanary(nil, instance, volume, ios), "")
}

// instanceLine is one line of instances.jsonl.
type instanceLine struct {
	Start *op.InstanceStart `json:"start,omitempty"`
	End   *op.InstanceEnd   `json:"end,omitempty"`
}

// Started records that a container began its work.
func (w *Writer) Started(s op.InstanceStart) { w.line(instancesFile, instanceLine{Start: &s}) }

// Ended records how an instance ended. Messages are without secrets.
func (w *Writer) Ended(e op.InstanceEnd) {
	e.Containers = slices.Clone(e.Containers)
	for i := range e.Containers {
		e.Containers[i].Message = w.text.clean(e.Containers[i].Message)
	}
	w.line(instancesFile, instanceLine{End: &e})
}

// Log records a line for people, without secrets.
func (w *Writer) Log(at op.Time, source, line string) {
	w.line(logFile, LogLine{At: at, Source: source, Line: w.text.line(source, line)})
}

// Series records points; non-finite ones, which JSON cannot represent, are dropped.
func (w *Writer) Series(s Series) {
	s.Points = slices.DeleteFunc(slices.Clone(s.Points), func(p metric.Point) bool { return !finite(p.Value) })
	w.line(seriesFile, s)
}

// Scalar records one figure; a non-finite one is dropped.
func (w *Writer) Scalar(s Scalar) {
	if finite(s.Value) {
		w.line(scalarsFile, s)
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Histogram records one distribution; it does not keep s.Hist.
func (w *Writer) Histogram(s HistogramSlice) { w.line(histogramsFile, s) }

// Raw appends to a file that a tool writes inside a container; it does not keep data. A name outside
// raw/<instance>/<container> is an error.
func (w *Writer) Raw(instance, container, file string, data []byte) error {
	path, err := rawPath(instance, container, file)
	if err != nil {
		return err
	}
	w.enqueue(path, false, data, "")
	return nil
}

// line records one JSON line.
func (w *Writer) line(file string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		w.failure.set(fmt.Errorf("bundle: %s: %w", file, err))
		return
	}
	w.enqueue(file, false, b, "\n")
}

func (w *Writer) enqueue(file string, framed bool, b []byte, end string) {
	if err := w.queue.add(file, framed, b, end); err != nil && !errors.Is(err, errClosed) {
		w.failure.set(fmt.Errorf("bundle: %w", err))
	}
}

// Environment writes environment.json.
func (w *Writer) Environment(e Environment) error {
	if err := writeJSON(bounded.Dir(w.dir), environmentFile, e); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// Plan writes plan.json: the resolved plan, which must be without secrets.
func (w *Writer) Plan(plan any) error {
	if err := writeJSON(bounded.Dir(w.dir), planFile, plan); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// Update changes run.json: f is applied to a copy and the file replaced, so that a reader finds the old or
// the new text. f must not set Format.
func (w *Writer) Update(f func(*Run)) error {
	w.runMu.Lock()
	defer w.runMu.Unlock()
	if w.closed {
		return errClosed
	}
	return w.update(f)
}

func (w *Writer) update(f func(*Run)) error {
	r := w.run
	f(&r)
	r.Format = Version
	if err := writeJSON(bounded.Dir(w.dir), runFile, r); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	w.run = r
	return nil
}
