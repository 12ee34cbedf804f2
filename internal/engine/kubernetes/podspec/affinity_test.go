package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestRequireNode(t *testing.T) {
	p := &corev1.Pod{}
	RequireNode(p, corev1.NodeSelectorOpNotIn, "n1")
	term := func(p *corev1.Pod) []corev1.NodeSelectorTerm {
		return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	field := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn,
		Values: []string{"n1"}}
	if diff := cmp.Diff([]corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{field}}},
		term(p)); diff != "" {
		t.Error(diff)
	}
	own := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
	p = &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{own}}, {}}}}}}}
	RequireNode(p, corev1.NodeSelectorOpNotIn, "n1")
	for i, tt := range term(p) { // they are alternatives
		if len(tt.MatchFields) != 1 || len(tt.MatchExpressions) != 1-i {
			t.Errorf("term %d is %+v", i, tt)
		}
	}
}
