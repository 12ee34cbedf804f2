package results

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// Limits bound what a bundle may take. Zero fields mean the defaults.
type Limits struct {
	RunBytes int64 // all files of a run; default 64 GiB
	RunFiles int   // default 100 000
}

func (l Limits) orDefault() Limits {
	if l.RunBytes == 0 {
		l.RunBytes = 64 << 30
	}
	if l.RunFiles == 0 {
		l.RunFiles = 100_000
	}
	return l
}

// Folder is a bundle's directory as one end of a copy. Reading takes no lock;
// writers follow one another. Nothing outside the directory can be reached.
type Folder struct {
	root   *os.Root
	limits Limits

	mu     sync.Mutex // one writer at a time
	lock   *os.File   // says to record.Open that a run is writing; nil: not taken
	bytes  int64      // of all files, once lock was taken
	files  int
	frozen bool // closed: only files outside the manifest may change
}

// OpenFolder opens a directory that exists. Close gives it back.
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

// Lock marks the bundle as being written to, as the run itself would: readers
// then show it as live. ErrBusy if another process does so. It is taken by the
// first write and idempotent.
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
	files, err := f.Files(context.Background()) // not to be given up: half a count is none
	for _, file := range files {
		f.bytes += file.Size
		f.files++
	}
	return err
}

// Unlock takes the mark of Lock away.
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

// Freeze refuses changes of the bundle from now on, but of the files that its
// manifest does not list.
func (f *Folder) Freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = true
}

// allowed takes the lock for a change of a file, or refuses it.
func (f *Folder) allowed(name string) error {
	switch {
	case !f.frozen:
		return f.lockHeld()
	case afterClose(name):
		return nil // nobody's run: a clean-up
	}
	return fmt.Errorf("results: %s: %w", name, ErrClosed)
}

// Files lists the bundle's files in order of their path.
func (f *Folder) Files(ctx context.Context) ([]File, error) {
	files := []File{}
	err := fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name != "." {
			return nil // it went while we looked
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if ours := checkPath(name) == nil; !ours || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went while we looked
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

// Read opens a file at an offset. What it yields ends where the file ended at
// the call; fs.ErrNotExist is in the error of a file that is not there,
// *OffsetError in that of an offset behind its end.
func (f *Folder) Read(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	r, _, err := f.open(name, offset)
	return r, err
}

type section struct {
	*io.SectionReader
	io.Closer
}

// open is Read with the size of the file.
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

// openRegular opens a regular file and nothing else: a pipe would block.
func (f *Folder) openRegular(name string, flags int) (*os.File, int64, error) {
	if info, err := f.root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("results: %s: %w: it is no regular file", name, ErrName)
	}
	file, err := f.root.OpenFile(name, flags, 0o644)
	if err != nil {
		return nil, 0, fmt.Errorf("results: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("results: %w", err), file.Close())
	}
	return file, info.Size(), nil
}

// Append writes b at the end of a file, which must be at offset, and returns
// its size when that is on disk. If the end is elsewhere, the error is an
// *OffsetError, and what lies before its Size is on disk.
func (f *Folder) Append(_ context.Context, name string, offset int64, b []byte) (int64, error) {
	if err := checkPath(name); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	isNew, err := f.room(name, int64(len(b)))
	if err != nil {
		return 0, err
	}
	file, size, err := f.openRegular(name, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return 0, err
	}
	if offset != size {
		err = &OffsetError{size}
	} else if _, werr := file.WriteAt(b, offset); werr != nil {
		err = errors.Join(fmt.Errorf("results: %w", werr), file.Truncate(size))
	} else {
		size += int64(len(b))
		f.bytes += int64(len(b))
	}
	serr := errors.Join(unix.Fdatasync(int(file.Fd())), file.Close())
	if isNew {
		f.files++
		serr = errors.Join(serr, f.syncDir(path.Dir(name)))
	}
	if serr != nil {
		return 0, fmt.Errorf("results: sync %s: %w", name, serr)
	}
	return size, err
}

// room says whether the file is new, makes its directory then, and checks that
// the run may grow by n bytes.
func (f *Folder) room(name string, n int64) (isNew bool, err error) {
	if err := f.allowed(name); err != nil {
		return false, err
	}
	if f.bytes+n > f.limits.RunBytes {
		return false, fmt.Errorf("results: %w: the run has %d bytes, %d more are over the limit of %d", ErrTooLarge, f.bytes, n, f.limits.RunBytes)
	}
	if _, err := f.root.Lstat(name); err == nil {
		return false, nil
	}
	if f.files >= f.limits.RunFiles {
		return false, fmt.Errorf("results: %w: the run has %d files, which is the limit", ErrTooLarge, f.files)
	}
	if err := f.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return false, fmt.Errorf("results: %w", err)
	}
	return true, nil
}

func (f *Folder) syncDir(dir string) error {
	d, err := f.root.Open(dir)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// Replace puts all that r yields in a file's place, durably: a reader meets the
// old content or the new. An error of r leaves the old.
func (f *Folder) Replace(_ context.Context, name string, r io.Reader) error {
	if err := checkPath(name); err != nil {
		return err
	}
	tmp := name + "." + rand.Text()[:8] + tmpSuffix
	n, err := f.writeBeside(tmp, r)
	if err == nil {
		err = f.put(tmp, name, n)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(f.root.Remove(tmp)))
	}
	return nil
}

// writeBeside writes a file that is not yet part of the bundle. It does not
// hold the lock: r may be slow.
func (f *Folder) writeBeside(tmp string, r io.Reader) (n int64, err error) {
	if err := f.root.MkdirAll(path.Dir(tmp), 0o755); err != nil {
		return 0, fmt.Errorf("results: %w", err)
	}
	file, err := f.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return 0, fmt.Errorf("results: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	n, err = io.Copy(file, io.LimitReader(r, f.limits.RunBytes+1))
	if err != nil {
		return n, fmt.Errorf("results: write %s: %w", tmp, err)
	}
	return n, file.Sync()
}

// put renames a file of n bytes to its name.
func (f *Folder) put(tmp, name string, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var old int64
	if info, err := f.root.Lstat(name); err == nil {
		old = info.Size()
	}
	isNew, err := f.room(name, n-old)
	if err != nil {
		return err
	}
	if err := f.root.Rename(tmp, name); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	f.bytes += n - old
	if isNew {
		f.files++
	}
	return f.syncDir(path.Dir(name))
}

// Remove removes a file; one that is not there is none to remove.
func (f *Folder) Remove(_ context.Context, name string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.allowed(name); err != nil {
		return err
	}
	info, err := f.root.Lstat(name)
	if err == nil {
		err = f.root.Remove(name)
	}
	if err != nil {
		return ignoreMissing(err)
	}
	f.bytes -= info.Size()
	f.files--
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// manifest is manifest.json, see docs/format/bundle.md.
type manifest struct {
	Format int `json:"format"`
	Files  []struct {
		Path   string `json:"path"`
		Bytes  int64  `json:"bytes"`
		SHA256 string `json:"sha256"`
	} `json:"files"`
}

// Seal compares every file with a manifest. Where all are as it says, it is
// written, which makes the bundle complete and freezes it; else the differences
// are returned and nothing changes.
func (f *Folder) Seal(ctx context.Context, text []byte) ([]Difference, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	differences, err := f.compare(ctx, text)
	if err != nil || len(differences) > 0 {
		return differences, err
	}
	f.frozen = true
	if old, err := f.root.ReadFile(manifestFile); err == nil && bytes.Equal(old, text) {
		return nil, nil
	}
	tmp := manifestFile + tmpSuffix
	if err := ignoreMissing(f.root.Remove(tmp)); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if _, err := f.writeBeside(tmp, bytes.NewReader(text)); err != nil {
		return nil, err
	}
	if err := f.root.Rename(tmp, manifestFile); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return nil, f.syncDir(".")
}

// Compare says which files are not as a manifest says.
func (f *Folder) compare(ctx context.Context, text []byte) ([]Difference, error) {
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("results: %w: the manifest cannot be read: %w", ErrName, err)
	}
	if m.Format < 1 || len(m.Files) == 0 {
		return nil, fmt.Errorf("results: %w: this is no manifest: it has no format or no files", ErrName)
	}
	differences := []Difference{}
	known := map[string]bool{manifestFile: true}
	for _, want := range m.Files {
		known[want.Path] = true
		if err := checkPath(want.Path); err != nil {
			return nil, fmt.Errorf("the manifest: %w", err)
		}
		sum, n, err := f.digest(ctx, want.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			differences = append(differences, Difference{want.Path, Missing})
		case err != nil:
			return nil, err
		case sum != want.SHA256 || n != want.Bytes:
			differences = append(differences, Difference{want.Path, Differs})
		}
	}
	files, err := f.Files(ctx)
	for _, file := range files {
		if !known[file.Path] && !afterClose(file.Path) {
			differences = append(differences, Difference{file.Path, NotInManifest})
		}
	}
	return differences, err
}

func (f *Folder) digest(ctx context.Context, name string) (string, int64, error) {
	file, _, err := f.openRegular(name, os.O_RDONLY)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	h := sha256.New()
	n, err := io.Copy(h, &cancelable{ctx, file})
	if err != nil {
		return "", 0, fmt.Errorf("results: read %s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// cancelable ends a long read with its context.
type cancelable struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelable) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
