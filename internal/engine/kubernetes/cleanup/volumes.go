package cleanup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// relation is how a PersistentVolume or VolumeSnapshotContent relates to a run.
type relation int

const (
	relForeign  relation = iota
	relCreated           // the run created the object for a static volume
	relBacking           // backs a claim or snapshot of the run
	relPending           // may back one, and the cluster deletes it: wait for it
	relUnproven          // may back one, but only by its name
)

// volumeRelation classifies a PersistentVolume by what was read so far.
func (cl *remover) volumeRelation(pv *corev1.PersistentVolume) relation {
	e, c := cl.cleaner, pv.Spec.ClaimRef
	switch {
	case pv.Labels[names.LabelRun] == e.ID.RunID && e.CheckOwner(api.PersistentVolumes, pv) == nil:
		return relCreated
	case pv.Labels[names.LabelRun] == e.ID.RunID:
		return relUnproven
	case cl.backing[pv.UID]:
		return relBacking
	case c == nil || c.Namespace != e.Namespace || pv.Annotations[core.ProvisionedBy] == "":
		return relForeign
	case e.Marked(pv, core.RetainedAnnotation):
		return relBacking
	}
	if claim, own := cl.claims[c.UID]; own {
		if core.CreatedFor(claim, pv) {
			return relBacking
		}
		return relForeign
	}
	// A StatefulSet prefixes the names of its claims.
	if !strings.Contains(c.Name, names.Prefix(e.ID.RunID)) {
		return relForeign
	}
	return cl.relationByName(pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain)
}

// relationByName classifies an object whose claim or snapshot is gone.
func (cl *remover) relationByName(retained bool) relation {
	switch {
	case cl.cleaner.Executing || cl.cleaner.ByLabel:
		return relBacking
	case retained:
		return relUnproven
	}
	return relPending
}

// contentRelation classifies a VolumeSnapshotContent.
func (cl *remover) contentRelation(c *api.VolumeSnapshotContent) relation {
	e, ref := cl.cleaner, c.Spec.VolumeSnapshotRef
	dynamic := c.Spec.Source.VolumeHandle != nil || c.Status != nil && c.Status.VolumeGroupSnapshotHandle != nil
	switch {
	case cl.backing[c.UID]:
		return relBacking
	case ref.Namespace != e.Namespace || !dynamic:
		return relForeign
	case e.Marked(c, core.RetainedAnnotation) || cl.snapshots[ref.UID]:
		return relBacking
	case !strings.HasPrefix(ref.Name, names.Prefix(e.ID.RunID)) && !e.IsGroupMember(ref.Name):
		return relForeign
	}
	return cl.relationByName(c.Spec.DeletionPolicy == "Retain")
}

// deleteVolumes has the volumes of the run's claims deleted with them, and deletes the PersistentVolumes that the
// run created.
func (cl *remover) deleteVolumes(ctx context.Context) error {
	e := cl.cleaner
	list, _, err := e.Client.List(ctx, api.PersistentVolumes, "", metav1.ListOptions{})
	if apierrors.IsForbidden(err) && !cl.ledgerKinds[api.PersistentVolumeClaims.String()] {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list PersistentVolumes: %w", err)
	}
	var errs []error
	for _, o := range list {
		pv := o.(*corev1.PersistentVolume)
		relation := cl.volumeRelation(pv)
		cl.note(api.PersistentVolumes, pv.Name, relation)
		switch relation {
		case relCreated:
			errs = append(errs, cl.delete(ctx, api.PersistentVolumes, pv))
		case relBacking:
			errs = append(errs, cl.deleteWithOwner(ctx, api.PersistentVolumes, pv, "persistentVolumeReclaimPolicy",
				pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain))
		case relPending, relUnproven, relForeign:
		}
	}
	return errors.Join(errs...)
}

// note adds an object to the remaining or the skipped ones, by its relation to the run.
func (cl *remover) note(kind api.Kind, name string, relation relation) {
	what := kind.String() + " " + name
	switch relation {
	case relCreated, relBacking, relPending:
		cl.addRemaining(what)
	case relUnproven:
		cl.skip(what,
			owned.Refuse("its name is of run %s, but nothing else proves that it belongs to it", cl.cleaner.ID.RunID))
	case relForeign:
	}
}

// deleteContents does the same for the contents of the run's snapshots.
func (cl *remover) deleteContents(ctx context.Context) error {
	e := cl.cleaner
	list, _, err := e.Client.List(ctx, api.VolumeSnapshotContents, "", metav1.ListOptions{})
	if core.NotServed(err) || apierrors.IsForbidden(err) && !cl.ledgerKinds[api.VolumeSnapshots.String()] {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list VolumeSnapshotContents: %w", err)
	}
	var errs []error
	for _, o := range list {
		c := o.(*api.VolumeSnapshotContent)
		relation := cl.contentRelation(c)
		cl.note(api.VolumeSnapshotContents, c.Name, relation)
		if relation != relBacking {
			continue
		}
		retained := c.Spec.DeletionPolicy == "Retain"
		errs = append(errs, cl.deleteWithOwner(ctx, api.VolumeSnapshotContents, c, "deletionPolicy", retained))
		// The snapshot-controller does not delete a content whose snapshot is gone.
		if !retained && !cl.present[c.Spec.VolumeSnapshotRef.UID] && c.DeletionTimestamp == nil {
			errs = append(errs, cl.delete(ctx, api.VolumeSnapshotContents, c))
		}
	}
	return errors.Join(errs...)
}

// deleteWithOwner records an object that goes with its claim or snapshot, and changes its policy from Retain to
// Delete.
func (cl *remover) deleteWithOwner(ctx context.Context, kind api.Kind, o api.Object, policy string,
	retained bool) error {
	cl.backing[o.GetUID()] = true
	if !retained || cl.dryRun {
		return nil
	}
	body := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}},"spec":{%q:"Delete"}}`,
		o.GetUID(), core.RetainedAnnotation, cl.cleaner.Mark(), policy)
	return cl.cleaner.setDeletePolicy(ctx, kind, o.GetName(), body)
}

// setDeletePolicy patches an object so that it is deleted with its owner.
func (e *Cleaner) setDeletePolicy(ctx context.Context, k api.Kind, name, patch string) error {
	_, err := e.Client.Patch(ctx, k, e.NamespaceOf(k), name, types.MergePatchType, []byte(patch), nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %s is retained and its policy cannot be changed: %w", k.Resource, name, err)
	}
	return nil
}
