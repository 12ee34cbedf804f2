package bundle

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
)

// OutputsDir has the files of outputs, which are derived from the bundle after its close.
const OutputsDir = "outputs"

// WriteOutput writes the file name in OutputsDir: beside it, synced and renamed, so that it is never partial. The
// manifest of a complete bundle then lists it. It does not follow symbolic links out of dir.
func WriteOutput(dir, name string, write func(io.Writer) error) error {
	rel := path.Join(OutputsDir, name)
	if !fs.ValidPath(name) || name == "." || isTemporary(rel) {
		return fmt.Errorf("bundle: invalid name %q of an output: want a clean relative path", name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer root.Close()
	if err := replace(root, rel, write); err != nil {
		return fmt.Errorf("bundle: write %s: %w", filepath.Join(dir, rel), err)
	}
	if !pathExists(filepath.Join(dir, manifestFile)) {
		return nil
	}
	return amendManifest(dir, rel)
}

// replace writes a file whole.
func replace(root *os.Root, rel string, write func(io.Writer) error) (err error) {
	if err := root.MkdirAll(path.Dir(rel), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(rel+tmpSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 256<<10)
	if err = write(out); err == nil {
		err = errors.Join(out.Flush(), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, root.Remove(rel+tmpSuffix))
	}
	if err := root.Rename(rel+tmpSuffix, rel); err != nil {
		return err
	}
	d, err := root.Open(path.Dir(rel))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// HasOutput reports whether WriteOutput wrote name to its end.
func (b *Bundle) HasOutput(name string) bool {
	rel := path.Join(OutputsDir, name)
	var m manifest
	if err := readJSON(b.path(manifestFile), &m); err == nil {
		return slices.ContainsFunc(m.Files, func(e manifestEntry) bool { return e.Path == rel })
	}
	return pathExists(b.path(rel))
}
