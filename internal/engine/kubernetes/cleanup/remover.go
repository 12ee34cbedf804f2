package cleanup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
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

// remover looks for objects of a run and deletes them until none is left.
type remover struct {
	cleaner     *Cleaner
	entries     []op.LedgerEntry     // ledger entries of the run
	dryRun      bool                 // look only
	mu          sync.Mutex           // guards requested
	requested   map[string]bool      // accepted deletions
	manifests   map[string]types.UID // UIDs of the manifest objects that were seen
	heldSince   map[string]time.Time // claims that only a finalizer holds
	ledgerKinds map[string]bool      // kinds in the ledger
	remaining   []string
	noted       string           // the object in the last line of the log about what the clean-up waits for
	skipped     map[string]error // left alone, with the reason
	// What was seen of the run, by UID: the creation times of its claims, its snapshots, the objects that back
	// them, and the snapshots that still exist.
	claims                      map[types.UID]metav1.Time
	snapshots, backing, present map[types.UID]bool
}

func (e *Cleaner) newRemover(entries []op.LedgerEntry) *remover {
	cl := &remover{cleaner: e, entries: entries, requested: map[string]bool{}, manifests: map[string]types.UID{},
		heldSince: map[string]time.Time{}, ledgerKinds: map[string]bool{}, skipped: map[string]error{},
		claims:    map[types.UID]metav1.Time{},
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

// kinds lists the kinds to look for by label. The ledger of a run that crashed may lack the last objects.
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
	began := time.Now()
	defer cl.noteRemoval("")
	for {
		err := cl.round(ctx, kinds)
		if len(cl.remaining) > 0 && time.Since(began) > engine.SlowRemoval {
			cl.noteRemoval(slices.Min(cl.remaining))
		}
		if len(cl.remaining) == 0 && err == nil {
			return nil
		}
		if apierrors.IsForbidden(err) || cl.cleaner.InHurry() && err != nil {
			refused++
		}
		if refused == maxForbidden { // waiting does not help
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			slices.Sort(cl.remaining)
			return errors.Join(err,
				fmt.Errorf("not removed within %v: %s", time.Since(began).Round(time.Second),
					strings.Join(cl.remaining, ", ")))
		}
	}
}

// noteRemoval logs what the clean-up waits for, if that has changed; empty: for nothing. It names one object: a run can
// have thousands, and most of them take longer than a second.
func (cl *remover) noteRemoval(what string) {
	if what == cl.noted || cl.cleaner.Session.Sink == nil || cl.dryRun {
		return
	}
	why := ""
	if what != "" {
		why = fmt.Sprintf("for the removal of %s", what)
		if n := len(cl.remaining) - 1; n > 0 {
			why += fmt.Sprintf(" and %d more", n)
		}
	}
	cl.cleaner.Session.Sink.Log(engine.WaitsSource, engine.WaitLine("clean-up", why))
	cl.noted = what
}

// round lists the run's objects and requests their deletion: first controllers and nodes, and retained objects
// before their owners.
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
		targets := make([]target, len(objects[i]))
		for j, o := range objects[i] {
			cl.addRemaining(k.String() + " " + o.GetName())
			targets[j] = target{k, o}
		}
		errs = append(errs, cl.deleteAll(ctx, targets))
		for _, o := range objects[i] {
			if c, ok := o.(*corev1.PersistentVolumeClaim); ok {
				errs = append(errs, cl.removeSourceProtection(ctx, c))
			}
		}
	}
	return errors.Join(errs...)
}

// list returns the objects of a kind with the run's label and proof. It skips objects that lack the proof.
func (cl *remover) list(ctx context.Context, k api.Kind) ([]api.Object, error) {
	e := cl.cleaner
	list, _, err := e.Client.List(ctx, k, e.NamespaceOf(k), metav1.ListOptions{LabelSelector: e.Selector()})
	if core.NotServed(err) || apierrors.IsForbidden(err) && !cl.ledgerKinds[k.String()] {
		return nil, nil // without the right to list, none was created
	}
	if err != nil {
		return nil, fmt.Errorf("list %s of run %s: %w", k, e.Session.RunID, err)
	}
	var own []api.Object
	for _, o := range list {
		if err := e.CheckOwner(k, o); err != nil {
			cl.skip(k.String()+" "+o.GetName(), err)
			continue
		}
		own = append(own, o)
		err = errors.Join(err, cl.rememberUIDs(ctx, o))
	}
	return own, err
}

// rememberUIDs records the UIDs that identify the volumes and contents of the run's objects.
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

// rememberGroupMembers records the snapshots of a group, which the cluster creates.
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
	// sourceProtection is the snapshot-controller's finalizer on a claim that is being snapshotted. It is never
	// removed if the snapshot is deleted before its content exists (external-snapshotter v8).
	sourceProtection = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
	// sourceProtectionTimeout is how long the controller has to remove the finalizer.
	sourceProtectionTimeout = 10 * time.Second
)

// removeSourceProtection removes the finalizer from a deleted claim of the run if no other finalizer and no
// snapshot holds it.
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
		e.Session.Sink.Log("engine",
			fmt.Sprintf("claim %s has the left-over finalizer %s without a snapshot: the clean-up removes it", c.Name,
				sourceProtection))
	}
	return e.setDeletePolicy(ctx, api.PersistentVolumeClaims, c.Name,
		fmt.Sprintf(`{"metadata":{"finalizers":null,"resourceVersion":%q}}`, c.ResourceVersion))
}

// target is an object to delete.
type target struct {
	kind   api.Kind
	object api.Object
}

// deleteAll requests the deletion of objects, several at a time.
func (cl *remover) deleteAll(ctx context.Context, targets []target) error {
	errs := make([]error, len(targets))
	var g errgroup.Group
	g.SetLimit(parallelRequests)
	for i, t := range targets {
		g.Go(func() error {
			errs[i] = cl.delete(ctx, t.kind, t.object)
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

// delete requests the deletion of the object that was read, once unless it is refused. In a hurry the grace period
// of pods is 0.
func (cl *remover) delete(ctx context.Context, k api.Kind, o api.Object) error {
	uid := o.GetUID()
	if cl.dryRun || cl.isRequested(k, uid) {
		return nil
	}
	opts := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if k.JSON && k.Group != core.SnapshotGroup {
		opts.PropagationPolicy = core.Propagation(k)
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
		return nil // replaced by another of its name: the next round reads that
	}
	if err == nil {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		cl.requested[deletionKey(k, uid)] = true
	}
	return err
}

func (cl *remover) isRequested(k api.Kind, uid types.UID) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.requested[deletionKey(k, uid)]
}

func deletionKey(k api.Kind, uid types.UID) string { return k.Resource + "/" + string(uid) }

// uncordonNodes uncordons the nodes that a drain left cordoned.
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

// cordonedNodes returns the nodes that the run has cordoned: those in the ledger or, if it lists none, all with the
// run's annotation.
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
	if err != nil && !apierrors.IsForbidden(err) &&
		!core.NotServed(err) { // without the right to list, none was cordoned
		errs = append(errs, fmt.Errorf("list Nodes: %w", err))
	}
	for _, o := range all {
		if e.Marked(o, core.CordonAnnotation) {
			list = append(list, o.(*corev1.Node))
		}
	}
	return list, errors.Join(errs...)
}

// deleteManifests deletes the manifest objects in the ledger, before their controllers recreate what is removed
// after them.
func (cl *remover) deleteManifests(ctx context.Context) error {
	lists := map[string]map[string]api.Object{}
	var targets []target
	var errs []error
	accessLeft := false
	add := func(k api.Kind, entry op.LedgerEntry, o api.Object) {
		if err := cl.cleaner.CheckOwner(k, o); err != nil {
			cl.skip(k.String()+" "+o.GetName(), err)
			return
		}
		accessLeft = accessLeft || isBucketAccess(entry)
		if !accessLeft || k.Group != engine.BucketGroup || k.Name != "BucketClaim" {
			targets = append(targets, target{k, o})
		}
		cl.addRemaining(k.String() + " " + o.GetName())
	}
	for _, entry := range accessesFirst(cl.entries) {
		if entry.Data["resource"] == "" {
			continue
		}
		k, _ := core.EntryKind(entry) // checked before
		labelled, read := lists[k.String()]
		if !read {
			var err error
			labelled, err = cl.labelled(ctx, k, entry.Data["namespace"])
			lists[k.String()], errs = labelled, append(errs, err)
			for _, name := range slices.Sorted(maps.Keys(labelled)) {
				cl.manifests[k.String()+" "+name] = labelled[name].GetUID()
				add(k, entry, labelled[name])
			}
		}
		if core.IsOfKind(entry) || labelled[entry.Name] != nil {
			continue
		}
		o, err := cl.unlabelled(ctx, k, entry, labelled != nil)
		if err != nil {
			errs = append(errs, err)
			cl.addRemaining(k.String() + " " + entry.Name)
		} else if o != nil {
			add(k, entry, o)
		}
	}
	return errors.Join(append(errs, cl.deleteAll(ctx, targets))...)
}

// labelled returns the objects of a kind with the run's label, by name; nil if they cannot be listed.
func (cl *remover) labelled(ctx context.Context, k api.Kind, namespace string) (map[string]api.Object, error) {
	list, _, err := cl.cleaner.Client.ListMetadata(ctx, k, namespace,
		metav1.ListOptions{LabelSelector: cl.cleaner.Selector()})
	switch {
	case core.NotServed(err):
		return map[string]api.Object{}, nil
	case err != nil:
		return nil, fmt.Errorf("list %s of run %s: %w", k, cl.cleaner.Session.RunID, err)
	}
	byName := make(map[string]api.Object, len(list))
	for _, o := range list {
		byName[o.GetName()] = o
	}
	return byName, nil
}

// unlabelled reads the object of a ledger entry that is not among those with the run's label, if these were listed. It
// returns nil if the object is gone.
func (cl *remover) unlabelled(ctx context.Context, k api.Kind, entry op.LedgerEntry, listed bool) (api.Object, error) {
	if listed && cl.isRequested(k, cl.manifests[k.String()+" "+entry.Name]) {
		return nil, nil
	}
	o := new(api.Any) // it may have lost its label
	_, err := cl.cleaner.Client.Get(ctx, k, entry.Data["namespace"], entry.Name, o)
	if apierrors.IsNotFound(err) || core.NotServed(err) {
		return nil, nil
	}
	return o, err
}

// accessesFirst returns the entries with those of BucketAccesses before all others. A BucketClaim is deleted when they
// are gone: COSI's sidecar reads the claim to revoke an access, and repeats that forever if the claim is gone.
func accessesFirst(entries []op.LedgerEntry) []op.LedgerEntry {
	return slices.SortedStableFunc(slices.Values(entries), func(a, b op.LedgerEntry) int {
		switch x, y := isBucketAccess(a), isBucketAccess(b); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
}

func isBucketAccess(entry op.LedgerEntry) bool {
	return entry.Data["group"] == engine.BucketGroup && entry.Data["kind"] == "BucketAccess"
}

// updateLedger marks the entries of removed objects as done.
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
		if !left[entry.Name] && !(core.IsOfKind(entry) && len(left) > 0) {
			errs = append(errs, cl.cleaner.Session.Ledger.Done(entry.Kind, entry.Name))
		}
	}
	return errors.Join(errs...)
}
