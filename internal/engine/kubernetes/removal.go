package kubernetes

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
	podGone   = "podGone"
	claimGone = "claimGone"
)

// removal follows pods and claims until they are gone.
type removal struct {
	tracker.Observation
	engine       *State
	pods         map[string]pendingDeletion // remaining ones, by name in the cluster
	claims       map[string]pendingDeletion
	volumes      map[string]pendingDeletion // PersistentVolumes
	attachments  map[string]pendingDeletion // VolumeAttachments
	objects      map[string]pendingDeletion // of manifests, by namespace and name
	retained     map[string]bool            // claims whose volume is retained
	kept         []*corev1.PersistentVolume
	unbound      map[string]unboundClaim // claims without a volume, by name in the cluster
	objectsOf    map[string][]string
	podMilestone string            // the milestone of pods
	phases       map[string]string // by PersistentVolume
}

// pendingDeletion is an object that is being deleted: the name in the run of what it belongs to,
// and its UID, since names are reused.
type pendingDeletion struct {
	object string
	uid    types.UID
}

// unboundClaim is a claim without a volume. A volume may still be created for it.
type unboundClaim struct {
	volume *volume
	uid    types.UID
}

func (e *State) newRemoval() *removal {
	r := &removal{engine: e, pods: map[string]pendingDeletion{}, claims: map[string]pendingDeletion{}, volumes: map[string]pendingDeletion{},
		attachments: map[string]pendingDeletion{}, objects: map[string]pendingDeletion{}, retained: map[string]bool{}, unbound: map[string]unboundClaim{},
		objectsOf: map[string][]string{}, phases: map[string]string{}}
	r.Observation = e.observe(tracker.RemovalCalls, r.pending)
	return r
}

// pending lists the remaining objects.
func (r *removal) pending() (list []tracker.Pending) {
	for _, left := range []map[string]pendingDeletion{r.pods, r.claims, r.volumes, r.attachments} {
		for name, l := range left {
			i := slices.IndexFunc(list, func(p tracker.Pending) bool { return p.Object == l.object })
			if i < 0 {
				i, list = len(list), append(list, tracker.Pending{Object: l.object})
			}
			list[i].Names = append(list[i].Names, name)
		}
	}
	return list
}

// deleteAndWait deletes pods, claims and further objects at once, and returns when pods, claims,
// volumes and attachments are gone.
func (e *State) deleteAndWait(ctx context.Context, tr *op.Trace, pods []*managedPod, volumes []*volume, others []namedObject) error {
	r := e.newRemoval()
	defer r.Feed.Close()
	defer func() {
		r.Milestones.Fill(tr, r.objectsOf)
		r.Calls.Fill(tr, len(volumes) > 1)
		var names []string
		for _, v := range volumes {
			names = append(names, v.object.Name)
		}
		e.attempts.Count(tr, strings.Join(names, ", "), r.Warnings, r.Calls)
	}()
	for _, m := range pods {
		m.forbidCreation()
		r.addPod(m, podGone)
	}
	for _, v := range volumes {
		r.addClaim(v)
	}
	var errs []error
	for _, m := range pods {
		found, err := e.DeleteIfExists(ctx, api.Pods, m.name(), metav1.DeleteOptions{})
		if !found {
			delete(r.pods, m.name()) // a failed op created none
		}
		errs = append(errs, err)
	}
	for _, v := range volumes {
		if v.template == nil { // else deleted with its pod
			errs = append(errs, e.Delete(ctx, api.PersistentVolumeClaims, v.name))
		}
		if v.static != "" {
			errs = append(errs, e.Delete(ctx, api.PersistentVolumes, v.static))
		}
	}
	for _, o := range others {
		errs = append(errs, e.Delete(ctx, o.kind, o.name))
	}
	tr.Mark(op.Acked, "runner")
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	end := r.Milestones.Last(podGone, claimGone, op.Detached, volumeGone)
	if end.Known() {
		tr.EndedAt(end)
		tr.MarkAt(op.Gone, end, 0, "watch")
	}
	return e.forget(pods, volumes, others)
}

const volumeGone = "volumeGone"

// forget removes deleted objects from the ledger and the registries.
func (e *State) forget(pods []*managedPod, volumes []*volume, others []namedObject) error {
	var errs []error
	for _, m := range pods {
		if m.holder {
			e.agents.Forget(m.instance)
		}
		errs = append(errs, e.LedgerDone(api.Pods, m.name()), e.LedgerDone(api.Secrets, m.name()))
	}
	e.mu.Lock()
	for _, v := range volumes {
		delete(e.volumes, v.object.Name)
	}
	e.mu.Unlock()
	for _, v := range volumes {
		errs = append(errs, e.LedgerDone(api.PersistentVolumeClaims, v.name))
		if v.static != "" {
			errs = append(errs, e.LedgerDone(api.PersistentVolumes, v.static))
		}
	}
	for _, o := range others {
		errs = append(errs, e.LedgerDone(o.kind, o.name))
	}
	return errors.Join(errs...)
}

// addPod follows the current pod until it is gone, which is the given milestone.
func (r *removal) addPod(m *managedPod, milestone string) {
	name := m.name()
	r.podMilestone = milestone
	r.pods[name] = pendingDeletion{m.object, m.current().uid}
	r.objectsOf[milestone] = append(r.objectsOf[milestone], m.object)
	r.Feed.Add(tracker.Pod.Key(name))
	r.Feed.Add(tracker.EventsOf.Key(name))
}

// addClaim follows a claim with its volume and attachments.
func (r *removal) addClaim(v *volume) {
	claim, ok := r.engine.tracker.Latest(tracker.Claim.Key(v.name)).(*corev1.PersistentVolumeClaim)
	if !ok {
		claim = &corev1.PersistentVolumeClaim{} // created but not seen yet
	}
	r.claims[v.name] = pendingDeletion{v.object.Name, claim.UID}
	r.objectsOf[claimGone] = append(r.objectsOf[claimGone], v.object.Name)
	r.Feed.Add(tracker.Claim.Key(v.name))
	r.Feed.Add(tracker.EventsOf.Key(v.name))
	r.unbound[v.name] = unboundClaim{v, claim.UID}
	if pv, ok := r.engine.tracker.Latest(tracker.VolumeOfClaim.Key(v.name)).(*corev1.PersistentVolume); ok {
		r.addVolume(v, pv)
	}
	r.Feed.Add(tracker.VolumeOfClaim.Key(v.name))
}

// addVolume follows the volume of a claim.
func (r *removal) addVolume(v *volume, pv *corev1.PersistentVolume) {
	delete(r.unbound, v.name)
	r.Feed.Add(tracker.EventsOf.Key(pv.Name))
	if pv.Spec.CSI != nil {
		r.Calls.Follow(r.Feed, pv.Spec.CSI.VolumeHandle, v.object.Name)
	}
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete || v.static != "" {
		r.volumes[pv.Name] = pendingDeletion{v.object.Name, pv.UID}
		r.objectsOf[volumeGone] = append(r.objectsOf[volumeGone], v.object.Name)
	} else {
		r.retained[v.object.Name] = true
		claim, _ := r.engine.tracker.Latest(tracker.Claim.Key(v.name)).(*corev1.PersistentVolumeClaim)
		if claim != nil && pv.Annotations[core.ProvisionedBy] != "" && pv.Spec.ClaimRef.UID == claim.UID &&
			core.CreatedFor(claim.CreationTimestamp, pv) {
			r.kept = append(r.kept, pv)
		}
	}
	r.addAttachments(v, pv.Name)
}

// addAttachments follows the attachments of a volume.
func (r *removal) addAttachments(v *volume, pv string) {
	list := r.engine.tracker.Attachments(pv)
	for _, va := range list {
		r.attachments[va.Name] = pendingDeletion{v.object.Name, va.UID}
	}
	if len(list) > 0 {
		r.objectsOf[op.Detached] = append(r.objectsOf[op.Detached], v.object.Name)
		r.Feed.Add(tracker.AttachmentOfVolume.Key(pv))
	}
}

// hasAttachment says whether a volume still has an attachment.
func (r *removal) hasAttachment(object string) bool {
	for _, l := range r.attachments {
		if l.object == object {
			return true
		}
	}
	return false
}

func (r *removal) wait(ctx context.Context) error {
	defer r.Waits.Done()
	for len(r.pods)+len(r.claims)+len(r.volumes)+len(r.attachments)+len(r.objects) > 0 {
		v, err := r.Feed.Next(ctx)
		if err != nil {
			return &engine.Error{Code: "Waiting", Message: r.describePending(), Err: err}
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
		r.engine.MarkRetained(api.PersistentVolumes, pv)
	}
	for _, u := range r.unbound {
		r.engine.attempts.DeletedUnbound(u.volume.object.Name)
	}
	return nil
}

// handleCall takes the milestones of unpublishing and unstaging from calls of the driver.
func (r *removal) handleCall(c *csiproxy.Call) {
	object, ours := r.Calls.See(c)
	if !ours || c.Code != "OK" {
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

func (r *removal) handle(ev watch.Event) {
	deleted := ev.Type == watch.Deleted
	reach := func(left map[string]pendingDeletion, o api.Object, milestone string) {
		name := o.GetName()
		if milestone == objectGone {
			name = o.GetNamespace() + "/" + name
		}
		l, ok := left[name]
		if !ok || !deleted || l.uid != "" && l.uid != o.GetUID() {
			return
		}
		delete(left, name)
		if milestone != op.Detached || !r.hasAttachment(l.object) {
			r.Milestones.Add(milestone, l.object, ev)
		}
	}
	switch o := ev.Object.(type) {
	case *corev1.Pod:
		reach(r.pods, o, r.podMilestone)
	case *corev1.PersistentVolumeClaim:
		reach(r.claims, o, claimGone)
	case *corev1.PersistentVolume:
		if ref := o.Spec.ClaimRef; ref != nil && !deleted {
			if u, ok := r.unbound[ref.Name]; ok && (u.uid == "" || u.uid == ref.UID) {
				r.addVolume(u.volume, o)
			}
		}
		r.phases[o.Name] = string(o.Status.Phase)
		reach(r.volumes, o, volumeGone)
	case *storagev1.VolumeAttachment:
		if e := o.Status.DetachError; e != nil {
			r.Warnings.Note(o.Name, "FailedDetach", e.Message, &e.Time)
		}
		reach(r.attachments, o, op.Detached)
	case *api.Any:
		reach(r.objects, o, objectGone)
	case *corev1.Event:
		if ev.At >= r.Calls.Since && r.concerns(o) {
			r.Warnings.See(o)
		}
	}
}

// concerns says whether an event is about a deletion. Failures of the creation, and of other pods
// of the name, belong to other ops.
func (r *removal) concerns(e *corev1.Event) bool {
	if e.InvolvedObject.Kind != "Pod" {
		return e.Reason != "ProvisioningFailed"
	}
	l, ours := r.pods[e.InvolvedObject.Name]
	uid := e.InvolvedObject.UID
	same := uid == "" || l.uid == "" || uid == l.uid
	return ours && same && !tracker.IsFailedAttempt(e.Reason) && e.Reason != "FailedScheduling"
}

func (r *removal) describePending() string {
	var parts []string
	list := func(what string, left map[string]pendingDeletion) {
		for _, name := range slices.Sorted(maps.Keys(left)) {
			parts = append(parts, what+" "+name+" is still there")
		}
	}
	list("pod", r.pods)
	list("claim", r.claims)
	list("attachment", r.attachments)
	list("object", r.objects)
	for _, name := range slices.Sorted(maps.Keys(r.volumes)) {
		parts = append(parts, fmt.Sprintf("volume %s is still there (%s)", name, r.phases[name]))
	}
	return r.Explain(strings.Join(parts, "; "))
}

// objectGone is the milestone at which an object of a manifest is gone.
const objectGone = "objectGone"
