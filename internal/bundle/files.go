package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// writeJSON replaces path by v as indented JSON: written beside it, synced and renamed, so that a reader
// finds either the old or the new file.
func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := writeFileSync(path+tmpSuffix, append(b, '\n')); err != nil {
		return err
	}
	return renameSync(path+tmpSuffix, path)
}

func writeFileSync(path string, b []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Sync()
}

func renameSync(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// maxJSON bounds a file that is read whole, such as run.json; a Benchmark has at most 8 MiB.
const maxJSON = 64 << 20

// readJSON reads one JSON file; the error names it.
func readJSON(path string, v any) error {
	b, err := bounded.ReadFile(nil, path, maxJSON)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is %w: %w", path, ErrDamaged, err)
	}
	return nil
}

// lockDir locks dir for a writer (unix.LOCK_EX) or to test for one (unix.LOCK_SH). The lock ends with the
// process. It returns nil and false if a writer holds it.
func lockDir(dir string, how int) (*os.File, bool, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	err = unix.Flock(int(d.Fd()), how|unix.LOCK_NB)
	if err == nil {
		return d, true, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, false, d.Close()
	}
	return nil, false, errors.Join(fmt.Errorf("lock %s: %w", dir, err), d.Close())
}
