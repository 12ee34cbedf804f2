package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
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

// Pods that share a volume with access by one node are in one group, also through another pod;
// pods that share a volume with access by several nodes are not.
func TestColocation(t *testing.T) {
	w := &engine.Workload{
		Claims: []corev1.PersistentVolumeClaim{
			sharedClaim("one", corev1.ReadWriteOnce), sharedClaim("many", corev1.ReadWriteMany),
			sharedClaim("two", corev1.ReadWriteOnce),
			sharedClaim("own", corev1.ReadWriteOnce), sharedClaim("read", corev1.ReadOnlyMany)},
		Pods: []engine.Pod{podWith("a", "one", "many"), podWith("b", "one", "two"), podWith("c", "two", "read"),
			podWith("d", "many", "own"), podWith("e", "read")},
	}
	if diff := cmp.Diff(map[string]string{"a": "two", "b": "two", "c": "two"}, Colocation(w)); diff != "" {
		t.Error(diff)
	}
}

// A pod of a group requires the node of the others beside its own requirements.
func TestColocate(t *testing.T) {
	own := corev1.PodAffinityTerm{TopologyKey: "rack"}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.LabelRun: "r1"}}}
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{own}}}
	Colocate(p, "w-0-data")
	terms := p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(terms) != 2 || terms[0].TopologyKey != "rack" {
		t.Fatalf("terms %+v", terms)
	}
	selector, err := metav1.LabelSelectorAsSelector(terms[1].LabelSelector)
	if err != nil || terms[1].TopologyKey != corev1.LabelHostname || !selector.Matches(labels.Set(p.Labels)) {
		t.Errorf("%+v does not select the pod itself (labels %v): %v", terms[1], p.Labels, err)
	}
	alone := &corev1.Pod{}
	Colocate(alone, "")
	if alone.Spec.Affinity != nil {
		t.Error("a pod that shares nothing is placed")
	}
}
