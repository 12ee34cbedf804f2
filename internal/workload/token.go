package workload

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// denyToken keeps the ServiceAccount's token out of a pod whose author did not
// ask for it. A pod without serviceAccountName runs as "default", which in a
// namespace for benchmarks is often the account with the runner's rights.
func denyToken(s *corev1.PodSpec) {
	if s.AutomountServiceAccountToken == nil {
		no := false
		s.AutomountServiceAccountToken = &no
	}
}

// Token names the ServiceAccount of a pod, and says whether its containers get
// a token of it: mounted by Kubernetes, or by a volume of the pod's own.
func Token(s *corev1.PodSpec) (account string, has bool) {
	account = cmp.Or(s.ServiceAccountName, s.DeprecatedServiceAccount, "default")
	has = isTrue(s.AutomountServiceAccountToken)
	for _, v := range s.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			has = has || source.ServiceAccountToken != nil
		}
	}
	return account, has
}

// DenyToken does the same to the pods that a manifest's controller makes, and
// returns their specifications, as far as they can be read.
func DenyToken(manifest map[string]any) []corev1.PodSpec {
	var all []corev1.PodSpec
	for _, path := range []string{"spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec"} {
		at := manifest
		for field := range strings.SplitSeq(path, ".") {
			at, _ = at[field].(map[string]any)
		}
		if _, pod := at["containers"].([]any); !pod {
			continue
		}
		if at["automountServiceAccountToken"] == nil {
			at["automountServiceAccountToken"] = false
		}
		var s corev1.PodSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(at, &s) == nil { // else the API server says what is wrong
			all = append(all, s)
		}
	}
	return all
}
