package kubernetes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

// TestPrepareAddsAllToLedger: Prepare adds everything that a request creates to the ledger, and waits only for the
// entries of kinds.
func TestPrepareAddsAllToLedger(t *testing.T) {
	l := &memory{}
	e := New(Options{Namespace: "ns"})
	e.Session = engine.Session{RunID: "r1", Ledger: l}
	e.Options.Config = testConfig()
	w := engine.Workload{Claims: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "w-0-data"}}},
		ConfigMaps: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "w-0-cfg"}}},
		Pods:       []engine.Pod{{Pod: *pod("w-0-main")}}}
	if err := e.Prepare(engine.Request{Name: "w-0", Workload: &w}); err != nil {
		t.Fatal(err)
	}
	if err := e.Prepare(engine.Request{Name: "v-0", Volume: &engine.Volume{Attach: true}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"configmaps *", "note configmaps cnsb-r1-w-0-cfg",
		"persistentvolumeclaims *", "note persistentvolumeclaims cnsb-r1-w-0-data",
		"pods *", "note pods cnsb-r1-w-0-main", "secrets *", "note secrets cnsb-r1-w-0-main",
		"note persistentvolumeclaims cnsb-r1-v-0", "note pods cnsb-r1-v-0-holder", "note secrets cnsb-r1-v-0-holder"}
	if diff := cmp.Diff(want, l.names); diff != "" {
		t.Error(diff)
	}
}

// TestDeletionAfterReadyIsNoFailure: a pod that is deleted after it was ready does not fail the
// op. A proxy for controllers only does not make the op wait for calls of nodes.
func TestDeletionAfterReadyIsNoFailure(t *testing.T) {
	e := New(Options{Namespace: "ns"})
	e.Session = engine.Session{RunID: "r", Clock: op.NewClock()}
	e.Tracker = tracker.New("ns")
	pr := e.NewProvision()
	pr.AddPod("p", 1, nil)
	pr.Feed.Put(pods.AgentReady{Pod: "cnsb-r-p", Ready: op.Milestone{At: 5, Source: "agent"},
		Started: op.Milestone{At: 4, Source: "agent"}})
	e.Tracker.See(watch.Event{Type: watch.Deleted, Object: pod("cnsb-r-p"), At: 9})
	tr := op.NewTrace(e.Session.Clock)
	if err := pr.Wait(t.Context(), tr); err != nil {
		t.Errorf("a ready pod that went later: %v", err)
	}
	var o op.Op
	tr.Fill(&o)
	if o.Ended != 5 {
		t.Errorf("the op ended at %d, want at its readiness", o.Ended)
	}
	if e.Tracker.SeesNodeCalls() {
		t.Error("nothing was seen of nodes")
	}
	e.Tracker.SeeCall(csiproxy.Call{RPC: "NodePublishVolume", Subject: csiproxy.Subject{Volume: "v"}, End: 3})
	if !e.Tracker.SeesNodeCalls() {
		t.Error("a call of a node service was seen")
	}
}
