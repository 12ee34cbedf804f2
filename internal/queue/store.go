package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// The files of a queue, below the directory of the results.
const (
	folder    = ".queue"
	stateFile = "queue.json"
	lockFile  = "lock"
)

// maxState bounds the file of the state: all submissions with texts and logs of full length.
const maxState = (maxWaiting + maxEnded + 1) * 2 * (MaxText + maxTail)

// store is the folder of a queue. It has its lock until close.
type store struct {
	dir  string
	lock *os.File
}

// openStore creates the folder and locks it for this process.
func openStore(dir string) (*store, error) {
	s := &store{dir: filepath.Join(dir, folder)}
	if err := os.Mkdir(s.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("another server runs the queue of %s: stop it, or start this one without --allow-run", dir)
		}
		return nil, errors.Join(err, f.Close())
	}
	s.lock = f
	return s, nil
}

// close ends the lock. A process that is being started has a copy of the file for a moment, so that to close it is not
// enough.
func (s *store) close() error {
	return errors.Join(unix.Flock(int(s.lock.Fd()), unix.LOCK_UN), s.lock.Close())
}

// load reads the state; a queue without one is empty. A file that cannot be read is left as it is.
func (s *store) load() (*list, error) {
	path := filepath.Join(s.dir, stateFile)
	l := &list{}
	text, err := bounded.ReadFile(nil, path, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(text, l)
	}
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return nil, fmt.Errorf("read the queue: %s: %w; repair the file, or move it away for an empty queue", path, err)
	}
	return l, nil
}

// check returns what a state cannot have.
func (l *list) check() error {
	seen := map[string]bool{}
	for i := range l.Submissions {
		s := &l.Submissions[i]
		switch {
		case s.ID == "" || seen[s.ID]:
			return fmt.Errorf("submission %d has no ID of its own: %q", i+1, s.ID)
		case len(s.Name) > maxName || !namePattern.MatchString(s.Name):
			return fmt.Errorf("submission %s has an invalid name: %q", s.ID, s.Name)
		}
		seen[s.ID] = true
	}
	return nil
}

// save replaces the state: written beside it, synced and renamed.
func (s *store) save(l *list) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, stateFile+".")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.dir, stateFile))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("save the queue: %w", err), os.Remove(f.Name()))
	}
	return nil
}
