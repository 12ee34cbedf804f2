// Package volume writes a stream of package integrity to a volume, and reads what a volume has of one.
package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Name is the file of the blocks on a volume with a file system.
const Name = "cnsbench.blocks"

// file is the file of the blocks, or a block device.
type file struct {
	*os.File
	dir string // to be synced after the file was created; empty: a device
}

// open opens the blocks at path: a directory on the volume, or its device. With direct it bypasses the page cache where
// the file system can do that.
func open(path string, flags int, direct bool) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f := &file{}
	if info.IsDir() {
		f.dir, path = path, filepath.Join(path, Name)
	}
	if direct {
		if f.File, err = os.OpenFile(path, flags|unix.O_DIRECT, 0o644); err == nil {
			if _, err = f.ReadAt(buffer(align), 0); !errors.Is(err, unix.EINVAL) {
				return f, nil // other errors come again where the block is read
			}
			err = errors.Join(err, f.Close())
		}
		if !errors.Is(err, unix.EINVAL) { // of the open or, on some file systems, of the read
			return nil, err
		}
	}
	f.File, err = os.OpenFile(path, flags, 0o644)
	return f, err
}

// align is the alignment of direct I/O.
const align = 4096

// chunk is how much is read or filled at once: a multiple of each block size.
const chunk = 1 << 20

// buffer returns memory that is aligned for direct I/O.
func buffer(size int) []byte {
	raw := make([]byte, size+align)
	skip := int(-uintptr(unsafe.Pointer(&raw[0])) % align)
	return raw[skip : skip+size]
}

// readChunk reads a chunk; bytes behind the end of the file are 0. It returns io.EOF when there is nothing to read.
func (f *file) readChunk(b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	clear(b[n:])
	if errors.Is(err, io.EOF) && n > 0 {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s at %d: %w", f.Name(), at, err)
	}
	return err
}

// syncDir makes a new file durable.
func (f *file) syncDir() error {
	if f.dir == "" {
		return nil
	}
	d, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// isAbsent reports that a volume has no file of blocks.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
