package kubernetes

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

func sharedClaim(name string, modes ...corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeClaim {
	c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.AccessModes = modes
	return c
}

func podWith(name string, claims ...string) engine.Pod {
	p := engine.Pod{Pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	for _, c := range claims {
		v := corev1.Volume{Name: c}
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	return p
}

// Pods that share what one node at a time may have are of one group, also by way of
// another pod; those that share what several nodes may have are of none.
func TestTogether(t *testing.T) {
	w := &engine.Workload{
		Claims: []corev1.PersistentVolumeClaim{
			sharedClaim("one", corev1.ReadWriteOnce), sharedClaim("many", corev1.ReadWriteMany),
			sharedClaim("two", corev1.ReadWriteOnce),
			sharedClaim("own", corev1.ReadWriteOnce), sharedClaim("read", corev1.ReadOnlyMany)},
		Pods: []engine.Pod{podWith("a", "one", "many"), podWith("b", "one", "two"), podWith("c", "two", "read"),
			podWith("d", "many", "own"), podWith("e", "read")},
	}
	if diff := cmp.Diff(map[string]string{"a": "two", "b": "two", "c": "two"}, together(w)); diff != "" {
		t.Error(diff)
	}
}

// A pod of a group asks for the node of the others beside what it asks for itself.
func TestPlace(t *testing.T) {
	own := corev1.PodAffinityTerm{TopologyKey: "rack"}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelRun: "r1"}}}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{own}}}
	place(p, "w-0-data")
	terms := p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 2 || terms[0].TopologyKey != "rack" {
		t.Fatalf("terms %+v", terms)
	}
	selector, err := metav1.LabelSelectorAsSelector(terms[1].LabelSelector)
	if err != nil || terms[1].TopologyKey != corev1.LabelHostname || !selector.Matches(labels.Set(p.Labels)) {
		t.Errorf("%+v does not select the pod itself (labels %v): %v", terms[1], p.Labels, err)
	}
	alone := &corev1.Pod{}
	place(alone, "")
	if alone.Spec.Affinity != nil {
		t.Error("a pod that shares nothing is placed")
	}
}

// lines keeps what an engine says.
type lines struct {
	engine.Sink
	said []string
}

func (l *lines) Log(source, line string) { l.said = append(l.said, source+": "+line) }

// What an op waits for is said in the cluster's words once it takes long, again when
// it is something else, and that it is over.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, l := New(Options{Namespace: "ns"}), &lines{}
		e.tracker, e.session = newTracker("ns"), engine.Session{RunID: "r1", Clock: op.NewClock(), Sink: l}
		b := e.bring()
		b.pod("w-0-two", 1, false)
		name := e.name("w-0-two")
		var at time.Duration
		see := func(reason, message string) {
			at += time.Second
			event := &corev1.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message,
				LastTimestamp: metav1.NewTime(time.Unix(0, 0).Add(at)), InvolvedObject: corev1.ObjectReference{Name: name}}
			e.tracker.see(watch.Event{At: e.session.Clock.Now(), Object: event})
		}
		done := make(chan error, 1)
		go func() { done <- b.await(t.Context(), op.NewTrace(e.session.Clock)) }()
		const multi = `Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) cnsb-r1-w-0-one`
		see("FailedScheduling", "0/2 nodes are available")
		see("FailedAttachVolume", multi)
		synctest.Wait()
		if len(l.said) > 0 {
			t.Errorf("said at once: %q", l.said)
		}
		time.Sleep(waitsAfter + time.Second)
		see("FailedAttachVolume", multi)
		see("FailedMount", "timed out")
		synctest.Wait()
		b.feed.put(arrived{pod: name})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := []string{"waits: w-0-two waits: FailedAttachVolume: " + multi, "waits: w-0-two waits: FailedMount: timed out",
			"waits: w-0-two waits no longer"}
		if diff := cmp.Diff(want, l.said); diff != "" {
			t.Error(diff)
		}
	})
}
