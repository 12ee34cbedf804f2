package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// maxOpenRunFiles bounds the run.json files in memory.
	maxOpenRunFiles = 4
	// maxMark bounds the marker file of a closed run.
	maxMark = 64 << 10
	// maxReason bounds the reason of a lost run.
	maxReason = 4 << 10
)

// lease is how long after its last write a run counts as live.
const lease = 30 * time.Second

// Store keeps the bundles of many runs in <dir>/<namespace>/<run>/. A closed run has a marker file
// .<run>.closed beside its bundle. One process uses a directory; methods are safe for concurrent use.
type Store struct {
	dir    string
	root   *os.Root
	lock   *os.File // held while this process uses the directory
	limits Limits
	now    func() time.Time
	stop   chan struct{}
	ended  sync.WaitGroup
	// runFileSlots bounds the run.json files in memory.
	runFileSlots chan struct{}

	mu       sync.Mutex
	runs     map[string]*openRun // by namespace/run
	accounts map[string]*account // by namespace
}

// openRun is a run in use or recently used.
type openRun struct {
	namespace, id string
	folder        *Folder
	users         int
	used          time.Time
	wrote         time.Time // zero: not since the store was opened

	mu     sync.Mutex // serialises closing
	closed string
}

// mark is the content of .<run>.closed.
type mark struct {
	Closed string    `json:"closed"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// OpenStore opens a directory and creates it if it does not exist.
func OpenStore(dir string, l Limits) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	s := &Store{dir: dir, root: root, limits: l.orDefault(), now: time.Now, stop: make(chan struct{}),
		runFileSlots: make(chan struct{}, maxOpenRunFiles), runs: map[string]*openRun{},
		accounts: map[string]*account{}}
	if err := s.lockDir(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	s.ended.Add(1)
	go s.expireLoop()
	return s, nil
}

// lockDir locks the directory for this process and removes partially received files of a killed one.
func (s *Store) lockDir() error {
	d, err := s.root.Open(".")
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("results: %s is in use by another results service: %w", s.dir, err), d.Close())
	}
	s.lock = d
	if err := s.removeLeftovers(); err != nil {
		return errors.Join(err, d.Close())
	}
	return nil
}

// removeLeftovers removes what a killed process has left: partially received files, partially deleted runs, and marks
// of runs that do not exist.
func (s *Store) removeLeftovers() error {
	namespaces, err := s.directories(".")
	for _, ns := range namespaces {
		if !namespaceName.MatchString(ns) {
			continue // for example lost+found
		}
		ids, derr := s.directories(ns)
		err = errors.Join(err, derr)
		for _, id := range ids {
			err = errors.Join(err, s.root.RemoveAll(path.Join(ns, id, incomingDir)))
		}
		err = errors.Join(err, s.removeOrphans(ns))
	}
	if err != nil {
		return fmt.Errorf("results: remove what a killed service has left: %w", err)
	}
	return nil
}

// Close closes the store. Runs being written are no longer marked as live.
func (s *Store) Close() error {
	close(s.stop)
	s.ended.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for key, r := range s.runs {
		errs = append(errs, r.folder.Close())
		delete(s.runs, key)
	}
	return errors.Join(append(errs, s.lock.Close(), s.root.Close())...)
}

// expireLoop closes runs that were not used for a while.
func (s *Store) expireLoop() {
	defer s.ended.Done()
	tick := time.NewTicker(lease / 6)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.expire()
		}
	}
}

func (s *Store) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.runs {
		if r.users == 0 && s.now().Sub(r.used) > lease {
			_ = r.folder.Close() // only closes descriptors
			delete(s.runs, key)
		}
	}
}

// locked calls f with an existing run that no other call changes meanwhile.
func (s *Store) locked(namespace, id string, f func(*openRun) error) error {
	r, release, err := s.open(namespace, id, false)
	if err != nil {
		return err
	}
	defer release()
	r.mu.Lock()
	defer r.mu.Unlock()
	return f(r)
}

// open returns a run to use until release is called. Without create, a missing run is ErrNoRun.
func (s *Store) open(namespace, id string, create bool) (r *openRun, release func(), err error) {
	if err := checkRun(namespace, id); err != nil {
		return nil, nil, err
	}
	key := path.Join(namespace, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r = s.runs[key]; r == nil {
		if r, err = s.load(namespace, id, create); err != nil {
			return nil, nil, err
		}
		s.runs[key] = r
	}
	r.users++
	return r, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.users--
	}, nil
}

func (s *Store) load(namespace, id string, create bool) (*openRun, error) {
	dir := path.Join(namespace, id)
	if _, err := s.root.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, fmt.Errorf("%w: %s", ErrNoRun, dir)
		}
		if err := s.checkRuns(namespace); err != nil {
			return nil, err
		}
		if err := s.root.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("results: %w", err)
		}
	}
	m, err := s.readMark(namespace, id)
	if err != nil {
		return nil, err
	}
	folder, err := OpenFolder(filepath.Join(s.dir, dir), s.limits)
	if err != nil {
		return nil, err
	}
	folder.account = s.account(namespace)
	if m.Closed != "" {
		folder.Freeze()
	}
	return &openRun{namespace: namespace, id: id, folder: folder, closed: m.Closed, used: s.now()}, nil
}

// account returns the account of a namespace. Its first use measures the files there, before any of them changes.
func (s *Store) account(namespace string) *account {
	if s.limits.NamespaceBytes == 0 {
		return nil
	}
	a := s.accounts[namespace]
	if a == nil {
		a = &account{limit: s.limits.NamespaceBytes, measure: func() (int64, error) { return s.runsSize(namespace) }}
		s.accounts[namespace] = a
	}
	return a
}

func markName(namespace, id string) string { return path.Join(namespace, "."+id+".closed") }

func (s *Store) readMark(namespace, id string) (m mark, err error) {
	b, err := s.readFile(markName(namespace, id), maxMark)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("results: %s: %w", markName(namespace, id), err)
	}
	return m, nil
}

func (s *Store) writeMark(r *openRun, m mark) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	name := markName(r.namespace, r.id)
	if err := s.root.WriteFile(name+tmpSuffix, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := s.root.Rename(name+tmpSuffix, name); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	r.closed = m.Closed
	r.folder.Freeze()
	return r.folder.Unlock()
}

// write calls f for a writable run, which then counts as live.
func (s *Store) write(namespace, id, name string, create bool, f func(*Folder) error) error {
	if err := checkRun(namespace, id); err != nil {
		return err
	}
	if err := checkPath(name); err != nil {
		return err
	}
	if name == manifestFile {
		return fmt.Errorf("%w: %s is written by closing the run", ErrName, manifestFile)
	}
	r, release, err := s.open(namespace, id, create)
	if err != nil {
		return err
	}
	defer release()
	if err := f(r.folder); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.used = s.now()
	r.wrote = r.used
	return nil
}

// AppendFrom appends from r, of announced length (-1: unknown) and at most maxChunk bytes, as data arrives:
// when r fails, the file has what arrived before.
func (s *Store) AppendFrom(namespace, id, name string, offset int64, r io.Reader, announced int64) (
	size int64, err error) {
	err = s.write(namespace, id, name, true, func(f *Folder) (err error) {
		size, err = f.appendFrom(name, offset, r, announced, maxChunk)
		return err
	})
	return size, err
}

// Replace is Folder.Replace, of announced length (-1: unknown), for a run; its first file creates it.
func (s *Store) Replace(namespace, id, name string, content io.Reader, announced int64) error {
	return s.write(namespace, id, name, true, func(f *Folder) error { return f.replace(name, content, announced) })
}

// Remove removes a file of a run.
func (s *Store) Remove(ctx context.Context, namespace, id, name string) error {
	return s.write(namespace, id, name, false, func(f *Folder) error { return f.Remove(ctx, name) })
}

// Seal closes a run whose files all match the manifest read from r, of announced length (-1: unknown);
// otherwise it returns the differences and the run stays open. Repeating it with the same manifest changes
// nothing.
func (s *Store) Seal(ctx context.Context, namespace, id string, manifest io.Reader, announced int64) (
	[]Difference, error) {
	r, release, err := s.open(namespace, id, false)
	if err != nil {
		return nil, err
	}
	defer release()
	differences, err := r.folder.sealFrom(ctx, manifest, announced)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && len(differences) == 0 && r.closed == "":
		return nil, s.writeMark(r, mark{Closed: Complete, At: s.now()})
	case errors.Is(err, ErrClosed):
		return nil, s.sealedAgain(r, manifest)
	}
	return differences, err
}

// sealedAgain reports whether a closed run was closed with that manifest.
func (s *Store) sealedAgain(r *openRun, manifest io.Reader) error {
	if r.closed != Incomplete {
		same, err := r.folder.sealed(manifest)
		if err == nil && same && r.closed == "" { // writing the mark had failed
			err = s.writeMark(r, mark{Closed: Complete, At: s.now()})
		}
		if same || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s/%s is %s", ErrClosed, r.namespace, r.id, r.closed)
}

// Lost closes a run whose runner is gone as incomplete, see bundle.Abandon. It accepts no further writes. It
// does nothing to an incomplete run; for a complete one it returns ErrClosed.
func (s *Store) Lost(namespace, id, reason string) error {
	return s.locked(namespace, id, func(r *openRun) error {
		switch r.closed {
		case Complete:
			return fmt.Errorf("%w: %s/%s is complete", ErrClosed, namespace, id)
		case Incomplete:
			return nil
		}
		r.folder.Freeze()
		if err := r.folder.Unlock(); err != nil { // abandon takes the lock
			return err
		}
		if len(reason) > maxReason {
			reason = reason[:maxReason] + "…"
		}
		if err := s.abandon(r, reason); err != nil {
			return err
		}
		return s.writeMark(r, mark{Closed: Incomplete, At: s.now(), Reason: reason})
	})
}

// abandon sets the state in run.json, if that exists and is readable.
func (s *Store) abandon(r *openRun, reason string) error {
	info, err := r.folder.root.Lstat(runFile)
	if err != nil || info.Size() > maxRunFile {
		return ignoreMissing(err)
	}
	s.runFileSlots <- struct{}{}
	defer func() { <-s.runFileSlots }()
	return bundle.Abandon(s.path(r.namespace, r.id), reason)
}

// Finish marks a local run as closed after its writer has sealed it. A bundle without a manifest is
// incomplete.
func (s *Store) Finish(namespace, id string) error {
	return s.locked(namespace, id, func(r *openRun) error {
		how := Complete
		if _, err := r.folder.root.Lstat(manifestFile); err != nil {
			how = Incomplete
		}
		return s.writeMark(r, mark{Closed: how, At: s.now()})
	})
}

// Delete removes a run with its bundle.
func (s *Store) Delete(namespace, id string) error {
	return s.locked(namespace, id, func(r *openRun) error {
		r.folder.Freeze() // refuses concurrent writers
		if err := r.folder.account.ready(); err != nil {
			return err
		}
		size, err := s.size(path.Join(namespace, id))
		if err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.runs, path.Join(namespace, id))
		s.mu.Unlock()
		// Renamed first, so that a killed service leaves no part of a run.
		gone := path.Join(namespace, deletedPrefix+rand.Text())
		if err = s.root.Rename(path.Join(namespace, id), gone); err == nil {
			r.folder.account.add(-size)
			err = errors.Join(ignoreMissing(s.root.Remove(markName(namespace, id))), s.root.RemoveAll(gone))
		}
		if err = errors.Join(err, r.folder.Close()); err != nil {
			return fmt.Errorf("results: %w", err)
		}
		return nil
	})
}

// Info returns the state of a run.
func (s *Store) Info(namespace, id string) (Run, error) {
	if err := checkRun(namespace, id); err != nil {
		return Run{}, err
	}
	info := Run{Namespace: namespace, ID: id}
	dir := path.Join(namespace, id)
	st, err := s.root.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !st.IsDir() {
		return info, fmt.Errorf("%w: %s", ErrNoRun, dir)
	}
	if err != nil {
		return info, fmt.Errorf("results: %w", err)
	}
	m, err := s.readMark(namespace, id)
	if err != nil {
		return info, err
	}
	info.Closed, info.Reason, info.Seen = m.Closed, m.Reason, st.ModTime()
	if st, err := s.root.Stat(path.Join(dir, runFile)); err == nil && st.ModTime().After(info.Seen) {
		info.Seen = st.ModTime()
	}
	s.mu.Lock()
	if r := s.runs[dir]; r != nil && r.wrote.After(info.Seen) {
		info.Seen = r.wrote
	}
	s.mu.Unlock()
	return info, s.describe(path.Join(dir, runFile), &info)
}

// exists reports whether a run exists, without reading its files.
func (s *Store) exists(namespace, id string) bool {
	info, err := s.root.Stat(path.Join(namespace, id))
	return err == nil && info.IsDir()
}

// readFile reads a small file whole.
func (s *Store) readFile(name string, most int64) ([]byte, error) {
	file, err := s.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%w: %d bytes: want at most %d", ErrTooLarge, info.Size(), most)
	}
	return io.ReadAll(io.LimitReader(file, most))
}

// runFileFields are the fields of run.json that Info uses.
type runFileFields struct {
	Name   string       `json:"name"`
	State  bundle.State `json:"state"`
	Reason string       `json:"reason"`
	Clock  struct {
		Start time.Time `json:"start"`
	} `json:"clock"`
	EndedAt op.Time `json:"endedAt"`
}

// describe adds the fields of run.json, if that exists.
func (s *Store) describe(name string, info *Run) error {
	s.runFileSlots <- struct{}{}
	defer func() { <-s.runFileSlots }()
	b, err := s.readFile(name, maxRunFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r := runFileFields{EndedAt: op.Never}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return fmt.Errorf("results: %s: %w", name, err)
	}
	info.Name, info.State, info.Started = clip(r.Name), bundle.State(clip(string(r.State))), r.Clock.Start
	if r.Reason != "" {
		info.Reason = r.Reason[:min(len(r.Reason), maxReason)]
	}
	if r.EndedAt != op.Never && r.State != bundle.Running {
		at := r.Clock.Start.Add(time.Duration(r.EndedAt))
		info.Ended = &at
	}
	return nil
}

// List lists the runs of a namespace, or of all with "", in order of name. A run with a damaged run.json is
// listed with the error as its reason.
func (s *Store) List(ctx context.Context, namespace string) ([]Run, error) {
	namespaces := []string{namespace}
	if namespace == "" {
		var err error
		if namespaces, err = s.directories("."); err != nil {
			return nil, err
		}
	}
	runs := []Run{}
	for _, ns := range namespaces {
		if !namespaceName.MatchString(ns) {
			continue
		}
		ids, err := s.directories(ns)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			info, err := s.Info(ns, id)
			switch {
			case errors.Is(err, ErrName), errors.Is(err, ErrNoRun):
				continue
			case err != nil:
				info.Reason = err.Error()
			}
			runs = append(runs, info)
		}
	}
	return runs, nil
}

func (s *Store) directories(dir string) ([]string, error) {
	entries, err := fs.ReadDir(s.root.FS(), dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("results: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// path returns the directory of a run's bundle; the names were validated.
func (s *Store) path(namespace, id string) string { return filepath.Join(s.dir, namespace, id) }
