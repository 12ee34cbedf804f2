package tracker

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
