package kubernetes

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// labelTogether has the same value in pods that share a volume which one node at a
// time may have: on two nodes one of them would wait for the other's end
// ("Multi-Attach error").
const labelTogether = "cnsbench.dev/one-node"

// together maps the pods of an instance that belong on one node to the claim that
// stands for their group. Claims that have a pod in common are of one group.
func together(w *engine.Workload) map[string]string {
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

// place puts a pod on the node of the others of its group. The scheduler lets the
// first go anywhere; a pod that is made again goes to those that are left.
func place(pod *corev1.Pod, group string) {
	if group == "" {
		return
	}
	value := labelValue(group)
	pod.Labels[labelTogether] = value
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.PodAffinity == nil {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{}
	}
	a := pod.Spec.Affinity.PodAffinity
	terms := &a.RequiredDuringSchedulingIgnoredDuringExecution
	others := map[string]string{LabelRun: pod.Labels[LabelRun], labelTogether: value}
	*terms = append(*terms, corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: others}})
}
