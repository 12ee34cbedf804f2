package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// replacement deletes pods of the run and creates them again: the common part of reattach,
// rollout, drain and kill.
type replacement struct {
	engine    *Engine
	pods      []*managedPod
	old       map[*managedPod]*incarnation // to be deleted
	accepted  map[*managedPod]bool         // deletion accepted
	removal   *removal
	provision *provision
}

// newReplacement begins to follow pods that are to be replaced. With detach, their volumes have to
// be detached in between.
func (e *Engine) newReplacement(pods []*managedPod, detach bool) (*replacement, error) {
	rp := &replacement{engine: e, pods: pods, old: map[*managedPod]*incarnation{}, accepted: map[*managedPod]bool{}, removal: e.newRemoval(), provision: e.newProvision()}
	rp.provision.preexisting = map[types.UID]bool{}
	for _, m := range pods {
		inc, err := m.beginReplace()
		if err != nil {
			rp.close(err)
			return nil, err
		}
		rp.old[m] = inc
		rp.removal.addPod(m, op.Gone)
	}
	for _, x := range e.volumesOf(pods) {
		rp.addVolume(x, detach)
	}
	return rp, nil
}

// addVolume follows a volume of the pods. An ephemeral volume is created again with its pod.
func (rp *replacement) addVolume(x *volume, detach bool) {
	pv, ok := rp.engine.tracker.Latest(tracker.VolumeOfClaim.Key(x.name)).(*corev1.PersistentVolume)
	if rp.engine.ephemeralOwner(x) != nil {
		for uid := range rp.engine.tracker.UIDs(tracker.Claim.Key(x.name)) {
			rp.provision.preexisting[uid] = true
		}
		rp.removal.addClaim(x)
		rp.provision.addClaimNamed(x.object.Name, x.name, true)
		return
	}
	if !ok {
		return
	}
	if detach {
		rp.removal.addAttachments(x, pv.Name)
	}
	if pv.Spec.CSI != nil {
		rp.removal.Calls.Follow(rp.removal.Feed, pv.Spec.CSI.VolumeHandle, x.object.Name)
	}
	rp.provision.addExistingVolume(x, pv, !detach)
}

// addExistingVolume follows a volume from before the op.
func (pr *provision) addExistingVolume(v *volume, pv *corev1.PersistentVolume, stays bool) {
	c := &claimState{object: v.object.Name, mounted: true, bound: true, existing: true, keepsAttachment: stays, volume: pv.Name, bytes: v.object.Bytes}
	pr.claims[v.name], pr.volumes[pv.Name] = c, c
	for uid := range pr.engine.tracker.PastAttachments(pv.Name) {
		pr.preexisting[uid] = false
	}
	for _, va := range pr.engine.tracker.Attachments(pv.Name) {
		pr.preexisting[va.UID] = true
	}
	pr.Feed.Add(tracker.AttachmentOfVolume.Key(pv.Name))
	if pv.Spec.CSI != nil {
		c.driver, c.handle = pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle
		pr.Calls.Follow(pr.Feed, c.handle, c.object)
	}
}

// removeOld requests the deletion of the pods and returns when they are gone and volumes are
// detached.
func (rp *replacement) removeOld(ctx context.Context, ask func(*managedPod, *incarnation) error) error {
	for _, m := range rp.pods {
		err := ask(m, rp.old[m])
		switch {
		case err == nil:
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // already deleted
			delete(rp.removal.pods, m.name())
		default:
			return core.APIError(ctx, err)
		}
		rp.accepted[m] = true
	}
	return rp.removal.wait(ctx)
}

// byDeletion deletes a pod with a grace period in seconds, nil: that of its template. milestone is
// when it was accepted.
func (rp *replacement) byDeletion(ctx context.Context, milestone string, grace *int64) func(*managedPod, *incarnation) error {
	return func(m *managedPod, inc *incarnation) error {
		call, err := rp.engine.Client.Delete(ctx, api.Pods, rp.engine.Namespace, m.name(),
			metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &inc.uid}})
		rp.mark(milestone, m, op.Milestone{At: call.Answered, Source: "runner"})
		return err
	}
}

func (rp *replacement) mark(name string, m *managedPod, at op.Milestone) {
	rp.removal.Milestones.Set(name, m.object, at)
	rp.removal.objectsOf[name] = append(rp.removal.objectsOf[name], m.object)
}

// recreate creates the pods again, changed by place, and returns when they are usable.
func (rp *replacement) recreate(ctx context.Context, tr *op.Trace, place func(*managedPod, *corev1.Pod)) error {
	for _, m := range rp.pods {
		inc := rp.old[m]
		next, err := m.nextIncarnation(inc)
		if err != nil {
			return err
		}
		pod := m.template.DeepCopy()
		if place != nil {
			place(m, pod)
		}
		if err := m.create(ctx, pod, next, inc, rp.provision); err != nil {
			next.abandon(err)
			return err
		}
	}
	return rp.waitUsable(ctx, tr)
}

// waitUsable waits until the new incarnations are usable.
func (rp *replacement) waitUsable(ctx context.Context, tr *op.Trace) error {
	if err := rp.provision.waitUsable(ctx, tr); err != nil {
		return err
	}
	rp.provision.waitLateMilestones(ctx)
	for _, m := range rp.pods {
		if at, ok := rp.provision.Milestones[op.Running][m.object]; ok {
			rp.mark(op.Replaced, m, at)
		}
	}
	for _, c := range rp.provision.claims {
		if x := rp.engine.volume(c.object); x != nil && !c.existing { // created again with its pod
			x.object.Handle, x.object.Bytes = c.handle, c.bytes
			rp.engine.storeVolume(x)
		}
	}
	return nil
}

// close ends the replacement: pods whose deletion was not accepted go on, others without a
// successor have none.
func (rp *replacement) close(why error) {
	for m, inc := range rp.old {
		m.mu.Lock()
		h := inc.successor
		m.mu.Unlock()
		if h == nil {
			continue
		}
		select {
		case <-h.known:
			continue
		default:
		}
		if rp.accepted[m] {
			m.finishReplace(inc, nil, why)
		} else {
			m.cancelReplace(inc)
		}
	}
	rp.removal.Feed.Close()
	rp.provision.Feed.Close()
}

// endTime returns when the last first write or read was done; of pods without volumes, when they
// were ready.
func (rp *replacement) endTime() op.Time {
	at := rp.provision.Milestones.Last(op.FirstWrite, op.FirstRead)
	for _, m := range rp.pods {
		if len(rp.engine.volumesOf([]*managedPod{m})) == 0 || !at.Known() {
			at = max(at, rp.provision.Milestones[op.Ready][m.object].At)
		}
	}
	return at
}

// nodes lists the nodes of the new pods.
func (rp *replacement) nodes() []string {
	var list []string
	for _, p := range rp.provision.pods {
		if p.last != nil && p.last.Spec.NodeName != "" {
			list = append(list, p.last.Spec.NodeName)
		}
	}
	return list
}

// recordReplacements writes the milestones of all replacements, and more, to a trace.
func recordReplacements(tr *op.Trace, object string, more tracker.Milestones, replacements ...*replacement) {
	merged, ids := tracker.Milestones{}, map[string][]string{}
	var nodes []string
	end := more.Last(op.Replaced)
	for name, of := range more {
		merged[name] = maps.Clone(of)
		ids[name] = slices.Collect(maps.Keys(of))
	}
	for _, rp := range replacements {
		for _, part := range []tracker.Milestones{rp.removal.Milestones, rp.provision.Milestones} {
			for name, of := range part {
				for id, m := range of {
					merged.Set(name, id, m)
				}
			}
		}
		for _, part := range []map[string][]string{rp.removal.objectsOf, rp.provision.objectsOf()} {
			for name, of := range part {
				ids[name] = append(ids[name], of...)
			}
		}
		nodes, end = append(nodes, rp.nodes()...), max(end, rp.endTime())
	}
	for name, of := range ids {
		slices.Sort(of)
		ids[name] = slices.Compact(of)
	}
	for name, of := range merged {
		if ids[name] == nil {
			ids[name] = slices.Sorted(maps.Keys(of))
		}
	}
	merged.Fill(tr, ids)
	for _, rp := range replacements {
		several := len(rp.provision.claims) > 1 || len(replacements) > 1
		rp.removal.Calls.Fill(tr, several)
		rp.provision.Calls.Fill(tr, several)
	}
	slices.Sort(nodes)
	tr.On(strings.Join(slices.Compact(nodes), ","), object)
	if end.Known() {
		tr.EndedAt(end)
	}
}

// volumesOf lists the run's volumes that pods mount.
func (e *Engine) volumesOf(pods []*managedPod) []*volume {
	var list []*volume
	for _, m := range pods {
		for _, name := range claimNames(m.template) {
			if x := e.volumeOfClaim(name); x != nil && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	return list
}

// claimNames lists the claims of a pod by their names in the cluster.
func claimNames(p *corev1.Pod) []string {
	var list []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			list = append(list, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			list = append(list, p.Name+"-"+v.Name)
		}
	}
	return list
}

// volumeOfClaim finds a volume by the name of its claim in the cluster.
func (e *Engine) volumeOfClaim(claim string) *volume {
	if v := e.volume(strings.TrimPrefix(claim, names.Prefix(e.Session.RunID))); v != nil && v.name == claim {
		return v
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.volumes {
		if v.name == claim {
			return v
		}
	}
	return nil
}

// podsUsing lists the pods that mount a volume.
func (e *Engine) podsUsing(x *volume) []*managedPod {
	var candidates, users []*managedPod
	if x.holder != nil {
		candidates = append(candidates, x.holder)
	}
	if w := e.workload(x.object.Owner); w != nil {
		candidates = append(candidates, w.pods...)
	}
	for _, m := range candidates {
		if m.template != nil && slices.Contains(claimNames(m.template), x.name) {
			users = append(users, m)
		}
	}
	return users
}

// ephemeralOwner returns the pod that owns a generic ephemeral volume; nil for other volumes.
func (e *Engine) ephemeralOwner(x *volume) *managedPod {
	for _, m := range e.podsUsing(x) {
		for _, v := range m.template.Spec.Volumes {
			if v.Ephemeral != nil && m.name()+"-"+v.Name == x.name {
				return m
			}
		}
	}
	return nil
}

// livePod returns the last state of the current pod; nil if it is gone.
func (m *managedPod) livePod() *corev1.Pod {
	p, ok := m.engine.tracker.Latest(tracker.Pod.Key(m.name())).(*corev1.Pod)
	if !ok || p.UID != m.current().uid {
		return nil
	}
	return p
}

// checkRunning returns an error if the pod has ended or is gone.
func (m *managedPod) checkRunning() error {
	switch p := m.livePod(); {
	case m.isStopping():
		return &engine.Error{Code: "Ended", Message: fmt.Sprintf("pod %s is being stopped", m.name())}
	case p == nil:
		return &engine.Error{Code: "FailedPrecondition", Message: fmt.Sprintf("pod %s is gone", m.name())}
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return &engine.Error{Code: "Ended", Message: fmt.Sprintf("pod %s has ended (%s): its volumes are not in use", m.name(), p.Status.Phase)}
	}
	return nil
}

// checkAllRunning is checkRunning for several pods.
func checkAllRunning(pods []*managedPod) error {
	var errs []error
	for _, m := range pods {
		errs = append(errs, m.checkRunning())
	}
	return errors.Join(errs...)
}
