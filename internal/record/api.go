package record

import (
	"context"
	"iter"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Writer writes the bundle of one run.
type Writer struct{}

// Create makes the bundle's directory, which must not exist or be empty.
func Create(dir string, r Run) (*Writer, error) { panic("todo") }

// Dir is the bundle's directory.
func (w *Writer) Dir() string { panic("todo") }

// Op records one op that has ended (or was dropped or censored).
func (w *Writer) Op(o op.Op) { panic("todo") }

// Sample records a counter reading.
func (w *Writer) Sample(s op.Sample) { panic("todo") }

// Canary records canary I/Os.
func (w *Writer) Canary(instance, volume string, ios []op.CanaryIO) { panic("todo") }

// Started records that a container began its work.
func (w *Writer) Started(s op.InstanceStart) { panic("todo") }

// Ended records how an instance ended.
func (w *Writer) Ended(e op.InstanceEnd) { panic("todo") }

// Log records a line for people.
func (w *Writer) Log(at op.Time, source, line string) { panic("todo") }

// Series records points of a series.
func (w *Writer) Series(s Series) { panic("todo") }

// Scalar records one figure.
func (w *Writer) Scalar(s Scalar) { panic("todo") }

// Histogram records one distribution.
func (w *Writer) Histogram(s HistogramSlice) { panic("todo") }

// Raw appends to a tool's file.
func (w *Writer) Raw(instance, container, file string, data []byte) { panic("todo") }

// Environment writes environment.json.
func (w *Writer) Environment(e Environment) error { panic("todo") }

// Ledger of the run.
func (w *Writer) Ledger() *Ledger { panic("todo") }

// Update changes run.json atomically.
func (w *Writer) Update(f func(*Run)) error { panic("todo") }

// Flush returns when all that was recorded so far can be read by Open.
func (w *Writer) Flush() error { panic("todo") }

// Err delivers the first failure of the disk, once.
func (w *Writer) Err() <-chan error { panic("todo") }

// Close closes the bundle; f sets the last fields of run.json, State among
// them.
func (w *Writer) Close(f func(*Run)) error { panic("todo") }

// Amend changes run.json of a closed bundle, and its entry in the manifest.
func Amend(dir string, f func(*Run)) error { panic("todo") }

// Ledger remembers what must be removed.
type Ledger struct{}

// OpenLedger opens the ledger of a bundle that nobody writes any more.
func OpenLedger(dir string) (*Ledger, error) { panic("todo") }

// Add returns when e is durable.
func (l *Ledger) Add(e op.LedgerEntry) error { panic("todo") }

// Done records that it is gone.
func (l *Ledger) Done(kind, name string) error { panic("todo") }

// Open lists entries not done, oldest first.
func (l *Ledger) Open() []op.LedgerEntry { panic("todo") }

// Close syncs and closes the ledger.
func (l *Ledger) Close() error { panic("todo") }

// Bundle is a bundle opened for reading, complete or not.
type Bundle struct {
	Dir      string
	Run      Run
	Complete bool     // closed in order
	Warnings []string // what is missing or was dropped, for people
}

// Open opens the bundle in dir.
func Open(dir string) (*Bundle, error) { panic("todo") }

// Ops yields the ops in the order in which they were recorded.
func (b *Bundle) Ops() iter.Seq2[op.Op, error] { panic("todo") }

// Columns yields blocks of ops.
func (b *Bundle) Columns() iter.Seq2[*Columns, error] { panic("todo") }

// Latencies of the selected ops.
func (b *Bundle) Latencies(v View, f Filter) (Latencies, error) { panic("todo") }

// Samples yields the counter readings.
func (b *Bundle) Samples() iter.Seq2[op.Sample, error] { panic("todo") }

// Canary yields the canary I/Os.
func (b *Bundle) Canary() iter.Seq2[CanaryBatch, error] { panic("todo") }

// Histograms yields totals and slices.
func (b *Bundle) Histograms() iter.Seq2[HistogramSlice, error] { panic("todo") }

// Series yields the series.
func (b *Bundle) Series() iter.Seq2[Series, error] { panic("todo") }

// Scalars yields the single figures.
func (b *Bundle) Scalars() iter.Seq2[Scalar, error] { panic("todo") }

// Log yields the log.
func (b *Bundle) Log() iter.Seq2[LogLine, error] { panic("todo") }

// Instances by name.
func (b *Bundle) Instances() ([]Instance, error) { panic("todo") }

// Environment is environment.json.
func (b *Bundle) Environment() (Environment, error) { panic("todo") }

// RawFiles lists the tools' files.
func (b *Bundle) RawFiles() ([]RawFile, error) { panic("todo") }

// Ledger lists what was not removed.
func (b *Bundle) Ledger() ([]op.LedgerEntry, error) { panic("todo") }

// Verify compares the files with the manifest.
func (b *Bundle) Verify() error { panic("todo") }

// CollectEnvironment describes this machine.
func CollectEnvironment(ctx context.Context, paths ...string) Environment { panic("todo") }

// SameFilesystem says whether a and b lie on one filesystem.
func SameFilesystem(a, b string) (bool, error) { panic("todo") }
