package status

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// Ready says whether an object is ready, and whether readiness is known for its kind. Deployments, StatefulSets and
// DaemonSets: the controller has observed the last change, and all replicas are updated and ready. Jobs: complete,
// or as many pods ready as may run in parallel. Pods: ready or succeeded. Claims: bound. Of COSI, BucketClaims: the
// bucket is ready; BucketAccesses: access is granted, with credentials in the Secret.
func Ready(gvk schema.GroupVersionKind, o *unstructured.Unstructured) (done, known bool) {
	n := func(or int64, path ...string) int64 {
		if v, found, err := unstructured.NestedInt64(o.Object, path...); err == nil && found {
			return v
		}
		return or
	}
	seen := n(0, "status", "observedGeneration") >= o.GetGeneration()
	want := n(1, "spec", "replicas")
	switch gvk.Group + "/" + gvk.Kind {
	case "apps/Deployment":
		return seen && n(0, "status", "updatedReplicas") == want && n(0, "status", "availableReplicas") == want &&
			n(0, "status", "replicas") == want, true
	case "apps/StatefulSet":
		current, _, _ := unstructured.NestedString(o.Object, "status", "currentRevision")
		update, _, _ := unstructured.NestedString(o.Object, "status", "updateRevision")
		return seen && n(0, "status", "readyReplicas") == want && n(0, "status", "replicas") == want &&
			current == update, true
	case "apps/ReplicaSet":
		return seen && n(0, "status", "readyReplicas") == want && n(0, "status", "replicas") == want, true
	case "apps/DaemonSet":
		want := n(0, "status", "desiredNumberScheduled")
		return seen && n(0, "status", "updatedNumberScheduled") == want && n(0, "status", "numberReady") == want, true
	case "batch/Job":
		left := n(1, "spec", "completions") - n(0, "status", "succeeded")
		return hasCondition(o, "Complete") ||
			n(0, "status", "ready") >= max(1, min(n(1, "spec", "parallelism"), left)), true
	case "/Pod":
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		return hasCondition(o, string(corev1.PodReady)) || phase == string(corev1.PodSucceeded), true
	case "/PersistentVolumeClaim":
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		return phase == string(corev1.ClaimBound), true
	}
	if gvk.Group == engine.BucketGroup {
		flag, known := map[string]string{"BucketClaim": "bucketReady", "BucketAccess": "accessGranted"}[gvk.Kind]
		if known {
			done, _, _ := unstructured.NestedBool(o.Object, "status", flag)
			return done, true
		}
	}
	return true, false
}

// HasReadiness says whether readiness is known for a kind; an object of another one is ready once it exists.
func HasReadiness(gvk schema.GroupVersionKind) bool {
	_, known := Ready(gvk, &unstructured.Unstructured{})
	return known
}

// ObjectError returns why an object will not become ready, or nil.
func ObjectError(gvk schema.GroupVersionKind, o *unstructured.Unstructured) error {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	switch {
	case gvk.Group == "batch" && hasCondition(o, "Failed"):
		return engine.Errorf("JobFailed", "Job %s has failed: %s", o.GetName(), Conditions(o))
	case gvk.Kind == "Pod" && gvk.Group == "" && phase == string(corev1.PodFailed):
		return engine.Errorf("PodFailed", "pod %s has failed", o.GetName())
	case gvk.Kind == "PersistentVolumeClaim" && phase == string(corev1.ClaimLost):
		return engine.Errorf("ClaimLost", "claim %s has lost its volume", o.GetName())
	}
	return nil
}

func hasCondition(o *unstructured.Unstructured, kind string) bool {
	for _, c := range conditionsOf(o) {
		if c["type"] == kind && c["status"] == "True" {
			return true
		}
	}
	return false
}

func conditionsOf(o *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var all []map[string]any
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// Conditions describes an object's conditions.
func Conditions(o *unstructured.Unstructured) string {
	if o == nil {
		return "it was not seen"
	}
	var parts []string
	for _, c := range conditionsOf(o) {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%v=%v %v", c["type"], c["status"], c["message"])))
	}
	if len(parts) == 0 {
		return "its status has no conditions"
	}
	return strings.Join(parts, "; ")
}
