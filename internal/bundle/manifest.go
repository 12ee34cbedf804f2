package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// manifest is manifest.json: the files of a closed bundle. It is written last, so that its presence marks a
// complete bundle.
type manifest struct {
	Format int             `json:"format"`
	Files  []manifestEntry `json:"files"`
	// Ledger is the ledger at the close; nil: the registry of the run's machine had it.
	Ledger *manifestEntry `json:"ledger,omitempty"`
}

type manifestEntry struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// inManifest excludes files that may change after the close. The ledger has its own entry: a later clean-up
// appends to it.
func inManifest(rel string) bool {
	return rel != manifestFile && rel != ledgerFile && rel != ReportFile && rel != reserveFile && !isTemporary(rel)
}

// isTemporary reports whether a file is a partially written replacement. In raw/, names are a workload's own.
func isTemporary(rel string) bool {
	return strings.HasSuffix(rel, tmpSuffix) && !strings.HasPrefix(rel, rawDir+"/")
}

// Files lists the files of the bundle, relative to its directory: those in the manifest, the ledger, the report, and
// the manifest last. Its presence shows that a copy in that order is whole.
func (b *Bundle) Files() ([]string, error) {
	files, err := listFiles(b.Dir, false, func(rel string) bool {
		return inManifest(rel) || rel == ledgerFile || rel == ReportFile
	})
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	if pathExists(b.path(manifestFile)) {
		files = append(files, manifestFile)
	}
	return files, nil
}

// listFiles lists the files of a bundle that belong to a list; with odd also links, pipes and devices, which do not
// open.
func listFiles(dir string, odd bool, belongs func(rel string) bool) ([]string, error) {
	var files []string
	err := fs.WalkDir(bounded.Dir(dir).FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		if err == nil && (d.Type().IsRegular() || odd && !d.IsDir()) && belongs(rel) {
			files = append(files, rel)
		}
		return err
	})
	return files, err
}

// writeManifest hashes and syncs every file, then writes the manifest.
func writeManifest(dir string) error {
	files, err := listFiles(dir, false, inManifest)
	if err != nil {
		return err
	}
	m := manifest{Format: Version}
	for _, rel := range files {
		e, err := digest(dir, rel, true)
		if err != nil {
			return err
		}
		m.Files = append(m.Files, e)
	}
	switch e, err := digest(dir, ledgerFile, true); {
	case err == nil:
		m.Ledger = &e
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	return writeJSON(bounded.Dir(dir), manifestFile, m)
}

// VerifyLedger compares the ledger of a closed bundle with the manifest: a clean-up may have appended done
// marks, but earlier lines must not have changed. It returns nil for a bundle that was not closed.
func VerifyLedger(dir string) error {
	var m manifest
	err := readJSON(bounded.Dir(dir), manifestFile, &m)
	switch path := bounded.Dir(dir).Path(ledgerFile); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("bundle: %w", err)
	case m.Ledger == nil && pathExists(path):
		return fmt.Errorf("bundle: %s was added after the bundle was closed", path)
	case m.Ledger == nil:
		return nil
	}
	return m.Ledger.verifyLedger(bounded.Dir(dir))
}

func (e *manifestEntry) verifyLedger(dir bounded.Dir) error {
	f, err := dir.Open(ledgerFile)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.CopyN(h, f, e.Bytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("bundle: %w", err)
	}
	if n != e.Bytes || hex.EncodeToString(h.Sum(nil)) != e.SHA256 {
		return fmt.Errorf("bundle: %s has changed since the bundle was closed", f.Name())
	}
	for line, err := range splitLines(f) {
		if err != nil {
			return fmt.Errorf("bundle: %w", err)
		}
		var l ledgerLine
		if json.Unmarshal(line, &l) != nil || l.Add != nil {
			return fmt.Errorf("bundle: %s has changed since the bundle was closed: "+
				"it has an entry that the run did not add", f.Name())
		}
	}
	return nil
}

// amendManifest updates or adds the entry of a file.
func amendManifest(dir, rel string) error {
	var m manifest
	if err := readJSON(bounded.Dir(dir), manifestFile, &m); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	e, err := digest(dir, rel, false)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	m.Files = append(slices.DeleteFunc(m.Files, func(old manifestEntry) bool { return old.Path == rel }), e)
	slices.SortFunc(m.Files, func(a, b manifestEntry) int { return strings.Compare(a.Path, b.Path) })
	if err := writeJSON(bounded.Dir(dir), manifestFile, m); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// digest hashes one file, and syncs it if durable is set.
func digest(dir, rel string, durable bool) (e manifestEntry, err error) {
	f, err := bounded.Dir(dir).Open(rel)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return e, err
	}
	if durable {
		if err := f.Sync(); err != nil {
			return e, err
		}
	}
	return manifestEntry{Path: rel, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}
