// Package volumeprobe performs the first I/O on a volume, which shows when the volume is usable. It leaves
// nothing on the volume.
package volumeprobe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// block is the size of a probe's I/O and the alignment of O_DIRECT.
const block = 4096

// Run performs the I/O that s asks for, first the write, then the read, and reports each result, also a
// failed one. now is the agent's clock.
func Run(s protocol.VolumeProbeSpec, now func() int64, done func(protocol.VolumeProbe)) {
	once := func(write bool, io func() error) {
		t := protocol.VolumeProbe{Volume: s.Volume, Write: write, Began: now()}
		err := io()
		t.At = now()
		if err != nil {
			var errno unix.Errno
			_ = errors.As(err, &errno)
			t.Errno, t.Message = int(errno), err.Error()
		}
		done(t)
	}
	if s.Write {
		once(true, func() error {
			if s.Device {
				return fmt.Errorf("%s is a device: not written to", s.Path)
			}
			return FirstWrite(s.Path)
		})
	}
	if s.Read {
		once(false, func() error { return FirstRead(s.Path) })
	}
}

// FirstWrite writes and syncs one block in an unnamed file (O_TMPFILE) or, where the file system lacks those,
// in a file that is unlinked before the write.
func FirstWrite(dir string) error {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		f, err = createUnnamed(dir)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, block))
	return errors.Join(err, f.Sync(), f.Close())
}

// Prefix begins the names of the files that FirstWrite makes and unlinks.
const Prefix = ".cnsbench-touch-"

// createUnnamed creates a file in dir and unlinks it.
func createUnnamed(dir string) (*os.File, error) {
	name := fmt.Sprintf("%s/%s%x", dir, Prefix, rand.Uint64())
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// FirstRead reads the first block of a device, or of the first non-empty readable file of a file system.
// Without such a file, reading the directories is enough.
func FirstRead(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return readBlock(path)
	}
	var refused error // by the files found so far
	left := maxEntries
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		left--
		switch {
		case err != nil && p == path:
			return err
		case left == 0:
			return fs.SkipAll
		case err != nil: // lost+found is root's
			return fs.SkipDir
		case !d.Type().IsRegular() || isEmpty(d):
			return nil
		}
		if refused = readBlock(p); refused == nil {
			return fs.SkipAll
		}
		return nil
	})
	return errors.Join(err, refused)
}

// maxEntries bounds the search for a file.
const maxEntries = 4096

func isEmpty(d fs.DirEntry) bool {
	info, err := d.Info()
	return err == nil && info.Size() == 0
}

// readBlock reads with O_DIRECT where possible, so that the bytes come from the volume.
func readBlock(path string) error {
	err := readBlockWith(path, unix.O_DIRECT)
	if errors.Is(err, unix.EINVAL) { // from open or, on some file systems, from read
		err = readBlockWith(path, 0)
	}
	return err
}

func readBlockWith(path string, flags int) error {
	f, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
	if err != nil {
		return err
	}
	n, err := f.ReadAt(aligned(), 0)
	if errors.Is(err, io.EOF) {
		if err = nil; n == 0 {
			err = fmt.Errorf("%s is empty", path)
		}
	}
	return errors.Join(err, f.Close())
}

// aligned returns a block of memory aligned to its size.
func aligned() []byte {
	raw := make([]byte, 2*block)
	skip := block - int(uintptr(unsafe.Pointer(&raw[0]))%block)
	return raw[skip : skip+block]
}
