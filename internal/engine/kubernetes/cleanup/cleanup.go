// Package cleanup removes what a run created, of a run of this process or of one that ended without cleaning up.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

const (
	// cleanupTimeout bounds the removal of all objects, and engine.ObjectRemoval more for each.
	cleanupTimeout = 3 * time.Minute
	pollInterval   = 500 * time.Millisecond
	// maxForbidden is the number of refused rounds after which the removal gives up.
	maxForbidden = 20
	// podGraceSeconds is the grace period of pods that a clean-up deletes.
	podGraceSeconds = 5
)

// Cleaner removes what a run created.
type Cleaner struct {
	*core.Run
	// StopProbes stops writing to objects that are about to be removed.
	StopProbes func()
	// ReleaseLeases deletes the run's Leases. It is called last, since a removal also uses the drivers.
	ReleaseLeases func(context.Context) error
	// IsGroupMember says whether a snapshot belongs to a group snapshot of the run, as far as this process has seen
	// it.
	IsGroupMember func(snapshot string) bool
}

// Teardown removes everything that the run created: objects with its label and the proof of its identity, objects
// that the ledger lists and Check accepts, and the volumes and contents that back them, whose policy it changes
// from Retain to Delete. It returns when all is gone, or an error that names what remains and what it skipped.
func (e *Cleaner) Teardown(ctx context.Context, ledger engine.Ledger) error {
	if e.Session.RunID == "" && len(ledger.Open()) == 0 {
		return nil // not opened, and no run is known
	}
	if !e.ByLabel {
		if err := e.CheckCluster(); err != nil {
			return errors.Join(append(refuseAll(ledger, err), err)...)
		}
	}
	if err := e.EnsureClient(); err != nil {
		return err
	}
	e.Session.Ledger = ledger
	e.Annotating.Wait()
	entries, alone := e.checkedEntries(ctx, ledger)
	err := e.removeObjects(ctx, entries)
	return errors.Join(append(alone, err)...)
}

func refuseAll(ledger engine.Ledger, why error) []error {
	var errs []error
	for _, entry := range ledger.Open() {
		errs = append(errs, fmt.Errorf("%s %s: %w", entry.Kind, entry.Name, why))
	}
	return errs
}

// parallelRequests bounds the requests of a clean-up that are in flight.
const parallelRequests = 8

// checkedEntries returns the open ledger entries that belong to the run; the errors name the others. Entries that
// this process added are not looked up in the cluster.
func (e *Cleaner) checkedEntries(ctx context.Context, ledger engine.Ledger) ([]op.LedgerEntry, []error) {
	open := ledger.Open()
	refused := make([]error, len(open))
	var g errgroup.Group
	g.SetLimit(parallelRequests)
	for i, entry := range open {
		g.Go(func() error {
			check := e.Check
			if e.Executing {
				check = func(_ context.Context, entry op.LedgerEntry) error { return e.CheckEntry(entry) }
			}
			if err := check(ctx, entry); err != nil {
				refused[i] = fmt.Errorf("%s %s: %w", entry.Kind, entry.Name, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	var own []op.LedgerEntry
	for i, entry := range open {
		if refused[i] == nil {
			own = append(own, entry)
		}
	}
	return own, refused
}

func (e *Cleaner) removeObjects(ctx context.Context, entries []op.LedgerEntry) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout+time.Duration(len(entries))*engine.ObjectRemoval)
	defer cancel()
	e.StopProbes()
	cl := e.newRemover(entries)
	err := cl.removeAll(ctx)
	err = errors.Join(err, e.ReleaseLeases(context.WithoutCancel(ctx))) // a removal uses the drivers too
	return errors.Join(err, cl.updateLedger(), cl.skippedError())
}

// TeardownRun removes what carries the label of a run without a ledger, and what backs that. Without an identity of
// that run, its label and the names of its objects are enough: the user names the run.
func (e *Cleaner) TeardownRun(ctx context.Context, runID string) error {
	if err := owned.CheckRunID(runID); err != nil {
		return err
	}
	if e.ID.RunID != runID {
		e.ID, e.ByLabel = owned.Identity{RunID: runID, Namespace: e.Namespace}, true
	}
	e.Session.RunID = runID
	return e.Teardown(ctx, noLedger{})
}

// Owed lists what Teardown would remove beside the named entries of the ledger; the error lists what it would skip. It
// changes nothing.
func (e *Cleaner) Owed(ctx context.Context, ledger engine.Ledger) ([]string, error) {
	if err := errors.Join(e.CheckCluster(), e.EnsureClient()); err != nil {
		return nil, err
	}
	var kinds []op.LedgerEntry
	for _, entry := range ledger.Open() {
		if core.IsOfKind(entry) && e.CheckEntry(entry) == nil {
			kinds = append(kinds, entry)
		}
	}
	cl := e.newRemover(kinds)
	cl.dryRun = true
	err := cl.round(ctx, cl.kinds(ctx))
	return slices.Compact(slices.Sorted(slices.Values(cl.remaining))), errors.Join(err, cl.skippedError())
}

// noLedger is an empty ledger.
type noLedger struct{}

func (noLedger) Add(op.LedgerEntry) error  { return nil }
func (noLedger) Note(op.LedgerEntry) error { return nil }
func (noLedger) Done(string, string) error { return nil }
func (noLedger) Open() []op.LedgerEntry    { return nil }
