package disrupt

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/test/apitest"
)

func TestNodeRefusal(t *testing.T) {
	e := New(pods.New(core.New(core.Options{})), nil)
	e.Session.RunID, e.Tracker = "r1", tracker.New("ns")
	m := &pods.Pod{State: e.State, Object: "w-0", Template: &corev1.Pod{Spec: corev1.PodSpec{
		NodeSelector: map[string]string{"disk": "fast"}, Tolerations: []corev1.Toleration{{Key: "mine",
			Operator: corev1.TolerationOpExists}},
		Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "cnsb-r1-w-0-data"}}}}}}}
	e.StoreVolume(&pods.Volume{Name: "cnsb-r1-w-0-data", Object: engine.Object{Name: "w-0-data"}})
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: "cnsb-r1-w-0-data"},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}}}}}}
	e.Tracker.See(watch.Event{Type: watch.Added, Object: pv})
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
			Labels: map[string]string{"disk": "fast", "zone": "a"}}}
		n.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule},
			{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
		change(n)
		return n
	}
	for _, tt := range []struct {
		want   string
		change func(*corev1.Node)
	}{
		{"", func(*corev1.Node) {}},
		{"is cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }},
		{"is not ready", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		}},
		{"lacks the labels that the pod requires", func(n *corev1.Node) { delete(n.Labels, "disk") }},
		{"has the taint theirs", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoExecute})
		}},
		{"cannot reach volume w-0-data", func(n *corev1.Node) { n.Labels["zone"] = "b" }},
	} {
		if got := e.nodeRefusal(node(tt.change), m); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestOtherNodeIsRemembered: the nodes are listed once, and again only when those found before accept no pods.
func TestOtherNodeIsRemembered(t *testing.T) {
	s := apitest.Start(t)
	const nodes = "/api/v1/nodes"
	for _, name := range []string{"a", "b", "c"} {
		s.Add(t, nodes+"/"+name, `{}`)
	}
	run := core.New(core.Options{Config: &rest.Config{Host: s.URL}})
	if err := run.EnsureClient(); err != nil {
		t.Fatal(err)
	}
	e := New(pods.New(run), nil)
	e.Tracker = tracker.New("ns")
	m := &pods.Pod{State: e.State, Object: "w-0", Template: &corev1.Pod{}}
	lists := func() (n int) {
		for _, path := range s.Reads() {
			if path == nodes {
				n++
			}
		}
		return n
	}
	for range 3 {
		for _, from := range []string{"a", "b", "c"} {
			if err := e.checkOtherNode(t.Context(), m, from); err != nil {
				t.Errorf("from %s: %v", from, err)
			}
		}
	}
	if lists() != 1 {
		t.Errorf("the nodes were listed %d times, want once", lists())
	}
	for _, name := range e.accepted {
		s.Add(t, nodes+"/"+name, `{"spec":{"unschedulable":true}}`)
	}
	if err := e.checkOtherNode(t.Context(), m, e.accepted[0]); err != nil || lists() != 2 {
		t.Errorf("when those are cordoned: %v; %d lists, want one more", err, lists())
	}
	for _, name := range []string{"a", "b", "c"} {
		s.Add(t, nodes+"/"+name, `{"spec":{"unschedulable":true}}`)
	}
	if err := e.checkOtherNode(t.Context(), m, "a"); err == nil {
		t.Error("no error, and all nodes are cordoned")
	}
}
