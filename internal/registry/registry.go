// Package registry keeps what runs of this user on this machine may leave: a directory for each run, from before it
// makes anything until nothing of it is left. Bundles are copied and shared; what a clean-up on this machine may touch
// comes from here, never from a bundle.
package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Entry describes a run. Its files have mode 0600, and contain no secrets.
type Entry struct {
	Identity owned.Identity `json:"identity"`
	// Bundle is the path of the run's bundle at its start.
	Bundle  string    `json:"bundle"`
	Started time.Time `json:"started"`
	// SecretFiles are the files with the Secrets that the removal of the run's objects needs.
	SecretFiles []string `json:"secretFiles,omitempty"`
	// Places are the object stores and the containers that the run makes there, as package model encodes them.
	Places json.RawMessage `json:"places,omitempty"`
}

// Run is the entry of a run that this process holds: another process can neither hold nor remove it.
type Run struct {
	Entry
	dir  string
	lock *os.File
}

var (
	// ErrUnknown says that this user has started no run with the ID on this machine, or that nothing of it is left.
	ErrUnknown = errors.New("this user has not started it on this machine, or nothing of it is left")
	// ErrAlive says that the run's process holds its entry.
	ErrAlive = errors.New("its run is alive: stop it first")
)

const (
	entryFile = "run.json"
	maxEntry  = 8 << 20
	// newPrefix precedes the names of entries that are being made or removed. No run's ID begins with it.
	newPrefix = ".new-"
)

// Dir returns the directory of the registry: /var/lib/cnsbench/runs for root, cnsbench/runs below the user's state
// directory (XDG Base Directory Specification) for others.
func Dir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/cnsbench/runs", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "cnsbench", "runs"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("where to register runs is not known: %w; or set XDG_STATE_HOME", err)
	}
	return filepath.Join(home, ".local", "state", "cnsbench", "runs"), nil
}

// open opens the registry. Only this user may be able to write to it, since its content is trusted.
func open(create bool) (*os.Root, string, error) {
	dir, err := Dir()
	if err != nil {
		return nil, "", err
	}
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, "", fmt.Errorf("registry of runs: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, dir, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = private(info, dir)
	}
	if err != nil {
		return nil, dir, errors.Join(err, root.Close())
	}
	return root, dir, nil
}

// private refuses what another user can have written.
func private(info fs.FileInfo, path string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user: remove it, or give it to this one", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by others (mode %04o): check what is in it, then chmod go-w it", path,
			info.Mode().Perm())
	}
	return nil
}

// Create registers a run, which must not be registered. The caller removes the entry when nothing of the run is left,
// else closes it.
func Create(e Entry) (r *Run, err error) {
	if err := owned.CheckRunID(e.Identity.RunID); err != nil {
		return nil, err
	}
	root, dir, err := open(true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	id := e.Identity.RunID
	if _, err := root.Lstat(id); err == nil {
		return nil, fmt.Errorf("run %s is registered in %s already: clean up after it first (cnsbench cleanup --run %s)",
			id, dir, id)
	}
	// Locked before it has its name, so that no clean-up finds it without a lock.
	temporary := newPrefix + id
	if err := errors.Join(root.RemoveAll(temporary), root.Mkdir(temporary, 0o700)); err != nil {
		return nil, fmt.Errorf("register the run in %s: %w", dir, err)
	}
	r = &Run{Entry: e, dir: filepath.Join(dir, id)}
	if r.lock, err = lock(root, temporary); err != nil {
		return nil, err
	}
	err = root.WriteFile(filepath.Join(temporary, entryFile), text, 0o600)
	if err == nil {
		err = root.Rename(temporary, id)
	}
	if err == nil {
		err = syncDir(root)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("register the run in %s: %w", dir, err), root.RemoveAll(temporary), r.Close())
	}
	return r, nil
}

func syncDir(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lock locks an entry; the lock ends with the process.
func lock(root *os.Root, name string) (*os.File, error) {
	d, err := root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrAlive
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Open holds the entry of a dead run. The error is ErrUnknown if there is none, and ErrAlive if the run is not dead.
func Open(runID string) (r *Run, err error) {
	if owned.CheckRunID(runID) != nil {
		return nil, ErrUnknown
	}
	root, dir, err := open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	r = &Run{dir: filepath.Join(dir, runID)}
	r.lock, err = lock(root, runID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	text, err := r.Dir().ReadFile(entryFile, maxEntry)
	if errors.Is(err, fs.ErrNotExist) { // removed between the opening and the lock
		return nil, errors.Join(ErrUnknown, r.Close())
	}
	if err == nil {
		err = json.Unmarshal(text, &r.Entry)
	}
	if err == nil && r.Identity.RunID != runID {
		err = fmt.Errorf("it is of run %q", r.Identity.RunID)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Join(r.dir, entryFile), err), r.Close())
	}
	return r, nil
}

// Known reports whether a run is registered, alive or dead.
func Known(runID string) bool {
	if owned.CheckRunID(runID) != nil {
		return false
	}
	dir, err := Dir()
	if err != nil {
		return false
	}
	_, err = os.Lstat(filepath.Join(dir, runID))
	return err == nil
}

// List returns the IDs of all registered runs, alive and dead.
func List() (ids []string, err error) {
	root, _, err := open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if e.IsDir() && owned.CheckRunID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}

// Dir returns the directory of the entry, which has the run's ledger.
func (r *Run) Dir() bounded.Dir { return bounded.Dir(r.dir) }

// CheckBundle refuses a bundle that is not the run's, which is still where it was: it only claims the run's ID. A bundle
// that was moved is accepted.
func (r *Run) CheckBundle(dir string) error {
	its, err := os.Stat(r.Bundle)
	if err != nil { // it was moved
		return nil //nolint:nilerr // see above
	}
	if this, err := os.Stat(dir); err == nil && os.SameFile(this, its) {
		return nil
	}
	id := r.Identity.RunID
	return fmt.Errorf("%s is not the bundle of run %s, which is %s: clean up after that, or use --run %s", dir, id,
		r.Bundle, id)
}

// Close lets other processes hold the entry. A process that is being started has a copy of the lock's file for a moment,
// so that to close it is not enough.
func (r *Run) Close() error {
	return errors.Join(unix.Flock(int(r.lock.Fd()), unix.LOCK_UN), r.lock.Close())
}

// Remove forgets the run, of which nothing is left.
func (r *Run) Remove() error {
	gone := filepath.Join(filepath.Dir(r.dir), newPrefix+filepath.Base(r.dir))
	err := os.Rename(r.dir, gone) // at once, also for a process that is killed here
	if err == nil {
		err = os.RemoveAll(gone)
	}
	return errors.Join(err, r.Close())
}
