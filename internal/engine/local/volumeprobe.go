package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// touch proves that the volume is of use: a first durable write that leaves
// nothing behind, or, for a volume that came with data or is a block device, a
// first read.
func (v *volume) touch(ctx context.Context, hasData bool) error {
	var err error
	name := op.FirstWrite
	if hasData || v.block() || v.readOnly {
		name = op.FirstRead
		err = firstRead(v.targetPath)
	} else {
		err = firstWrite(v.targetPath)
	}
	if err != nil {
		return &engine.Error{Code: "IO", Message: fmt.Sprintf("%s on %s: %v", name, v.object.Name, err), Err: err}
	}
	mark(ctx, name)
	return nil
}

// firstWrite writes and syncs one block of a file that has no name, where the
// file system can do that, else of one that is removed at once.
func firstWrite(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	f := os.NewFile(uintptr(fd), dir)
	if err != nil {
		if f, err = os.CreateTemp(dir, ".cnsbench-*"); err != nil {
			return err
		}
		if err := os.Remove(f.Name()); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	_, err = f.Write(make([]byte, 4096))
	return errors.Join(err, f.Sync(), f.Close())
}

// firstRead reads the first block of a device, or of the first regular file
// of a file system; one without files is read as far as its directory.
func firstRead(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return readBlock(path)
	}
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if err := readBlock(p); err != nil {
			return err
		}
		return fs.SkipAll
	})
}

func readBlock(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.ReadFull(f, make([]byte, 4096))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // a short file was read whole
	}
	return errors.Join(err, f.Close())
}
