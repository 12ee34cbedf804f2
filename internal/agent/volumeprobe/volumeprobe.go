// Package volumeprobe does the first I/O on a volume: the proof that it is of use,
// and the instant from which it is. Nothing of it remains.
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

// block is the size of a first I/O, and what O_DIRECT is aligned to.
const block = 4096

// Do carries out what s asks for, first the write, then the read, and passes
// on each when it has ended, whichever way. now is the agent's clock.
func Do(s protocol.TouchSpec, now func() int64, done func(protocol.Touched)) {
	once := func(write bool, io func() error) {
		t := protocol.Touched{Volume: s.Volume, Write: write, Began: now()}
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
				return fmt.Errorf("%s is a device: nothing is written to it", s.Path)
			}
			return firstWrite(s.Path)
		})
	}
	if s.Read {
		once(false, func() error { return firstRead(s.Path) })
	}
}

// firstWrite makes one block durable in a file that has no name, where the
// file system can do that, else in one that loses its name before it is written.
func firstWrite(dir string) error {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		f, err = unnamed(dir)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, block))
	return errors.Join(err, f.Sync(), f.Close())
}

// unnamed makes a file in dir and takes its name away.
func unnamed(dir string) (*os.File, error) {
	name := fmt.Sprintf("%s/.cnsbench-touch-%x", dir, rand.Uint64())
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// firstRead reads the first block of a device, or of the first file of a file
// system that has any bytes and may be read; without one, its directories have
// been read.
func firstRead(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return readBlock(path)
	}
	var refused error // of the files that are there
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

// readBlock reads past the page cache where that can be done, so that the
// bytes come from the volume.
func readBlock(path string) error {
	err := readWith(path, unix.O_DIRECT)
	if errors.Is(err, unix.EINVAL) { // when opened or, with some file systems, when read
		err = readWith(path, 0)
	}
	return err
}

func readWith(path string, flags int) error {
	f, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
	if err != nil {
		return err
	}
	n, err := f.ReadAt(aligned(), 0)
	if errors.Is(err, io.EOF) {
		if err = nil; n == 0 {
			err = fmt.Errorf("there is not a byte in %s", path)
		}
	}
	return errors.Join(err, f.Close())
}

// aligned is a block of memory at a multiple of its size.
func aligned() []byte {
	raw := make([]byte, 2*block)
	skip := block - int(uintptr(unsafe.Pointer(&raw[0]))%block)
	return raw[skip : skip+block]
}
