package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

const (
	// maxRunFile bounds run.json, which is read whole.
	maxRunFile = 8 << 20
	// maxRunValues bounds its JSON values, each of which takes more memory than text.
	maxRunValues = 200_000
	// maxManifest bounds the manifest.
	maxManifest = 32 << 20
	// maxDocument bounds the other files that readers of a bundle read whole.
	maxDocument = 32 << 20
)

// isDocument reports whether readers of the bundle read a file whole.
func isDocument(name string) bool { return !strings.Contains(name, "/") && path.Ext(name) == ".json" }

// checkAppend rejects files that cannot be appended to.
func checkAppend(name string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	if isDocument(name) {
		return fmt.Errorf("%w: file %q cannot be appended to: use ?replace=1", ErrName, clip(name))
	}
	return nil
}

// maxFileSize returns the maximum size of a file; 0: the run's limit.
func maxFileSize(name string) int64 {
	switch {
	case name == runFile:
		return maxRunFile
	case name == manifestFile:
		return maxManifest
	case isDocument(name):
		return maxDocument
	}
	return 0
}

// Replace replaces a file by the content of r, durably and atomically. An error of r keeps the old file.
func (f *Folder) Replace(_ context.Context, name string, r io.Reader) error {
	return f.replace(name, r, -1)
}

// replace is Replace with an announced length; -1: unknown.
func (f *Folder) replace(name string, r io.Reader, announced int64) error {
	u, err := f.receive(name, r, announced)
	if err != nil {
		return err
	}
	return u.finish(u.put)
}

// upload is a file being received: written beside the bundle and counted against its limits. finish ends it.
type upload struct {
	f         *Folder
	name, tmp string
	n         int64
}

// receive writes r to a temporary file. Data beyond the limits is refused before it is written. The folder's
// lock is not held, since r may be slow.
func (f *Folder) receive(name string, r io.Reader, announced int64) (*upload, error) {
	if err := checkPath(name); err != nil {
		return nil, err
	}
	u := &upload{f: f, name: name, tmp: path.Join(incomingDir, rand.Text())}
	file, err := u.createFile(announced)
	if err != nil {
		return nil, err
	}
	err = u.copyFrom(file, r)
	if err == nil && name == runFile {
		err = checkValues(file, maxRunValues)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, u.finish(func() error { return err })
	}
	return u, nil
}

// createFile creates the temporary file if the announced bytes may be received.
func (u *upload) createFile(announced int64) (*os.File, error) {
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	if err := u.f.checkWritable(u.name); err != nil {
		return nil, err
	}
	if err := u.checkLimits(max(announced, 0)); err != nil {
		return nil, err
	}
	if err := u.f.root.MkdirAll(incomingDir, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	file, err := u.f.root.OpenFile(u.tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return file, nil
}

// checkLimits reports whether n more bytes may be received. The run may exceed its limit by the file that is
// replaced, no more.
func (u *upload) checkLimits(n int64) error {
	if most := maxFileSize(u.name); most > 0 && u.n+n > most {
		return fmt.Errorf("%w: %s: want at most %d bytes", ErrTooLarge, u.name, most)
	}
	old := int64(0)
	info, err := u.f.root.Lstat(u.name)
	if err == nil {
		old = info.Size()
	} else if u.f.files >= u.f.limits.RunFiles {
		return fmt.Errorf("%w: the run has reached the limit of %d files", ErrTooLarge, u.f.files)
	}
	return u.f.fits(n - old)
}

// copyFrom writes the file and checks the limits for each piece.
func (u *upload) copyFrom(file *os.File, r io.Reader) error {
	b := make([]byte, pieceSize)
	for {
		n, end, err := readPiece(r, b)
		if err == nil {
			err = u.reserve(int64(n))
		}
		if err != nil {
			return fmt.Errorf("results: receive %s: %w", u.name, err)
		}
		if _, err := file.Write(b[:n]); err != nil {
			return fmt.Errorf("results: write %s: %w", u.name, err)
		}
		if end {
			return file.Sync()
		}
	}
}

// readPiece fills b unless r ends before; end reports io.EOF.
func readPiece(r io.Reader, b []byte) (n int, end bool, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	if errors.Is(err, io.EOF) {
		return n, true, nil
	}
	return n, false, err
}

func (u *upload) reserve(n int64) error {
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	if err := u.f.checkWritable(u.name); err != nil { // the run may have been closed meanwhile
		return err
	}
	if err := u.checkLimits(n); err != nil {
		return err
	}
	u.n += n
	u.f.expect(n)
	return nil
}

// finish ends the upload: it calls use under the folder's lock and removes the temporary file.
func (u *upload) finish(use func() error) error {
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	u.f.expect(-u.n)
	err := use()
	err = errors.Join(err, ignoreMissing(u.f.root.Remove(u.tmp)))
	_ = u.f.root.Remove(incomingDir) // fails if other uploads are pending
	return err
}

// put renames the file to its name. The caller holds the folder's lock.
func (u *upload) put() error {
	f := u.f
	var old int64
	if info, err := f.root.Lstat(u.name); err == nil {
		old = info.Size()
	}
	isNew, err := f.prepareWrite(u.name, u.n-old)
	if err != nil {
		return err
	}
	if err := f.root.Rename(u.tmp, u.name); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	f.grow(u.n - old)
	if isNew {
		f.files++
	}
	return f.syncDir(path.Dir(u.name))
}

// checkValues rejects JSON of more than limit values, without storing it.
func checkValues(file *os.File, limit int) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	d := json.NewDecoder(file)
	depth, ended := 0, 0
	for range limit {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && depth == 0 && ended == 1 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s: invalid JSON: %w", ErrName, runFile, err)
		}
		if depth == 0 && ended > 0 {
			return fmt.Errorf("%w: %s: more than one JSON value", ErrName, runFile)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			ended++
		}
	}
	return fmt.Errorf("%w: %s has more than %d values", ErrTooLarge, runFile, limit)
}
