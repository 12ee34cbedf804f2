package server

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// deletedPrefix precedes the names of runs that are being deleted.
const deletedPrefix = ".deleted-"

// account counts the bytes of the runs of a namespace. A nil account has no limit. It is safe for concurrent use.
type account struct {
	limit   int64
	measure func() (int64, error)

	mu       sync.Mutex
	measured bool
	bytes    int64
}

// ready measures the files of the namespace, if that has not been done. Each change of them calls it before.
func (a *account) ready() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.measured {
		return nil
	}
	n, err := a.measure()
	if err != nil {
		return err // the next change measures again
	}
	a.bytes, a.measured = n, true
	return nil
}

// fits reports whether n further bytes are within the limit.
func (a *account) fits(n int64) error {
	if a == nil {
		return nil
	}
	if err := a.ready(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > a.limit-a.bytes {
		return fmt.Errorf("%w: it has %d bytes, %d more exceed the limit of %d", ErrQuota, a.bytes, n, a.limit)
	}
	return nil
}

func (a *account) add(n int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes += n
}

// size sums the sizes of the files in and beneath a directory. What is removed meanwhile does not count.
func (s *Store) size(dir string) (int64, error) {
	var sum int64
	err := fs.WalkDir(s.root.FS(), dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return ignoreMissing(err)
	})
	if err != nil {
		return 0, fmt.Errorf("results: measure %s: %w", dir, err)
	}
	return sum, nil
}

// runsSize sums the sizes of the runs of a namespace, without the service's own files.
func (s *Store) runsSize(namespace string) (sum int64, err error) {
	ids, err := s.directories(namespace)
	for _, id := range ids {
		if checkRun(namespace, id) == nil {
			n, serr := s.size(path.Join(namespace, id))
			sum, err = sum+n, errors.Join(err, serr)
		}
	}
	return sum, err
}

// checkRuns refuses a further run in a namespace that has as many as it may have.
func (s *Store) checkRuns(namespace string) error {
	if s.limits.NamespaceRuns == 0 {
		return nil
	}
	ids, err := s.directories(namespace)
	if err != nil {
		return err
	}
	n := 0
	for _, id := range ids {
		if checkRun(namespace, id) == nil {
			n++
		}
	}
	if n >= s.limits.NamespaceRuns {
		return fmt.Errorf("%w: it has %d runs, and may have %d", ErrQuota, n, s.limits.NamespaceRuns)
	}
	return nil
}

// removeOrphans removes partially deleted runs of a namespace, and marks of runs that do not exist.
func (s *Store) removeOrphans(namespace string) error {
	entries, err := fs.ReadDir(s.root.FS(), namespace)
	for _, e := range entries {
		name := e.Name()
		id, isMark := strings.CutSuffix(strings.TrimSuffix(strings.TrimPrefix(name, "."), tmpSuffix), ".closed")
		switch {
		case e.IsDir() && strings.HasPrefix(name, deletedPrefix):
			err = errors.Join(err, s.root.RemoveAll(path.Join(namespace, name)))
		case !e.IsDir() && strings.HasPrefix(name, ".") && isMark &&
			(strings.HasSuffix(name, tmpSuffix) || !s.exists(namespace, id)):
			err = errors.Join(err, s.root.Remove(path.Join(namespace, name)))
		}
	}
	return err
}
