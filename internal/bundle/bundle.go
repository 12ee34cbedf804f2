package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// ErrDamaged is wrapped by the error of a file whose content is not what a run has written.
var ErrDamaged = errors.New("damaged")

// Bundle is a bundle opened for reading, complete or not. Each iterator opens its file anew; methods are safe
// for concurrent use.
type Bundle struct {
	Dir      string
	Run      Run
	Complete bool     // closed properly: nothing is missing
	Live     bool     // a run is writing to it
	Warnings []string // what is missing or was dropped

	columnar bool // events are in the Parquet file, otherwise in segments
	segments []string
	validLen map[string]int64 // of an incomplete bundle: valid length of each stream, by name
}

// Open opens the bundle in dir. For a bundle that was not closed it checks every stream and drops torn tails,
// which Warnings lists. The error names the file that is missing, damaged, or of a newer format.
func Open(dir string) (*Bundle, error) {
	b, closed, err := open(dir)
	if err != nil || b.Complete {
		return b, err
	}
	b.warnIncomplete(closed)
	if err := b.checkStreams(); err != nil {
		return nil, err
	}
	return b, nil
}

// Brief is what is known of a bundle without its streams.
type Brief struct {
	Run            Run
	Complete, Live bool // as of Bundle
}

// Look reads run.json and says in which state the bundle in dir is. It is fast for bundles
// of any size. Errors are those of Open about run.json.
func Look(dir string) (Brief, error) {
	b, _, err := open(dir)
	if err != nil {
		return Brief{}, err
	}
	return Brief{b.Run, b.Complete, b.Live}, nil
}

// open opens a bundle without reading its streams; closed says whether it has a manifest.
func open(dir string) (b *Bundle, closed bool, err error) {
	b = &Bundle{Dir: dir, validLen: make(map[string]int64)}
	if err := b.readRun(); err != nil {
		return nil, false, err
	}
	if err := b.findEvents(); err != nil {
		return nil, false, err
	}
	closed = pathExists(filepath.Join(dir, manifestFile))
	b.Complete = closed && b.columnar && b.Run.State != Running
	if b.Complete {
		return b, closed, nil
	}
	if lock, free, err := lockDir(dir, unix.LOCK_SH); err == nil {
		b.Live = !free
		if free {
			if err := unlock(lock); err != nil {
				return nil, false, fmt.Errorf("bundle: %w", err)
			}
		}
	}
	return b, closed, nil
}

// ReadRun reads run.json only. The error wraps os.ErrNotExist if there is none.
func ReadRun(dir string) (Run, error) {
	if !pathExists(filepath.Join(dir, runFile)) {
		return Run{}, fmt.Errorf("bundle: %s has no %s: %w", dir, runFile, os.ErrNotExist)
	}
	b := &Bundle{Dir: dir}
	err := b.readRun()
	return b.Run, err
}

func pathExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readRun reads run.json, the format version first: a newer version may have fields of other types.
func (b *Bundle) readRun() error {
	path := filepath.Join(b.Dir, runFile)
	var head struct {
		Format int `json:"format"`
	}
	err := readJSON(b.dir(), runFile, &head)
	switch {
	case errors.Is(err, os.ErrNotExist) && !pathExists(b.Dir):
		return fmt.Errorf("no bundle at %s", b.Dir)
	case errors.Is(err, os.ErrNotExist) && pathExists(filepath.Join(b.Dir, "study.json")):
		return fmt.Errorf("%s is a study, not a bundle: name one of its trials, or see cnsbench show", b.Dir)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s is not a bundle: no %s", b.Dir, runFile)
	case errors.Is(err, syscall.ENOTDIR):
		return NotDirectory(b.Dir, "bundle")
	case err != nil:
		return fmt.Errorf("bundle: %w", err)
	case head.Format < 1:
		return fmt.Errorf("bundle: %s has no format version", path)
	case head.Format > Version:
		return fmt.Errorf("bundle: %s has format %d, this program reads formats up to %d: use a newer cnsbench", path,
			head.Format, Version)
	}
	if err := readJSON(b.dir(), runFile, &b.Run); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// NotDirectory is the error of a file where a command wants the directory of a bundle or a study.
func NotDirectory(path, want string) error {
	hint := ""
	if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
		hint = "; to run it: cnsbench run " + path
	}
	return fmt.Errorf("%s is a file, not a %s%s", path, want, hint)
}

func (b *Bundle) findEvents() (err error) {
	b.columnar = pathExists(filepath.Join(b.Dir, columnarFile))
	if !b.columnar {
		b.segments, err = listSegments(b.Dir)
	}
	return err
}

// listSegments lists the names of the segments of events in order.
func listSegments(dir string) ([]string, error) {
	entries, err := bounded.Dir(dir).ReadDir(eventsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	var segments []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), segmentSuffix) {
			segments = append(segments, eventsDir+"/"+e.Name())
		}
	}
	return segments, nil
}

func (b *Bundle) warn(format string, args ...any) {
	b.Warnings = append(b.Warnings, fmt.Sprintf(format, args...))
}

// warnIncomplete adds the warning why the bundle is incomplete.
func (b *Bundle) warnIncomplete(closed bool) {
	switch {
	case b.Live:
		b.warn("the run is still going on: the bundle contains what was written so far")
	case closed && !b.columnar:
		b.warn("%s is missing although the bundle was closed", columnarFile)
	case b.Run.State == Running:
		b.warn("the run was killed: the bundle was never closed, its last moments may be missing")
	default:
		b.warn("the bundle was not closed properly (%s): %s", b.Run.State, b.Run.Reason)
	}
}

func (b *Bundle) dir() bounded.Dir { return bounded.Dir(b.Dir) }

// path returns the path of a file of the bundle for messages.
func (b *Bundle) path(rel string) string { return b.dir().Path(rel) }

// OpenFile opens a file of the bundle by its name, which has slashes. The error wraps os.ErrNotExist if it is missing.
func (b *Bundle) OpenFile(name string) (*os.File, error) { return b.dir().Open(name) }

// ReadFile reads a file of at most most bytes, as OpenFile opens it.
func (b *Bundle) ReadFile(name string, most int64) ([]byte, error) {
	return b.dir().ReadFile(name, most)
}

// Ops yields the ops in the recorded order, which is that of their ends; ids are in order of dispatch. Empty
// milestones are nil.
func (b *Bundle) Ops() iter.Seq2[op.Op, error] {
	if b.columnar {
		return columnarOps(b.dir(), false)
	}
	return segmentOps[op.Op](b.dir(), b.segments, b.validLen)
}

// OpBatches yields the ops as Ops does, several at once: the fastest way to read whole ops. A batch and its milestones
// are valid until so many batches, counted with itself, have been yielded; the texts of its ops stay valid.
func (b *Bundle) OpBatches(valid int) iter.Seq2[[]op.Op, error] {
	if b.columnar {
		return columnarBatches(b.dir(), opReader{ring: make([]batch, valid)})
	}
	return batches(b.Ops())
}

// batches collects ops.
func batches(ops iter.Seq2[op.Op, error]) iter.Seq2[[]op.Op, error] {
	return func(yield func([]op.Op, error) bool) {
		var batch []op.Op
		for o, err := range ops {
			if err != nil {
				yield(nil, err)
				return
			}
			if batch = append(batch, o); len(batch) == batchRows {
				if !yield(batch, nil) {
					return
				}
				batch = nil
			}
		}
		if len(batch) > 0 {
			yield(batch, nil)
		}
	}
}

// Briefs yields the ops as Ops does, without milestones, messages and objects where that is faster.
func (b *Bundle) Briefs() iter.Seq2[op.Op, error] {
	if b.columnar {
		return columnarOps(b.dir(), true)
	}
	return b.Ops()
}

// Columns yields blocks of ops, each valid until the next; the fastest way to compute a figure over all ops.
func (b *Bundle) Columns() iter.Seq2[*Columns, error] {
	return b.columns(allColumns)
}

func (b *Bundle) columns(want []string) iter.Seq2[*Columns, error] {
	if b.columnar {
		return columnarColumns(b.dir(), want)
	}
	return blocks(b.Ops())
}

// Latencies returns one view of the selected ops.
func (b *Bundle) Latencies(v View, f Filter) (Latencies, error) {
	return collectLatencies(b.columns(f.columns(v)), v, f)
}

// Samples yields the counter readings in order of arrival.
func (b *Bundle) Samples() iter.Seq2[op.Sample, error] {
	return parsedLines(b, samplesFile, newSampleParser())
}

// Machines yields the readings of machines in order of arrival.
func (b *Bundle) Machines() iter.Seq2[op.Machine, error] { return lines[op.Machine](b, machinesFile) }

// Queries yields the answers to queries in order of arrival.
func (b *Bundle) Queries() iter.Seq2[op.QueryReading, error] {
	return lines[op.QueryReading](b, queriesFile)
}

// Histograms yields totals and slices in order of arrival.
func (b *Bundle) Histograms() iter.Seq2[HistogramSlice, error] {
	return lines[HistogramSlice](b, histogramsFile)
}

// Series yields the series in order of arrival.
func (b *Bundle) Series() iter.Seq2[Series, error] { return parsedLines(b, seriesFile, parseSeries) }

// Scalars yields the single figures in order of arrival.
func (b *Bundle) Scalars() iter.Seq2[Scalar, error] { return lines[Scalar](b, scalarsFile) }

// Log yields the log in order of arrival.
func (b *Bundle) Log() iter.Seq2[LogLine, error] { return lines[LogLine](b, logFile) }

// Canary yields the canary I/Os in order of arrival, each batch valid until the next; those of one volume are in order
// of their intended time.
func (b *Bundle) Canary() iter.Seq2[CanaryBatch, error] {
	return func(yield func(CanaryBatch, error) bool) {
		var d canaryDecoder
		for payload, err := range frames(b.dir(), canaryFile, b.streamLimit(canaryFile)) {
			if err != nil {
				yield(CanaryBatch{}, err)
				return
			}
			batches, err := d.decode(payload)
			if err != nil {
				yield(CanaryBatch{}, fmt.Errorf("bundle: %s is %w: %w", b.path(canaryFile), ErrDamaged, err))
				return
			}
			for _, c := range batches {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// Instances returns the workload instances in order of first appearance.
func (b *Bundle) Instances() ([]Instance, error) {
	byName := make(map[string]*Instance)
	var order []*Instance
	at := func(name string) *Instance {
		if byName[name] == nil {
			byName[name] = &Instance{Name: name}
			order = append(order, byName[name])
		}
		return byName[name]
	}
	for l, err := range lines[instanceLine](b, instancesFile) {
		if err != nil {
			return nil, err
		}
		if l.Start != nil {
			i := at(l.Start.Instance)
			i.Starts = append(i.Starts, *l.Start)
		}
		if l.End != nil {
			at(l.End.Instance).End = l.End
		}
	}
	list := make([]Instance, len(order))
	for i, p := range order {
		list[i] = *p
	}
	return list, nil
}

// Environment returns environment.json; the error wraps os.ErrNotExist when the run ended before it was
// written.
func (b *Bundle) Environment() (Environment, error) {
	var e Environment
	if err := readJSON(b.dir(), environmentFile, &e); err != nil {
		return Environment{}, fmt.Errorf("bundle: %w", err)
	}
	return e, nil
}

// RawFiles lists the tools' files in order of their path.
func (b *Bundle) RawFiles() ([]RawFile, error) {
	var list []RawFile
	err := fs.WalkDir(b.dir().FS(), rawDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreMissing(err)
		}
		parts := strings.SplitN(path, "/", 4)
		info, err := d.Info()
		if err != nil || len(parts) < 4 {
			return err
		}
		list = append(list, RawFile{Instance: parts[1], Container: parts[2], File: parts[3], Path: b.path(path),
			Bytes: info.Size()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	slices.SortFunc(list, func(a, b RawFile) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// Left lists what the run has not removed, oldest first: by its ledger, or by run.json if the registry of the run's
// machine had the ledger.
func (b *Bundle) Left() ([]op.LedgerEntry, error) {
	if dir := bounded.Dir(b.Dir); dir.Has(ledgerFile) {
		return LedgerIn(dir)
	}
	return b.Run.Left, nil
}
