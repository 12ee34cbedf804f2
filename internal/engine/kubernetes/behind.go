package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// provisionedBy is the annotation by which a PersistentVolume says that it was made
// for a claim.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// relation is what a volume is to a run, or the content of a snapshot.
type relation int

const (
	isForeign  relation = iota
	isMade              // the run has made the object, for a volume that stays
	isBehind            // it was made for a claim or snapshot of the run
	isGoing             // it may be, and the cluster deletes it: it is waited for
	isUnproven          // its name alone says that it is
)

// volume is what a PersistentVolume is to the run: pure, but for what was seen.
func (s *sweep) volume(pv *corev1.PersistentVolume) relation {
	e, c := s.engine, pv.Spec.ClaimRef
	switch {
	case pv.Labels[names.LabelRun] == e.own.RunID && e.carries(api.PersistentVolumes, pv) == nil:
		return isMade
	case pv.Labels[names.LabelRun] == e.own.RunID:
		return isUnproven
	case s.behind[pv.UID]:
		return isBehind
	case c == nil || c.Namespace != e.Namespace || pv.Annotations[provisionedBy] == "":
		return isForeign
	case e.marked(pv, behindMark):
		return isBehind
	}
	if claim, ours := s.claims[c.UID]; ours {
		return madeFor(claim, pv)
	}
	// A StatefulSet puts its claims' names before its own.
	if !strings.Contains(c.Name, names.Prefix(e.own.RunID)) {
		return isForeign
	}
	return s.byName(pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain)
}

// clockSkew is how far the clocks of two API servers may be apart.
const clockSkew = 5 * time.Second

// madeFor: a volume that is older than its claim was not made for it.
func madeFor(claim metav1.Time, pv *corev1.PersistentVolume) relation {
	if pv.CreationTimestamp.Add(clockSkew).Before(claim.Time) {
		return isForeign
	}
	return isBehind
}

// byName is what is behind an object that is gone, by its name alone.
func (s *sweep) byName(retained bool) relation {
	switch {
	case s.engine.living || s.engine.byLabel:
		return isBehind
	case retained:
		return isUnproven
	}
	return isGoing
}

// content is what a VolumeSnapshotContent is to the run.
func (s *sweep) content(c *api.VolumeSnapshotContent) relation {
	e, ref := s.engine, c.Spec.VolumeSnapshotRef
	dynamic := c.Spec.Source.VolumeHandle != nil || c.Status != nil && c.Status.VolumeGroupSnapshotHandle != nil
	switch {
	case s.behind[c.UID]:
		return isBehind
	case ref.Namespace != e.Namespace || !dynamic:
		return isForeign
	case e.marked(c, behindMark) || s.snapshots[types.UID(ref.UID)]:
		return isBehind
	case !strings.HasPrefix(ref.Name, names.Prefix(e.own.RunID)) && !e.isMember(ref.Name):
		return isForeign
	}
	return s.byName(c.Spec.DeletionPolicy == "Retain")
}

// isMember says whether this process has seen a snapshot come with a group of the run.
func (e *Engine) isMember(snapshot string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, member := e.snapshots[names.Raw+snapshot]
	return member
}

// behindClaims has the volumes behind the run's claims go with them, and deletes
// the PersistentVolumes that the run has made.
func (s *sweep) behindClaims(ctx context.Context) error {
	e := s.engine
	list, _, err := e.client.List(ctx, api.PersistentVolumes, "", metav1.ListOptions{})
	if apierrors.IsForbidden(err) && !s.owed[api.PersistentVolumeClaims.String()] {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list PersistentVolumes: %w", err)
	}
	var errs []error
	for _, o := range list {
		pv := o.(*corev1.PersistentVolume)
		what := "persistentvolumes " + pv.Name
		switch s.volume(pv) {
		case isMade:
			s.found(what)
			errs = append(errs, s.delete(ctx, api.PersistentVolumes, pv))
		case isBehind:
			s.found(what)
			errs = append(errs, s.takeAlong(ctx, api.PersistentVolumes, pv, "persistentVolumeReclaimPolicy",
				pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain))
		case isGoing:
			s.found(what)
		case isUnproven:
			s.leave(what, s.nameAlone())
		case isForeign:
		}
	}
	return errors.Join(errs...)
}

// behindSnapshots does the same for the contents behind the run's snapshots.
func (s *sweep) behindSnapshots(ctx context.Context) error {
	e := s.engine
	list, _, err := e.client.List(ctx, api.VolumeSnapshotContents, "", metav1.ListOptions{})
	if notServed(err) || apierrors.IsForbidden(err) && !s.owed[api.VolumeSnapshots.String()] {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list VolumeSnapshotContents: %w", err)
	}
	var errs []error
	for _, o := range list {
		c := o.(*api.VolumeSnapshotContent)
		what := "volumesnapshotcontents.snapshot.storage.k8s.io " + c.Name
		switch s.content(c) {
		case isBehind:
			s.found(what)
			retained := c.Spec.DeletionPolicy == "Retain"
			errs = append(errs, s.takeAlong(ctx, api.VolumeSnapshotContents, c, "deletionPolicy", retained))
			// The snapshot-controller deletes no content whose snapshot is gone.
			if !retained && !s.present[types.UID(c.Spec.VolumeSnapshotRef.UID)] && c.DeletionTimestamp == nil {
				errs = append(errs, s.delete(ctx, api.VolumeSnapshotContents, c))
			}
		case isGoing:
			s.found(what)
		case isUnproven:
			s.leave(what, s.nameAlone())
		case isMade, isForeign:
		}
	}
	return errors.Join(errs...)
}

func (s *sweep) nameAlone() error {
	return owned.Refuse("its name is one of run %s, and nothing else proves that it was made for it", s.engine.own.RunID)
}

// takeAlong remembers what is to go with its claim or snapshot, which is soon gone,
// and has it deleted with that where it would be retained.
func (s *sweep) takeAlong(ctx context.Context, kind api.Kind, o api.Object, policy string, retained bool) error {
	s.behind[o.GetUID()] = true
	if !retained || s.look {
		return nil
	}
	body := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}},"spec":{%q:"Delete"}}`,
		o.GetUID(), behindMark, s.engine.mark(), policy)
	return s.engine.release(ctx, kind, o.GetName(), body)
}

// release makes what was to be retained go with its owner.
func (e *Engine) release(ctx context.Context, k api.Kind, name, patch string) error {
	_, err := e.client.Patch(ctx, k, e.within(k), name, types.MergePatchType, []byte(patch), nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %s is retained, and that cannot be changed: %w", k.Resource, name, err)
	}
	return nil
}
