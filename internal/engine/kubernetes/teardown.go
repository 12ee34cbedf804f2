package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// patience is how long the removal of everything may take.
	patience = 3 * time.Minute
	// lookAgain is how often the cluster is asked what is left.
	lookAgain = 500 * time.Millisecond
	// giveUp is after how many looks that were refused for want of rights.
	giveUp = 20
	// lastGrace is how long pods have to end in a clean-up, in seconds.
	lastGrace = 5
)

// Teardown removes everything the run made: what carries its label, what the
// ledger lists, and the volumes and contents behind that, whose policy is set
// to Delete if it was Retain. It returns when all is gone, or names what is not.
func (e *Engine) Teardown(ctx context.Context, ledger engine.Ledger) error {
	return errors.Join(e.removeObjects(ctx, ledger), removeScratch(ledger))
}

// removeScratch removes the run's directories on the runner's machine; those of
// another machine are not there.
func removeScratch(ledger engine.Ledger) error {
	var errs []error
	for _, entry := range ledger.Open() {
		if entry.Kind == "dir" {
			errs = append(errs, os.RemoveAll(entry.Name), ledger.Done(entry.Kind, entry.Name))
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) removeObjects(ctx context.Context, ledger engine.Ledger) error {
	if e.client == nil {
		if err := e.connect(op.NewClock()); err != nil {
			return err
		}
	}
	if e.session.RunID == "" {
		e.session.RunID = runOf(ledger)
	}
	if e.session.RunID == "" {
		return nil // nothing was made
	}
	e.session.Ledger = ledger
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e.probes.quit()
	s := &sweep{engine: e, owed: map[string]bool{}, blind: ledger == engine.Ledger(noLedger{})}
	for _, entry := range ledger.Open() {
		s.owed[entry.Kind] = true
	}
	err := s.removeAll(ctx)
	err = errors.Join(err, e.vacate(context.WithoutCancel(ctx))) // removing is work for the driver too
	return errors.Join(err, s.settle(ledger))
}

// TeardownRun removes what carries the label of a run whose ledger is not at
// hand, and what is behind that.
func (e *Engine) TeardownRun(ctx context.Context, runID string) error {
	e.session.RunID = runID
	return e.Teardown(ctx, noLedger{})
}

// noLedger lists nothing.
type noLedger struct{}

func (noLedger) Add(op.LedgerEntry) error  { return nil }
func (noLedger) Done(string, string) error { return nil }
func (noLedger) Open() []op.LedgerEntry    { return nil }

// runOf is the run that a ledger belongs to.
func runOf(l engine.Ledger) string {
	for _, entry := range l.Open() {
		if run := entry.Data["run"]; run != "" {
			return run
		}
	}
	return ""
}

// sweep looks for what a run has made until there is nothing more.
type sweep struct {
	engine *Engine
	asked  map[string]bool      // deletions that were accepted
	held   map[string]time.Time // claims that only a finalizer holds, since when it was seen
	blind  bool                 // there is no ledger: what a run may have made is looked for
	owed   map[string]bool      // kinds that the ledger has entries of
	left   []string
}

// kinds that a run makes and labels, dependants first.
func (e *Engine) ownKinds(ctx context.Context) []api.Kind {
	kinds := []api.Kind{api.Pods}
	version := e.groupVersion
	if version == "" {
		for _, v := range []string{"v1", "v1beta2", "v1beta1"} {
			if _, _, err := e.client.List(ctx, api.VolumeGroupSnapshots(v), e.Namespace, metav1.ListOptions{LabelSelector: e.selector()}); err == nil {
				version = v
				break
			}
		}
	}
	if version != "" {
		e.groupVersion = version
		kinds = append(kinds, api.VolumeGroupSnapshots(version))
	}
	return append(kinds, api.VolumeSnapshots, api.PersistentVolumeClaims, services, api.ConfigMaps, api.Secrets, api.VolumeAttachments, volumeAttributesClasses)
}

func (e *Engine) selector() string { return LabelRun + "=" + e.session.RunID }

func (s *sweep) removeAll(ctx context.Context) error {
	s.asked = map[string]bool{}
	kinds := s.engine.ownKinds(ctx)
	if s.blind {
		kinds = append(controllerKinds(), kinds...)
	}
	volumes, contents := map[string]bool{}, map[string]bool{}
	refused := 0
	for {
		var errs []error
		s.left = nil
		errs = append(errs, s.nodes(ctx), s.manifests(ctx), s.behind(ctx, volumes, contents))
		for _, k := range kinds {
			errs = append(errs, s.kind(ctx, k))
		}
		err := errors.Join(errs...)
		if len(s.left) == 0 && err == nil {
			return nil
		}
		if apierrors.IsForbidden(err) || s.engine.hurried() && err != nil {
			refused++
		}
		if refused == giveUp { // waiting gives nobody a right
			return err
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			slices.Sort(s.left)
			return errors.Join(err, fmt.Errorf("not removed within %v: %s", patience, strings.Join(s.left, ", ")))
		}
	}
}

func (e *Engine) hurried() bool { return e.session.Hurry != nil && e.session.Hurry.Err() != nil }

// kind deletes what is left of one kind and carries the run's label.
func (s *sweep) kind(ctx context.Context, k api.Kind) error {
	e := s.engine
	namespace := ""
	if k.Namespaced {
		namespace = e.Namespace
	}
	list, _, err := e.client.List(ctx, k, namespace, metav1.ListOptions{LabelSelector: e.selector()})
	if notServed(err) || apierrors.IsForbidden(err) && !s.owed[k.String()] {
		return nil // who may not look has not made any
	}
	if err != nil {
		return fmt.Errorf("list %s of run %s: %w", k, e.session.RunID, err)
	}
	var errs []error
	for _, o := range list {
		s.left = append(s.left, k.Resource+" "+o.GetName())
		errs = append(errs, s.delete(ctx, k, o.GetName()))
		if k.Resource == api.PersistentVolumeClaims.Resource {
			errs = append(errs, s.unprotect(ctx, o.(*corev1.PersistentVolumeClaim)))
		}
	}
	return errors.Join(errs...)
}

const (
	// sourceProtection is the snapshot-controller's finalizer of a claim that a
	// snapshot is being taken of. It stays for ever where the snapshot is deleted
	// before its content was made (external-snapshotter v8).
	sourceProtection = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
	// unprotectAfter is how long the controller has to take it away itself.
	unprotectAfter = 10 * time.Second
)

// unprotect takes that finalizer from a claim of the run that is deleted, if
// nothing else holds it and no snapshot is of it.
func (s *sweep) unprotect(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	e := s.engine
	if c.DeletionTimestamp == nil || len(c.Finalizers) != 1 || c.Finalizers[0] != sourceProtection {
		return nil
	}
	if s.held == nil {
		s.held = map[string]time.Time{}
	}
	if since, known := s.held[c.Name]; !known || time.Since(since) < unprotectAfter {
		if !known {
			s.held[c.Name] = time.Now()
		}
		return nil
	}
	list, _, err := e.client.List(ctx, api.VolumeSnapshots, e.Namespace, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("look for snapshots of claim %s: %w", c.Name, err)
	}
	for _, o := range list {
		if of := o.(*api.VolumeSnapshot).Spec.Source.PersistentVolumeClaimName; of != nil && *of == c.Name {
			return nil
		}
	}
	if e.session.Sink != nil {
		e.session.Sink.Log("engine", fmt.Sprintf("claim %s is held by %s, though no snapshot is of it: the snapshot-controller has forgotten it, and the clean-up takes it away", c.Name, sourceProtection))
	}
	return e.release(ctx, api.PersistentVolumeClaims, c.Name, fmt.Sprintf(`{"metadata":{"finalizers":null,"resourceVersion":%q}}`, c.ResourceVersion))
}

// delete asks once, and again if it was refused; in a hurry pods are not
// waited for.
func (s *sweep) delete(ctx context.Context, k api.Kind, name string) error {
	id := k.Resource + "/" + name
	if s.asked[id] {
		return nil
	}
	opts := metav1.DeleteOptions{}
	if k.JSON && k.Group != snapshotGroup {
		opts.PropagationPolicy = new(metav1.DeletePropagationForeground)
	}
	if k.Resource == api.Pods.Resource {
		grace := int64(lastGrace)
		if s.engine.hurried() {
			grace = 0
		}
		opts.GracePeriodSeconds = &grace
	}
	err := s.engine.deleteWith(ctx, k, name, opts)
	if err == nil {
		s.asked[id] = true
	}
	return err
}

// nodes uncordons what a drain has left cordoned.
func (s *sweep) nodes(ctx context.Context) error {
	var errs []error
	for _, entry := range s.engine.session.Ledger.Open() {
		if entry.Kind != cordonKind {
			continue
		}
		if err := s.engine.uncordon(ctx, entry.Name); err != nil {
			s.left = append(s.left, "node "+entry.Name)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// manifests deletes the objects of manifests that the ledger lists, before their
// controllers make anew what is removed after them.
func (s *sweep) manifests(ctx context.Context) error {
	e := s.engine
	var errs []error
	for _, entry := range e.session.Ledger.Open() {
		d := entry.Data
		if d["resource"] == "" || d["run"] != e.session.RunID {
			continue
		}
		k := api.Kind{Group: d["group"], Version: d["version"], Resource: d["resource"], Name: d["kind"], Namespaced: d["namespace"] != "", JSON: true, New: func() api.Object { return new(api.Any) }}
		o := new(api.Any)
		_, err := e.client.Get(ctx, k, d["namespace"], entry.Name, o)
		if apierrors.IsNotFound(err) || notServed(err) {
			continue
		}
		if err == nil && o.GetLabels()[LabelRun] != e.session.RunID {
			continue // somebody else's by that name
		}
		s.left = append(s.left, k.Resource+" "+entry.Name)
		if err == nil {
			err = s.delete(ctx, k, entry.Name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// controllerKinds are the kinds of manifest that are looked for by their label where
// there is no ledger that lists them.
func controllerKinds() []api.Kind {
	var list []api.Kind
	for _, k := range []api.Kind{
		{Group: "apps", Resource: "deployments", Name: "Deployment"}, {Group: "apps", Resource: "statefulsets", Name: "StatefulSet"},
		{Group: "apps", Resource: "daemonsets", Name: "DaemonSet"}, {Group: "batch", Resource: "cronjobs", Name: "CronJob"}, {Group: "batch", Resource: "jobs", Name: "Job"},
	} {
		k.Version, k.Namespaced, k.JSON, k.New = "v1", true, true, func() api.Object { return new(api.Any) }
		list = append(list, k)
	}
	return list
}

// behind looks after the volumes and contents behind the run's claims and
// snapshots: they are to go with them.
func (s *sweep) behind(ctx context.Context, volumes, contents map[string]bool) error {
	e := s.engine
	list, _, err := e.client.List(ctx, api.PersistentVolumes, "", metav1.ListOptions{})
	if err != nil && (!apierrors.IsForbidden(err) || s.owed[api.PersistentVolumeClaims.String()]) {
		return fmt.Errorf("list PersistentVolumes: %w", err)
	}
	var errs []error
	for _, o := range list {
		pv := o.(*corev1.PersistentVolume)
		c := pv.Spec.ClaimRef
		if c == nil || c.Namespace != e.Namespace || !strings.Contains(c.Name, prefix(e.session.RunID)) { // a StatefulSet puts its claims' names before its own
			continue
		}
		s.left = append(s.left, "persistentvolume "+pv.Name)
		if pv.Labels[LabelRun] != "" { // static: we made it for a volume that stays
			errs = append(errs, s.delete(ctx, api.PersistentVolumes, pv.Name))
			continue
		}
		if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain && !volumes[pv.Name] {
			errs = append(errs, e.release(ctx, api.PersistentVolumes, pv.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`))
			volumes[pv.Name] = true
		}
	}
	list, _, err = e.client.List(ctx, api.VolumeSnapshotContents, "", metav1.ListOptions{})
	if err != nil && !notServed(err) && (!apierrors.IsForbidden(err) || s.owed[api.VolumeSnapshots.String()]) {
		errs = append(errs, fmt.Errorf("list VolumeSnapshotContents: %w", err))
	}
	for _, o := range list {
		c := o.(*api.VolumeSnapshotContent)
		ref := c.Spec.VolumeSnapshotRef
		if ref.Namespace != e.Namespace || !s.ours(ref.Name) {
			continue
		}
		s.left = append(s.left, "volumesnapshotcontent "+c.Name)
		if c.Spec.DeletionPolicy == "Retain" && !contents[c.Name] {
			errs = append(errs, e.release(ctx, api.VolumeSnapshotContents, c.Name, `{"spec":{"deletionPolicy":"Delete"}}`))
			contents[c.Name] = true
		}
	}
	return errors.Join(errs...)
}

// ours says whether a snapshot is of this run: named by it, or a member of one
// of its groups.
func (s *sweep) ours(snapshot string) bool {
	if strings.HasPrefix(snapshot, prefix(s.engine.session.RunID)) {
		return true
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	_, member := s.engine.snapshots[rawName+snapshot]
	return member
}

// release makes what was to be retained go with its owner.
func (e *Engine) release(ctx context.Context, k api.Kind, name, patch string) error {
	namespace := ""
	if k.Namespaced {
		namespace = e.Namespace
	}
	_, err := e.client.Patch(ctx, k, namespace, name, types.MergePatchType, []byte(patch), nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %s is retained, and that cannot be changed: %w", k.Resource, name, err)
	}
	return nil
}

// settle strikes the ledger's entries of what is gone.
func (s *sweep) settle(ledger engine.Ledger) error {
	left := map[string]bool{}
	for _, l := range s.left {
		_, name, _ := strings.Cut(l, " ")
		left[name] = true
	}
	var errs []error
	for _, entry := range ledger.Open() {
		if entry.Data["run"] == s.engine.session.RunID && !left[entry.Name] {
			errs = append(errs, ledger.Done(entry.Kind, entry.Name))
		}
	}
	return errors.Join(errs...)
}
