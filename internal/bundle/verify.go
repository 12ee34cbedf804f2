package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// What a verification finds of a file.
const (
	FileMissing = "missing"
	FileChanged = "changed"
	FileAdded   = "added"
	FileUnread  = "not readable"
)

// Problem is a file that does not match the manifest.
type Problem struct {
	Path string `json:"path"` // relative to the bundle
	What string `json:"what"` // FileMissing, …
	Text string `json:"text"`
}

// Verification is the result of comparing a bundle with its manifest.
type Verification struct {
	// Files and Bytes count what the manifest lists, without the ledger.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Manifest is the SHA-256 of manifest.json. A user who can change a file can change the manifest too: only a digest
	// that is kept elsewhere shows that.
	Manifest string    `json:"manifestSHA256"`
	Problems []Problem `json:"problems"`
}

// Err returns the problems as one error with a line for each, also where a name has line breaks; nil if there are none.
func (v *Verification) Err() error {
	var errs []error
	for _, p := range v.Problems {
		errs = append(errs, errors.New(strings.ReplaceAll(p.Text, "\n", `\n`)))
	}
	return errors.Join(errs...)
}

func (v *Verification) add(what, rel, format string, args ...any) {
	v.Problems = append(v.Problems, Problem{rel, what, fmt.Sprintf("bundle: "+format, args...)})
}

// Check compares the files with the manifest and names each one that is missing, changed, or was added after the
// close. The error is for a bundle without a manifest, which cannot be verified, and for a damaged manifest.
func (b *Bundle) Check() (*Verification, error) {
	var m manifest
	if err := readJSON(b.dir(), manifestFile, &m); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("bundle: %s has no %s: it was never closed and cannot be verified", b.Dir, manifestFile)
		}
		return nil, fmt.Errorf("bundle: %w", err)
	}
	text, err := b.ReadFile(manifestFile, maxJSON)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	sum := sha256.Sum256(text)
	v := &Verification{Files: len(m.Files), Manifest: hex.EncodeToString(sum[:]), Problems: []Problem{}}
	known := make(map[string]bool)
	for _, want := range m.Files {
		known[want.Path] = true
		v.Bytes += want.Bytes
		v.file(b.Dir, want)
	}
	if err := VerifyLedger(b.Dir); err != nil {
		what := FileChanged
		if errors.As(err, new(*os.PathError)) && !errors.Is(err, os.ErrNotExist) {
			what = FileUnread
		}
		v.Problems = append(v.Problems, Problem{ledgerFile, what, err.Error()})
	}
	files, err := listFiles(b.Dir, true, inManifest)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	for _, rel := range files {
		if !known[rel] {
			v.add(FileAdded, rel, "%s was added after the bundle was closed", filepath.Join(b.Dir, rel))
		}
	}
	return v, nil
}

// file compares one file with its entry.
func (v *Verification) file(dir string, want manifestEntry) {
	path := filepath.Join(dir, want.Path)
	if !filepath.IsLocal(filepath.FromSlash(want.Path)) {
		v.add(FileChanged, want.Path, "the manifest names %q outside the bundle", want.Path)
		return
	}
	var got manifestEntry
	info, err := bounded.Dir(dir).Lstat(want.Path)
	if err == nil && info.Mode().IsRegular() && info.Size() != want.Bytes {
		got.Bytes = info.Size() // enough to know
	} else if err == nil {
		got, err = digest(dir, want.Path, false)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		v.add(FileMissing, want.Path, "%s is missing", path)
	case err != nil:
		v.add(FileUnread, want.Path, "%v", err)
	case got != want:
		v.add(FileChanged, want.Path, "%s has changed since the bundle was closed (%d bytes, were %d)", path, got.Bytes,
			want.Bytes)
	}
}

// Verify is Check with all problems in one error.
func (b *Bundle) Verify() error {
	v, err := b.Check()
	if err != nil {
		return err
	}
	return v.Err()
}
