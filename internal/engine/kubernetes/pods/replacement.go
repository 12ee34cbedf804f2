package pods

import (
	"context"
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

// Replacement deletes pods of the run and creates them again: the common part of reattach, rollout, drain and kill.
type Replacement struct {
	state     *State
	Pods      []*Pod
	old       map[*Pod]*Incarnation // to be deleted
	accepted  map[*Pod]bool         // deletion accepted
	removal   *Removal
	provision *Provision
}

// NewReplacement begins to follow pods that are to be replaced. With detach, their volumes have to be detached in
// between.
func (e *State) NewReplacement(pods []*Pod, detach bool) (*Replacement, error) {
	rp := &Replacement{state: e, Pods: pods, old: map[*Pod]*Incarnation{}, accepted: map[*Pod]bool{},
		removal: e.NewRemoval(), provision: e.NewProvision()}
	rp.provision.preexisting = map[types.UID]bool{}
	for _, m := range pods {
		inc, err := m.beginReplace()
		if err != nil {
			rp.Close(err)
			return nil, err
		}
		rp.old[m] = inc
		rp.removal.AddPod(m, op.Gone)
	}
	for _, x := range e.VolumesOf(pods) {
		rp.addVolume(x, detach)
	}
	return rp, nil
}

// addVolume follows a volume of the pods. An ephemeral volume is created again with its pod.
func (rp *Replacement) addVolume(x *Volume, detach bool) {
	pv, ok := rp.state.Tracker.Latest(tracker.VolumeOfClaim.Key(x.Name)).(*corev1.PersistentVolume)
	if rp.state.EphemeralOwner(x) != nil {
		for uid := range rp.state.Tracker.UIDs(tracker.Claim.Key(x.Name)) {
			rp.provision.preexisting[uid] = true
		}
		rp.removal.AddClaim(x)
		rp.provision.AddClaimNamed(x.Object.Name, x.Name, true)
		return
	}
	if !ok {
		return
	}
	if detach {
		rp.removal.AddAttachments(x, pv.Name)
	}
	if pv.Spec.CSI != nil {
		rp.removal.Calls.Follow(rp.removal.Feed, pv.Spec.CSI.VolumeHandle, x.Object.Name)
	}
	rp.provision.addExistingVolume(x, pv, !detach)
}

// RemoveOld requests the deletion of the pods and returns when they are gone and volumes are detached.
func (rp *Replacement) RemoveOld(ctx context.Context, ask func(*Pod, *Incarnation) error) error {
	for _, m := range rp.Pods {
		err := ask(m, rp.old[m])
		switch {
		case err == nil:
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // already deleted
			delete(rp.removal.pods, m.Name())
		default:
			return core.APIError(ctx, err)
		}
		rp.accepted[m] = true
	}
	return rp.removal.Wait(ctx)
}

// ByDeletion deletes a pod with a grace period in seconds, nil: that of its template. milestone is when it was
// accepted.
func (rp *Replacement) ByDeletion(ctx context.Context, milestone string, grace *int64) func(*Pod, *Incarnation) error {
	return func(m *Pod, inc *Incarnation) error {
		call, err := rp.state.Client.Delete(ctx, api.Pods, rp.state.Namespace, m.Name(),
			metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &inc.UID}})
		rp.mark(milestone, m, op.Milestone{At: call.Answered, Source: "runner"})
		return err
	}
}

func (rp *Replacement) mark(name string, m *Pod, at op.Milestone) {
	rp.removal.Milestones.Set(name, m.Object, at)
	rp.removal.ObjectsOf[name] = append(rp.removal.ObjectsOf[name], m.Object)
}

// Recreate creates the pods again, changed by place, and returns when they are usable.
func (rp *Replacement) Recreate(ctx context.Context, tr *op.Trace, place func(*Pod, *corev1.Pod)) error {
	for _, m := range rp.Pods {
		inc := rp.old[m]
		next, err := m.nextIncarnation(inc)
		if err != nil {
			return err
		}
		pod := m.Template.DeepCopy()
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
func (rp *Replacement) waitUsable(ctx context.Context, tr *op.Trace) error {
	if err := rp.provision.waitUsable(ctx, tr); err != nil {
		return err
	}
	rp.provision.waitLateMilestones(ctx)
	for _, m := range rp.Pods {
		if at, ok := rp.provision.Milestones[op.Running][m.Object]; ok {
			rp.mark(op.Replaced, m, at)
		}
	}
	for _, c := range rp.provision.claims {
		if x := rp.state.Volume(c.object); x != nil && !c.existing { // created again with its pod
			x.Object.Handle, x.Object.Bytes = c.Handle, c.Bytes
			rp.state.StoreVolume(x)
		}
	}
	return nil
}

// Close ends the replacement: pods whose deletion was not accepted go on, others without a successor have none.
func (rp *Replacement) Close(why error) {
	for m, inc := range rp.old {
		h := m.endReplace(inc)
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

// endTime returns when the last first write or read was done; of pods without volumes, when they were ready.
func (rp *Replacement) endTime() op.Time {
	at := rp.provision.Milestones.Last(op.FirstWrite, op.FirstRead)
	for _, m := range rp.Pods {
		if len(rp.state.VolumesOf([]*Pod{m})) == 0 || !at.Known() {
			at = max(at, rp.provision.Milestones[op.Ready][m.Object].At)
		}
	}
	return at
}

// nodes lists the nodes of the new pods.
func (rp *Replacement) nodes() []string {
	var list []string
	for _, p := range rp.provision.pods {
		if p.last != nil && p.last.Spec.NodeName != "" {
			list = append(list, p.last.Spec.NodeName)
		}
	}
	return list
}

// RecordReplacements writes the milestones of all replacements, and more, to a trace.
func RecordReplacements(tr *op.Trace, object string, more tracker.Milestones, replacements ...*Replacement) {
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
		for _, part := range []map[string][]string{rp.removal.ObjectsOf, rp.provision.objectsOf()} {
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

// ReplaceEach calls f for each pod in parallel.
func (e *State) ReplaceEach(pods []*Pod, f func(*Replacement) error) ([]*Replacement, error) {
	var replacements []*Replacement
	for _, m := range pods {
		rp, err := e.NewReplacement([]*Pod{m}, false)
		if err != nil { // nothing has begun
			for _, rp := range replacements {
				rp.Close(err)
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
			rp.Close(errs[i])
		})
	}
	wg.Wait()
	return replacements, FirstError(errs...)
}

// FirstError returns the first error only: the others usually have the same cause.
func FirstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Restart signals containers that the kubelet restarts.
func (rp *Replacement) Restart(ctx context.Context, m *Pod, sig syscall.Signal, tr *op.Trace) error {
	inc := rp.old[m]
	next, err := m.nextIncarnation(inc) // before the signal, since the kubelet may be fast
	if err != nil {
		return err
	}
	if err := rp.Signal(ctx, m, sig); err != nil {
		next.abandon(err)
		return err
	}
	m.finishReplace(inc, next, nil)
	rp.provision.addExistingPod(m, next)
	m.awaitAgents(ctx, next, rp.provision)
	return rp.waitUsable(ctx, tr)
}

// Restarts says whether the kubelet restarts killed containers of a pod.
func Restarts(p *corev1.Pod) bool {
	return p.Spec.RestartPolicy == corev1.RestartPolicyAlways || p.Spec.RestartPolicy == ""
}

// Signal sends a signal to all containers of an incarnation and waits until their agents report the end.
func (rp *Replacement) Signal(ctx context.Context, m *Pod, sig syscall.Signal) error {
	inc := rp.old[m]
	sent := rp.state.Session.Clock.Now() // before: a process may be gone when the call returns
	for _, s := range inc.Sessions {
		if err := s.Signal(sig, 0); err != nil {
			return engine.Errorf(agent.CodeLost, "%s", err.Error()).Wrap(err)
		}
	}
	rp.mark(op.Signalled, m, op.Milestone{At: sent, Source: "runner"})
	gone := op.Milestone{At: op.Never}
	for _, s := range inc.Sessions {
		select {
		case <-s.Done():
		case <-ctx.Done():
			return engine.Errorf("Waiting", "%s has not ended after the signal", s.ID()).Wrap(ctx.Err())
		}
		if end := s.End(); end.At > gone.At {
			gone = op.Milestone{At: end.At, Err: end.Err, Source: "agent"}
		}
	}
	rp.accepted[m] = true
	rp.removal.Milestones.Set(op.Gone, m.Object, gone)
	return nil
}

// ByEviction evicts a pod, with retries while a PodDisruptionBudget forbids it.
func (rp *Replacement) ByEviction(ctx context.Context, tr *op.Trace) func(*Pod, *Incarnation) error {
	return func(m *Pod, inc *Incarnation) error {
		at, err := rp.state.Evict(ctx, m.Name(), inc.UID, tr)
		rp.mark(op.Evicted, m, op.Milestone{At: at, Source: "runner"})
		return err
	}
}

// evictRetryInterval is the least time between eviction attempts after a refusal by a PodDisruptionBudget.
const evictRetryInterval = time.Second

// Evict returns when the eviction of a pod was accepted. Each refusal by a budget counts as an attempt.
func (e *State) Evict(ctx context.Context, name string, uid types.UID, tr *op.Trace) (op.Time, error) {
	for {
		call, err := e.Client.Evict(ctx, e.Namespace, name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err == nil || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
			return call.Answered, err
		}
		tr.Attempt()
		select {
		case <-time.After(max(evictRetryInterval, call.RetryAfter)):
		case <-ctx.Done():
			return call.Answered, engine.Errorf("DisruptionBudget", "pod %s may not be evicted: %v", name,
				err).Wrap(ctx.Err())
		}
	}
}
