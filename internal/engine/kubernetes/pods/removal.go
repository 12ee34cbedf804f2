package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Milestones of a deletion beyond those of package op.
const (
	PodGone   = "podGone"
	ClaimGone = "claimGone"
)

// Removal follows pods and claims until they are gone.
type Removal struct {
	tracker.Observation
	state        *State
	pods         map[string]PendingDeletion // remaining ones, by name in the cluster
	claims       map[string]PendingDeletion
	volumes      map[string]PendingDeletion // PersistentVolumes
	attachments  map[string]PendingDeletion // VolumeAttachments
	Manifests    map[string]PendingDeletion // of manifests, by namespace and name
	retained     map[string]bool            // claims whose volume is retained
	kept         []*corev1.PersistentVolume
	unbound      map[string]unboundClaim // claims without a volume, by name in the cluster
	ObjectsOf    map[string][]string
	podMilestone string            // the milestone of pods
	phases       map[string]string // by PersistentVolume
}

// PendingDeletion is an object that is being deleted: the name in the run of what it belongs to, and its UID, since
// names are reused.
type PendingDeletion struct {
	Object string
	UID    types.UID
}

// unboundClaim is a claim without a volume. A volume may still be created for it.
type unboundClaim struct {
	volume *Volume
	uid    types.UID
}

// NewRemoval begins to follow a removal without objects.
func (e *State) NewRemoval() *Removal {
	r := &Removal{state: e, pods: map[string]PendingDeletion{}, claims: map[string]PendingDeletion{},
		volumes:     map[string]PendingDeletion{},
		attachments: map[string]PendingDeletion{}, Manifests: map[string]PendingDeletion{}, retained: map[string]bool{},
		unbound:   map[string]unboundClaim{},
		ObjectsOf: map[string][]string{}, phases: map[string]string{}}
	r.Observation = e.Observe(tracker.RemovalCalls, r.pending)
	return r
}

// pending lists the remaining objects.
func (r *Removal) pending() (list []tracker.Pending) {
	for _, left := range []map[string]PendingDeletion{r.pods, r.claims, r.volumes, r.attachments} {
		for name, l := range left {
			i := slices.IndexFunc(list, func(p tracker.Pending) bool { return p.Object == l.Object })
			if i < 0 {
				i, list = len(list), append(list, tracker.Pending{Object: l.Object})
			}
			list[i].Names = append(list[i].Names, name)
		}
	}
	return list
}

// DeleteAndWait deletes pods, claims and further objects at once, and returns when pods, claims, volumes and
// attachments are gone.
func (e *State) DeleteAndWait(ctx context.Context, tr *op.Trace, pods []*Pod, volumes []*Volume,
	others []NamedObject) error {
	r := e.NewRemoval()
	defer r.Feed.Close()
	defer func() {
		r.Milestones.Fill(tr, r.ObjectsOf)
		r.Calls.Fill(tr, len(volumes) > 1)
		var names []string
		for _, v := range volumes {
			names = append(names, v.Object.Name)
		}
		e.Attempts.Count(tr, strings.Join(names, ", "), r.Warnings, r.Calls)
	}()
	for _, m := range pods {
		m.forbidCreation()
		r.AddPod(m, PodGone)
	}
	for _, v := range volumes {
		r.AddClaim(v)
	}
	var errs []error
	for _, m := range pods {
		found, err := e.DeleteIfExists(ctx, api.Pods, m.Name(), metav1.DeleteOptions{})
		if !found {
			delete(r.pods, m.Name()) // a failed op created none
		}
		errs = append(errs, err)
	}
	for _, v := range volumes {
		if v.Template == nil { // else deleted with its pod
			errs = append(errs, e.Delete(ctx, api.PersistentVolumeClaims, v.Name))
		}
		if v.Static != "" {
			errs = append(errs, e.Delete(ctx, api.PersistentVolumes, v.Static))
		}
	}
	for _, o := range others {
		errs = append(errs, e.Delete(ctx, o.Kind, o.Name))
	}
	tr.Mark(op.Acked, "runner")
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := r.Wait(ctx); err != nil {
		return err
	}
	end := r.Milestones.Last(PodGone, ClaimGone, op.Detached, VolumeGone)
	if end.Known() {
		tr.EndedAt(end)
		tr.MarkAt(op.Gone, end, 0, "watch")
	}
	return e.forget(pods, volumes, others)
}

// VolumeGone is the milestone at which a PersistentVolume is gone.
const VolumeGone = "volumeGone"

// forget removes deleted objects from the ledger and the registries.
func (e *State) forget(pods []*Pod, volumes []*Volume, others []NamedObject) error {
	var errs []error
	for _, m := range pods {
		if m.Holder {
			e.Agents.Forget(m.Instance)
		}
		errs = append(errs, e.LedgerDone(api.Pods, m.Name()), e.LedgerDone(api.Secrets, m.Name()))
	}
	e.Mu.Lock()
	for _, v := range volumes {
		delete(e.Volumes, v.Object.Name)
	}
	e.Mu.Unlock()
	for _, v := range volumes {
		errs = append(errs, e.LedgerDone(api.PersistentVolumeClaims, v.Name))
		if v.Static != "" {
			errs = append(errs, e.LedgerDone(api.PersistentVolumes, v.Static))
		}
	}
	for _, o := range others {
		errs = append(errs, e.LedgerDone(o.Kind, o.Name))
	}
	return errors.Join(errs...)
}

// AddPod follows the current pod until it is gone, which is the given milestone.
func (r *Removal) AddPod(m *Pod, milestone string) {
	name := m.Name()
	r.podMilestone = milestone
	r.pods[name] = PendingDeletion{m.Object, m.Current().UID}
	r.ObjectsOf[milestone] = append(r.ObjectsOf[milestone], m.Object)
	r.Feed.Add(tracker.Pod.Key(name))
	r.Feed.Add(tracker.EventsOf.Key(name))
}

// AddClaim follows a claim with its volume and attachments.
func (r *Removal) AddClaim(v *Volume) {
	claim, ok := r.state.Tracker.Latest(tracker.Claim.Key(v.Name)).(*corev1.PersistentVolumeClaim)
	if !ok {
		claim = &corev1.PersistentVolumeClaim{} // created but not seen yet
	}
	r.claims[v.Name] = PendingDeletion{v.Object.Name, claim.UID}
	r.ObjectsOf[ClaimGone] = append(r.ObjectsOf[ClaimGone], v.Object.Name)
	r.Feed.Add(tracker.Claim.Key(v.Name))
	r.Feed.Add(tracker.EventsOf.Key(v.Name))
	r.unbound[v.Name] = unboundClaim{v, claim.UID}
	if pv, ok := r.state.Tracker.Latest(tracker.VolumeOfClaim.Key(v.Name)).(*corev1.PersistentVolume); ok {
		r.addVolume(v, pv)
	}
	r.Feed.Add(tracker.VolumeOfClaim.Key(v.Name))
}

// addVolume follows the volume of a claim.
func (r *Removal) addVolume(v *Volume, pv *corev1.PersistentVolume) {
	delete(r.unbound, v.Name)
	r.Feed.Add(tracker.EventsOf.Key(pv.Name))
	if pv.Spec.CSI != nil {
		r.Calls.Follow(r.Feed, pv.Spec.CSI.VolumeHandle, v.Object.Name)
	}
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete || v.Static != "" {
		r.volumes[pv.Name] = PendingDeletion{v.Object.Name, pv.UID}
		r.ObjectsOf[VolumeGone] = append(r.ObjectsOf[VolumeGone], v.Object.Name)
	} else {
		r.retained[v.Object.Name] = true
		claim, _ := r.state.Tracker.Latest(tracker.Claim.Key(v.Name)).(*corev1.PersistentVolumeClaim)
		if claim != nil && pv.Annotations[core.ProvisionedBy] != "" && pv.Spec.ClaimRef.UID == claim.UID &&
			core.CreatedFor(claim.CreationTimestamp, pv) {
			r.kept = append(r.kept, pv)
		}
	}
	r.AddAttachments(v, pv.Name)
}

// AddAttachments follows the attachments of a volume.
func (r *Removal) AddAttachments(v *Volume, pv string) {
	list := r.state.Tracker.Attachments(pv)
	for _, va := range list {
		r.attachments[va.Name] = PendingDeletion{v.Object.Name, va.UID}
	}
	if len(list) > 0 {
		r.ObjectsOf[op.Detached] = append(r.ObjectsOf[op.Detached], v.Object.Name)
		r.Feed.Add(tracker.AttachmentOfVolume.Key(pv))
	}
}

// hasAttachment says whether a volume still has an attachment.
func (r *Removal) hasAttachment(object string) bool {
	for _, l := range r.attachments {
		if l.Object == object {
			return true
		}
	}
	return false
}

// Wait returns when all objects are gone.
func (r *Removal) Wait(ctx context.Context) error {
	defer r.Waits.Done()
	for len(r.pods)+len(r.claims)+len(r.volumes)+len(r.attachments)+len(r.Manifests) > 0 {
		v, err := r.Feed.Next(ctx)
		if err != nil {
			return engine.Errorf("Waiting", "%s", r.describePending()).Wrap(err)
		}
		switch v := v.(type) {
		case watch.Event:
			r.handle(v)
		case *csiproxy.Call:
			r.handleCall(v)
		}
		r.Waits.Saw(v)
	}
	for _, pv := range r.kept {
		r.state.MarkRetained(api.PersistentVolumes, pv)
	}
	for _, u := range r.unbound {
		r.state.Attempts.DeletedUnbound(u.volume.Object.Name)
	}
	return nil
}

// handleCall takes the milestones of unpublishing and unstaging from calls of the driver.
func (r *Removal) handleCall(c *csiproxy.Call) {
	object, own := r.Calls.See(c)
	if !own || c.Code != "OK" {
		return
	}
	m := op.Milestone{At: c.End, Err: c.Err, Source: "csi"}
	switch c.RPC {
	case "NodeUnpublishVolume":
		r.Milestones.Set(op.Unpublished, object, m)
	case "NodeUnstageVolume":
		r.Milestones.Set(op.Unstaged, object, m)
	}
}

func (r *Removal) handle(ev watch.Event) {
	deleted := ev.Type == watch.Deleted
	reach := func(left map[string]PendingDeletion, o api.Object, milestone string) {
		name := o.GetName()
		if milestone == ObjectGone {
			name = o.GetNamespace() + "/" + name
		}
		l, ok := left[name]
		if !ok || !deleted || l.UID != "" && l.UID != o.GetUID() {
			return
		}
		delete(left, name)
		if milestone != op.Detached || !r.hasAttachment(l.Object) {
			r.Milestones.Add(milestone, l.Object, ev)
		}
	}
	switch o := ev.Object.(type) {
	case *corev1.Pod:
		reach(r.pods, o, r.podMilestone)
	case *corev1.PersistentVolumeClaim:
		reach(r.claims, o, ClaimGone)
	case *corev1.PersistentVolume:
		if ref := o.Spec.ClaimRef; ref != nil && !deleted {
			if u, ok := r.unbound[ref.Name]; ok && (u.uid == "" || u.uid == ref.UID) {
				r.addVolume(u.volume, o)
			}
		}
		r.phases[o.Name] = string(o.Status.Phase)
		reach(r.volumes, o, VolumeGone)
	case *storagev1.VolumeAttachment:
		if e := o.Status.DetachError; e != nil {
			r.Warnings.Note(o.Name, "FailedDetach", e.Message, &e.Time)
		}
		reach(r.attachments, o, op.Detached)
	case *api.Any:
		reach(r.Manifests, o, ObjectGone)
	case *corev1.Event:
		if ev.At >= r.Calls.Since && r.concerns(o) {
			r.Warnings.See(o)
		}
	}
}

// concerns says whether an event is about a deletion. Failures of the creation, and of other pods of the name,
// belong to other ops.
func (r *Removal) concerns(e *corev1.Event) bool {
	if e.InvolvedObject.Kind != "Pod" {
		return e.Reason != "ProvisioningFailed"
	}
	l, own := r.pods[e.InvolvedObject.Name]
	uid := e.InvolvedObject.UID
	same := uid == "" || l.UID == "" || uid == l.UID
	return own && same && !tracker.IsFailedAttempt(e.Reason) && e.Reason != "FailedScheduling"
}

func (r *Removal) describePending() string {
	var parts []string
	list := func(what string, left map[string]PendingDeletion) {
		for _, name := range slices.Sorted(maps.Keys(left)) {
			parts = append(parts, what+" "+name+" is still there")
		}
	}
	list("pod", r.pods)
	list("claim", r.claims)
	list("attachment", r.attachments)
	list("object", r.Manifests)
	for _, name := range slices.Sorted(maps.Keys(r.volumes)) {
		parts = append(parts, fmt.Sprintf("volume %s is still there (%s)", name, r.phases[name]))
	}
	return r.Explain(strings.Join(parts, "; "))
}

// ObjectGone is the milestone at which an object of a manifest is gone.
const ObjectGone = "objectGone"
