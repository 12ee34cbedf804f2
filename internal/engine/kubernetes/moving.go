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
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// moving takes pods of the run away and makes them again as they were: what
// reattach, rollout, drain and kill have in common.
type moving struct {
	engine  *Engine
	members []*member
	lives   map[*member]*life // that are to end
	asked   map[*member]bool  // whose end is accepted
	r       *removing
	b       *bringing
}

// move begins to follow members that are to be replaced. With detach, their
// volumes are to be detached between.
func (e *Engine) move(members []*member, detach bool) (*moving, error) {
	v := &moving{engine: e, members: members, lives: map[*member]*life{}, asked: map[*member]bool{}, r: e.removing(), b: e.bring()}
	v.b.before = map[types.UID]bool{}
	for _, m := range members {
		l, err := m.replace()
		if err != nil {
			v.close(err)
			return nil, err
		}
		v.lives[m] = l
		v.r.pod(m, op.Gone)
	}
	for _, x := range e.mountedBy(members) {
		v.volume(x, detach)
	}
	return v, nil
}

// volume follows one that the pods have. One that comes with its pod is made
// anew with it.
func (v *moving) volume(x *volume, detach bool) {
	pv, ok := v.engine.tracker.Latest(tracker.VolumeOfClaim.Key(x.name)).(*corev1.PersistentVolume)
	if v.engine.ephemeralOf(x) != nil {
		for uid := range v.engine.tracker.UIDs(tracker.Claim.Key(x.name)) {
			v.b.before[uid] = true
		}
		v.r.claim(x)
		v.b.claimNamed(x.object.Name, x.name, true)
		return
	}
	if !ok {
		return
	}
	if detach {
		v.r.attached(x, pv.Name)
	}
	if pv.Spec.CSI != nil {
		v.r.Calls.Follow(v.r.Feed, pv.Spec.CSI.VolumeHandle, x.object.Name)
	}
	v.b.standing(x, pv, !detach)
}

// standing follows a volume that was there before the op.
func (b *bringing) standing(v *volume, pv *corev1.PersistentVolume, stays bool) {
	c := &claimState{object: v.object.Name, mounted: true, bound: true, stands: true, stays: stays, volume: pv.Name, bytes: v.object.Bytes}
	b.claims[v.name], b.volumes[pv.Name] = c, c
	for uid := range b.engine.tracker.PastAttachments(pv.Name) {
		b.before[uid] = false
	}
	for _, va := range b.engine.tracker.Attachments(pv.Name) {
		b.before[va.UID] = true
	}
	b.Feed.Add(tracker.AttachmentOfVolume.Key(pv.Name))
	if pv.Spec.CSI != nil {
		c.driver, c.handle = pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle
		b.Calls.Follow(b.Feed, c.handle, c.object)
	}
}

// end asks for the pods' end and returns when they are gone and what is to be
// detached is.
func (v *moving) end(ctx context.Context, ask func(*member, *life) error) error {
	for _, m := range v.members {
		err := ask(m, v.lives[m])
		switch {
		case err == nil:
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // somebody else was faster
			delete(v.r.pods, m.name())
		default:
			return apiError(ctx, err)
		}
		v.asked[m] = true
	}
	return v.r.until(ctx)
}

// deletes asks for a pod's deletion, with the grace that its template has or the
// one given, in seconds. milestone is when the last was accepted.
func (v *moving) deletes(ctx context.Context, milestone string, grace *int64) func(*member, *life) error {
	return func(m *member, l *life) error {
		call, err := v.engine.client.Delete(ctx, api.Pods, v.engine.Namespace, m.name(),
			metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &l.uid}})
		v.mark(milestone, m, op.Milestone{At: call.Answered, Source: "runner"})
		return err
	}
}

// mark notes a milestone of one member.
func (v *moving) mark(name string, m *member, at op.Milestone) {
	v.r.Milestones.Set(name, m.object, at)
	v.r.all[name] = append(v.r.all[name], m.object)
}

// begin makes the pods again, each as it was but for what place does to it, and
// returns when they are of use.
func (v *moving) begin(ctx context.Context, tr *op.Trace, place func(*member, *corev1.Pod)) error {
	for _, m := range v.members {
		l := v.lives[m]
		n, err := m.next(l)
		if err != nil {
			return err
		}
		pod := m.template.DeepCopy()
		if place != nil {
			place(m, pod)
		}
		if err := m.create(ctx, pod, n, l, v.b); err != nil {
			n.abandon(err)
			return err
		}
	}
	return v.use(ctx, tr)
}

// use waits until what was made again is of use.
func (v *moving) use(ctx context.Context, tr *op.Trace) error {
	if err := v.b.reach(ctx, tr); err != nil {
		return err
	}
	v.b.linger(ctx)
	for _, m := range v.members {
		if at, ok := v.b.Milestones[op.Running][m.object]; ok {
			v.mark(op.Replaced, m, at)
		}
	}
	for _, c := range v.b.claims {
		if x := v.engine.volume(c.object); x != nil && !c.stands { // came anew with its pod
			x.object.Handle, x.object.Bytes = c.handle, c.bytes
			v.engine.keepVolume(x)
		}
	}
	return nil
}

// close lets go of the members: those whose end was not asked for go on, others
// that have no heir by now will not have one.
func (v *moving) close(why error) {
	for m, l := range v.lives {
		m.mu.Lock()
		h := l.heir
		m.mu.Unlock()
		if h == nil {
			continue
		}
		select {
		case <-h.settled:
			continue
		default:
		}
		if v.asked[m] {
			m.settle(l, nil, why)
		} else {
			m.spare(l)
		}
	}
	v.r.Feed.Close()
	v.b.Feed.Close()
}

// ended is when the last first write, or read, was done; of pods without
// volumes, when they were ready.
func (v *moving) ended() op.Time {
	at := v.b.Milestones.Last(op.FirstWrite, op.FirstRead)
	for _, m := range v.members {
		if len(v.engine.mountedBy([]*member{m})) == 0 || !at.Known() {
			at = max(at, v.b.Milestones[op.Ready][m.object].At)
		}
	}
	return at
}

// nodes lists where the pods are now.
func (v *moving) nodes() []string {
	var list []string
	for _, p := range v.b.pods {
		if p.last != nil && p.last.Spec.NodeName != "" {
			list = append(list, p.last.Spec.NodeName)
		}
	}
	return list
}

// tell writes what was seen of all to one trace, and what else was.
func tell(tr *op.Trace, object string, more tracker.Milestones, all ...*moving) {
	merged, ids := tracker.Milestones{}, map[string][]string{}
	var nodes []string
	end := more.Last(op.Replaced)
	for name, of := range more {
		merged[name] = maps.Clone(of)
		ids[name] = slices.Collect(maps.Keys(of))
	}
	for _, v := range all {
		for _, part := range []tracker.Milestones{v.r.Milestones, v.b.Milestones} {
			for name, of := range part {
				for id, m := range of {
					merged.Set(name, id, m)
				}
			}
		}
		for _, part := range []map[string][]string{v.r.all, v.b.ids()} {
			for name, of := range part {
				ids[name] = append(ids[name], of...)
			}
		}
		nodes, end = append(nodes, v.nodes()...), max(end, v.ended())
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
	for _, v := range all {
		several := len(v.b.claims) > 1 || len(all) > 1
		v.r.Calls.Fill(tr, several)
		v.b.Calls.Fill(tr, several)
	}
	slices.Sort(nodes)
	tr.On(strings.Join(slices.Compact(nodes), ","), object)
	if end.Known() {
		tr.EndedAt(end)
	}
}

// mountedBy lists the volumes of the run that the pods of members have.
func (e *Engine) mountedBy(members []*member) []*volume {
	var list []*volume
	for _, m := range members {
		for _, name := range claimsOf(m.template) {
			if x := e.volumeOfClaim(name); x != nil && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	return list
}

// claimsOf lists the claims of a pod by their names in the cluster.
func claimsOf(p *corev1.Pod) []string {
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
	if v := e.volume(strings.TrimPrefix(claim, names.Prefix(e.session.RunID))); v != nil && v.name == claim {
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

// usersOf lists the members whose pods have a volume.
func (e *Engine) usersOf(x *volume) []*member {
	var candidates, users []*member
	if x.holder != nil {
		candidates = append(candidates, x.holder)
	}
	if w := e.workload(x.object.Owner); w != nil {
		candidates = append(candidates, w.members...)
	}
	for _, m := range candidates {
		if m.template != nil && slices.Contains(claimsOf(m.template), x.name) {
			users = append(users, m)
		}
	}
	return users
}

// ephemeralOf is the member that a generic ephemeral volume comes and goes with;
// nil for others.
func (e *Engine) ephemeralOf(x *volume) *member {
	for _, m := range e.usersOf(x) {
		for _, v := range m.template.Spec.Volumes {
			if v.Ephemeral != nil && m.name()+"-"+v.Name == x.name {
				return m
			}
		}
	}
	return nil
}

// pod is the last that is known of a member's present pod; nil if it is gone.
func (m *member) pod() *corev1.Pod {
	p, ok := m.engine.tracker.Latest(tracker.Pod.Key(m.name())).(*corev1.Pod)
	if !ok || p.UID != m.current().uid {
		return nil
	}
	return p
}

// inUse says why a member cannot be replaced: its pod has ended or is gone.
func (m *member) inUse() error {
	switch p := m.pod(); {
	case m.isStopping():
		return &engine.Error{Code: "Ended", Message: fmt.Sprintf("pod %s has been told to end", m.name())}
	case p == nil:
		return &engine.Error{Code: "FailedPrecondition", Message: fmt.Sprintf("pod %s is gone", m.name())}
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return &engine.Error{Code: "Ended", Message: fmt.Sprintf("pod %s has ended (%s): its volumes are not in use", m.name(), p.Status.Phase)}
	}
	return nil
}

// allInUse is inUse of several.
func allInUse(members []*member) error {
	var errs []error
	for _, m := range members {
		errs = append(errs, m.inUse())
	}
	return errors.Join(errs...)
}
