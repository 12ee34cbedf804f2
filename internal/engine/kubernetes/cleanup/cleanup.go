// Package cleanup removes what a run created, of a run of this process or of one that
// ended without cleaning up.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

const (
	// patience is how long the removal of everything may take.
	cleanupTimeout = 3 * time.Minute
	// lookAgain is how often the cluster is asked what is left.
	pollInterval = 500 * time.Millisecond
	// giveUp is after how many looks that were refused for want of rights.
	maxForbidden = 20
	// lastGrace is how long pods have to end in a clean-up, in seconds.
	podGraceSeconds = 5
)

// Cleaner removes what a run created.
type Cleaner struct {
	*core.Run
	// StopProbes stops writing to objects that are about to be removed.
	StopProbes func()
	// ReleaseLeases deletes the run's Leases. It is called last: a removal is work for
	// the drivers too.
	ReleaseLeases func(context.Context) error
	// IsGroupMember says whether a snapshot belongs to a group snapshot of the run; it
	// knows only what this process has seen.
	IsGroupMember func(snapshot string) bool
}

// Teardown removes everything the run made: what carries its label and the proof
// of its identity, what the ledger lists and Check accepts, and the volumes and
// contents behind that, whose policy is set to Delete if it was Retain. It returns
// when all is gone, or names what is not, and what it leaves alone.
func (e *Cleaner) Teardown(ctx context.Context, ledger engine.Ledger) error {
	if e.Session.RunID == "" && len(ledger.Open()) == 0 {
		return nil // it was not opened, and no run is known
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
	return errors.Join(append(alone, err, e.removeScratch(entries))...)
}

func refuseAll(ledger engine.Ledger, why error) []error {
	var errs []error
	for _, entry := range ledger.Open() {
		errs = append(errs, fmt.Errorf("%s %s: %w", entry.Kind, entry.Name, why))
	}
	return errs
}

// checkers is how many entries are checked at once.
const parallelChecks = 8

// checked are the open entries of the ledger that are the run's; the error lists
// the others. What this process has entered itself need not be looked at.
func (e *Cleaner) checkedEntries(ctx context.Context, ledger engine.Ledger) ([]op.LedgerEntry, []error) {
	open := ledger.Open()
	refused := make([]error, len(open))
	var g errgroup.Group
	g.SetLimit(parallelChecks)
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
	var ours []op.LedgerEntry
	for i, entry := range open {
		if refused[i] == nil {
			ours = append(ours, entry)
		}
	}
	return ours, refused
}

// removeScratch removes the run's directory on the runner's machine; that of
// another machine is not there.
func (e *Cleaner) removeScratch(entries []op.LedgerEntry) error {
	var errs []error
	for _, entry := range entries {
		if entry.Kind != core.DirKind {
			continue
		}
		err := errors.Join(e.ID.Owns(entry.Name), owned.Unmounted(entry.Name))
		if err == nil {
			err = e.ID.RemoveAll(entry.Name)
		}
		if err == nil {
			err = e.Session.Ledger.Done(entry.Kind, entry.Name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (e *Cleaner) removeObjects(ctx context.Context, entries []op.LedgerEntry) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	e.StopProbes()
	cl := e.newRemover(entries)
	err := cl.removeAll(ctx)
	err = errors.Join(err, e.ReleaseLeases(context.WithoutCancel(ctx))) // removing is work for the driver too
	return errors.Join(err, cl.updateLedger(), cl.skippedError())
}

// TeardownRun removes what carries the label of a run whose ledger is not at
// hand, and what is behind that. Where the engine has no identity of that run, its
// label and the names of its objects decide: the user names it.
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

// Owed lists what Teardown would remove of a run beside what the ledger lists; the
// error lists what it would leave alone. It changes nothing.
func (e *Cleaner) Owed(ctx context.Context) ([]string, error) {
	if err := errors.Join(e.CheckCluster(), e.EnsureClient()); err != nil {
		return nil, err
	}
	cl := e.newRemover(nil)
	cl.dryRun = true
	err := cl.round(ctx, cl.kinds(ctx))
	return slices.Compact(slices.Sorted(slices.Values(cl.remaining))), errors.Join(err, cl.skippedError())
}

// noLedger lists nothing.
type noLedger struct{}

func (noLedger) Add(op.LedgerEntry) error  { return nil }
func (noLedger) Done(string, string) error { return nil }
func (noLedger) Open() []op.LedgerEntry    { return nil }

// sweep looks for what a run has made until there is nothing more.
type remover struct {
	cleaner     *Cleaner
	entries     []op.LedgerEntry     // of the ledger, that are the run's
	dryRun      bool                 // and nothing else
	requested   map[string]bool      // deletions that were accepted
	heldSince   map[string]time.Time // claims that only a finalizer holds, since when it was seen
	ledgerKinds map[string]bool      // kinds that the ledger has entries of
	remaining   []string
	skipped     map[string]error // what is left alone, and why
	// What was seen of the run, by UID: its claims with the time that they were made
	// at, its snapshots, what is behind them, and which snapshots there are now.
	claims                      map[types.UID]metav1.Time
	snapshots, backing, present map[types.UID]bool
}

func (e *Cleaner) newRemover(entries []op.LedgerEntry) *remover {
	cl := &remover{cleaner: e, entries: entries, requested: map[string]bool{}, heldSince: map[string]time.Time{},
		ledgerKinds: map[string]bool{}, skipped: map[string]error{}, claims: map[types.UID]metav1.Time{},
		snapshots: map[types.UID]bool{}, backing: map[types.UID]bool{}}
	for _, entry := range entries {
		cl.ledgerKinds[entry.Kind] = true
	}
	return cl
}

func (cl *remover) addRemaining(what string) { cl.remaining = append(cl.remaining, what) }

func (cl *remover) skip(what string, why error) { cl.skipped[what] = why }

func (cl *remover) skippedError() error {
	var errs []error
	for _, what := range slices.Sorted(maps.Keys(cl.skipped)) {
		errs = append(errs, fmt.Errorf("%s: %w", what, cl.skipped[what]))
	}
	return errors.Join(errs...)
}

// kinds are those that are looked for by their label. The ledger that a dead run
// has left need not list what it has made last.
func (cl *remover) kinds(ctx context.Context) []api.Kind {
	kinds := core.LabelledKinds(cl.cleaner.FindGroupSnapshotVersion(ctx))
	if cl.cleaner.Executing {
		return kinds
	}
	return append(core.ControllerKinds(), kinds...)
}

func (cl *remover) removeAll(ctx context.Context) error {
	kinds := cl.kinds(ctx)
	refused := 0
	for {
		err := cl.round(ctx, kinds)
		if len(cl.remaining) == 0 && err == nil {
			return nil
		}
		if apierrors.IsForbidden(err) || cl.cleaner.InHurry() && err != nil {
			refused++
		}
		if refused == maxForbidden { // waiting gives nobody a right
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			slices.Sort(cl.remaining)
			return errors.Join(err, fmt.Errorf("not removed within %v: %s", cleanupTimeout, strings.Join(cl.remaining, ", ")))
		}
	}
}

// round looks at what there is, and asks for the deletion of what is the run's: what
// controllers and nodes hold first, and what would be retained before its owner.
func (cl *remover) round(ctx context.Context, kinds []api.Kind) error {
	cl.remaining, cl.present = nil, map[types.UID]bool{}
	objects := make([][]api.Object, len(kinds))
	var errs []error
	for i, k := range kinds {
		var err error
		objects[i], err = cl.list(ctx, k)
		errs = append(errs, err)
	}
	errs = append(errs, cl.uncordonNodes(ctx), cl.deleteManifests(ctx), cl.deleteVolumes(ctx), cl.deleteContents(ctx))
	for i, k := range kinds {
		for _, o := range objects[i] {
			cl.addRemaining(k.Resource + " " + o.GetName())
			errs = append(errs, cl.delete(ctx, k, o))
			if c, ok := o.(*corev1.PersistentVolumeClaim); ok {
				errs = append(errs, cl.removeSourceProtection(ctx, c))
			}
		}
	}
	return errors.Join(errs...)
}

// list finds what there is of one kind and carries the run's label and proof. What
// lacks the proof is left alone.
func (cl *remover) list(ctx context.Context, k api.Kind) ([]api.Object, error) {
	e := cl.cleaner
	list, _, err := e.Client.List(ctx, k, e.NamespaceOf(k), metav1.ListOptions{LabelSelector: e.Selector()})
	if core.NotServed(err) || apierrors.IsForbidden(err) && !cl.ledgerKinds[k.String()] {
		return nil, nil // who may not look has not made any
	}
	if err != nil {
		return nil, fmt.Errorf("list %s of run %s: %w", k, e.Session.RunID, err)
	}
	var ours []api.Object
	for _, o := range list {
		if err := e.CheckOwner(k, o); err != nil {
			cl.skip(k.String()+" "+o.GetName(), err)
			continue
		}
		ours = append(ours, o)
		err = errors.Join(err, cl.rememberUIDs(ctx, o))
	}
	return ours, err
}

// remember keeps what tells which volumes and contents are behind the run's objects.
func (cl *remover) rememberUIDs(ctx context.Context, o api.Object) error {
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		cl.claims[o.UID] = o.CreationTimestamp
	case *api.VolumeSnapshot:
		cl.snapshots[o.UID], cl.present[o.UID] = true, true
	case *api.VolumeGroupSnapshot:
		return cl.rememberGroupMembers(ctx, o.Name)
	}
	return nil
}

// members are the snapshots of a group, which the cluster has made.
func (cl *remover) rememberGroupMembers(ctx context.Context, group string) error {
	list, _, err := cl.cleaner.Client.List(ctx, api.VolumeSnapshots, cl.cleaner.Namespace, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the snapshots of group %s: %w", group, err)
	}
	for _, o := range list {
		vs := o.(*api.VolumeSnapshot)
		if vs.Status != nil && vs.Status.VolumeGroupSnapshotName != nil && *vs.Status.VolumeGroupSnapshotName == group {
			cl.snapshots[vs.UID], cl.present[vs.UID] = true, true
		}
	}
	return nil
}

const (
	// sourceProtection is the snapshot-controller's finalizer of a claim that a
	// snapshot is being taken of. It stays for ever where the snapshot is deleted
	// before its content was made (external-snapshotter v8).
	sourceProtection = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
	// unprotectAfter is how long the controller has to take it away itself.
	sourceProtectionTimeout = 10 * time.Second
)

// unprotect takes that finalizer from a claim of the run that is deleted, if
// nothing else holds it and no snapshot is of it.
func (cl *remover) removeSourceProtection(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	e := cl.cleaner
	if cl.dryRun || c.DeletionTimestamp == nil || len(c.Finalizers) != 1 || c.Finalizers[0] != sourceProtection {
		return nil
	}
	if since, known := cl.heldSince[c.Name]; !known || time.Since(since) < sourceProtectionTimeout {
		if !known {
			cl.heldSince[c.Name] = time.Now()
		}
		return nil
	}
	list, _, err := e.Client.List(ctx, api.VolumeSnapshots, e.Namespace, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("look for snapshots of claim %s: %w", c.Name, err)
	}
	for _, o := range list {
		if of := o.(*api.VolumeSnapshot).Spec.Source.PersistentVolumeClaimName; of != nil && *of == c.Name {
			return nil
		}
	}
	if e.Session.Sink != nil {
		e.Session.Sink.Log("engine", fmt.Sprintf("claim %s is held by %s, though no snapshot is of it: the snapshot-controller has forgotten it, and the clean-up takes it away", c.Name, sourceProtection))
	}
	return e.setDeletePolicy(ctx, api.PersistentVolumeClaims, c.Name, fmt.Sprintf(`{"metadata":{"finalizers":null,"resourceVersion":%q}}`, c.ResourceVersion))
}

// delete asks once for the very object that was looked at, and again if it was
// refused; in a hurry pods are not waited for.
func (cl *remover) delete(ctx context.Context, k api.Kind, o api.Object) error {
	uid := o.GetUID()
	id := k.Resource + "/" + string(uid)
	if cl.dryRun || cl.requested[id] {
		return nil
	}
	opts := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if k.JSON && k.Group != core.SnapshotGroup {
		opts.PropagationPolicy = new(metav1.DeletePropagationForeground)
	}
	if k.Resource == api.Pods.Resource {
		grace := int64(podGraceSeconds)
		if cl.cleaner.InHurry() {
			grace = 0
		}
		opts.GracePeriodSeconds = &grace
	}
	err := cl.cleaner.DeleteWith(ctx, k, o.GetName(), opts)
	if apierrors.IsConflict(err) {
		return nil // another has its name by now: the next round looks at that
	}
	if err == nil {
		cl.requested[id] = true
	}
	return err
}

// nodes uncordons what a drain has left cordoned.
func (cl *remover) uncordonNodes(ctx context.Context) error {
	cordoned, err := cl.cordonedNodes(ctx)
	errs := []error{err}
	for _, n := range cordoned {
		if cl.dryRun {
			cl.addRemaining("node " + n.Name)
			continue
		}
		if err := cl.cleaner.UndoCordon(ctx, n); err != nil {
			cl.addRemaining("node " + n.Name)
			if !apierrors.IsConflict(err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// cordoned are the nodes that say that the run has cordoned them: those that the
// ledger lists, or all where there is no ledger that lists them.
func (cl *remover) cordonedNodes(ctx context.Context) ([]*corev1.Node, error) {
	e := cl.cleaner
	var list []*corev1.Node
	var errs []error
	for _, entry := range cl.entries {
		if entry.Kind != core.CordonKind {
			continue
		}
		n, err := e.CordonedNode(ctx, entry.Name)
		if n != nil {
			list = append(list, n)
		}
		if refusal := (*owned.Refusal)(nil); errors.As(err, &refusal) {
			cl.skip(core.CordonKind+" "+entry.Name, refusal)
			continue
		}
		errs = append(errs, err)
	}
	if e.Executing || len(list) > 0 {
		return list, errors.Join(errs...)
	}
	all, _, err := e.Client.List(ctx, api.Nodes, "", metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) && !core.NotServed(err) { // who may not look has not cordoned any
		errs = append(errs, fmt.Errorf("list Nodes: %w", err))
	}
	for _, o := range all {
		if e.Marked(o, core.CordonAnnotation) {
			list = append(list, o.(*corev1.Node))
		}
	}
	return list, errors.Join(errs...)
}

// manifests deletes the objects of manifests that the ledger lists, before their
// controllers make anew what is removed after them.
func (cl *remover) deleteManifests(ctx context.Context) error {
	e := cl.cleaner
	var errs []error
	for _, entry := range cl.entries {
		if entry.Data["resource"] == "" {
			continue
		}
		k, _ := core.EntryKind(entry) // checked
		o := new(api.Any)
		_, err := e.Client.Get(ctx, k, entry.Data["namespace"], entry.Name, o)
		if apierrors.IsNotFound(err) || core.NotServed(err) {
			continue
		}
		what := k.Resource + " " + entry.Name
		if err == nil {
			if err := e.CheckOwner(k, o); err != nil {
				cl.skip(k.String()+" "+entry.Name, err)
				continue
			}
			err = cl.delete(ctx, k, o)
		}
		cl.addRemaining(what)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// settle strikes the entries of what is gone.
func (cl *remover) updateLedger() error {
	left := map[string]bool{}
	for _, l := range cl.remaining {
		_, name, _ := strings.Cut(l, " ")
		left[name] = true
	}
	for l := range cl.skipped {
		_, name, _ := strings.Cut(l, " ")
		left[name] = true
	}
	var errs []error
	for _, entry := range cl.entries {
		if entry.Kind != core.DirKind && !left[entry.Name] {
			errs = append(errs, cl.cleaner.Session.Ledger.Done(entry.Kind, entry.Name))
		}
	}
	return errors.Join(errs...)
}
