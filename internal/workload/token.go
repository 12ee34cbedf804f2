package workload

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// denyToken disables the mount of the ServiceAccount's token unless the pod sets it. A pod
// without serviceAccountName runs as "default", which may have the runner's rights.
func denyToken(s *corev1.PodSpec) {
	if s.AutomountServiceAccountToken == nil {
		no := false
		s.AutomountServiceAccountToken = &no
	}
}

// Token returns the ServiceAccount of a pod and whether its containers have its token,
// mounted by Kubernetes or by a projected volume.
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

// DenyToken is denyToken for the pods of a manifest and its controllers; it returns the
// valid pod specifications.
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
		// else the API server returns an error
		if runtime.DefaultUnstructuredConverter.FromUnstructured(at, &s) == nil {
			all = append(all, s)
		}
	}
	return all
}
