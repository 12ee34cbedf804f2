package pods

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Set follows the pods of an object's controller.
type Set struct {
	object string
	start  op.Time // of the op
	Feed   *tracker.Feed
	Pods   map[types.UID]*corev1.Pod
}

// NewSet starts with the existing pods. The caller closes its feed.
func (e *State) NewSet(object string) *Set {
	set := &Set{object: object, start: e.Session.Clock.Now(), Pods: map[types.UID]*corev1.Pod{}}
	set.Feed = e.Tracker.Follow(tracker.PodsOfObject.Key(object))
	set.Feed.Drop() // read here; later events are at least as new
	for _, p := range e.Tracker.Pods() {
		if p.Labels[names.LabelObject] == object && status.ControllerKind(p) != "" {
			set.Pods[p.UID] = p
		}
	}
	return set
}

// wait returns when done returns true for an event. The first event has no object, and the time of the op's start.
func (set *Set) wait(ctx context.Context, done func(watch.Event) bool) error {
	for ev := (watch.Event{At: set.start}); !done(ev); {
		v, err := set.Feed.Next(ctx)
		if err != nil {
			return engine.Errorf("Waiting", "%s has %d pods, %d of them ready", set.object, len(set.Pods),
				set.ReadyCount()).Wrap(err)
		}
		ev = v.(watch.Event)
		if p := ev.Object.(*corev1.Pod); ev.Type == watch.Deleted {
			delete(set.Pods, p.UID)
		} else {
			set.Pods[p.UID] = p
		}
	}
	return nil
}

// ActiveCount counts the pods that are not being deleted.
func (set *Set) ActiveCount() int {
	n := 0
	for _, p := range set.Pods {
		if p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// ReadyCount counts the ready pods.
func (set *Set) ReadyCount() int {
	n := 0
	for _, p := range set.Pods {
		if p.DeletionTimestamp == nil && slices.Contains(status.PodMilestones(p), status.PodReady) {
			n++
		}
	}
	return n
}

// AwaitReplaced waits until the old pods are gone and want pods are ready, and marks each.
func (set *Set) AwaitReplaced(ctx context.Context, old []*corev1.Pod, want int,
	mark func(name, id string, at op.Milestone)) error {
	left := map[types.UID]bool{}
	for _, p := range old {
		left[p.UID] = true
	}
	return set.wait(ctx, func(ev watch.Event) bool {
		for uid := range left {
			if set.Pods[uid] == nil {
				delete(left, uid)
				mark(op.Gone, podName(old, uid), tracker.MilestoneOf(ev))
			}
		}
		if len(left) > 0 || set.ReadyCount() < want {
			return false
		}
		mark(op.Replaced, set.object, tracker.MilestoneOf(ev))
		return true
	})
}

func podName(list []*corev1.Pod, uid types.UID) string {
	i := slices.IndexFunc(list, func(p *corev1.Pod) bool { return p.UID == uid })
	return list[i].Name
}

// AwaitReplicas waits until there are want pods, all ready.
func (set *Set) AwaitReplicas(ctx context.Context, want int, tr *op.Trace) error {
	surplus := len(set.Pods) > want
	return set.wait(ctx, func(ev watch.Event) bool {
		if surplus && len(set.Pods) <= want {
			surplus = false
			at := tracker.MilestoneOf(ev)
			tr.MarkAt(op.Gone, at.At, at.Err, at.Source)
		}
		if len(set.Pods) != want || set.ReadyCount() != want {
			return false
		}
		if ev.Object == nil { // nothing to do
			tr.Mark(op.Ready, "runner")
			return true
		}
		MarkReady(tr, tracker.MilestoneOf(ev))
		return true
	})
}

// MarkReady ends the op at the readiness of its object.
func MarkReady(tr *op.Trace, at op.Milestone) {
	tr.MarkAt(op.ObjectReady, at.At, at.Err, at.Source)
	tr.MarkAt(op.Ready, at.At, at.Err, at.Source)
	tr.EndedAt(at.At)
}
