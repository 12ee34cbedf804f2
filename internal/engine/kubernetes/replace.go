package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// replacement deletes pods of the run and creates them again: the common part of reattach,
// rollout, drain and kill.
type replacement struct {
	engine    *State
	pods      []*managedPod
	old       map[*managedPod]*incarnation // to be deleted
	accepted  map[*managedPod]bool         // deletion accepted
	removal   *removal
	provision *provision
}

// newReplacement begins to follow pods that are to be replaced. With detach, their volumes have to
// be detached in between.
func (e *State) newReplacement(pods []*managedPod, detach bool) (*replacement, error) {
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

// replaceEach calls f for each pod in parallel.
func (e *State) replaceEach(pods []*managedPod, f func(*replacement) error) ([]*replacement, error) {
	var replacements []*replacement
	for _, m := range pods {
		rp, err := e.newReplacement([]*managedPod{m}, false)
		if err != nil { // nothing has begun
			for _, rp := range replacements {
				rp.close(err)
			}
			return nil, err
		}
		replacements = append(replacements, rp)
	}
	errs := make([]error, len(replacements))
	var wg sync.WaitGroup
	for i, rp := range replacements {
		wg.Go(func() {
			errs[i] = f(rp)
			rp.close(errs[i])
		})
	}
	wg.Wait()
	return replacements, firstError(errs...)
}

// firstError returns the first error only: the others usually have the same cause.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// restart signals containers that the kubelet restarts.
func (rp *replacement) restart(ctx context.Context, m *managedPod, sig syscall.Signal, tr *op.Trace) error {
	inc := rp.old[m]
	next, err := m.nextIncarnation(inc) // before the signal, since the kubelet may be fast
	if err != nil {
		return err
	}
	if err := rp.signal(ctx, m, sig); err != nil {
		next.abandon(err)
		return err
	}
	m.finishReplace(inc, next, nil)
	rp.provision.addExistingPod(m, next)
	m.awaitAgents(ctx, next, rp.provision)
	return rp.waitUsable(ctx, tr)
}

// restarts says whether the kubelet restarts killed containers of a pod.
func restarts(p *corev1.Pod) bool {
	return p.Spec.RestartPolicy == corev1.RestartPolicyAlways || p.Spec.RestartPolicy == ""
}

// signal sends a signal to all containers of an incarnation and waits until their agents report
// the end.
func (rp *replacement) signal(ctx context.Context, m *managedPod, sig syscall.Signal) error {
	inc := rp.old[m]
	for _, s := range inc.sessions {
		if err := s.Signal(sig, 0); err != nil {
			return &engine.Error{Code: agent.CodeLost, Message: err.Error(), Err: err}
		}
	}
	rp.mark(op.Signalled, m, op.Milestone{At: rp.engine.Session.Clock.Now(), Source: "runner"})
	gone := op.Milestone{At: op.Never}
	for _, s := range inc.sessions {
		select {
		case <-s.Done():
		case <-ctx.Done():
			return &engine.Error{Code: "Waiting", Message: fmt.Sprintf("%s has not ended after the signal", s.ID()), Err: ctx.Err()}
		}
		if end := s.End(); end.At > gone.At {
			gone = op.Milestone{At: end.At, Err: end.Err, Source: "agent"}
		}
	}
	rp.accepted[m] = true
	rp.removal.Milestones.Set(op.Gone, m.object, gone)
	return nil
}

// byEviction evicts a pod, with retries while a PodDisruptionBudget forbids it.
func (rp *replacement) byEviction(ctx context.Context, tr *op.Trace) func(*managedPod, *incarnation) error {
	return func(m *managedPod, inc *incarnation) error {
		at, err := rp.engine.evict(ctx, m.name(), inc.uid, tr)
		rp.mark(op.Evicted, m, op.Milestone{At: at, Source: "runner"})
		return err
	}
}

// evictRetryInterval is the least time between eviction attempts after a refusal by a
// PodDisruptionBudget.
const evictRetryInterval = time.Second

// evict returns when the eviction of a pod was accepted. Each refusal by a budget counts as an
// attempt.
func (e *State) evict(ctx context.Context, name string, uid types.UID, tr *op.Trace) (op.Time, error) {
	for {
		call, err := e.Client.Evict(ctx, e.Namespace, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err == nil || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
			return call.Answered, err
		}
		tr.Attempt()
		select {
		case <-time.After(max(evictRetryInterval, call.RetryAfter)):
		case <-ctx.Done():
			return call.Answered, &engine.Error{Code: "DisruptionBudget", Message: fmt.Sprintf("pod %s may not be evicted: %v", name, err), Err: ctx.Err()}
		}
	}
}
