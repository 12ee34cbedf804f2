package manifests

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/op"
)

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

// The pods and claims of a controller carry the run's labels; fields that the server sets are
// removed.
func TestAdopt(t *testing.T) {
	e := New(pods.New(core.New(core.Options{})), nil)
	e.Session.RunID = "r1"
	o := object(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: given, generateName: g-, uid: u, resourceVersion: "7", labels: {app: db}}
spec:
  template: {metadata: {labels: {app: db}}, spec: {containers: []}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]
status: {replicas: 3}`)
	m := &Manifest{Name: "cnsb-r1-db-0", Namespace: "ns"}
	if !e.adopt(o, m, engine.Request{Action: "db", Name: "db-0"}) {
		t.Error("it makes pods")
	}
	want := object(t, strings.ReplaceAll(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: cnsb-r1-db-0, namespace: ns, labels: {app: db, cnsbench.dev/run: r1, cnsbench.dev/action: db}}
spec:
  template: {metadata: {labels: {app: db, cnsbench.dev/run: r1, cnsbench.dev/action: db, cnsbench.dev/object: db-0}}, spec: {containers: []}}
  volumeClaimTemplates: [{metadata: {name: data, labels: {cnsbench.dev/run: r1, cnsbench.dev/action: db, cnsbench.dev/object: db-0}}, spec: {}}]`,
		"run: r1,", "run: r1, cnsbench.dev/identity: "+e.ID.Proof()+","))
	if diff := cmp.Diff(want.Object, o.Object); diff != "" {
		t.Error(diff)
	}
	if e.adopt(object(t, "{apiVersion: v1, kind: ConfigMap, data: {template: x}}"), m, engine.Request{}) {
		t.Error("a ConfigMap makes no pods")
	}
}

// TestIsFollowed checks that objects are watched only where an op may wait for their changes.
func TestIsFollowed(t *testing.T) {
	kind := func(group, name string) api.Kind { return api.Kind{Group: group, Version: "v1", Name: name} }
	for _, tt := range []struct {
		kind  api.Kind
		needs op.Kind
		want  bool
	}{
		{kind("", "ConfigMap"), op.Create, false},
		{kind("example.com", "Widget"), op.Snapshot, false},
		{kind("", "ConfigMap"), op.Delete, true},
		{kind("example.com", "Widget"), op.Rollout, true},
		{kind("apps", "StatefulSet"), op.Create, true},
		{kind("batch", "Job"), op.Create, true},
		{kind("", "PersistentVolumeClaim"), op.Create, true},
		{kind(engine.BucketGroup, "BucketAccess"), op.Create, true},
	} {
		e := New(pods.New(core.New(core.Options{})), nil)
		e.Session.Needs.Kinds = map[op.Kind]bool{op.Create: true, tt.needs: true}
		if got := e.isFollowed(tt.kind); got != tt.want {
			t.Errorf("%s, run with %s: %v, want %v", tt.kind.Name, tt.needs, got, tt.want)
		}
	}
}
