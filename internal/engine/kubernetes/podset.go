package kubernetes

import (
	"context"
	"fmt"
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

// podSet follows the pods of an object's controller.
type podSet struct {
	object string
	start  op.Time // of the op
	feed   *tracker.Feed
	pods   map[types.UID]*corev1.Pod
}

// newPodSet starts with the existing pods. The caller closes its feed.
func (e *State) newPodSet(object string) *podSet {
	set := &podSet{object: object, start: e.Session.Clock.Now(), pods: map[types.UID]*corev1.Pod{}}
	set.feed = e.tracker.Follow(tracker.PodsOfObject.Key(object))
	set.feed.Drop() // read here; later events are at least as new
	for _, p := range e.tracker.Pods() {
		if p.Labels[names.LabelObject] == object && status.ControllerKind(p) != "" {
			set.pods[p.UID] = p
		}
	}
	return set
}

// wait returns when done returns true for an event. The first event has no object, and the time of
// the op's start.
func (set *podSet) wait(ctx context.Context, done func(watch.Event) bool) error {
	for ev := (watch.Event{At: set.start}); !done(ev); {
		v, err := set.feed.Next(ctx)
		if err != nil {
			return &engine.Error{Code: "Waiting", Message: fmt.Sprintf("%s has %d pods, %d of them ready", set.object, len(set.pods), set.readyCount()), Err: err}
		}
		ev = v.(watch.Event)
		if p := ev.Object.(*corev1.Pod); ev.Type == watch.Deleted {
			delete(set.pods, p.UID)
		} else {
			set.pods[p.UID] = p
		}
	}
	return nil
}

// activeCount counts the pods that are not being deleted.
func (set *podSet) activeCount() int {
	n := 0
	for _, p := range set.pods {
		if p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (set *podSet) readyCount() int {
	n := 0
	for _, p := range set.pods {
		if p.DeletionTimestamp == nil && slices.Contains(status.PodMilestones(p), status.PodReady) {
			n++
		}
	}
	return n
}

// awaitReplaced waits until the old pods are gone and want pods are ready, and marks each.
func (set *podSet) awaitReplaced(ctx context.Context, old []*corev1.Pod, want int, mark func(name, id string, at op.Milestone)) error {
	left := map[types.UID]bool{}
	for _, p := range old {
		left[p.UID] = true
	}
	return set.wait(ctx, func(ev watch.Event) bool {
		for uid := range left {
			if set.pods[uid] == nil {
				delete(left, uid)
				mark(op.Gone, podName(old, uid), tracker.MilestoneOf(ev))
			}
		}
		if len(left) > 0 || set.readyCount() < want {
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

// awaitReplicas waits until there are want pods, all ready.
func (set *podSet) awaitReplicas(ctx context.Context, want int, tr *op.Trace) error {
	surplus := len(set.pods) > want
	return set.wait(ctx, func(ev watch.Event) bool {
		if surplus && len(set.pods) <= want {
			surplus = false
			at := tracker.MilestoneOf(ev)
			tr.MarkAt(op.Gone, at.At, at.Err, at.Source)
		}
		if len(set.pods) != want || set.readyCount() != want {
			return false
		}
		if ev.Object == nil { // nothing to do
			tr.Mark(op.Ready, "runner")
			return true
		}
		markReady(tr, tracker.MilestoneOf(ev))
		return true
	})
}

// markReady ends the op at the readiness of its object.
func markReady(tr *op.Trace, at op.Milestone) {
	tr.MarkAt(op.ObjectReady, at.At, at.Err, at.Source)
	tr.MarkAt(op.Ready, at.At, at.Err, at.Source)
	tr.EndedAt(at.At)
}
