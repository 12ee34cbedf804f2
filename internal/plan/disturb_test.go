package plan

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// everything returns the capabilities of an engine with a cluster that supports all
// actions and features.
func everything() engine.Capabilities {
	c := engine.Capabilities{Engine: "kubernetes", Cluster: true, Actions: map[op.Kind]bool{},
		Features: map[string]bool{
			"groupSnapshot": true, "block": true, "genericEphemeral": true, "static": true, "rwx": true, "manifest": true,
			"volumeAttributesClass": true, "node: other": true, "undo": true, "object": true}}
	for _, k := range []op.Kind{op.Create, op.Snapshot, op.Restore, op.Clone, op.Resize, op.Reattach, op.Rollout,
		op.Drain, op.Scale, op.Kill, op.Modify, op.Delete, op.Check} {
		c.Actions[k] = true
	}
	return c
}

// disruptive is a Benchmark with all actions that disrupt running workloads.
const disruptive = `spec:
  runtime: 1m
  actions:
    - {name: db, createObjSpec: {workload: idle, labels: {tier: db}, vars: {storageClass: sc}}}
    - {name: v, createObjSpec: {volume: {storageClass: sc, attach: true}}}
    - name: web
      createObjSpec:
        count: 2
        labels: {app: web}
        vars: {replicas: 3, zone: "7", image: "nginx:{{NUM_INSTANCES}}"}
        manifest:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {labels: {app: other}, annotations: {zone: "{{zone}}"}}
          spec: {replicas: "{{replicas}}", strategy: {"{{ACTION_NAME}}": "{{INSTANCE_NUM}}"}, template: {image: "{{image}}"}}
    - {name: move, rateName: r, reattachSpec: {volumeName: data, node: other}}
    - {name: again, rateName: r, rolloutSpec: {labels: {tier: db}}}
    - {name: back, rateName: r, rolloutSpec: {actionName: web, undo: true}}
    - {name: node, rateName: r, drainSpec: {nodeLabels: {pool: a}}}
    - {name: scale, rateName: r, scaleSpec: {actionName: web, replicas: [1, 5]}}
    - {name: script, rateName: r, scaleSpec: {object: {apiVersion: apps/v1, kind: StatefulSet, name: mine, namespace: theirs}, replicas: [2], scriptConfigMap: grow, serviceAccountName: scaler, image: kubectl}}
    - {name: crash, rateName: r, killSpec: {actionName: db}}
    - {name: hang, rateName: r, killSpec: {labels: {tier: db}, signal: SIGSTOP, stopFor: 3s, select: all}}
    - {name: evict, rateName: r, killSpec: {actionName: db, deletePodSpec: {}}}
    - {name: fall, rateName: r, killSpec: {actionName: web, deletePodSpec: {gracePeriod: 0s}}}
    - {name: foreign, rateName: r, deleteSpec: {object: {apiVersion: v1, kind: ConfigMap, name: old}, notOurs: true}}
    - {name: rest, rateName: r, deleteSpec: {labels: {app: web}, objectKind: object}}
    - {name: snap, rateName: r, snapshotSpec: {volumeName: v}}
    - {name: copies, rateName: r, restoreSpec: {volumeName: v}}
    - {name: purge, rateName: r, deleteSpec: {labels: {cnsbench.dev/volume: v}, objectKind: snapshot}}
  rates:
    - {name: r, constantRateSpec: {interval: 5s}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: grow}
data: {scale.sh: "#!/bin/sh\necho $1 $2\n"}
`

// TestDisruptions checks the resolution of actions that disrupt running workloads: their
// targets and parameters, the rendered manifest and the budget.
func TestDisruptions(t *testing.T) {
	p := good(t, Input{Capabilities: everything(), Seed: 1}, disruptive)
	got := map[string]Action{}
	for _, a := range p.Actions {
		got[a.Name] = a
	}
	mine := &engine.ObjectRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "mine", Namespace: "theirs"}
	tier := map[string]string{"tier": "db"}
	ofV := map[string]string{"cnsbench.dev/volume": "v"}
	targets := map[string]Target{
		"move": {Kind: engine.VolumeObject, Labels: map[string]string{"cnsbench.dev/volume": "data"},
			Select: SelectRoundRobin},
		"again":  {Kind: engine.WorkloadObject, Labels: tier, Select: SelectRoundRobin},
		"back":   {Kind: engine.ManifestObject, Action: "web", Select: SelectRoundRobin},
		"scale":  {Kind: engine.ManifestObject, Action: "web", Select: SelectAll},
		"script": {Kind: engine.ManifestObject, Select: SelectAll, Object: mine},
		"crash":  {Kind: engine.WorkloadObject, Action: "db", Select: SelectRandom},
		"hang":   {Kind: engine.WorkloadObject, Labels: tier, Select: SelectAll},
		"foreign": {Kind: engine.ManifestObject, Select: SelectAll,
			Object: &engine.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "old"}},
		"fall":   {Kind: engine.ManifestObject, Action: "web", Select: SelectRandom},
		"rest":   {Kind: engine.ManifestObject, Labels: map[string]string{"app": "web"}, Select: SelectOldest},
		"copies": {Kind: engine.SnapshotObject, Labels: ofV, Select: SelectNewest},
		"purge":  {Kind: engine.SnapshotObject, Labels: ofV, Select: SelectOldest},
	}
	for name, want := range targets {
		have := *got[name].Target
		have.Makers = nil
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	script := &engine.Script{Text: "#!/bin/sh\necho $1 $2\n", Image: "kubectl", ServiceAccount: "scaler"}
	for name, c := range map[string][2]any{
		"crash":  {got["crash"].Kill, &KillSpec{Signal: "SIGKILL"}},
		"hang":   {got["hang"].Kill, &KillSpec{Signal: "SIGSTOP", StopFor: 3 * time.Second}},
		"evict":  {got["evict"].Kill, &KillSpec{Grace: 30 * time.Second}},
		"node":   {got["node"].Drain, &DrainSpec{Labels: map[string]string{"pool": "a"}}},
		"scale":  {got["scale"].Scale, &ScaleSpec{Replicas: []int32{1, 5}}},
		"script": {got["script"].Scale, &ScaleSpec{Replicas: []int32{2}, Script: script}},
		"move":   {got["move"].Node, engine.NodeOther},
		"back":   {got["back"].Undo, true},
	} {
		if diff := cmp.Diff(c[1], c[0]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	o, err := got["web"].Manifest.Render("r1", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web-1", "annotations": map[string]any{"zone": "7"},
			"labels": map[string]any{"app": "web",
				"cnsbench.dev/action": "web", "cnsbench.dev/run": "r1"}},
		"spec": map[string]any{"replicas": int64(3), "strategy": map[string]any{"web": int64(1)},
			"template": map[string]any{"image": "nginx:2"}},
	}
	if diff := cmp.Diff(want, o.Object); diff != "" {
		t.Error(diff)
	}
	if b := p.Budget; b.Pods != 1+1 || b.Volumes != 1+1+12 { // one pod holds a volume
		t.Errorf("budget %+v", b)
	}
}

// TestDisruptionRights checks that the actions that disrupt running workloads add the
// rights that they need, with their names as the reason.
func TestDisruptionRights(t *testing.T) {
	p := good(t, Input{Capabilities: everything(), Seed: 1}, disruptive)
	have := map[string]string{}
	for _, r := range Rights(p) {
		key, why, _ := strings.Cut(r.String(), ": ")
		have[key] = why
	}
	for key, action := range map[string]string{
		"create pods/eviction":                            "node",
		"patch nodes":                                     "node",
		"create deployments.apps":                         "web",
		"delete deployments.apps":                         "web",
		"patch deployments/scale.apps":                    "scale",
		"patch deployments.apps":                          "back",
		"watch deployments.apps":                          "web",
		"get statefulsets/scale.apps in namespace theirs": "script",
		"list pods in namespace theirs":                   "script",
		"delete configmaps":                               "foreign",
		"create pods":                                     "crash",
		"delete pods":                                     "again",
		"delete volumesnapshots.snapshot.storage.k8s.io":  "snap",
		"create configmaps":                               "script",
	} {
		if !strings.Contains(have[key], action) {
			t.Errorf("%s: %q, want it for %s", key, have[key], action)
		}
	}
	// A scale script runs with its own ServiceAccount: the runner does not need its right.
	if why, ok := have["patch statefulsets/scale.apps in namespace theirs"]; ok {
		t.Errorf("the runner asks to scale what a script scales: %s", why)
	}
	alone := good(t, Input{Capabilities: everything(), Seed: 1},
		"spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: sc}}}]}")
	for _, r := range Rights(alone) {
		for _, no := range []string{"nodes", "eviction", "scale", "apps"} {
			if strings.Contains(r.String(), no) {
				t.Errorf("a volume asks for %s", r)
			}
		}
	}
	if !maps.Equal(p.Needs.Kinds, everything().Actions) {
		t.Logf("kinds %v", p.Needs.Kinds)
	}
}
