package status

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
)

func TestReadiness(t *testing.T) {
	tests := []struct {
		name, gvk, object string
		done, known       bool
		fails             string
	}{
		{"a Deployment as its controller has not seen it", "apps/v1, Kind=Deployment",
			"{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}", false, true, ""},
		{"a Deployment with one of the old", "apps/v1, Kind=Deployment",
			"{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 1}}", false, true, ""},
		{"a Deployment that is rolled out", "apps/v1, Kind=Deployment",
			"{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}", true, true, ""},
		{"a Deployment of none", "apps/v1, Kind=Deployment",
			"{metadata: {generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1}}", true, true, ""},
		{"a StatefulSet between revisions", "apps/v1, Kind=StatefulSet",
			"{spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 2, currentRevision: a, updateRevision: b}}",
			false, true, ""},
		{"a StatefulSet", "apps/v1, Kind=StatefulSet",
			"{spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 2, currentRevision: b, updateRevision: b}}",
			true, true, ""},
		{"a DaemonSet", "apps/v1, Kind=DaemonSet",
			"{status: {desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberReady: 1}}", false, true, ""},
		{"a Job whose pod runs", "batch/v1, Kind=Job", "{spec: {}, status: {ready: 1}}", true, true, ""},
		{"a Job that is not begun", "batch/v1, Kind=Job", "{spec: {}}", false, true, ""},
		{"a Job that has failed", "batch/v1, Kind=Job",
			"{status: {conditions: [{type: Failed, status: 'True', message: too often}]}}", false, true, "JobFailed"},
		{"a claim", "/v1, Kind=PersistentVolumeClaim", "{status: {phase: Bound}}", true, true, ""},
		{"a pod that has failed", "/v1, Kind=Pod", "{status: {phase: Failed}}", false, true, "PodFailed"},
		{"a BucketClaim without a bucket", "objectstorage.k8s.io/v1alpha1, Kind=BucketClaim",
			"{status: {bucketReady: false, bucketName: b}}", false, true, ""},
		{"a BucketClaim", "objectstorage.k8s.io/v1alpha1, Kind=BucketClaim", "{status: {bucketReady: true}}",
			true, true, ""},
		{"a new BucketAccess", "objectstorage.k8s.io/v1alpha1, Kind=BucketAccess", "{spec: {}}", false, true, ""},
		{"a BucketAccess", "objectstorage.k8s.io/v1alpha1, Kind=BucketAccess",
			"{status: {accessGranted: true, accountID: a}}", true, true, ""},
		{"a BucketClass", "objectstorage.k8s.io/v1alpha1, Kind=BucketClass", "{driverName: d}", true, false, ""},
		{"another kind", "example.com/v1, Kind=Thing", "{spec: {replicas: 3}}", true, false, ""},
	}
	for _, tt := range tests {
		gv, kind, _ := cutKind(tt.gvk)
		gvk := schema.FromAPIVersionAndKind(gv, kind)
		o := object(t, tt.object)
		done, known := Ready(gvk, o)
		if done != tt.done || known != tt.known {
			t.Errorf("%s: ready %v, known %v", tt.name, done, known)
		}
		code := ""
		var coded *engine.Error
		if errors.As(ObjectError(gvk, o), &coded) {
			code = coded.Code
		}
		if code != tt.fails {
			t.Errorf("%s: fails with %q, want %q", tt.name, code, tt.fails)
		}
	}
}

// cutKind splits "GROUP/VERSION, Kind=KIND"; the core group has no name.
func cutKind(s string) (gv, kind string, ok bool) {
	for i := range s {
		if s[i] == ',' {
			gv, kind = s[:i], s[i+len(", Kind="):]
			if gv[0] == '/' {
				gv = gv[1:]
			}
			return gv, kind, true
		}
	}
	return "", "", false
}

// object reads a manifest with integers as an API server returns them.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	a := new(api.Any)
	if err := a.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return &a.Unstructured
}
