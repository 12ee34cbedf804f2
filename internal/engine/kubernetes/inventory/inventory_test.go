package inventory

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/apitest"
)

// front serves the paths of the API that apitest has not: discovery, metrics and custom resources. Paths in forbidden
// are refused.
func front(t *testing.T, answers map[string]string, forbidden ...string) *api.Client {
	t.Helper()
	objects := apitest.Start(t)
	objects.Add(t, "/apis/storage.k8s.io/v1/storageclasses/fast", `{"provisioner": "driver.example.io",
		"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
		"parameters": {"csi.storage.k8s.io/fstype": "xfs", "adminPassword": "p"}}`)
	objects.Add(t, "/apis/storage.k8s.io/v1/storageclasses/cnsb-1-slow", `{"provisioner": "driver.example.io",
		"metadata": {"labels": {"cnsbench.dev/run": "1"}}}`)
	objects.Add(t, "/apis/storage.k8s.io/v1/csidrivers/driver.example.io", `{"spec": {"attachRequired": true}}`)
	objects.Add(t, "/apis/storage.k8s.io/v1/csinodes/n1", `{"spec": {"drivers": [{"name": "driver.example.io",
		"nodeID": "n1", "topologyKeys": ["zone"], "allocatable": {"count": 7}}]}}`)
	objects.Add(t, "/api/v1/nodes/n1", `{"metadata": {"labels": {"topology.kubernetes.io/zone": "z1"}},
		"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
		"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
			"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}],
			"nodeInfo": {"kernelVersion": "6.1.0", "kubeletVersion": "v1.36.0", "containerRuntimeVersion": "containerd://2"}}}`)
	objects.Add(t, "/api/v1/namespaces/storage/pods/ctrl-7d9f-abc", pod)
	objects.Add(t, "/api/v1/namespaces/other/pods/web", `{"spec": {"containers": [{"name": "w", "image": "nginx"}]}}`)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, path := range forbidden {
			if strings.HasPrefix(r.URL.Path, path) {
				w.WriteHeader(http.StatusForbidden)
				return
			}
		}
		if text, ok := answers[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
			return
		}
		objects.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	client, err := api.New(&rest.Config{Host: s.URL}, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

const pod = `{
	"metadata": {"labels": {"pod-template-hash": "7d9f"},
		"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "ctrl-7d9f", "uid": "u", "controller": true}]},
	"spec": {"nodeName": "n1", "containers": [
		{"name": "csi-attacher", "image": "registry/csi-attacher:v4", "args": ["--kube-api-qps=5", "--v", "5", "--leader-election"],
			"resources": {"limits": {"cpu": "100m"}}},
		{"name": "driver", "image": "registry/driver:v1", "command": ["/driver", "run"],
			"args": ["--password=hunter2", "--name=driver.example.io"]}]},
	"status": {"containerStatuses": [{"name": "csi-attacher", "imageID": "registry/csi-attacher@sha256:aa"}]}}`

var served = map[string]string{
	"/version": `{"gitVersion": "v1.36.0", "platform": "linux/amd64"}`,
	"/metrics": "# HELP x\nkubernetes_feature_enabled{name=\"A\",stage=\"BETA\"} 1\n" +
		"kubernetes_feature_enabled{name=\"B\",stage=\"\"} 0\nother 1\n",
	"/apis": `{"groups": [{"name": "example.io", "preferredVersion": {"groupVersion": "example.io/v1"}},
		{"name": "apps", "preferredVersion": {"groupVersion": "apps/v1"}}]}`,
	"/apis/example.io/v1": `{"resources": [{"name": "pools", "kind": "Pool", "namespaced": true, "verbs": ["get", "list"]},
		{"name": "pools/status", "kind": "Pool", "namespaced": true, "verbs": ["get"]}]}`,
	"/apis/example.io/v1/pools": `{"apiVersion": "example.io/v1", "kind": "PoolList", "metadata": {}, "items": [
		{"apiVersion": "example.io/v1", "kind": "Pool", "metadata": {"name": "p", "namespace": "storage", "uid": "u"},
		"spec": {"replicas": 3, "password": "x"}, "status": {"used": 7}}]}`,
}

// TestRead checks each part of a description, and that secrets and changing values are not in it.
func TestRead(t *testing.T) {
	got := plain(t, Read(t.Context(), front(t, served), []string{"driver.example.io"}))
	want := map[string]any{
		"serverVersion": map[string]any{"version": "v1.36.0", "platform": "linux/amd64"},
		"featureGates":  map[string]any{"A": true, "B": false},
		"nodes": []any{map[string]any{"name": "n1", "kernel": "6.1.0", "kubelet": "v1.36.0", "runtime": "containerd://2",
			"os": "", "architecture": "", "cpu": "4", "memory": "8Gi", "pods": "110", "ephemeralStorage": "0",
			"conditions": map[string]any{"Ready": "True"}, "taints": []any{"a=b:NoSchedule"}, "unschedulable": false,
			corev1.LabelTopologyZone: "z1"}},
		"csiNodes": map[string]any{"n1": map[string]any{"driver.example.io": map[string]any{"maxVolumes": 7.0,
			"topologyKeys": []any{"zone"}}}},
		"csiDrivers": map[string]any{"driver.example.io": map[string]any{"spec": map[string]any{"attachRequired": true}}},
		"storageClasses": map[string]any{"fast": map[string]any{"provisioner": "driver.example.io", "default": "true",
			"parameters": map[string]any{"csi.storage.k8s.io/fstype": "xfs", "adminPassword": "***"}}},
		"volumeSnapshotClasses":   map[string]any{},
		"volumeAttributesClasses": map[string]any{},
		"driverPods": map[string]any{"storage/ctrl": map[string]any{
			"csi-attacher": map[string]any{"image": "registry/csi-attacher:v4", "imageID": "registry/csi-attacher@sha256:aa",
				"flags":  map[string]any{"kube-api-qps": "5", "v": "5", "leader-election": "true"},
				"limits": map[string]any{"cpu": "100m"}},
			"driver": map[string]any{"image": "registry/driver:v1", "imageID": "",
				"flags": map[string]any{"command": "/driver run", "password": "***", "name": "driver.example.io"}}}},
		"providerObjects": map[string]any{"pools.example.io/storage/p": map[string]any{"spec": map[string]any{
			"replicas": 3.0, "password": "***"}}},
		UnreadKey: map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDescribe checks that names of pods do not depend on which of a controller's pods comes first: a DaemonSet's pods
// get other names with each restart.
func TestDescribe(t *testing.T) {
	controlled := true
	of := func(name, kind, owner, node, image string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.Spec.NodeName = "s", name, node
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: &controlled}}
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
		return p
	}
	for name, tt := range map[string]struct {
		pods []*corev1.Pod
		want []string
	}{
		"equal": {[]*corev1.Pod{of("d-1", "DaemonSet", "d", "n1", "a"), of("d-2", "DaemonSet", "d", "n2", "a")},
			[]string{"s/d"}},
		"other images": {[]*corev1.Pod{of("d-1", "DaemonSet", "d", "n1", "a"), of("d-2", "DaemonSet", "d", "n2", "b")},
			[]string{"s/d@n1", "s/d@n2"}},
		"other images, other names": {[]*corev1.Pod{of("d-8", "DaemonSet", "d", "n2", "b"),
			of("d-9", "DaemonSet", "d", "n1", "a")}, []string{"s/d@n1", "s/d@n2"}},
		"of one node": {[]*corev1.Pod{of("d-1", "ReplicaSet", "d", "n1", "a"), of("d-2", "ReplicaSet", "d", "n1", "b")},
			[]string{"s/d-2", "s/d@n1"}},
		"of the node itself": {[]*corev1.Pod{of("etcd-n1", "Node", "n1", "n1", "a"), of("kcm-n1", "Node", "n1", "n1", "b")},
			[]string{"s/etcd-n1", "s/kcm-n1"}},
	} {
		if diff := cmp.Diff(tt.want, slices.Sorted(maps.Keys(describe(tt.pods)))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestForbidden checks that each part that cannot be read is named, and that the others are there.
func TestForbidden(t *testing.T) {
	got := plain(t, Read(t.Context(), front(t, served, "/metrics", "/api/v1/pods", "/apis/example.io/v1/pools"),
		[]string{"driver.example.io"}))
	want := map[string]any{"featureGates": "forbidden", "driverPods": "forbidden", "pools.example.io": "forbidden"}
	if diff := cmp.Diff(want, got[UnreadKey]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got["nodes"] == nil || got["driverPods"] != nil {
		t.Errorf("nodes %v, driverPods %v", got["nodes"], got["driverPods"])
	}
}

// TestProviderBound checks that objects beyond the bound are counted, not silently left out.
func TestProviderBound(t *testing.T) {
	many := map[string]string{}
	for path, text := range served {
		many[path] = text
	}
	var items []string
	for i := range maxProviderObjects + 5 {
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": string(rune('a'+i/26)) + string(rune('a'+i%26))},
			"spec": map[string]any{"n": i}})
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, string(text))
	}
	many["/apis/example.io/v1/pools"] = `{"apiVersion": "example.io/v1", "kind": "PoolList", "metadata": {}, "items": [` +
		strings.Join(items, ",") + `]}`
	got := plain(t, Read(t.Context(), front(t, many), []string{"driver.example.io"}))
	objects, _ := got["providerObjects"].(map[string]any)
	unread, _ := got[UnreadKey].(map[string]any)
	text, _ := unread["providerObjects"].(string)
	if len(objects) != maxProviderObjects || !strings.HasPrefix(text, "5 objects are left out") {
		t.Errorf("%d objects, %q", len(objects), text)
	}
}

// plain is a description as a bundle stores it.
func plain(t *testing.T, v any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
