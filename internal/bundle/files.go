package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// writeJSON replaces a file by v as indented JSON.
func writeJSON(dir bounded.Dir, name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", dir.Path(name), err)
	}
	return dir.WriteFile(name, append(b, '\n'))
}

// maxJSON bounds a file that is read whole, such as run.json; a Benchmark has at most 8 MiB.
const maxJSON = 64 << 20

// readJSON reads one JSON file; the error names it.
func readJSON(dir bounded.Dir, name string, v any) error {
	b, err := dir.ReadFile(name, maxJSON)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is %w: %w", dir.Path(name), ErrDamaged, err)
	}
	return nil
}

// lockDir locks dir for a writer (unix.LOCK_EX) or to test for one (unix.LOCK_SH). The lock ends with the
// process. It returns nil and false if a writer holds it.
func lockDir(dir string, how int) (*os.File, bool, error) {
	d, err := bounded.Dir(dir).OpenDir(".")
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

// unlock ends a lock. A process that is being started has a copy of the file for a moment, so that to close it is not
// enough.
func unlock(f *os.File) error { return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close()) }
