package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// Folder is a bundle's directory, one end of a copy. Reading takes no lock; writers are serialised. Paths
// cannot leave the directory.
type Folder struct {
	root    *os.Root
	limits  Limits
	account *account // of the namespace; nil: none

	mu           sync.Mutex // one writer at a time
	lock         *os.File   // marks the bundle as live for bundle.Open; nil: not taken
	bytes        int64      // of all files, once lock is taken
	files        int
	pendingBytes int64 // bytes of files being received, see upload
	frozen       bool  // closed: no changes
}

// OpenFolder opens an existing directory.
func OpenFolder(dir string, l Limits) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return &Folder{root: root, limits: l.orDefault()}, nil
}

// Close releases the directory and its lock.
func (f *Folder) Close() error {
	return errors.Join(f.Unlock(), f.root.Close())
}

// Lock marks the bundle as being written to, so that readers show it as live. ErrBusy if another process
// holds the lock. The first write takes it; it is idempotent.
func (f *Folder) Lock() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lockHeld()
}

func (f *Folder) lockHeld() error {
	if f.lock != nil {
		return nil
	}
	d, err := f.root.Open(".")
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return errors.Join(fmt.Errorf("results: %s: %w", f.root.Name(), err), d.Close())
	}
	f.lock, f.bytes, f.files = d, 0, 0
	// No other process writes here: these files are of a killed process.
	if err := f.root.RemoveAll(incomingDir); err != nil {
		return fmt.Errorf("results: remove partially received files: %w", err)
	}
	files, err := f.Files(context.Background()) // must not be cancelled
	for _, file := range files {
		f.bytes += file.Size
		f.files++
	}
	return err
}

// Unlock undoes Lock.
func (f *Folder) Unlock() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil {
		return nil
	}
	d := f.lock
	f.lock = nil
	return d.Close()
}

// Freeze refuses further changes of the bundle.
func (f *Folder) Freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = true
}

// checkWritable takes the lock for a change of a file, or refuses it.
func (f *Folder) checkWritable(name string) error {
	if f.frozen {
		return fmt.Errorf("results: %s: %w", name, ErrClosed)
	}
	return f.lockHeld()
}

// Files lists the bundle's files in order of their path.
func (f *Folder) Files(ctx context.Context) ([]File, error) {
	files := []File{}
	err := fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name != "." {
			return nil // removed meanwhile
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if name == incomingDir {
			return fs.SkipDir
		}
		if ours := checkPath(name) == nil; !ours || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err == nil {
			files = append(files, File{Path: name, Size: info.Size(), Modified: info.ModTime()})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("results: list files: %w", err)
	}
	return files, nil
}

// Read opens a file at an offset and returns its content up to its current end. The error wraps
// fs.ErrNotExist for a missing file and is an *OffsetError for an offset beyond the end.
func (f *Folder) Read(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	r, _, err := f.open(name, offset)
	return r, err
}

type section struct {
	*io.SectionReader
	io.Closer
}

// open is Read that also returns the size of the file.
func (f *Folder) open(name string, offset int64) (io.ReadCloser, int64, error) {
	if err := checkPath(name); err != nil {
		return nil, 0, err
	}
	file, size, err := f.openRegular(name, os.O_RDONLY)
	if err != nil {
		return nil, 0, err
	}
	if offset < 0 || offset > size {
		return nil, size, errors.Join(&OffsetError{size}, file.Close())
	}
	return section{io.NewSectionReader(file, offset, size-offset), file}, size, nil
}

// openRegular opens a regular file only: a pipe would block.
func (f *Folder) openRegular(name string, flags int) (*os.File, int64, error) {
	file, err := bounded.OpenIn(f.root, name, flags)
	if errors.Is(err, bounded.ErrNotFile) {
		return nil, 0, fmt.Errorf("results: %s: %w: %w", name, ErrName, err)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("results: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("results: %w", err), file.Close())
	}
	return file, info.Size(), nil
}

// Append writes b at the end of a file, which must be at offset, and returns the file's size once that is
// durable. If the end is elsewhere, the error is an *OffsetError, and the data before its Size is durable.
func (f *Folder) Append(_ context.Context, name string, offset int64, b []byte) (int64, error) {
	if err := checkAppend(name); err != nil {
		return 0, err
	}
	return f.append(name, offset, b, 0, true)
}

// appendFrom appends from r, of announced length (-1: unknown) and at most limit bytes. It writes as data
// arrives: when r fails, the file has what arrived before.
func (f *Folder) appendFrom(name string, offset int64, r io.Reader, announced, limit int64) (int64, error) {
	if err := checkAppend(name); err != nil {
		return 0, err
	}
	if announced > limit {
		return 0, fmt.Errorf("%w: body of %d bytes: want at most %d", ErrTooLarge, announced, limit)
	}
	if err := f.checkRoom(name, max(announced, 0)); err != nil {
		return 0, err
	}
	b := make([]byte, pieceSize)
	for size := offset; ; {
		n, end, broken := readPiece(r, b)
		came := size - offset + int64(n)
		if came > limit {
			return size, fmt.Errorf("%w: body longer than %d bytes", ErrTooLarge, limit)
		}
		var err error
		size, err = f.append(name, size, b[:n], max(announced-came, 0), end || broken != nil)
		switch {
		case err != nil || end:
			return size, err
		case broken != nil:
			return size, fmt.Errorf("results: receive %s: %w", name, broken)
		}
	}
}

// checkRoom reports whether n bytes may be received.
func (f *Folder) checkRoom(name string, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.checkWritable(name); err != nil {
		return err
	}
	return f.fits(n)
}

// append appends b; more is the number of bytes that follow and need room too.
func (f *Folder) append(name string, offset int64, b []byte, more int64, sync bool) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	isNew, err := f.prepareWrite(name, int64(len(b))+more)
	if err != nil {
		return 0, err
	}
	file, size, err := f.openRegular(name, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return 0, err
	}
	if offset != size {
		err, sync = &OffsetError{size}, true
	} else if _, werr := file.WriteAt(b, offset); werr != nil {
		err = errors.Join(fmt.Errorf("results: %w", werr), file.Truncate(size))
	} else {
		size += int64(len(b))
		f.grow(int64(len(b)))
	}
	var serr error
	if sync {
		serr = unix.Fdatasync(int(file.Fd()))
	}
	serr = errors.Join(serr, file.Close())
	if isNew {
		f.files++
		serr = errors.Join(serr, f.syncDir(path.Dir(name)))
	}
	if serr != nil {
		return 0, fmt.Errorf("results: sync %s: %w", name, serr)
	}
	return size, err
}

// prepareWrite reports whether the file is new, creates its directory then, and checks that the run may grow
// by n bytes.
func (f *Folder) prepareWrite(name string, n int64) (isNew bool, err error) {
	if err := f.checkWritable(name); err != nil {
		return false, err
	}
	if err := f.fits(n); err != nil {
		return false, err
	}
	if _, err := f.root.Lstat(name); err == nil {
		return false, nil
	}
	if f.files >= f.limits.RunFiles {
		return false, fmt.Errorf("results: %w: the run has reached the limit of %d files", ErrTooLarge, f.files)
	}
	if err := f.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return false, fmt.Errorf("results: %w", err)
	}
	return true, nil
}

// fits checks that the run, with pending uploads, may grow by n bytes.
func (f *Folder) fits(n int64) error {
	if has := f.bytes + f.pendingBytes; n > f.limits.RunBytes-has {
		return fmt.Errorf("%w: the run has %d bytes, %d more exceed the limit of %d", ErrTooLarge, has, n,
			f.limits.RunBytes)
	}
	return f.account.fits(n)
}

// grow counts a change of the size of the run's files.
func (f *Folder) grow(n int64) {
	f.bytes += n
	f.account.add(n)
}

// expect counts bytes that are being received.
func (f *Folder) expect(n int64) {
	f.pendingBytes += n
	f.account.add(n)
}

func (f *Folder) syncDir(dir string) error {
	d, err := f.root.Open(dir)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// Remove removes a file; a missing one is no error.
func (f *Folder) Remove(_ context.Context, name string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.checkWritable(name); err != nil {
		return err
	}
	if err := f.account.ready(); err != nil {
		return err
	}
	info, err := f.root.Lstat(name)
	if err == nil {
		err = f.root.Remove(name)
	}
	if err != nil {
		return ignoreMissing(err)
	}
	f.grow(-info.Size())
	f.files--
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
