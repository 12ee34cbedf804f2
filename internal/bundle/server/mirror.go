package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// source is a growing bundle.
type source interface {
	Files(ctx context.Context) ([]File, error)
	Read(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
}

// sink is its copy. Append and Seal are as Folder's.
type sink interface {
	Files(ctx context.Context) ([]File, error)
	Append(ctx context.Context, name string, offset int64, b []byte) (int64, error)
	Replace(ctx context.Context, name string, content io.Reader) error
	Remove(ctx context.Context, name string) error
	Seal(ctx context.Context, manifest []byte) ([]Difference, error)
}

// Options of a copy. Zero fields mean the defaults.
type Options struct {
	Every time.Duration // polling interval of the source; default 250 ms
	// MaxBackoff is the longest pause between attempts while the other side is unreachable; default 10 s.
	MaxBackoff time.Duration
	// Skip excludes files; the copy then cannot be sealed.
	Skip func(path string) bool
	// Log receives a line when the other side becomes unreachable and reachable; may be nil.
	Log func(string)
}

func (o Options) orDefault() Options {
	if o.Every == 0 {
		o.Every = 250 * time.Millisecond
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

const (
	// chunk is the maximum size of one append.
	chunk = 4 << 20
	// heartbeat is how often something is written even without changes, so that the run counts as live.
	heartbeat = 10 * time.Second
	// cpuShare bounds polling to one part in so many of the time.
	cpuShare = 20
)

// mirror copies one bundle. It is for one goroutine.
type mirror struct {
	Options
	from source
	to   sink

	sinkFiles map[string]copied // files of the sink; nil: not yet known
	missing   map[string]bool   // was missing at the source at the last poll
	wrote     time.Time
	buf       []byte
}

// copied is a file at the sink; whole: it is equal to the source's file with this size and time.
type copied struct {
	size     int64
	modified time.Time
	whole    bool
}

func newMirror(from source, to sink, o Options) *mirror {
	return &mirror{Options: o.orDefault(), from: from, to: to, missing: map[string]bool{}}
}

// round copies what is new, and reports whether anything was.
func (m *mirror) round(ctx context.Context) (changed bool, err error) {
	if err := m.loadSinkFiles(ctx); err != nil {
		return false, err
	}
	files, err := m.from.Files(ctx)
	if err != nil {
		return false, err
	}
	files = slices.DeleteFunc(files, func(f File) bool {
		return f.Path == manifestFile || m.Skip != nil &&
			m.Skip(f.Path)
	})
	slices.SortStableFunc(files, func(a, b File) int { return order(a.Path) - order(b.Path) })
	beat := time.Since(m.wrote) > heartbeat
	for _, f := range files {
		did, err := m.file(ctx, f, beat)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile: the next round handles it
		}
		if err != nil {
			return changed, fmt.Errorf("%s: %w", f.Path, err)
		}
		if did {
			changed, m.wrote = true, time.Now()
		}
	}
	did, err := m.removals(ctx, files)
	return changed || did, err
}

// order sorts run.json and other documents before the measurements.
func order(name string) int {
	switch {
	case name == runFile:
		return 0
	case !isAppendOnly(name):
		return 1
	}
	return 2
}

// loadSinkFiles lists the sink's files, once. If the sink loses data later, an append detects it, and Seal
// finds the rest.
func (m *mirror) loadSinkFiles(ctx context.Context) error {
	if m.sinkFiles != nil {
		return nil
	}
	files, err := m.to.Files(ctx)
	if err != nil {
		return err
	}
	m.sinkFiles = map[string]copied{}
	for _, f := range files {
		m.sinkFiles[f.Path] = copied{size: f.Size}
	}
	return nil
}

func (m *mirror) file(ctx context.Context, f File, beat bool) (bool, error) {
	have, there := m.sinkFiles[f.Path]
	switch {
	case isAppendOnly(f.Path) && there && have.size == f.Size:
		return false, nil
	case isAppendOnly(f.Path) && have.size <= f.Size:
		return true, m.extend(ctx, f, have.size)
	case there && have.whole && have.size == f.Size && have.modified.Equal(f.Modified) && !(beat && f.Path == runFile):
		return false, nil
	}
	return true, m.replace(ctx, f)
}

// extend appends what the sink lacks. If the sink's file ends elsewhere, the next round continues there.
func (m *mirror) extend(ctx context.Context, f File, offset int64) error {
	r, err := m.from.Read(ctx, f.Path, offset)
	if err != nil {
		return err
	}
	defer r.Close()
	if m.buf == nil {
		m.buf = make([]byte, chunk)
	}
	for first := true; first || offset < f.Size; first = false {
		b := m.buf[:min(chunk, f.Size-offset)]
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		size, err := m.to.Append(ctx, f.Path, offset, b)
		var elsewhere *OffsetError
		if errors.As(err, &elsewhere) {
			m.sinkFiles[f.Path] = copied{size: elsewhere.Size}
			return nil // the next round continues there
		}
		if err != nil {
			return err
		}
		offset = size
		m.sinkFiles[f.Path] = copied{size: size}
	}
	return nil
}

func (m *mirror) replace(ctx context.Context, f File) error {
	r, err := m.from.Read(ctx, f.Path, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	// The file may have been replaced meanwhile; then its time or size differ
	// in the next round.
	n := &countingReader{r: r}
	if err := m.to.Replace(ctx, f.Path, n); err != nil {
		return err
	}
	m.sinkFiles[f.Path] = copied{size: n.n, modified: f.Modified, whole: true}
	return nil
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// removals removes what the source no longer has. A file must be missing twice: during one listing, a file
// may be renamed over another.
func (m *mirror) removals(ctx context.Context, files []File) (changed bool, err error) {
	there := map[string]bool{manifestFile: true}
	for _, f := range files {
		there[f.Path] = true
	}
	for name := range m.sinkFiles {
		switch {
		case there[name]:
			delete(m.missing, name)
		case !m.missing[name]:
			m.missing[name], changed = true, true // check again
		default:
			if err := m.to.Remove(ctx, name); err != nil {
				return changed, fmt.Errorf("%s: %w", name, err)
			}
			delete(m.missing, name)
			delete(m.sinkFiles, name)
			changed = true
		}
	}
	return changed, nil
}

// follow copies until stop is closed or ctx ends, and retries failures, since uncopied data is still at the
// source. Only a closed sink ends it, with ErrClosed.
func (m *mirror) follow(ctx context.Context, stop <-chan struct{}) error {
	failures := 0
	for {
		began := time.Now()
		_, err := m.round(ctx)
		if errors.Is(err, ErrClosed) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		wait := max(m.Every, cpuShare*time.Since(began))
		if err != nil {
			wait = m.backoff(&failures, err)
		} else {
			m.resetBackoff(&failures)
			wait = min(wait, 10*time.Second)
		}
		select {
		case <-time.After(wait):
		case <-stop:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// backoff counts a failure and returns the pause after it.
func (m *mirror) backoff(failures *int, err error) time.Duration {
	*failures++
	if *failures == 2 {
		m.Log(fmt.Sprintf("the copy of the bundle is waiting, no data is lost: %v", err))
	}
	wait := min(m.MaxBackoff, m.Every<<min(*failures-1, 16))
	return wait/2 + rand.N(wait/2+1)
}

func (m *mirror) resetBackoff(failures *int) {
	if *failures >= 2 {
		m.Log("the copy of the bundle continues")
	}
	*failures = 0
}

// finish copies the rest of a bundle that no longer changes and seals it, retrying until ctx ends. Without a
// manifest at the source sealed is false.
func (m *mirror) finish(ctx context.Context) (sealed bool, err error) {
	failures, mended := 0, 0
	var last error
	for {
		sealed, err = m.finishOnce(ctx, &mended)
		if err == nil {
			m.resetBackoff(&failures)
			return sealed, nil
		}
		var final *finalError
		if errors.Is(err, ErrClosed) || errors.As(err, &final) {
			return false, err
		}
		if last == nil || ctx.Err() == nil {
			last = err // keep the cause, not the end of ctx
		}
		select {
		case <-time.After(m.backoff(&failures, err)):
		case <-ctx.Done():
			return false, fmt.Errorf("the copy of the bundle is incomplete: %w", last)
		}
	}
}

// finalError is an error that a retry cannot fix.
type finalError struct{ differs []Difference }

func (e *finalError) Error() string {
	var list []string
	for _, d := range e.differs[:min(len(e.differs), 8)] {
		list = append(list, d.Path+" ("+d.Reason+")")
	}
	return fmt.Sprintf("the source does not match its own manifest: %s", strings.Join(list, ", "))
}

// finishOnce copies until nothing is new, seals, and repairs differences.
func (m *mirror) finishOnce(ctx context.Context, mended *int) (bool, error) {
	for changed := true; changed; {
		var err error
		changed, err = m.round(ctx)
		if errors.Is(err, ErrClosed) {
			break // perhaps by an earlier attempt whose response was lost: Seal knows
		}
		if err != nil {
			return false, err
		}
	}
	text, err := m.manifest(ctx)
	if err != nil || text == nil || m.Skip != nil {
		return false, err
	}
	for {
		differs, err := m.to.Seal(ctx, text)
		if err != nil {
			return false, err
		}
		if len(differs) == 0 {
			return true, nil
		}
		if *mended++; *mended > 3 {
			return false, &finalError{differs}
		}
		if err := m.repair(ctx, differs); err != nil {
			return false, err
		}
	}
}

func (m *mirror) manifest(ctx context.Context) ([]byte, error) {
	r, err := m.from.Read(ctx, manifestFile, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, r)
	return b.Bytes(), errors.Join(err, r.Close())
}

// repair replaces the files that differ.
func (m *mirror) repair(ctx context.Context, differs []Difference) error {
	for _, d := range differs {
		err := m.replace(ctx, File{Path: d.Path})
		if errors.Is(err, fs.ErrNotExist) {
			if err = m.to.Remove(ctx, d.Path); err == nil {
				delete(m.sinkFiles, d.Path)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.Path, err)
		}
	}
	return nil
}
