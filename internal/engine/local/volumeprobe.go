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

// probe makes the first write on the volume, which leaves nothing behind, or the first read if the volume has
// data, is a block device or is read-only.
func (v *volume) probe(ctx context.Context, hasData bool) error {
	name, do := op.FirstWrite, firstWrite
	if hasData || v.block() || v.readOnly {
		name, do = op.FirstRead, firstRead
	}
	path, err := filepath.EvalSymlinks(v.targetPath)
	if err == nil {
		err = do(path)
	}
	if err != nil {
		return &engine.Error{Code: "IO", Message: fmt.Sprintf("%s on %s: %v", name, v.object.Name, err), Err: err}
	}
	mark(ctx, name)
	return nil
}

// firstWrite writes and syncs one block in an unnamed file (O_TMPFILE) or, where the file system lacks those,
// in a file that is unlinked before the write.
func firstWrite(dir string) error {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
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

// firstRead reads the first block of a device, or of the first regular file of a file system.
// Without such a file, reading the directories is enough.
func firstRead(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return readBlock(path)
	}
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if err := readBlock(p); err != nil {
			return err
		}
		return fs.SkipAll
	})
}

// readBlock reads up to 4 KiB through the page cache.
func readBlock(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.ReadFull(f, make([]byte, 4096))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // short files are fine
		err = nil
	}
	return errors.Join(err, f.Close())
}
