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

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Writer writes the bundle of one run. Methods that record return at once,
// never wait for the disk, and may be called from any goroutine; what they
// take reaches the file within 100 ms and is synced each second. When the
// disk fails, Err says so, later records are counted and refused, and what
// was written stays readable.
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
	broken  atomic.Bool // the disk refused a write: nothing more goes there

	runMu  sync.Mutex
	run    Run
	closed bool
}

// failure latches the first error and delivers it once.
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

var errClosed = errors.New("record: the bundle is closed")

// Create makes the bundle's directory, which must not exist or be empty, and
// writes run.json into it. Format and State of r are set here.
func Create(dir string, r Run) (*Writer, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := prepare(dir); err != nil {
		return nil, err
	}
	lock, free, err := lockDir(dir, unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if !free {
		return nil, fmt.Errorf("record: another run is writing to %s: choose another directory", dir)
	}
	r.Format, r.State = Version, Running
	w := &Writer{
		dir: dir, queue: newQueue(), files: newFiles(dir), lock: lock, run: r,
		stop: make(chan struct{}), flushes: make(chan chan error),
		failure: failure{ch: make(chan error, 1)},
	}
	if err := w.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("record: cannot write to %s: %w", dir, err), empty(dir), lock.Close())
	}
	return w, nil
}

// Announce makes the bundle's directory, as Create does, of a run whose bundle comes
// from elsewhere, and writes run.json into it: a clean-up finds by it what the run
// has made, however early the copying ended.
func Announce(dir string, r Run) error {
	if err := prepare(dir); err != nil {
		return err
	}
	r.Format, r.State = Version, Running
	if err := writeJSON(filepath.Join(dir, runFile), r); err != nil {
		return fmt.Errorf("record: cannot write to %s: %w", dir, err)
	}
	return nil
}

// Announced says whether a directory holds nothing but what Announce has written.
func Announced(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 1 && entries[0].Name() == runFile
}

// Withdraw undoes Announce, where nothing else has come.
func Withdraw(dir string) error {
	if !Announced(dir) {
		return nil
	}
	return errors.Join(os.Remove(filepath.Join(dir, runFile)), os.Remove(dir))
}

// empty takes away what begin has made in a directory that held nothing, so
// that it can be used again.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// prepare makes dir if it is not there, and refuses one in use.
func prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("record: cannot use %s for the bundle: %w", dir, err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("record: %s is not empty (it holds %s): choose another directory or remove it", dir, entries[0].Name())
	}
	return nil
}

// begin writes the first files and starts the goroutines.
func (w *Writer) begin() error {
	for _, d := range []string{eventsDir, "series", "histograms", "canary", rawDir} {
		if err := os.MkdirAll(filepath.Join(w.dir, d), 0o755); err != nil {
			return err
		}
	}
	// The reserve is given back when the disk is full, so that run.json can
	// still say why the run ended.
	if err := writeSynced(filepath.Join(w.dir, reserveFile), make([]byte, 256<<10)); err != nil {
		return err
	}
	var err error
	if w.ledger, err = openLedgerFile(filepath.Join(w.dir, ledgerFile)); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(w.dir, runFile), w.run); err != nil {
		return errors.Join(err, w.ledger.Close())
	}
	w.ended.Add(2)
	go w.writeLoop()
	go w.syncLoop()
	return nil
}

// Dir is the bundle's directory, absolute.
func (w *Writer) Dir() string { return w.dir }

// Ledger of the run. Close closes it.
func (w *Writer) Ledger() *Ledger { return w.ledger }

// Err delivers the first failure of the disk, once: the run should end.
func (w *Writer) Err() <-chan error { return w.failure.ch }

// Op records one op that has ended, timed out, failed, or was dropped or
// censored. Each op is recorded once.
func (w *Writer) Op(o op.Op) {
	b := opBuffers.Get().(*[]byte)
	*b = appendOp((*b)[:0], &o)
	w.put(eventsDir, true, *b, "\n") // copies
	opBuffers.Put(b)
}

// opBuffers are where ops are encoded.
var opBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Sample records a counter reading.
func (w *Writer) Sample(s op.Sample) { w.line(samplesFile, &s) }

// Machine records a reading of a machine.
func (w *Writer) Machine(m op.Machine) { w.line(machinesFile, &m) }

// Canary records canary I/Os of one volume; ios is not kept.
func (w *Writer) Canary(instance, volume string, ios []op.CanaryIO) {
	w.put(canaryFile, true, appendCanary(nil, instance, volume, ios), "")
}

// instanceLine is one line of instances.jsonl.
type instanceLine struct {
	Start *op.InstanceStart `json:"start,omitempty"`
	End   *op.InstanceEnd   `json:"end,omitempty"`
}

// Started records that a container began its work.
func (w *Writer) Started(s op.InstanceStart) { w.line(instancesFile, instanceLine{Start: &s}) }

// Ended records how an instance ended.
func (w *Writer) Ended(e op.InstanceEnd) { w.line(instancesFile, instanceLine{End: &e}) }

// Log records a line for people.
func (w *Writer) Log(at op.Time, source, line string) {
	w.line(logFile, LogLine{At: at, Source: source, Line: line})
}

// Series records points; non-finite ones are left out, which JSON cannot hold.
func (w *Writer) Series(s Series) {
	s.Points = slices.DeleteFunc(slices.Clone(s.Points), func(p metric.Point) bool { return !finite(p.Value) })
	w.line(seriesFile, s)
}

// Scalar records one figure; a non-finite one is left out.
func (w *Writer) Scalar(s Scalar) {
	if finite(s.Value) {
		w.line(scalarsFile, s)
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Histogram records one distribution; s.Hist is not kept.
func (w *Writer) Histogram(s HistogramSlice) { w.line(histogramsFile, s) }

// Raw appends to a file that a tool writes inside a container; data is not
// kept. A name that leads out of raw/<instance>/<container> is an error.
func (w *Writer) Raw(instance, container, file string, data []byte) error {
	path, err := rawPath(instance, container, file)
	if err != nil {
		return err
	}
	w.put(path, false, data, "")
	return nil
}

// line records one JSON line.
func (w *Writer) line(file string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		w.failure.set(fmt.Errorf("record: %s: %w", file, err))
		return
	}
	w.put(file, false, b, "\n")
}

func (w *Writer) put(file string, framed bool, b []byte, end string) {
	if err := w.queue.add(file, framed, b, end); err != nil && !errors.Is(err, errClosed) {
		w.failure.set(fmt.Errorf("record: %w", err))
	}
}

// Environment writes environment.json.
func (w *Writer) Environment(e Environment) error {
	if err := writeJSON(filepath.Join(w.dir, environmentFile), e); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// Update changes run.json: f is applied to a copy and the file replaced, so
// that a reader meets the old text or the new. Format is not f's to set.
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
	if err := writeJSON(filepath.Join(w.dir, runFile), r); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	w.run = r
	return nil
}
