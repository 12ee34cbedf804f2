package tracker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestFeed: earlier events come first, events of other objects do not come, and a deleted object
// is forgotten when no feed follows it.
func TestFeed(t *testing.T) {
	tr := New("ns")
	see := func(kind watch.Type, o api.Object, at op.Time) { tr.See(watch.Event{Type: kind, Object: o, At: at}) }
	see(watch.Added, pod("a"), 1)
	f := tr.Follow(Pod.Key("a"))
	see(watch.Modified, pod("b"), 2)
	see(watch.Modified, pod("a"), 3)
	see(watch.Deleted, pod("a"), 4)
	var got []op.Time
	for range 3 {
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v.(watch.Event).At)
	}
	if diff := cmp.Diff([]op.Time{1, 3, 4}, got); diff != "" {
		t.Error(diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if v, err := f.Next(ctx); err == nil {
		t.Errorf("one more: %v", v)
	}
	f.Close()
	if _, kept := tr.objects[Pod.Key("a")]; kept {
		t.Error("a deleted object that nobody follows is kept")
	}
}

// TestMemoryOfOps: what is kept grows with the objects that there are, not with the ops on them. Each op moves a volume:
// its pod and attachment are made anew, and the cluster reports events about them, also after the op.
func TestMemoryOfOps(t *testing.T) {
	tr := New("ns")
	kept := func() (n int) {
		for _, o := range tr.objects {
			n += len(o.history)
		}
		return n
	}
	volume, at := "pv", op.Time(0)
	event := func(i int, of string) {
		name := fmt.Sprintf("%s.%d.%d", of, i, at)
		tr.See(watch.Event{Type: watch.Added, At: at, Object: &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name,
			UID: types.UID(name)}, InvolvedObject: corev1.ObjectReference{Name: of}}})
	}
	move := func(i int) {
		f := tr.Follow(Pod.Key("a"), EventsOf.Key("a"), AttachmentOfVolume.Key(volume))
		uid := types.UID(fmt.Sprint(i))
		p := pod("a")
		p.UID = uid
		va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va", UID: uid}}
		va.Spec.Source.PersistentVolumeName = &volume
		for _, o := range []api.Object{tr.lastOf("a"), tr.attached(volume)} {
			if o != nil {
				tr.See(watch.Event{Type: watch.Deleted, Object: o, At: at})
			}
		}
		for _, typ := range []watch.Type{watch.Added, watch.Modified, watch.Modified} {
			at++
			tr.See(watch.Event{Type: typ, Object: p, At: at})
			tr.See(watch.Event{Type: typ, Object: va, At: at})
			event(i, "a")
		}
		f.Close()
		event(i, fmt.Sprintf("of-controller-%d", i)) // of a pod that no op follows
	}
	for i := range 10 {
		move(i)
	}
	if n, want := kept(), 2+10; n != want {
		t.Errorf("%d events are kept after 10 ops, want %d", n, want)
	}
	for i := range 3 * maxUnfollowed[EventsOf] {
		move(10 + i)
	}
	if n, want := kept(), 2+maxUnfollowed[EventsOf]; n != want {
		t.Errorf("%d events are kept after many ops, want %d", n, want)
	}
	// A later op sees the last state of what is there.
	f := tr.Follow(Pod.Key("a"))
	defer f.Close()
	if v, err := f.Next(t.Context()); err != nil || v.(watch.Event).At != at {
		t.Errorf("%v, %v, want the last state, of %d", v, err, at)
	}
	if n := len(tr.Attachments(volume)); n != 1 {
		t.Errorf("%d attachments, want 1", n)
	}
}

// lastOf returns the pod of a name, and attached the attachment of a volume; nil if there is none.
func (t *Tracker) lastOf(pod string) api.Object {
	o, _ := t.Latest(Pod.Key(pod)).(api.Object)
	return o
}

func (t *Tracker) attached(volume string) api.Object {
	for _, va := range t.Attachments(volume) {
		return va
	}
	return nil
}

// TestMilestonesFill: one object has the plain name; several have their own names, and the plain
// name when all are there; an instant from an agent replaces one from a watch.
func TestMilestonesFill(t *testing.T) {
	s := Milestones{}
	s.Add(op.Bound, "a", watch.Event{At: 10, Err: 2})
	s.Add(op.Bound, "a", watch.Event{At: 90})
	s.Add(op.Bound, "b", watch.Event{At: 30, Interval: true, Err: 5})
	s.Add(op.Running, "p", watch.Event{At: 50})
	s.Set(op.Running, "p", op.Milestone{At: 45, Err: 1, Source: "agent"})
	s.Add(op.Attached, "a", watch.Event{At: 20})
	tr := op.NewTrace(op.NewClock())
	s.Fill(tr, map[string][]string{op.Bound: {"a", "b"}, op.Running: {"p"}, op.Attached: {"a", "b"}})
	var o op.Op
	tr.Fill(&o)
	want := []op.Milestone{
		{Name: "bound/a", At: 10, Err: 2, Source: "watch"}, {Name: "attached/a", At: 20, Source: "watch"},
		{Name: "bound/b", At: 30, Err: 5, Source: "list"}, {Name: "bound", At: 30, Err: 5, Source: "list"},
		{Name: "running", At: 45, Err: 1, Source: "agent"},
	}
	byName := func(list []op.Milestone) map[string]op.Milestone {
		m := map[string]op.Milestone{}
		for _, x := range list {
			m[x.Name] = x
		}
		return m
	}
	if diff := cmp.Diff(byName(want), byName(o.Milestones)); diff != "" {
		t.Error(diff)
	}
}

// TestFailedAttemptsCount: each warning about a failed attempt counts.
func TestFailedAttemptsCount(t *testing.T) {
	w := Warnings{}
	w.See(&corev1.Event{Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: "deadline", Count: 3})
	w.See(&corev1.Event{Type: corev1.EventTypeWarning, Reason: "FailedScheduling", Message: "unbound", Count: 2})
	w.See(&corev1.Event{Type: corev1.EventTypeNormal, Reason: "Provisioning", Count: 4})
	if got := w.Count(); got != 3 {
		t.Errorf("%d attempts, want 3", got)
	}
	if diff := cmp.Diff("FailedScheduling: unbound (2 times); ProvisioningFailed: deadline (3 times)",
		w.String()); diff != "" {
		t.Error(diff)
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}
