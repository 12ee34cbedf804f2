package bundle

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// OutputsDir has the files of outputs, which are derived from the bundle after its close.
const OutputsDir = "outputs"

// WriteOutput writes the file name in OutputsDir: so that it is never partial. The manifest of a complete bundle then lists it. It does not follow symbolic links out of dir.
func WriteOutput(dir, name string, write func(io.Writer) error) error {
	rel := path.Join(OutputsDir, name)
	if !fs.ValidPath(name) || name == "." || isTemporary(rel) {
		return fmt.Errorf("bundle: invalid name %q of an output: want a clean relative path", name)
	}
	if err := bounded.Dir(dir).Replace(rel, write); err != nil {
		return fmt.Errorf("bundle: write %s: %w", filepath.Join(dir, rel), err)
	}
	if !pathExists(filepath.Join(dir, manifestFile)) {
		return nil
	}
	return amendManifest(dir, rel)
}

// HasOutput reports whether WriteOutput wrote name to its end.
func (b *Bundle) HasOutput(name string) bool {
	rel := path.Join(OutputsDir, name)
	var m manifest
	if err := readJSON(b.dir(), manifestFile, &m); err == nil {
		return slices.ContainsFunc(m.Files, func(e manifestEntry) bool { return e.Path == rel })
	}
	return pathExists(b.path(rel))
}
