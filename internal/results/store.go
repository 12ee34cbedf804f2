package results

import (
	"context"
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

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/record"
)

// lease is how long after its last write a run counts as living.
const lease = 30 * time.Second

// Store keeps the bundles of many runs, <dir>/<namespace>/<run>/ each. That a
// run is closed lies beside its bundle, in .<run>.closed. One process has a
// directory; methods are safe for concurrent use.
type Store struct {
	dir    string
	root   *os.Root
	limits Limits
	now    func() time.Time
	stop   chan struct{}
	ended  sync.WaitGroup

	mu   sync.Mutex
	runs map[string]*openRun // by namespace/run
}

// openRun is a run that somebody uses or used lately.
type openRun struct {
	namespace, id string
	folder        *Folder
	users         int
	used          time.Time
	wrote         time.Time // zero: not since the store was opened

	mu     sync.Mutex // one closes it at a time
	closed string
}

// mark is what .<run>.closed holds.
type mark struct {
	Closed string    `json:"closed"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// OpenStore opens a directory, and makes it if it is not there.
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
	s := &Store{dir: dir, root: root, limits: l.orDefault(), now: time.Now, stop: make(chan struct{}), runs: map[string]*openRun{}}
	s.ended.Add(1)
	go s.tend()
	return s, nil
}

// Close ends the store. Runs that were written to are no longer marked as
// living.
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
	return errors.Join(append(errs, s.root.Close())...)
}

// tend lets go of runs that nobody has used for a while.
func (s *Store) tend() {
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
			_ = r.folder.Close() // only closes descriptors; there is nobody to tell
			delete(s.runs, key)
		}
	}
}

// open gives a run to use until release is called. ErrNoRun without create.
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
	if m.Closed != "" {
		folder.Freeze()
	}
	return &openRun{namespace: namespace, id: id, folder: folder, closed: m.Closed, used: s.now()}, nil
}

func markName(namespace, id string) string { return path.Join(namespace, "."+id+".closed") }

func (s *Store) readMark(namespace, id string) (m mark, err error) {
	b, err := s.root.ReadFile(markName(namespace, id))
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

// write calls f for a run that may be written to, which then counts as living.
// Of a closed one only files outside the manifest may change.
func (s *Store) write(namespace, id, name string, f func(*Folder) error) error {
	r, release, err := s.open(namespace, id, true)
	if err != nil {
		return err
	}
	defer release()
	if name == manifestFile {
		return fmt.Errorf("%w: %s is written by closing the run", ErrName, manifestFile)
	}
	if err := f(r.folder); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.used = s.now()
	r.wrote = r.used
	return nil
}

// Append is Folder.Append for a run, which is made by its first file.
func (s *Store) Append(ctx context.Context, namespace, id, name string, offset int64, b []byte) (size int64, err error) {
	err = s.write(namespace, id, name, func(f *Folder) (err error) {
		size, err = f.Append(ctx, name, offset, b)
		return err
	})
	return size, err
}

// Replace is Folder.Replace for a run, which is made by its first file.
func (s *Store) Replace(ctx context.Context, namespace, id, name string, content io.Reader) error {
	return s.write(namespace, id, name, func(f *Folder) error { return f.Replace(ctx, name, content) })
}

// Remove removes a file of a run.
func (s *Store) Remove(ctx context.Context, namespace, id, name string) error {
	return s.write(namespace, id, name, func(f *Folder) error { return f.Remove(ctx, name) })
}

// Seal closes a run whose files are all as its manifest says; else it returns
// what differs and the run stays open. Sealing again with the same manifest
// changes nothing.
func (s *Store) Seal(ctx context.Context, namespace, id string, manifest []byte) ([]Difference, error) {
	r, release, err := s.open(namespace, id, false)
	if err != nil {
		return nil, err
	}
	defer release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == Incomplete {
		return nil, fmt.Errorf("%w: %s/%s is %s", ErrClosed, namespace, id, r.closed)
	}
	differences, err := r.folder.Seal(ctx, manifest)
	if err != nil || len(differences) > 0 || r.closed != "" {
		return differences, err
	}
	return nil, s.writeMark(r, mark{Closed: Complete, At: s.now()})
}

// Lost closes a run whose runner is gone, as incomplete: see record.Abandon.
// Nothing of it may be written afterwards but what clean-up needs. A run that is
// closed as incomplete already stays so; a complete one is an error, ErrClosed.
func (s *Store) Lost(namespace, id, reason string) error {
	r, release, err := s.open(namespace, id, false)
	if err != nil {
		return err
	}
	defer release()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.closed {
	case Complete:
		return fmt.Errorf("%w: %s/%s is complete", ErrClosed, namespace, id)
	case Incomplete:
		return nil
	}
	r.folder.Freeze()
	if err := r.folder.Unlock(); err != nil { // Abandon takes the lock itself
		return err
	}
	err = record.Abandon(s.path(namespace, id), reason)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && s.hasRunFile(r) {
		return err
	}
	return s.writeMark(r, mark{Closed: Incomplete, At: s.now(), Reason: reason})
}

// hasRunFile says whether a run got so far as to say what it is.
func (s *Store) hasRunFile(r *openRun) bool {
	_, err := r.folder.root.Lstat(runFile)
	return err == nil
}

// Finish marks a run of this machine as closed: its own writer has done what
// Seal does. A bundle without a manifest is incomplete.
func (s *Store) Finish(namespace, id string) error {
	r, release, err := s.open(namespace, id, false)
	if err != nil {
		return err
	}
	defer release()
	r.mu.Lock()
	defer r.mu.Unlock()
	how := Complete
	if _, err := r.folder.root.Lstat(manifestFile); err != nil {
		how = Incomplete
	}
	return s.writeMark(r, mark{Closed: how, At: s.now()})
}

// Delete removes a run with its bundle.
func (s *Store) Delete(namespace, id string) error {
	r, release, err := s.open(namespace, id, false)
	if err != nil {
		return err
	}
	defer release()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.folder.Freeze() // whoever still writes to it is refused
	s.mu.Lock()
	delete(s.runs, path.Join(namespace, id))
	s.mu.Unlock()
	err = errors.Join(r.folder.Close(), s.root.RemoveAll(path.Join(namespace, id)), ignoreMissing(s.root.Remove(markName(namespace, id))))
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return nil
}

// Info says where a run stands.
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

// describe adds what run.json says; a run has none at its very beginning.
func (s *Store) describe(name string, info *Run) error {
	b, err := s.root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var r record.Run
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return fmt.Errorf("results: %s: %w", name, err)
	}
	info.Name, info.State, info.Started = r.Name, r.State, r.Clock.Start
	if r.Reason != "" {
		info.Reason = r.Reason
	}
	if r.EndedAt != op.Never && r.State != record.Running {
		at := r.Clock.Start.Add(time.Duration(r.EndedAt))
		info.Ended = &at
	}
	return nil
}

// List lists the runs of a namespace, or of all with "", in order of name. A
// run whose run.json is damaged is listed with the error as its reason.
func (s *Store) List(namespace string) ([]Run, error) {
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

// path of a run's bundle; the names were checked.
func (s *Store) path(namespace, id string) string { return filepath.Join(s.dir, namespace, id) }
