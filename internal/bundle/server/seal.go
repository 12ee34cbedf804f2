package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// maxDifferences bounds the reported differences.
const maxDifferences = 1000

// maxManifestKeys bounds the keys of a manifest.
const maxManifestKeys = 100

// manifestEntry is a file in manifest.json, see docs/format/bundle.md.
type manifestEntry struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Seal compares every file with a manifest. If all match, it writes the manifest, which completes and freezes
// the bundle; otherwise it returns the differences (at most maxDifferences) and changes nothing.
func (f *Folder) Seal(ctx context.Context, text []byte) ([]Difference, error) {
	return f.sealFrom(ctx, bytes.NewReader(text), int64(len(text)))
}

// sealFrom is Seal with a received manifest of announced length, -1: unknown.
func (f *Folder) sealFrom(ctx context.Context, r io.Reader, announced int64) (differences []Difference, err error) {
	u, err := f.receive(manifestFile, r, announced)
	if err != nil {
		return nil, err
	}
	err = u.finish(func() error {
		if f.frozen { // closed by another request meanwhile
			return f.sealedAs(u.tmp)
		}
		if differences, err = f.compare(ctx, u.tmp); err != nil || len(differences) > 0 {
			return err
		}
		f.frozen = true
		if err := f.root.Rename(u.tmp, manifestFile); err != nil {
			return fmt.Errorf("results: %w", err)
		}
		return f.syncDir(".")
	})
	return differences, err
}

func (f *Folder) sealedAs(name string) error {
	file, err := f.root.Open(name)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	defer file.Close()
	same, err := f.sealed(file)
	if err == nil && !same {
		err = ErrClosed
	}
	return err
}

// sealed reports whether r is the manifest of the closed bundle.
func (f *Folder) sealed(r io.Reader) (bool, error) {
	file, size, err := f.openRegular(manifestFile, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer file.Close()
	given, n, err := sum(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return false, fmt.Errorf("results: receive %s: %w", manifestFile, err)
	}
	have, _, err := sum(file)
	return err == nil && n == size && given == have, err
}

// compare lists the files that do not match a manifest, without holding the untrusted manifest in memory.
func (f *Folder) compare(ctx context.Context, manifest string) ([]Difference, error) {
	file, err := f.root.Open(manifest)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	defer file.Close()
	c := comparison{f: f, ctx: ctx, known: map[[sha256.Size]byte]bool{}, differences: []Difference{}}
	if err := c.entries(json.NewDecoder(file)); err != nil {
		return nil, err
	}
	files, err := f.Files(ctx)
	for _, file := range files {
		if !c.known[sha256.Sum256([]byte(file.Path))] && !mayChangeAfterClose(file.Path) {
			c.differs(file.Path, NotInManifest)
		}
	}
	return c.differences, err
}

type comparison struct {
	f           *Folder
	ctx         context.Context
	known       map[[sha256.Size]byte]bool // hashes of the names, which may be long
	differences []Difference
}

func (c *comparison) differs(name, reason string) {
	if name != manifestFile && len(c.differences) < maxDifferences {
		c.differences = append(c.differences, Difference{name, reason})
	}
}

// keys are those of an object. Readers of a manifest fold the case of keys, and take the last of equal ones.
type keys map[string]bool

// add refuses a key that was there, and one that readers take for files or format.
func (k keys) add(token json.Token) error {
	key, _ := token.(string)
	for _, name := range []string{"files", "format"} {
		if key != name && strings.EqualFold(key, name) {
			return fmt.Errorf("key %q: want %q", clip(key), name)
		}
	}
	switch {
	case k[key]:
		return fmt.Errorf("key %q twice", clip(key))
	case len(k) == maxManifestKeys:
		return fmt.Errorf("more than %d keys", maxManifestKeys)
	}
	k[key] = true
	return nil
}

// entries reads a manifest, one file at a time.
func (c *comparison) entries(d *json.Decoder) error {
	format, seen := 0, keys{}
	bad := func(err error) error {
		return fmt.Errorf("results: %w: decode the manifest: %w", ErrName, err)
	}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return bad(errors.Join(err, errors.New("want an object")))
	}
	for d.More() {
		key, err := d.Token()
		if err == nil {
			err = seen.add(key)
		}
		if err != nil {
			return bad(err)
		}
		switch key {
		case "format":
			err = d.Decode(&format)
		case "files":
			if t, terr := d.Token(); terr != nil || t != json.Delim('[') {
				return bad(errors.Join(terr, errors.New("files: want a list")))
			}
			for d.More() {
				var e manifestEntry
				if err := d.Decode(&e); err != nil {
					return bad(err)
				}
				if err := c.entry(e); err != nil {
					return err
				}
			}
			_, err = d.Token()
		default:
			var ignored json.RawMessage
			err = d.Decode(&ignored)
		}
		if err != nil {
			return bad(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return bad(err)
	}
	if format < 1 || len(c.known) == 0 {
		return fmt.Errorf("results: %w: manifest without format or files", ErrName)
	}
	return nil
}

func (c *comparison) entry(want manifestEntry) error {
	if err := checkPath(want.Path); err != nil {
		return fmt.Errorf("the manifest: %w", err)
	}
	key := sha256.Sum256([]byte(want.Path))
	if c.known[key] {
		return fmt.Errorf("results: %w: the manifest has %q twice", ErrName, clip(want.Path))
	}
	c.known[key] = true
	if len(c.known) > c.f.limits.RunFiles {
		return fmt.Errorf("results: %w: the manifest has more than %d files", ErrTooLarge, c.f.limits.RunFiles)
	}
	got, n, err := c.f.digest(c.ctx, want.Path, want.Bytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.differs(want.Path, Missing)
	case err != nil:
		return err
	case got != want.SHA256 || n != want.Bytes:
		c.differs(want.Path, Differs)
	}
	return nil
}

// digest hashes a file; it does not read one of another size.
func (f *Folder) digest(ctx context.Context, name string, size int64) (string, int64, error) {
	file, n, err := f.openRegular(name, os.O_RDONLY)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	if n != size {
		return "", n, nil
	}
	text, n, err := sum(&contextReader{ctx, file})
	if err != nil {
		return "", 0, fmt.Errorf("results: read %s: %w", name, err)
	}
	return text, n, nil
}

func sum(r io.Reader) (text string, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// contextReader ends a long read with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
