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

// incomingDir is where files lie while they are received, inside a bundle's
// directory but no part of the bundle.
const incomingDir = ".incoming"

const (
	// maxRunFile bounds run.json, which is read whole.
	maxRunFile = 8 << 20
	// maxRunValues bounds the JSON values in it: each takes more memory than text.
	maxRunValues = 200_000
	// maxManifest bounds the manifest.
	maxManifest = 32 << 20
	// maxDocument bounds the other files that readers of a bundle read whole.
	maxDocument = 32 << 20
)

// document says that a file is read whole by whoever reads the bundle.
func document(name string) bool { return !strings.Contains(name, "/") && path.Ext(name) == ".json" }

// checkAppend refuses names that cannot be appended to.
func checkAppend(name string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	if document(name) {
		return fmt.Errorf("%w: file %q is replaced whole (?replace=1)", ErrName, clip(name))
	}
	return nil
}

// largest is how large one file may be; 0: as large as the run.
func largest(name string) int64 {
	switch {
	case name == runFile:
		return maxRunFile
	case name == manifestFile:
		return maxManifest
	case document(name):
		return maxDocument
	}
	return 0
}

// Replace puts all that r yields in a file's place, durably: a reader meets the
// old content or the new. An error of r leaves the old.
func (f *Folder) Replace(_ context.Context, name string, r io.Reader) error {
	return f.replace(name, r, -1)
}

// replace is Replace of announced bytes; -1: not known.
func (f *Folder) replace(name string, r io.Reader, announced int64) error {
	u, err := f.receive(name, r, announced)
	if err != nil {
		return err
	}
	return u.finish(u.put)
}

// upload is a file that is received: written beside the bundle, and counted as
// if it were part of it. finish ends it.
type upload struct {
	f         *Folder
	name, tmp string
	n         int64
}

// receive writes what r yields into a file of its own. What cannot be kept is
// refused before it is written. The folder's lock is not held: r may be slow.
func (f *Folder) receive(name string, r io.Reader, announced int64) (*upload, error) {
	if err := checkPath(name); err != nil {
		return nil, err
	}
	u := &upload{f: f, name: name, tmp: path.Join(incomingDir, rand.Text())}
	file, err := u.begin(announced)
	if err != nil {
		return nil, err
	}
	err = u.fill(file, r)
	if err == nil && name == runFile {
		err = checkValues(file, maxRunValues)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, u.finish(func() error { return err })
	}
	return u, nil
}

// begin makes the file, if so many bytes may come.
func (u *upload) begin(announced int64) (*os.File, error) {
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	if err := u.f.allowed(u.name); err != nil {
		return nil, err
	}
	if err := u.mayHave(max(announced, 0)); err != nil {
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

// mayHave says whether n more bytes may come. The file in whose place it is put
// makes room only then: the run may take its limit and that file, no more.
func (u *upload) mayHave(n int64) error {
	if most := largest(u.name); most > 0 && u.n+n > most {
		return fmt.Errorf("%w: %s may have %d bytes", ErrTooLarge, u.name, most)
	}
	old := int64(0)
	info, err := u.f.root.Lstat(u.name)
	if err == nil {
		old = info.Size()
	} else if u.f.files >= u.f.limits.RunFiles {
		return fmt.Errorf("%w: the run has %d files, which is the limit", ErrTooLarge, u.f.files)
	}
	return u.f.fits(n - old)
}

// fill writes the file, asking for each piece whether it may come.
func (u *upload) fill(file *os.File, r io.Reader) error {
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

// readPiece fills b unless r ends before. What breaks off has not ended.
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
	if err := u.f.allowed(u.name); err != nil { // it may have been closed meanwhile
		return err
	}
	if err := u.mayHave(n); err != nil {
		return err
	}
	u.n += n
	u.f.coming += n
	return nil
}

// finish ends the upload: by use, under the folder's lock, then what is left is
// removed.
func (u *upload) finish(use func() error) error {
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	u.f.coming -= u.n
	err := use()
	err = errors.Join(err, ignoreMissing(u.f.root.Remove(u.tmp)))
	_ = u.f.root.Remove(incomingDir) // unless others are on their way
	return err
}

// put renames the file to its name. The folder's lock is held.
func (u *upload) put() error {
	f := u.f
	var old int64
	if info, err := f.root.Lstat(u.name); err == nil {
		old = info.Size()
	}
	isNew, err := f.room(u.name, u.n-old)
	if err != nil {
		return err
	}
	if err := f.root.Rename(u.tmp, u.name); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	f.bytes += u.n - old
	if isNew {
		f.files++
	}
	return f.syncDir(path.Dir(u.name))
}

// checkValues refuses JSON of more than limit values, without holding it.
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
