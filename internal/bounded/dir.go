package bounded

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Dir is a directory that somebody else may have written, such as a bundle. The directory itself is what the user
// named, and may be a symbolic link. Names of files are relative to it and have slashes. Only regular files with one
// name are opened: never a link, a device or a named pipe, and nothing outside the directory; no method waits for
// another process. Errors are *fs.PathError with the whole path.
type Dir string

// ErrNotFile is wrapped by the error of a link, a device, a named pipe or a directory where a file is expected.
var ErrNotFile = errors.New("not a file")

// tmpSuffix is added to a name for the partially written replacement of a file.
const tmpSuffix = ".tmp"

// Path returns the path of a file for messages, and for programs that are not given hostile directories.
func (d Dir) Path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

// in calls do with the open directory.
func (d Dir) in(op, name string, do func(root *os.Root) error) error {
	// With a separator at its end, a named pipe is no directory, and does not block.
	root, err := os.OpenRoot(string(d) + string(filepath.Separator))
	if err == nil {
		err = errors.Join(do(root), root.Close())
	}
	if err == nil {
		return nil
	}
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &fs.PathError{Op: op, Path: d.Path(name), Err: err}
}

// Open opens a file for reading.
func (d Dir) Open(name string) (f *os.File, err error) {
	err = d.in("open", name, func(root *os.Root) error {
		f, err = OpenIn(root, name, os.O_RDONLY)
		return err
	})
	return f, err
}

// Append opens a file for reading, and for writing at its end. It creates one that is missing.
func (d Dir) Append(name string) (f *os.File, err error) {
	err = d.in("open", name, func(root *os.Root) error {
		f, err = OpenIn(root, name, os.O_RDWR|os.O_CREATE|os.O_APPEND)
		return err
	})
	return f, err
}

// Create makes a new file for writing, in the place of what had its name, and the directories above it.
func (d Dir) Create(name string) (f *os.File, err error) {
	err = d.in("create", name, func(root *os.Root) error {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		return err
	})
	return f, err
}

// Replace writes a file beside its place, syncs and renames it, so that a reader finds the old or the new one. After an
// error of write the old one is unchanged.
func (d Dir) Replace(name string, write func(io.Writer) error) error {
	f, err := d.Create(name + tmpSuffix)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 256<<10)
	if err = write(out); err == nil {
		err = errors.Join(out.Flush(), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.Rename(name+tmpSuffix, name)
	}
	if err != nil {
		return errors.Join(err, d.Remove(name+tmpSuffix))
	}
	return nil
}

// WriteFile is Replace by a text.
func (d Dir) WriteFile(name string, text []byte) error {
	return d.Replace(name, func(w io.Writer) error { _, err := w.Write(text); return err })
}

// Rename renames a file or a directory inside the directory, makes the directory above the new name, and syncs it.
func (d Dir) Rename(from, to string) error {
	return d.in("rename", to, func(root *os.Root) error {
		if err := root.MkdirAll(path.Dir(to), 0o755); err != nil {
			return err
		}
		return errors.Join(root.Rename(from, to), syncDir(root, path.Dir(to)))
	})
}

// Sync makes the names in a directory durable.
func (d Dir) Sync(name string) error {
	return d.in("sync", name, func(root *os.Root) error { return syncDir(root, name) })
}

// Remove removes a file, or whatever has its name, or an empty directory. A missing one is no error.
func (d Dir) Remove(name string) error {
	err := d.in("remove", name, func(root *os.Root) error { return root.Remove(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// MkdirAll makes a directory and those above it.
func (d Dir) MkdirAll(name string) error {
	return d.in("mkdir", name, func(root *os.Root) error { return root.MkdirAll(name, 0o755) })
}

// Lstat describes what has a name, without following it if it is a link.
func (d Dir) Lstat(name string) (info fs.FileInfo, err error) {
	err = d.in("lstat", name, func(root *os.Root) error {
		info, err = root.Lstat(name)
		return err
	})
	return info, err
}

// Has reports whether there is something of a name; it need not be a file.
func (d Dir) Has(name string) bool {
	_, err := d.Lstat(name)
	return err == nil
}

// ReadFile reads a file of at most most bytes.
func (d Dir) ReadFile(name string, most int64) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := ReadAll(f, most)
	if errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("%s: %w", f.Name(), err)
	}
	return b, errors.Join(err, f.Close())
}

// ReadDir lists a directory in order of names; "." is Dir itself.
func (d Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := d.OpenDir(name)
	if err != nil {
		return nil, err
	}
	list, err := f.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, errors.Join(err, f.Close())
}

// OpenDir opens a directory, to list, sync or lock it.
func (d Dir) OpenDir(name string) (f *os.File, err error) {
	err = d.in("open", name, func(root *os.Root) error {
		f, err = root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
		return err
	})
	return f, err
}

// Sub returns a directory inside the directory. A link to one outside is an error.
func (d Dir) Sub(name string) (Dir, error) {
	f, err := d.OpenDir(name)
	if err != nil {
		return "", err
	}
	return Dir(d.Path(name)), f.Close()
}

// FS returns the files and directories for reading.
func (d Dir) FS() fs.FS { return dirFS(d) }

type dirFS Dir

// Open implements fs.FS.
func (f dirFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	info, err := Dir(f).Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return Dir(f).OpenDir(name)
	}
	return Dir(f).Open(name)
}

// OpenIn opens a file below an open directory, as Dir does, with flags of os.OpenFile.
func OpenIn(root *os.Root, name string, flags int) (*os.File, error) {
	before, err := root.Lstat(name)
	if err == nil {
		err = checkRegular(before)
	}
	if err != nil && (flags&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	f, err := root.OpenFile(name, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = checkRegular(info)
	}
	if err == nil && before != nil && !os.SameFile(before, info) {
		err = errors.New("it was replaced while it was opened")
	}
	if err == nil {
		err = checkHoles(f, info.Size())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenRegular opens a regular file by its path, following symbolic links. It does not wait for a named pipe.
func OpenRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("it is %s, %w", kind(info.Mode()), ErrNotFile)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// LinkedFS has the regular files and the directories of a directory of the user, who may have linked them.
func LinkedFS(dir string) fs.FS { return linkedFS(dir) }

type linkedFS string

// Open implements fs.FS.
func (l linkedFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	full := Dir(l).Path(name)
	if info, err := os.Stat(full); err == nil && info.IsDir() {
		return os.Open(full + string(filepath.Separator))
	}
	return OpenRegular(full)
}

// checkRegular refuses what is not a regular file, or has names elsewhere.
func checkRegular(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is %s, %w", kind(info.Mode()), ErrNotFile)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return fmt.Errorf("the file has %d names (hard links): copy the directory with cp -r", st.Nlink)
	}
	return nil
}

// kind says what a mode is, for people.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// maxHoles is how much of a file may be holes, which have no data: they would be read for hours. Nothing that a run
// writes has any.
const maxHoles = 1 << 30

// The arguments of lseek for the next data and the next hole.
const (
	seekData = 3
	seekHole = 4
)

// checkHoles refuses a file with larger holes than maxHoles together, and leaves it at its start.
func checkHoles(f *os.File, length int64) error {
	for at, holes := int64(0), int64(0); length > maxHoles && at < length; {
		data, err := f.Seek(at, seekData)
		if errors.Is(err, syscall.ENXIO) {
			data, err = length, nil
		}
		if err != nil {
			break // the file system does not know
		}
		if holes += data - at; holes > maxHoles {
			return fmt.Errorf("the file of %s has holes without data (a sparse file): %w", size(length), ErrTooLarge)
		}
		if data >= length {
			break
		}
		if at, err = f.Seek(data, seekHole); err != nil {
			break
		}
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}

func syncDir(root *os.Root, name string) error {
	d, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
