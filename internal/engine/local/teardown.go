package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// removers is how many objects are removed at once.
const removers = 8

// patience is how long the removal of one object may take: a driver that
// hangs must not hold up the end of a run. Our own is destroyed with all it
// holds anyway.
func (e *Engine) patience() time.Duration {
	if e.Endpoint == "" {
		return 15 * time.Second
	}
	return 90 * time.Second
}

// Teardown removes everything the run made: what this process knows of, then
// what the ledger still lists, then our own drivers with all they hold.
func (e *Engine) Teardown(ctx context.Context, ledger engine.Ledger) error {
	e.session.Ledger = ledger
	removed := e.removeKnown(ctx)
	return errors.Join(e.removeOwed(ctx, ledger, removed), e.checkScratch())
}

// removeKnown deletes workloads, then volumes with a source, then snapshots,
// then the rest: dependants first.
func (e *Engine) removeKnown(ctx context.Context) error {
	e.mu.Lock()
	var workloads, derived, groups, snapshots, volumes []string
	for n := range e.workloads {
		workloads = append(workloads, n)
	}
	owned := map[string]bool{}
	for _, w := range e.workloads {
		for _, n := range w.volumes {
			owned[n] = true
		}
	}
	for n, v := range e.volumes {
		switch {
		case owned[n]:
		case v.object.Source != "":
			derived = append(derived, n)
		default:
			volumes = append(volumes, n)
		}
	}
	for n, s := range e.snapshots {
		switch {
		case s.keep || s.object.Owner != "":
		case s.object.Kind == engine.GroupSnapshotObject:
			groups = append(groups, n)
		default:
			snapshots = append(snapshots, n)
		}
	}
	e.mu.Unlock()
	return errors.Join(
		e.removeAll(ctx, derived, e.deleteVolume),
		e.removeAll(ctx, groups, e.deleteGroup),
		e.removeAll(ctx, snapshots, e.deleteSnapshot),
		e.removeAll(ctx, workloads, e.deleteWorkload),
		e.removeAll(ctx, volumes, e.deleteVolume),
	)
}

func (e *Engine) removeAll(ctx context.Context, names []string, remove func(context.Context, string) error) error {
	slices.Sort(names)
	failed := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(removers)
	for i, n := range names {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, e.patience())
			defer cancel()
			if e.session.Hurry != nil {
				defer context.AfterFunc(e.session.Hurry, cancel)()
			}
			if err := remove(ctx, n); err != nil {
				failed[i] = fmt.Errorf("%s: %w", n, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(failed...)
}

// removeOwed works through the ledger. An error of removeKnown counts only
// where no driver of ours is destroyed with all it held.
//
// It goes round twice, for what was still in use by a process that ended late.
func (e *Engine) removeOwed(ctx context.Context, ledger engine.Ledger, known error) error {
	if slices.ContainsFunc(ledger.Open(), func(entry op.LedgerEntry) bool { return entry.Kind == "driver" }) {
		if known != nil {
			lines := strings.Split(known.Error(), "\n")
			e.session.Sink.Log("run", fmt.Sprintf("%d objects could not be removed and go with their driver; the first: %s", len(lines), lines[0]))
		}
		known = nil
	}
	err := e.removeEntries(ctx, ledger)
	if err != nil && ctx.Err() == nil {
		err = e.removeEntries(ctx, ledger)
	}
	return errors.Join(known, err)
}

// deathPatience is how long killed processes are waited for before what the
// ledger lists besides them is removed. A driver killed while a file system
// was frozen leaves processes that cannot die until it is thawed, which is the
// first step of destroying what the driver left.
const deathPatience = 300 * time.Millisecond

// removeEntries kills processes, all at once, removes the rest, newest first,
// and then verifies that the processes are gone.
func (e *Engine) removeEntries(ctx context.Context, ledger engine.Ledger) error {
	var processes, rest []op.LedgerEntry
	for _, entry := range ledger.Open() {
		if entry.Kind == pod.ProcessKind {
			processes = append(processes, entry)
		} else {
			rest = append(rest, entry)
		}
	}
	slices.Reverse(rest)
	remove := func(entry op.LedgerEntry) error {
		if err := e.removeEntry(ctx, entry); err != nil {
			return fmt.Errorf("%s %s: %w", entry.Kind, entry.Name, err)
		}
		return ledger.Done(entry.Kind, entry.Name)
	}
	errs := make([]error, len(processes))
	var g errgroup.Group
	for i, entry := range processes {
		g.Go(func() error { errs[i] = remove(entry); return nil })
	}
	dead := make(chan struct{})
	go func() { _ = g.Wait(); close(dead) }()
	select {
	case <-dead:
	case <-time.After(deathPatience):
	}
	var others []error
	for _, entry := range rest {
		if entry.Name == e.own.Scratch && slices.ContainsFunc(ledger.Open(), foreign) {
			continue // it says which snapshots are the run's
		}
		others = append(others, remove(entry))
	}
	<-dead
	return errors.Join(append(errs, others...)...)
}

func (e *Engine) removeEntry(ctx context.Context, entry op.LedgerEntry) error {
	if err := e.Check(entry); err != nil {
		return err
	}
	switch entry.Kind {
	case pod.ProcessKind:
		return pod.KillStale(&e.own, entry, false)
	case "driver":
		return e.destroyDriver(ctx, entry)
	case "volume", "snapshot", "group":
		return e.recover(ctx, entry)
	}
	if err := owned.Unmounted(entry.Name); err != nil {
		return err
	}
	return e.own.RemoveAll(entry.Name)
}

// Check says why an entry of the ledger is left alone: it is not derived from the
// run, or what it names does not carry the run's identity; nil: it is the run's.
func (e *Engine) Check(entry op.LedgerEntry) error {
	if err := e.own.Check(); err != nil {
		return err
	}
	switch entry.Kind {
	case pod.ProcessKind:
		return pod.CheckStale(&e.own, entry)
	case "driver":
		return e.checkDriver(entry)
	case "volume", "snapshot", "group":
		return e.checkForeign(entry)
	case pod.DirKind:
		return e.checkDir(entry)
	}
	return owned.Refuse("this version does not know the kind %q; a newer one wrote it", entry.Kind)
}

// checkDir: the run's scratch directory, and those of its pods in memory.
func (e *Engine) checkDir(entry op.LedgerEntry) error {
	if path := entry.Data["path"]; path != "" && path != entry.Name {
		return owned.Refuse("the entry names two directories, %s and %s", entry.Name, path)
	}
	inMemory := strings.HasPrefix(entry.Name, pod.MemoryDir(e.own.Scratch)+"-") && filepath.Clean(entry.Name) == entry.Name
	switch {
	case inMemory:
	case entry.Name != e.own.Scratch:
		return owned.Refuse("%s is not the scratch directory of run %s", entry.Name, e.own.RunID)
	default:
		if err := e.own.OwnsScratch(); err != nil {
			return err
		}
	}
	return e.own.Owns(entry.Name)
}

// checkDriver: the base directory of a driver of ours lies in the run's own
// directory, which is marked, below the storage directory.
func (e *Engine) checkDriver(entry op.LedgerEntry) error {
	run, err := e.own.StorageDir()
	if err != nil {
		return err
	}
	base := filepath.Join(run, entry.Name)
	if filepath.Dir(base) != run || entry.Data["baseDir"] != base {
		return owned.Refuse("%s is not the directory of driver %s of run %s", entry.Data["baseDir"], entry.Name, e.own.RunID)
	}
	if err := e.own.Owns(run); err != nil {
		return err
	}
	if info, err := os.Lstat(base); err == nil && !info.IsDir() {
		return owned.Refuse("%s is not a directory", base)
	}
	if entry.Data["pid"] == "" { // it was never started
		return nil
	}
	return pod.CheckStale(&e.own, entry)
}

// destroyDriver ends one of our drivers and removes everything under its base
// directory.
func (e *Engine) destroyDriver(ctx context.Context, entry op.LedgerEntry) error {
	for _, d := range e.drivers {
		if d.backend == entry.Name {
			if err := d.close(); err != nil {
				e.session.Sink.Log("driver "+d.name, err.Error())
			}
		}
	}
	if entry.Data["pid"] != "" { // else it was never started
		if err := pod.KillStale(&e.own, entry, true); err != nil {
			return err
		}
	}
	base := entry.Data["baseDir"] // checked
	if _, err := os.Stat(base); errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return owned.RemoveMarked(filepath.Dir(base)) // a kill may have come between the two
	}
	args := append(slices.Clone(e.DriverCommand[1:]), "--backend", entry.Name, "--base-dir", base, "--destroy")
	out, err := exec.CommandContext(ctx, e.DriverCommand[0], args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	if err := os.RemoveAll(base); err != nil {
		return err
	}
	return owned.RemoveMarked(filepath.Dir(base)) // the run's own directory, when this was its last driver
}

// checkScratch reports mounts below the run's scratch directory, which its
// removal would reach into.
func (e *Engine) checkScratch() error {
	if e.session.Dir == "" {
		return nil
	}
	return owned.Unmounted(e.session.Dir)
}

// foreign says whether an entry is of a driver that the run did not start.
func foreign(entry op.LedgerEntry) bool {
	return entry.Kind == "volume" || entry.Kind == "snapshot" || entry.Kind == "group"
}
