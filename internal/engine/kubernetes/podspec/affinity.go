package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
)

// labelOneNode has the same value in pods that share a volume with access by one node. On two nodes, one of them
// would fail with a Multi-Attach error.
const labelOneNode = "cnsbench.dev/one-node"

// Colocation maps the pods of an instance that belong on one node to the claim that names their group. Claims with
// a common pod are in one group.
func Colocation(w *engine.Workload) map[string]string {
	group := map[string]string{}
	for _, s := range engine.SharedClaims(w.Claims, w.Pods) {
		name := s.Claim.Name
		for _, p := range s.Pods {
			if other, known := group[p]; known {
				for q, g := range group {
					if g == other {
						group[q] = name
					}
				}
			}
			group[p] = name
		}
	}
	return group
}

// Colocate requires a pod to run on the node of its group. The scheduler places the first pod anywhere.
func Colocate(pod *corev1.Pod, group string) {
	if group == "" {
		return
	}
	value := names.LabelValue(group)
	pod.Labels[labelOneNode] = value
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.PodAffinity == nil {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{}
	}
	a := pod.Spec.Affinity.PodAffinity
	terms := &a.RequiredDuringSchedulingIgnoredDuringExecution
	others := map[string]string{names.LabelRun: pod.Labels[names.LabelRun], labelOneNode: value}
	*terms = append(*terms, corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: others}})
}

// RequireNode requires a pod to run on a node, or not to, beside its own requirements. The scheduler decides, so
// that volumes with late binding are considered.
func RequireNode(p *corev1.Pod, how corev1.NodeSelectorOperator, node string) {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	a := p.Spec.Affinity.NodeAffinity
	if a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms { // the terms are alternatives
		terms[i].MatchFields = append(terms[i].MatchFields,
			corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: how, Values: []string{node}})
	}
}

// Tolerates says whether a pod tolerates a taint.
func Tolerates(p *corev1.Pod, t *corev1.Taint) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool {
		return (o.Effect == "" || o.Effect == t.Effect) && (o.Key == "" || o.Key == t.Key) &&
			(o.Operator == corev1.TolerationOpExists || o.Value == t.Value)
	})
}

// Selects says whether a node matches one of a selector's terms.
func Selects(s *corev1.NodeSelector, n *corev1.Node) bool {
	return slices.ContainsFunc(s.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchExpressions,
			func(r corev1.NodeSelectorRequirement) bool { return !matches(r, n.Labels) })
	})
}

// matches evaluates a requirement of labels. An invalid one is left to the scheduler.
func matches(r corev1.NodeSelectorRequirement, of labels.Set) bool {
	how, known := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
		corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
		corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
	}[r.Operator]
	want, err := labels.NewRequirement(r.Key, how, r.Values)
	return !known || err != nil || want.Matches(of)
}
