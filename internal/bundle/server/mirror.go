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

// source is where a bundle grows.
type source interface {
	Files(ctx context.Context) ([]File, error)
	Read(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
}

// sink is where its copy is made. Append and Seal are as Folder's.
type sink interface {
	Files(ctx context.Context) ([]File, error)
	Append(ctx context.Context, name string, offset int64, b []byte) (int64, error)
	Replace(ctx context.Context, name string, content io.Reader) error
	Remove(ctx context.Context, name string) error
	Seal(ctx context.Context, manifest []byte) ([]Difference, error)
}

// Options of a copy. Zero fields mean the defaults.
type Options struct {
	Every time.Duration // how often the source is looked at; default 250 ms
	// Patience is the longest wait between attempts while the other side is
	// away; default 10 s.
	Patience time.Duration
	// Skip leaves files out; the copy then cannot be sealed.
	Skip func(path string) bool
	// Log is told when the other side goes away and comes back; may be nil.
	Log func(string)
}

func (o Options) orDefault() Options {
	if o.Every == 0 {
		o.Every = 250 * time.Millisecond
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

const (
	// chunk is how much one append carries.
	chunk = 4 << 20
	// heartbeat is how often something is written even if nothing changes, so
	// that the run counts as living.
	heartbeat = 10 * time.Second
	// cpuShare bounds looking: it may take one part in so many of the time.
	cpuShare = 20
)

// mirror copies one bundle. It is for one goroutine.
type mirror struct {
	Options
	from source
	to   sink

	have  map[string]copied // what the sink has; nil: not yet known
	gone  map[string]bool   // was missing at the source at the last look
	wrote time.Time
	buf   []byte
}

// copied is a file at the sink; whole: its content is that of the source's file
// with this size and time.
type copied struct {
	size     int64
	modified time.Time
	whole    bool
}

func newMirror(from source, to sink, o Options) *mirror {
	return &mirror{Options: o.orDefault(), from: from, to: to, gone: map[string]bool{}}
}

// round copies what is new, and says whether anything was.
func (m *mirror) round(ctx context.Context) (changed bool, err error) {
	if err := m.ask(ctx); err != nil {
		return false, err
	}
	files, err := m.from.Files(ctx)
	if err != nil {
		return false, err
	}
	files = slices.DeleteFunc(files, func(f File) bool { return f.Path == manifestFile || m.Skip != nil && m.Skip(f.Path) })
	slices.SortStableFunc(files, func(a, b File) int { return order(a.Path) - order(b.Path) })
	beat := time.Since(m.wrote) > heartbeat
	for _, f := range files {
		did, err := m.file(ctx, f, beat)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile: the next look shows
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

// order puts what says what a run is before what it measured.
func order(name string) int {
	switch {
	case name == runFile:
		return 0
	case !appended(name):
		return 1
	}
	return 2
}

// ask learns what the sink has already, once: should it lose something later,
// an append is told of it, and Seal finds the rest.
func (m *mirror) ask(ctx context.Context) error {
	if m.have != nil {
		return nil
	}
	files, err := m.to.Files(ctx)
	if err != nil {
		return err
	}
	m.have = map[string]copied{}
	for _, f := range files {
		m.have[f.Path] = copied{size: f.Size}
	}
	return nil
}

func (m *mirror) file(ctx context.Context, f File, beat bool) (bool, error) {
	have, there := m.have[f.Path]
	switch {
	case appended(f.Path) && there && have.size == f.Size:
		return false, nil
	case appended(f.Path) && have.size <= f.Size:
		return true, m.extend(ctx, f, have.size)
	case there && have.whole && have.size == f.Size && have.modified.Equal(f.Modified) && !(beat && f.Path == runFile):
		return false, nil
	}
	return true, m.replace(ctx, f)
}

// extend appends what the sink lacks. Where the sink's file ends elsewhere than
// we thought, we go on from there.
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
			m.have[f.Path] = copied{size: elsewhere.Size}
			return nil // the next round goes on there
		}
		if err != nil {
			return err
		}
		offset = size
		m.have[f.Path] = copied{size: size}
	}
	return nil
}

func (m *mirror) replace(ctx context.Context, f File) error {
	r, err := m.from.Read(ctx, f.Path, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	// The file may be another one by now; then its time or size differ at the
	// next look.
	n := &counted{r: r}
	if err := m.to.Replace(ctx, f.Path, n); err != nil {
		return err
	}
	m.have[f.Path] = copied{size: n.n, modified: f.Modified, whole: true}
	return nil
}

type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// removals removes what the source no longer has. One look is not enough: while
// it goes over a directory, a file may come that stands for the one that goes.
func (m *mirror) removals(ctx context.Context, files []File) (changed bool, err error) {
	there := map[string]bool{manifestFile: true}
	for _, f := range files {
		there[f.Path] = true
	}
	for name := range m.have {
		switch {
		case there[name]:
			delete(m.gone, name)
		case !m.gone[name]:
			m.gone[name], changed = true, true // look again
		default:
			if err := m.to.Remove(ctx, name); err != nil {
				return changed, fmt.Errorf("%s: %w", name, err)
			}
			delete(m.gone, name)
			delete(m.have, name)
			changed = true
		}
	}
	return changed, nil
}

// follow copies until stop is closed or ctx ends. Whatever fails is tried again:
// what was not copied still lies at the source. Only a sink that is closed ends
// it, with ErrClosed.
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
			wait = m.away(&failures, err)
		} else {
			m.back(&failures)
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

// away counts a failure and gives how long to wait after it.
func (m *mirror) away(failures *int, err error) time.Duration {
	*failures++
	if *failures == 2 {
		m.Log(fmt.Sprintf("the copy of the bundle waits, nothing is lost: %v", err))
	}
	wait := min(m.Patience, m.Every<<min(*failures-1, 16))
	return wait/2 + rand.N(wait/2+1)
}

func (m *mirror) back(failures *int) {
	if *failures >= 2 {
		m.Log("the copy of the bundle goes on")
	}
	*failures = 0
}

// finish copies the rest of a bundle that no longer changes and seals it,
// trying until ctx ends. Without a manifest at the source there is nothing to
// seal: sealed is false.
func (m *mirror) finish(ctx context.Context) (sealed bool, err error) {
	failures, mended := 0, 0
	var last error
	for {
		sealed, err = m.finishOnce(ctx, &mended)
		if err == nil {
			m.back(&failures)
			return sealed, nil
		}
		var final *finalError
		if errors.Is(err, ErrClosed) || errors.As(err, &final) {
			return false, err
		}
		if last == nil || ctx.Err() == nil {
			last = err // the end of ctx is not why
		}
		select {
		case <-time.After(m.away(&failures, err)):
		case <-ctx.Done():
			return false, fmt.Errorf("the bundle's copy is not complete: %w", last)
		}
	}
}

// finalError is one that trying again does not mend.
type finalError struct{ differs []Difference }

func (e *finalError) Error() string {
	var list []string
	for _, d := range e.differs[:min(len(e.differs), 8)] {
		list = append(list, d.Path+" ("+d.Reason+")")
	}
	return fmt.Sprintf("the source itself is not as its manifest says: %s", strings.Join(list, ", "))
}

// finishOnce copies until nothing is new, seals, and mends what differs.
func (m *mirror) finishOnce(ctx context.Context, mended *int) (bool, error) {
	for changed := true; changed; {
		var err error
		changed, err = m.round(ctx)
		if errors.Is(err, ErrClosed) {
			break // perhaps by us, whom the answer did not reach: Seal knows
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
		if err := m.mend(ctx, differs); err != nil {
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

// mend replaces what differs, whole.
func (m *mirror) mend(ctx context.Context, differs []Difference) error {
	for _, d := range differs {
		err := m.replace(ctx, File{Path: d.Path})
		if errors.Is(err, fs.ErrNotExist) {
			if err = m.to.Remove(ctx, d.Path); err == nil {
				delete(m.have, d.Path)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.Path, err)
		}
	}
	return nil
}
