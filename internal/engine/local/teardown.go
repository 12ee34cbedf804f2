package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/iolimit"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// destroyTimeout bounds the destruction of a built-in driver: longer than many busy mounts need, so that one that hangs
// does not block the clean-up for ever.
const destroyTimeout = 10 * time.Minute

// maxRemovers bounds the concurrent removals.
const maxRemovers = 8

// removeTimeout bounds the removal of one object at an external driver, so that one that refuses does not block the end
// of a run. After one timeout, no other removal is repeated until its own.
func (e *Engine) removeTimeout() time.Duration { return cmp.Or(e.RemoveTimeout, 3*time.Minute) }

// builtInTimeout is removeTimeout at a built-in driver, which is destroyed with all its objects anyway, so that after
// one timeout no other object is waited for.
const builtInTimeout = 15 * time.Second

// Teardown removes everything the run made: objects whose creation has no answer yet, since their sources must not be
// removed before; then what this process knows of; then what the ledger still lists; then built-in drivers with all
// their objects.
func (e *Engine) Teardown(ctx context.Context, ledger engine.Ledger) error {
	e.session.Ledger = ledger
	e.endFollowing()
	if len(e.drivers) > 0 { // else no object is known, and all are in the ledger, newest first
		e.removePending(ctx, ledger)
	}
	e.removeKnown(ctx)
	return errors.Join(e.removeLedger(ctx, ledger), e.checkScratch())
}

// removePending removes the objects of external drivers whose creation has no answer yet.
func (e *Engine) removePending(ctx context.Context, ledger engine.Ledger) {
	var g errgroup.Group
	g.SetLimit(maxRemovers)
	for _, entry := range ledger.Open() {
		if !isExternal(entry) || e.known(entry) {
			continue
		}
		g.Go(func() error {
			if err := e.removeEntry(ctx, entry); err != nil {
				e.session.Sink.Log("run", fmt.Sprintf("%s %s: %v", entry.Kind, entry.Name, err))
				return nil
			}
			return ledger.Done(entry.Kind, entry.Name)
		})
	}
	if err := g.Wait(); err != nil {
		e.session.Sink.Log("run", err.Error())
	}
}

// known says whether this process has the object of an entry.
func (e *Engine) known(entry op.LedgerEntry) bool {
	if entry.Kind == volumeKind {
		return e.findVolume(entry.Name) != nil
	}
	return e.findSnapshot(entry.Name) != nil
}

// removeKnown deletes workloads, then volumes with a source, then snapshots, then the rest: dependants first. What it
// cannot remove is still in the ledger, or is removed with its built-in driver.
func (e *Engine) removeKnown(ctx context.Context) {
	e.mu.Lock()
	workloads := slices.Collect(maps.Keys(e.workloads))
	var derived, groups, snapshots, volumes []string
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
		case s.retain || s.object.Owner != "":
		case s.object.Kind == engine.GroupSnapshotObject:
			groups = append(groups, n)
		default:
			snapshots = append(snapshots, n)
		}
	}
	e.mu.Unlock()
	err := errors.Join(
		e.removeAll(ctx, derived, e.deleteVolume),
		e.removeAll(ctx, groups, e.deleteGroup),
		e.removeAll(ctx, snapshots, e.deleteSnapshot),
		e.removeAll(ctx, workloads, e.deleteWorkload),
		e.removeAll(ctx, volumes, e.deleteVolume),
	)
	if err != nil {
		lines := strings.Split(err.Error(), "\n")
		e.session.Sink.Log("run", fmt.Sprintf("%d objects could not be removed at first; the first: %s", len(lines),
			lines[0]))
	}
}

func (e *Engine) removeAll(ctx context.Context, names []string, remove func(context.Context, string) error) error {
	limit := builtInTimeout
	if e.anyExternal() {
		limit = e.removeTimeout()
	}
	ctx = context.WithValue(ctx, removalKey{}, true)
	slices.Sort(names)
	failed := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(maxRemovers)
	for i, n := range names {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			if e.session.Hurry != nil {
				defer context.AfterFunc(e.session.Hurry, cancel)()
			}
			defer engine.NoteRemoval(e.session.Sink, n)()
			if e.silent.Load() {
				failed[i] = fmt.Errorf("%s: not removed alone, because the removal of another object got no answer", n)
				return nil
			}
			if err := remove(ctx, n); err != nil {
				if errors.Is(ctx.Err(), context.DeadlineExceeded) {
					e.silent.Store(!e.anyExternal())
					e.tired.Store(true)
				}
				failed[i] = fmt.Errorf("%s: %w", n, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(failed...)
}

// removeLedger removes the entries of the ledger. It makes two passes, for objects used by a process that ended late.
func (e *Engine) removeLedger(ctx context.Context, ledger engine.Ledger) error {
	err := e.removeEntries(ctx, ledger)
	if err != nil && ctx.Err() == nil {
		err = e.removeEntries(ctx, ledger)
	}
	return err
}

// killWait is how long to wait for killed processes before removing the other entries. A driver killed while
// a file system was frozen leaves processes that cannot die until it is thawed, which is the first step of
// destroying the driver.
const killWait = 300 * time.Millisecond

// removeEntries kills processes concurrently, removes the rest, newest first, and then verifies that the
// processes are gone.
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
		defer engine.NoteRemoval(e.session.Sink, entry.Kind+" "+entry.Name)()
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
	case <-time.After(killWait):
	}
	var others []error
	kept := map[string]string{} // the IDs of sources → an object that was made from one and is still there
	for _, entry := range rest {
		if copied, ok := kept[entry.Data[dataHandle]]; ok && entry.Data[dataHandle] != "" {
			others = append(others, fmt.Errorf("%s %s: kept, because %s, which was made from it, could not be removed",
				entry.Kind, entry.Name, copied))
			continue
		}
		err := remove(entry)
		if err != nil {
			for _, id := range sourcesOf(entry) {
				kept[id] = entry.Name
			}
		}
		others = append(others, err)
	}
	<-dead
	return errors.Join(append(errs, others...)...)
}

func (e *Engine) removeEntry(ctx context.Context, entry op.LedgerEntry) error {
	switch entry.Kind {
	case pod.ProcessKind:
		return pod.KillStale(entry, false)
	case "driver":
		return e.destroyDriver(ctx, entry)
	case volumeKind, snapshotKind, groupKind:
		return e.recover(ctx, entry)
	case pod.GroupKind:
		return iolimit.Remove(entry.Name)
	case pod.DirKind:
		return owned.RemoveAll(entry.Name)
	}
	return owned.Refuse("unknown kind %q, written by a newer version", entry.Kind)
}

// Owed lists what the removal of an entry of the ledger would remove: paths, mounts, processes, objects at drivers.
func (e *Engine) Owed(entry op.LedgerEntry) (list []string, err error) {
	switch entry.Kind {
	case pod.ProcessKind:
		return process(entry)
	case "driver":
		if list, err = process(entry); err != nil {
			return nil, err
		}
		base := entry.Data["baseDir"]
		if err := owned.Owns(filepath.Dir(base)); err != nil {
			return list, err
		}
		made, err := csidriver.Made(csidriver.Options{Backend: entry.Name, BaseDir: base})
		return append(list, made...), err
	case volumeKind, snapshotKind, groupKind:
		what := fmt.Sprintf("%s %s", entry.Kind, e.driverName(entry.Name))
		if id := entry.Data[dataHandle]; id != "" {
			what += fmt.Sprintf(" (%s)", id)
		}
		return []string{what + " of the driver at " + entry.Data[dataEndpoint]}, nil
	case pod.GroupKind:
		return []string{"control group " + entry.Name}, nil
	case pod.DirKind:
		if _, err := os.Lstat(entry.Name); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return []string{"directory " + entry.Name}, owned.Owns(entry.Name)
	}
	return nil, owned.Refuse("unknown kind %q, written by a newer version", entry.Kind)
}

// process lists the process of an entry.
func process(entry op.LedgerEntry) ([]string, error) {
	if entry.Data["pid"] == "" { // never started
		return nil, nil
	}
	pid, err := pod.Stale(entry)
	if err != nil || pid == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("process %d of %s", pid, entry.Name)}, nil
}

// destroyDriver ends a built-in driver and removes everything under its base directory.
func (e *Engine) destroyDriver(ctx context.Context, entry op.LedgerEntry) error {
	for _, d := range e.drivers {
		if d.backend == entry.Name {
			if err := d.close(); err != nil {
				e.session.Sink.Log("driver "+d.name, err.Error())
			}
		}
	}
	if entry.Data["pid"] != "" { // started
		if err := pod.KillStale(entry, true); err != nil {
			return err
		}
	}
	base := entry.Data["baseDir"]
	if err := owned.Owns(filepath.Dir(base)); err != nil {
		return err
	}
	if _, err := os.Stat(base); errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return removeEmpty(filepath.Dir(base)) // killed between the two removals
	}
	args := append(slices.Clone(e.DriverCommand[1:]), "--backend", entry.Name, "--base-dir", base, "--destroy")
	if e.own.Scratch != "" {
		args = append(args, "--below", e.own.Scratch)
	}
	ctx, cancel := context.WithTimeout(ctx, destroyTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, e.DriverCommand[0], args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", errors.Join(err, context.Cause(ctx)), strings.TrimSpace(string(out)))
	}
	if err := os.RemoveAll(base); err != nil {
		return err
	}
	return removeEmpty(filepath.Dir(base))
}

// removeEmpty removes the run's directory after that of its last driver.
func removeEmpty(dir string) error {
	err := os.Remove(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// checkScratch fails if something is mounted below the run's scratch directory, which its removal would reach
// into.
func (e *Engine) checkScratch() error {
	if e.session.Dir == "" {
		return nil
	}
	return owned.Unmounted(e.session.Dir)
}

// isExternal reports whether an entry is of an external driver.
func isExternal(entry op.LedgerEntry) bool {
	return entry.Kind == volumeKind || entry.Kind == snapshotKind || entry.Kind == groupKind
}

// sourcesOf returns the IDs of the volumes or of the snapshot that an entry's object is made from.
func sourcesOf(entry op.LedgerEntry) []string {
	var req struct {
		SourceVolumeID      string   `json:"sourceVolumeId"`
		SourceVolumeIDs     []string `json:"sourceVolumeIds"`
		VolumeContentSource struct {
			Snapshot struct {
				SnapshotID string `json:"snapshotId"`
			} `json:"snapshot"`
			Volume struct {
				VolumeID string `json:"volumeId"`
			} `json:"volume"`
		} `json:"volumeContentSource"`
	}
	if json.Unmarshal([]byte(entry.Data[dataRequest]), &req) != nil {
		return nil
	}
	from := req.VolumeContentSource
	return append(req.SourceVolumeIDs, req.SourceVolumeID, from.Snapshot.SnapshotID, from.Volume.VolumeID)
}
