package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"
)

// Retention says which runs of each namespace are kept. The zero value keeps all.
type Retention struct {
	// Age since a run was closed after which it is removed; 0: never.
	Age time.Duration
	// Runs and Bytes bound the closed runs of a namespace; the oldest are removed. 0: no bound. Bytes keeps the newest
	// run, whatever its size.
	Runs  int
	Bytes int64
	// Silence closes a run as lost that has written nothing for so long; 0: never. Its runner is dead: a live one
	// writes every ten seconds.
	Silence time.Duration
}

// sweepInterval is between two sweeps, and before the first: runners that go on have written again by then.
const sweepInterval = 10 * time.Minute

// Keep applies a retention until ctx ends, at most every ten minutes. It reports what it did, and errors, line by line.
func (s *Store) Keep(ctx context.Context, r Retention, report func(line string)) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.Sweep(ctx, r, report)
		}
	}
}

// Sweep applies a retention once. An error with one run does not keep it from the others.
func (s *Store) Sweep(ctx context.Context, r Retention, report func(line string)) {
	namespaces, err := s.directories(".")
	if err != nil {
		report(err.Error())
	}
	for _, ns := range namespaces {
		if namespaceName.MatchString(ns) {
			if err := s.sweep(ctx, ns, r, report); err != nil {
				report(fmt.Sprintf("retention in namespace %s: %v", ns, err))
			}
		}
	}
}

// closedRun is a run that a sweep may remove.
type closedRun struct {
	id string
	at time.Time
}

func (s *Store) sweep(ctx context.Context, namespace string, r Retention, report func(string)) error {
	ids, err := s.directories(namespace)
	if err != nil {
		return err
	}
	var closed []closedRun
	var errs []error
	for _, id := range ids {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if checkRun(namespace, id) != nil {
			continue
		}
		m, err := s.readMark(namespace, id)
		switch {
		case err != nil:
			errs = append(errs, err)
		case m.Closed == "":
			errs = append(errs, s.closeSilent(namespace, id, r.Silence, report))
		default:
			closed = append(closed, closedRun{id: id, at: m.At})
		}
	}
	return errors.Join(append(errs, s.removeExcess(ctx, namespace, closed, r, report))...)
}

// closeSilent closes an open run that has written nothing for a time.
func (s *Store) closeSilent(namespace, id string, silence time.Duration, report func(string)) error {
	if silence == 0 {
		return nil
	}
	last, err := s.lastWrite(namespace, id)
	if err != nil || s.now().Sub(last) <= silence {
		return err
	}
	report(fmt.Sprintf("run %s/%s has written nothing since %s: closed as lost", namespace, id,
		last.UTC().Format(time.RFC3339)))
	return s.Lost(namespace, id, fmt.Sprintf("the runner has sent nothing for %v", silence))
}

// lastWrite returns the time of the newest file of a run, or of its directory.
func (s *Store) lastWrite(namespace, id string) (last time.Time, err error) {
	err = fs.WalkDir(s.root.FS(), path.Join(namespace, id), func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil && info.ModTime().After(last) {
				last = info.ModTime()
			}
		}
		return ignoreMissing(err)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[path.Join(namespace, id)]; r != nil && r.wrote.After(last) {
		last = r.wrote
	}
	return last, err
}

// removeExcess removes closed runs that are too old, or beyond the bounds, the oldest first.
func (s *Store) removeExcess(ctx context.Context, namespace string, closed []closedRun, r Retention,
	report func(string)) error {
	slices.SortFunc(closed, func(a, b closedRun) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.id, b.id)) })
	var sum int64
	var errs []error
	for i, run := range closed {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.Bytes > 0 {
			size, err := s.size(path.Join(namespace, run.id))
			errs = append(errs, err)
			sum += size
		}
		var why string
		switch {
		case r.Age > 0 && s.now().Sub(run.at) > r.Age:
			why = fmt.Sprintf("closed more than %v ago", r.Age)
		case r.Runs > 0 && i >= r.Runs:
			why = fmt.Sprintf("%d newer runs are kept", r.Runs)
		case r.Bytes > 0 && sum > r.Bytes && i > 0:
			why = fmt.Sprintf("with the newer runs it exceeds %d bytes", r.Bytes)
		default:
			continue
		}
		err := s.Delete(namespace, run.id)
		if err == nil {
			report(fmt.Sprintf("removed run %s/%s: %s", namespace, run.id, why))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
