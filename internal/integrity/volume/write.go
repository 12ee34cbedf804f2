package volume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/integrity"
)

// Files that a writer makes, outside of the volume.
const (
	AcksFile  = "acks"       // the acknowledgements: integrity.ParseAcks
	StartFile = "start.json" // the report on what was there at the start
	EndFile   = "end.json"   // the report at the end
)

// ackInterval is the least time between two acknowledgements in the file, which bounds it. One that is left out makes
// the check weaker by that time, never wrong.
const ackInterval = 10 * time.Millisecond

// Writer writes a stream.
type Writer struct {
	Path     string // a directory on the volume, or its device
	Stream   integrity.Stream
	Direct   bool          // bypass the page cache
	Fsync    bool          // fsync, else fdatasync
	Rate     float64       // writes per second at most; 0: no limit
	Duration time.Duration // of the writes
	Out      string        // directory of the output, not on the volume
}

// Fill does the first pass, and syncs it, unless that was done before.
func (w *Writer) Fill(ctx context.Context) (err error) {
	if err := w.Stream.Validate(); err != nil {
		return err
	}
	f, err := open(w.Path, os.O_RDWR|os.O_CREATE, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s, found, err := f.find(ctx)
	if err != nil {
		return err
	}
	if found {
		r, err := f.judge(ctx, s, 0)
		if err != nil || s == w.Stream && r.Newest >= s.Blocks {
			return err
		}
	}
	b := buffer(chunk)
	perChunk := int64(chunk / w.Stream.BlockSize)
	for g := int64(1); g <= w.Stream.Blocks; g += perChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(perChunk, w.Stream.Blocks-g+1)
		for k := range n {
			w.Stream.Encode(b[int(k)*w.Stream.BlockSize:], g+k)
		}
		if _, err := f.WriteAt(b[:int(n)*w.Stream.BlockSize], (g-1)*int64(w.Stream.BlockSize)); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), f.syncDir())
}

// Run judges what is there, continues the stream from there until Duration has passed, syncs and judges the result. It
// ends at once, without an error, when ctx ends.
func (w *Writer) Run(ctx context.Context) (err error) {
	if err := w.Stream.Validate(); err != nil {
		return err
	}
	f, err := open(w.Path, os.O_RDWR, w.Direct)
	if isAbsent(err) {
		return fmt.Errorf("%w: the volume was not filled, or has lost its file", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	start, err := judgeAt(ctx, w.Path, w.Stream, 0)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	if err := w.report(StartFile, start); err != nil {
		return err
	}
	acks, err := w.openAcks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, acks.Close()) }()
	last, err := w.write(ctx, f, acks, resume(start))
	if err != nil || ctx.Err() != nil {
		return err
	}
	end, err := judgeAt(ctx, w.Path, w.Stream, last)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	return w.report(EndFile, end)
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // an end that was asked for is none
	}
	return err
}

// resume returns the first write after an image: the next one, or that at the beginning of an incomplete window.
func resume(r *integrity.Report) int64 {
	s := r.Stream
	if r.Newest > 0 && r.Newest == s.WindowEnd(r.Newest) && len(r.Missing) == 0 {
		return r.Newest + 1
	}
	return s.Floor(r.Newest) + 1
}

// write writes from g on and returns the last write, which is synced unless ctx has ended.
func (w *Writer) write(ctx context.Context, f *file, acks *acks, g int64) (last int64, err error) {
	if err := w.syncUpTo(f, g-1, acks.add); err != nil {
		return 0, err
	}
	b := buffer(w.Stream.BlockSize)
	begun := time.Now()
	for first := g; ; g++ {
		if w.Rate > 0 {
			due := begun.Add(time.Duration(float64(g-first) / w.Rate * float64(time.Second)))
			sleep(ctx, min(time.Until(due), time.Until(begun.Add(w.Duration))))
		}
		if ctx.Err() != nil {
			return g - 1, nil //nolint:nilerr // an end that was asked for is none
		}
		if time.Since(begun) >= w.Duration {
			return g - 1, w.syncUpTo(f, g-1, acks.addAlways)
		}
		w.Stream.Encode(b, g)
		if _, err := f.WriteAt(b, w.Stream.At(g)*int64(w.Stream.BlockSize)); err != nil {
			return 0, err
		}
		if g == w.Stream.WindowEnd(g) {
			if err := w.syncUpTo(f, g, acks.add); err != nil {
				return 0, err
			}
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// syncUpTo syncs the writes up to g, and acknowledges them only then: a driver is not blamed for what it refused.
func (w *Writer) syncUpTo(f *file, g int64, acknowledge func(int64) error) error {
	if err := w.sync(f); err != nil {
		return err
	}
	return acknowledge(g)
}

func (w *Writer) sync(f *file) error {
	if w.Fsync {
		return f.Sync()
	}
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// report writes a report, whole or not at all.
func (w *Writer) report(name string, r *integrity.Report) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := filepath.Join(w.Out, name)
	if err := os.WriteFile(path+".part", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// acks is the file of acknowledgements.
type acks struct {
	*os.File
	last time.Time
}

func (w *Writer) openAcks() (*acks, error) {
	f, err := os.OpenFile(filepath.Join(w.Out, AcksFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(integrity.AcksHead(w.Stream))
	return &acks{File: f}, err
}

// add records that the writes up to g are durable, unless it recorded others just before.
func (a *acks) add(g int64) error {
	if time.Since(a.last) < ackInterval {
		return nil
	}
	return a.addAlways(g)
}

func (a *acks) addAlways(g int64) error {
	a.last = time.Now()
	_, err := a.WriteString(integrity.AckLine(a.last.UnixNano(), g))
	return err
}
