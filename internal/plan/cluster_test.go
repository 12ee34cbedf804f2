package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// kubernetes returns the capabilities of engine kubernetes.
func kubernetes() engine.Capabilities {
	c := local()
	c.Engine, c.Cluster, c.BuiltInDrivers = "kubernetes", true, false
	for _, f := range []string{"genericEphemeral", "static", "volumeAttributesClass"} {
		c.Features[f] = true
	}
	return c
}

// someClasses returns the classes of a cluster. StorageClasses fast and late have the
// same driver, other has a different one.
func someClasses() *Classes {
	class := func(name, driver string, change func(*storagev1.StorageClass)) storagev1.StorageClass {
		sc := storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver}
		change(&sc)
		return sc
	}
	yes, late, retain := true, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimRetain
	return &Classes{
		Storage: map[string]storagev1.StorageClass{
			"fast": class("fast", "a.example", func(sc *storagev1.StorageClass) {
				sc.AllowVolumeExpansion = &yes
				sc.Annotations = map[string]string{defaultClassKey: "true"}
			}),
			"late":  class("late", "a.example", func(sc *storagev1.StorageClass) { sc.VolumeBindingMode = &late }),
			"other": class("other", "b.example", func(sc *storagev1.StorageClass) { sc.ReclaimPolicy = &retain }),
		},
		Snapshot: map[string]engine.SnapshotClass{
			"snap-a": {Name: "snap-a", Driver: "a.example"}, "snap-a2": {Name: "snap-a2", Driver: "a.example",
				Default: true},
			"snap-b": {Name: "snap-b", Driver: "b.example", Retain: true},
		},
		GroupSnapshot: map[string]engine.SnapshotClass{"group-a": {Name: "group-a", Driver: "a.example"}},
		Attributes: map[string]storagev1.VolumeAttributesClass{"silver": {DriverName: "a.example",
			Parameters: map[string]string{"iops": "3"}}},
	}
}

// TestSharedClaimIsWarnedOf checks that pods that share a claim for a single node give a
// warning if the engine has several nodes.
func TestSharedClaimIsWarnedOf(t *testing.T) {
	data, err := os.ReadFile("../../examples/maintenance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const modes = "accessMode: ReadWrite"
	for _, tt := range []struct {
		mode string
		on   engine.Capabilities
		want string
	}{
		{"Once", everything(),
			`share claim "hold-0-shared", which one node at a time may have: they are placed on one node`},
		{"OncePod", everything(), "which is ReadWriteOncePod: only one of them will run"},
		{"Many", everything(), ""},
		{"Once", local(), ""},
	} {
		text := strings.Replace(string(data), modes+"Once", modes+tt.mode, 1)
		in := Input{Files: []File{{Name: "m.yaml", Data: []byte(text)}}, Capabilities: tt.on, Seed: 1}
		p, problems := Load(t.Context(), in)
		if p == nil {
			t.Fatal(problems)
		}
		var said []string
		for _, w := range p.Warnings {
			if strings.Contains(w.Message, "share claim") {
				said = append(said, w.String())
			}
		}
		if len(said) > 0 != (tt.want != "") || len(said) > 0 && !strings.Contains(said[0], tt.want) {
			t.Errorf("%s: %q, want %q", tt.mode, said, tt.want)
		}
	}
}

// onCluster loads a Benchmark for engine kubernetes. text follows the head and may have
// more documents. It returns the plan, and the problems and warnings as text.
func onCluster(t *testing.T, in Input, text string) (*Plan, string) {
	t.Helper()
	in.Capabilities = kubernetes()
	in.Files = []File{{Name: "x.yaml", Data: []byte(head + text)}}
	p, problems := Load(t.Context(), withObjects(in))
	var said strings.Builder
	for _, problem := range problems {
		fmt.Fprintln(&said, problem)
	}
	if p != nil {
		for _, w := range p.Warnings {
			fmt.Fprintln(&said, "warning:", w)
		}
	}
	return p, said.String()
}

func mustPlan(t *testing.T, in Input, text string) *Plan {
	t.Helper()
	p, said := onCluster(t, in, text)
	if p == nil {
		t.Fatal(said)
	}
	return p
}

// TestClusterClasses checks the problems and warnings about classes on a cluster.
func TestClusterClasses(t *testing.T) {
	const volumes = "spec:\n  actions:\n"
	tests := []struct{ name, text, want string }{
		{"misspelt", volumes + "    - {name: v, createObjSpec: {volume: {storageClass: fats}}}\n",
			`x.yaml:6:56: spec.actions[0].createObjSpec.volume.storageClass: StorageClass "fats" not found in the cluster (did you mean "fast"? Or create it)`},
		{"of a workload", volumes + "    - {name: w, createObjSpec: {workload: fio, vars: {storageClass: gp3}}}\n",
			`x.yaml:6:69: spec.actions[0].createObjSpec.vars.storageClass: StorageClass "gp3" not found in the cluster (there are: fast, late, other; or create it)`},
		{"beside, but not there", volumes + `    - {name: v, createObjSpec: {volume: {storageClass: gold}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gold}
provisioner: loopfile.csi.cnsbench.dev
`, `x.yaml:6:56: spec.actions[0].createObjSpec.volume.storageClass: StorageClass "gold" not found in the cluster (there are: fast, late, other; or kubectl apply the one beside the Benchmark, which does not count on a cluster)`},
		{"beside, and there", volumes + `    - {name: v, createObjSpec: {volume: {storageClass: fast}}}
    - {name: s, snapshotSpec: {actionName: v, snapshotClass: snap-a}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: loopfile.csi.cnsbench.dev
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: snap-a}
driver: a.example
deletionPolicy: Delete
`, `warning: x.yaml:11:18: metadata.name: the cluster's StorageClass "fast" counts, not this one: its driver is a.example, and not loopfile.csi.cnsbench.dev
warning: x.yaml:16:18: metadata.name: the cluster's VolumeSnapshotClass "snap-a" counts, not this one`},
		{"waits for a consumer", volumes + `    - {name: v, createObjSpec: {volume: {storageClass: late}}}
    - {name: ok, createObjSpec: {volume: {storageClass: late, attach: true}}}
    - {name: s, snapshotSpec: {actionName: ok}}
    - {name: r, restoreSpec: {actionName: s}}
    - {name: e, createObjSpec: {volume: {storageClass: late, genericEphemeralSpec: {}}}}
`, `x.yaml:6:56: spec.actions[0].createObjSpec.volume.storageClass: StorageClass "late" has volumeBindingMode WaitForFirstConsumer: a volume that no pod uses would never be provisioned (attach: true, or a class with volumeBindingMode: Immediate)
x.yaml:9:30: spec.actions[3].restoreSpec: StorageClass "late" has volumeBindingMode WaitForFirstConsumer: a volume that no pod uses would never be provisioned (attach: true, or a class with volumeBindingMode: Immediate)`},
		{"drivers", volumes + `    - {name: v, createObjSpec: {volume: {storageClass: fast}}}
    - {name: s, snapshotSpec: {actionName: v, snapshotClass: snap-b}}
    - {name: c, cloneSpec: {actionName: v, storageClass: other}}
    - {name: m, modifySpec: {actionName: o, volumeAttributesClass: silver}}
    - {name: o, createObjSpec: {volume: {storageClass: other}}}
    - {name: g, snapshotSpec: {actionName: o, group: true}}
`, `x.yaml:7:62: spec.actions[1].snapshotSpec.snapshotClass: VolumeSnapshotClass "snap-b" is of driver b.example, the volumes are of a.example (a snapshot is taken by the driver that has the volume)
x.yaml:8:58: spec.actions[2].cloneSpec.storageClass: StorageClass "other" is of driver b.example, the source is of a.example (a copy is made by the driver that has the source)
x.yaml:9:68: spec.actions[3].modifySpec.volumeAttributesClass: VolumeAttributesClass "silver" is of driver a.example, the volumes are of b.example (a volume is modified by the driver that has it)
x.yaml:11:31: spec.actions[5].snapshotSpec: there is no VolumeGroupSnapshotClass of the volumes' driver b.example (snapshotClass: one of its driver)`},
		{"cannot grow", volumes + `    - {name: v, createObjSpec: {volume: {storageClass: other}}}
    - {name: g, resizeSpec: {actionName: v, factor: 2}}
    - {name: st, createObjSpec: {volume: {staticSpec: {driver: d, handle: h}}}}
    - {name: gs, resizeSpec: {actionName: st, factor: 2}}
`, `x.yaml:7:29: spec.actions[1].resizeSpec: StorageClass "other" does not let its volumes grow (allowVolumeExpansion: true in the class)
x.yaml:9:30: spec.actions[3].resizeSpec: a volume without a StorageClass cannot grow`},
		{"static volumes", volumes + `    - {name: a, createObjSpec: {count: 2, volume: {staticSpec: {driver: d, handle: h}}}}
    - {name: b, rateName: r, createObjSpec: {volume: {staticSpec: {driver: d, handle: h}}}}
    - {name: c, createObjSpec: {volume: {storageClass: fast, staticSpec: {driver: d, handle: h}}}}
    - {name: d, rateName: once, createObjSpec: {volume: {staticSpec: {driver: d, handle: h}}}}
    - {name: cp, cloneSpec: {actionName: d}}
  rates:
    - {name: r, limit: 3, constantRateSpec: {interval: 1s}}
    - {name: once, limit: 1, constantRateSpec: {interval: 1s}}
`, `x.yaml:6:64: spec.actions[0].createObjSpec.volume.staticSpec: one volume that exists already cannot be made into several (an action for each volume)
x.yaml:7:67: spec.actions[1].createObjSpec.volume.staticSpec: one volume that exists already cannot be made into several (an action for each volume)
x.yaml:8:56: spec.actions[2].createObjSpec.volume.storageClass: a volume that exists already is not provisioned by a StorageClass (leave it out)
x.yaml:10:29: spec.actions[4].cloneSpec: the source is of no StorageClass, so that the new volume's must be given (storageClass)`},
		{"attributes", volumes + `    - {name: v, createObjSpec: {volume: {storageClass: fast, volumeAttributesClass: gold}}}
    - {name: m, modifySpec: {actionName: v, volumeAttributesClass: silvr}}
`, `x.yaml:6:85: spec.actions[0].createObjSpec.volume.volumeAttributesClass: VolumeAttributesClass "gold" not found in the cluster (there are: silver; or create it)
x.yaml:7:68: spec.actions[1].modifySpec.volumeAttributesClass: VolumeAttributesClass "silvr" not found (did you mean "silver"? Or put its VolumeAttributesClass beside the Benchmark, or give parameters)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := onCluster(t, Input{Classes: someClasses()}, tt.text)
			if diff := cmp.Diff(tt.want+"\n", got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestClassesThatMustBeNamed checks that a class must be given if the cluster has no
// default StorageClass, or several snapshot classes for the driver.
func TestClassesThatMustBeNamed(t *testing.T) {
	c := someClasses()
	delete(c.Storage, "fast")
	c.Snapshot["snap-a2"] = engine.SnapshotClass{Name: "snap-a2", Driver: "a.example"}
	_, got := onCluster(t, Input{Classes: c}, `spec:
  actions:
    - {name: v, createObjSpec: {volume: {}}}
    - {name: w, createObjSpec: {volume: {storageClass: late, attach: true}}}
    - {name: s, snapshotSpec: {actionName: w}}
`)
	want := `x.yaml:6:41: spec.actions[0].createObjSpec.volume: a storageClass is missing, and no StorageClass of the cluster is the default (there are: late, other; or such as storageClass: NAME)
x.yaml:8:31: spec.actions[2].snapshotSpec: snapshotClass is missing, and there is not exactly one for the volumes' driver (snapshotClass: one of snap-a, snap-a2)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const named3 = `spec:
  actions:
    - {name: v, createObjSpec: {volume: {}}}
    - {name: s, snapshotSpec: {actionName: v}}
    - {name: g, snapshotSpec: {actionName: v, group: true}}
    - {name: m, modifySpec: {actionName: v, volumeAttributesClass: silver}}
    - {name: b, modifySpec: {actionName: v, volumeAttributesClass: bronze}}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: bronze}
driverName: a.example
parameters: {iops: "1"}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: silver}
driverName: a.example
parameters: {iops: "999"}
`

// TestClusterDefaults checks that classes that are not named resolve to the cluster's
// defaults, and that a VolumeAttributesClass that the cluster does not have resolves to
// its parameters.
func TestClusterDefaults(t *testing.T) {
	p := mustPlan(t, Input{Classes: someClasses()}, named3)
	v := p.Actions[0].Volume.Render("r", 0)
	if *v.Claim.Spec.StorageClassName != "fast" {
		t.Errorf("class %v", v.Claim.Spec.StorageClassName)
	}
	if got := p.Actions[1].Snapshot.Class + " " + p.Actions[2].Snapshot.Class; got != "snap-a2 group-a" {
		t.Errorf("snapshot classes %s", got)
	}
	if a := p.Actions[3]; a.ModifyClass != "silver" || a.Modify["iops"] != "3" {
		t.Errorf("modify: class %q, %v", a.ModifyClass, a.Modify)
	}
	if a := p.Actions[4]; a.ModifyClass != "" || a.Modify["iops"] != "1" {
		t.Errorf("modify: class %q, %v", a.ModifyClass, a.Modify)
	}
}

// TestUnknownCluster checks that classes are not checked if those of the cluster are not
// known.
func TestUnknownCluster(t *testing.T) {
	p := mustPlan(t, Input{}, named3)
	v := p.Actions[0].Volume.Render("r", 0)
	if v.Claim.Spec.StorageClassName != nil {
		t.Errorf("class %v; want the cluster's default", *v.Claim.Spec.StorageClassName)
	}
	if got := p.Actions[1].Snapshot.Class + p.Actions[2].Snapshot.Class; got != "" {
		t.Errorf("snapshot classes %q", got)
	}
	if _, said := onCluster(t, Input{}, gp3); said != "" {
		t.Error(said)
	}
}

// TestListingOnCluster checks that a Benchmark for the local engine loads on a cluster if
// only the names of its classes change.
func TestListingOnCluster(t *testing.T) {
	text := `spec:
  actions:
    - {name: fio, createObjSpec: {workload: fio, vars: {storageClass: obs-r1}}}
    - {name: snapshots, rateName: r, snapshotSpec: {actionName: fio, snapshotClass: obs-csi}}
  rates: [{name: r, constantRateSpec: {interval: 60s}}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: obs-r1}
provisioner: loopfile.csi.cnsbench.dev
`
	p := mustPlan(t, Input{Classes: someClasses(), ToolsImage: "here:1",
		Set: []string{"vars.storageClass=late", "spec.actions.snapshots.snapshotSpec.snapshotClass=snap-a"}}, text)
	out, err := Render(p, "r")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/cluster.golden", string(out))
}

// TestVolumeKinds checks generic ephemeral and static volumes, and the features that
// they require.
func TestVolumeKinds(t *testing.T) {
	p := mustPlan(t, Input{Classes: someClasses()}, `spec:
  actions:
    - {name: e, createObjSpec: {volume: {genericEphemeralSpec: {}, volumeAttributesClass: silver}}}
    - {name: s, createObjSpec: {volume: {accessModes: [ReadWriteMany], volumeMode: Block, staticSpec: {driver: d, handle: h, attributes: {a: b}}}}}
`)
	e := p.Actions[0].Volume.Render("r", 0)
	if !e.Ephemeral || !e.Attach || *e.Claim.Spec.VolumeAttributesClassName != "silver" {
		t.Errorf("%+v", e)
	}
	s := p.Actions[1].Volume.Render("r", 0)
	want := &engine.StaticVolume{Driver: "d", Handle: "h", Attributes: map[string]string{"a": "b"}}
	if diff := cmp.Diff(want, s.Static); diff != "" || *s.Claim.Spec.StorageClassName != "" {
		t.Errorf("%s%+v", diff, s.Claim.Spec)
	}
	features := map[string]bool{"genericEphemeral": true, "static": true, "rwx": true, "block": true,
		"volumeAttributesClass": true}
	if diff := cmp.Diff(features, p.Needs.Features); diff != "" {
		t.Error(diff)
	}
}

// TestUnwrapped checks the warning about a pod without a container command, in which no
// agent can run.
func TestUnwrapped(t *testing.T) {
	for command, warns := range map[string]bool{"": true, ", command: [x]": false} {
		_, said := onCluster(t, Input{Classes: someClasses()}, `spec:
  actions: [{name: w, createObjSpec: {workload: w}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: w, labels: {type: workload}}
data:
  pod.yaml: "{apiVersion: v1, kind: Pod, metadata: {name: w}, spec: {containers: [{name: c, image: i`+command+`}]}}"
`)
		if got := strings.Contains(said, `warning: x.yaml:5:49: spec.actions[0].createObjSpec.workload: no container of pod "w-0-w" gives its command`); got != warns {
			t.Errorf("command %q: %s", command, said)
		}
	}
}

const podEntry = `apiVersion: v1
kind: Pod
metadata: {name: %s, annotations: {outputFile: /output/x, parser: %s}}
spec:
  containers: [{name: c, image: x, command: [a], env: [{name: P, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]
`

func libraryMap(name, pod, parser string) corev1.ConfigMap {
	return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": "workload"}},
		Data: map[string]string{"pod.yaml": fmt.Sprintf(podEntry, pod, parser), "read.sh": "#!/bin/cat"}}
}

// TestConfigMapLibraries checks that the first source in spec.library with a name takes
// precedence, and that invalid entries and unreadable namespaces are reported.
func TestConfigMapLibraries(t *testing.T) {
	asked := []string{}
	in := Input{ConfigMaps: func(_ context.Context, ns string) ([]corev1.ConfigMap, error) {
		asked = append(asked, ns)
		other := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "not-one"}}
		return map[string][]corev1.ConfigMap{
			"first": {libraryMap("mine", "one", "read.sh"), other,
				{ObjectMeta: metav1.ObjectMeta{Name: "empty", Labels: map[string]string{"type": "workload"}}}},
			"second": {libraryMap("mine", "two", "fio"), libraryMap("fio", "two", "fio")},
		}[ns], nil
	}}
	const text = `spec:
  library: [{configMapSpec: {namespace: first}}, {configMapSpec: {namespace: second}}]
  actions:
    - {name: a, createObjSpec: {workload: mine}}
    - {name: b, createObjSpec: {workload: fio}}
  slos: [{name: s, expr: 'p99(a.whatever) < duration("1s")'}]
`
	p, said := onCluster(t, in, text)
	want := `warning: x.yaml:5:41: spec.library[0].configMapSpec.namespace: ConfigMap "empty" has no data: its keys are the workload's manifests
warning: x.yaml:7:43: spec.actions[0].createObjSpec.workload: workload "mine" refers to Secret "s", which is not of its manifests: it must be in the run's namespace
warning: x.yaml:8:43: spec.actions[1].createObjSpec.workload: workload "fio" refers to Secret "s", which is not of its manifests: it must be in the run's namespace
`
	if diff := cmp.Diff(want, said); diff != "" {
		t.Fatal(diff)
	}
	var pods []string
	for _, a := range p.Actions {
		w, err := a.Workload.Render("r", 0)
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, w.Pods[0].Name)
	}
	if diff := cmp.Diff([]string{"a-0-one", "b-0-two"}, pods); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Output{{Container: "c", File: "/output/x", Parser: "read.sh", Script: "#!/bin/cat",
		Image: "x"}}, p.Actions[0].Workload.Outputs); diff != "" {
		t.Error(diff)
	}

	in.ConfigMaps = func(context.Context, string) ([]corev1.ConfigMap, error) { return nil, errors.New("forbidden") }
	_, said = onCluster(t, in, "spec:\n  library: [{configMapSpec: {namespace: first}}]\n  actions: [{name: a, createObjSpec: {workload: fio, vars: {storageClass: x}}}]\n")
	want = "x.yaml:5:41: spec.library[0].configMapSpec.namespace: the library of namespace first: forbidden (its ConfigMaps with label type: workload must be readable)\n"
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	_, said = onCluster(t, Input{}, "spec:\n  library: [{configMapSpec: {namespace: first}}]\n  actions: [{name: a, createObjSpec: {workload: mine}}]\n")
	want = "x.yaml:6:49: spec.actions[0].createObjSpec.workload: workload \"mine\" not found in the library " +
		"(there are: db-bench, dbench, dd, etcd, exit, filebench, fio, fio-iolog, fio-jobfile, fio-mix, idle, " +
		"integrity, integrity-block, kernels, megahit, nginx-wrk, object, pgbench, redis-benchmark, " +
		"sysbench-fileio, sysbench-oltp, write-once, ycsb; or it is among the ConfigMaps of namespace first)\n"
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownParser checks the problem for a workload with an unknown parser.
func TestUnknownParser(t *testing.T) {
	cm := libraryMap("mine", "p", "foi")
	for name, in := range map[string]Input{"kubernetes": {}, "local": {Capabilities: local()}} {
		t.Run(name, func(t *testing.T) {
			text := head + "spec:\n  actions: [{name: a, createObjSpec: {workload: mine}}]\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, labels: {type: workload}}\ndata:\n  pod.yaml: |\n    " +
				strings.ReplaceAll(strings.Replace(cm.Data["pod.yaml"], "valueFrom: {secretKeyRef: {name: s, key: k}}",
					"value: x", 1), "\n", "\n    ")
			if in.Capabilities.Engine == "" {
				in.Capabilities = kubernetes()
			}
			in.Files = []File{{Name: "x.yaml", Data: []byte(text)}}
			_, problems := Load(t.Context(), withObjects(in))
			want := `x.yaml:5:49: spec.actions[0].createObjSpec.workload: parser "foi" not found ` +
				`(built in: db_bench, dbench, etcd, filebench, fio, integrity, megahit, object, pgbench, redis-benchmark, ` +
				`sysbench, sysbench-oltp, wrk, ycsb; else the name of a script of the entry, or none: the output is kept raw)`
			if len(problems) != 1 || problems[0].String() != want {
				t.Errorf("got  %v\nwant %s", problems, want)
			}
		})
	}
}

// TestCanaryWithoutAgent checks that a canary is rejected if no pod of the workload can
// run an agent.
func TestCanaryWithoutAgent(t *testing.T) {
	_, got := onCluster(t, Input{}, `spec:
  actions: [{name: a, createObjSpec: {workload: mine, canary: {}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: mine, labels: {type: workload}}
data:
  all.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec: {resources: {requests: {storage: 1Gi}}}
    ---
    apiVersion: v1
    kind: Pod
    metadata: {name: p}
    spec: {containers: [{name: c, image: x, volumeMounts: [{name: d, mountPath: /d}]}], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}
`)
	want := "x.yaml:5:63: spec.actions[0].createObjSpec.canary: no container of workload \"mine\" has a command, so no agent can run the canary (give the command of the container that mounts the volume)\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRights checks the rights of plans with several kinds of action.
func TestRights(t *testing.T) {
	// base returns the rights that every run needs. Rights of actions to ConfigMaps are
	// merged into them: configs is the additional reason.
	base := func(configs string) []string {
		configs += "to measure how late watches are"
		return []string{
			"list pods: to see when what happens", "watch pods: to see when what happens",
			"list persistentvolumeclaims: to see when what happens", "watch persistentvolumeclaims: to see when what happens",
			"list persistentvolumes: to see when what happens", "watch persistentvolumes: to see when what happens",
			"list volumeattachments.storage.k8s.io: to see when what happens", "watch volumeattachments.storage.k8s.io: to see when what happens",
			"list events: to see causes of failures and retries", "watch events: to see causes of failures and retries",
			"list configmaps: " + configs, "watch configmaps: to measure how late watches are", "create configmaps: " + configs,
			"patch configmaps: to measure how late watches are", "delete configmaps: " + configs,
			"get leases.coordination.k8s.io: to keep other runs off its drivers meanwhile", "list leases.coordination.k8s.io: to keep other runs off its drivers meanwhile",
			"create leases.coordination.k8s.io: to keep other runs off its drivers meanwhile", "patch leases.coordination.k8s.io: to keep other runs off its drivers meanwhile",
			"delete leases.coordination.k8s.io: to keep other runs off its drivers meanwhile",
			"list storageclasses.storage.k8s.io: to check the names of classes",
		}
	}
	tests := []struct {
		name, configs, actions string
		want                   []string
	}{
		{"unattached volumes", "", "    - {name: v, createObjSpec: {volume: {storageClass: fast}}}\n    - {name: g, resizeSpec: {actionName: v, factor: 2}}\n", []string{
			"create persistentvolumeclaims: to make the volumes of v", "delete persistentvolumeclaims: to make the volumes of v",
			"patch persistentvolumeclaims: to grow the volumes of g"}},
		{"workload and snapshots", "for the configuration of fio; ", "    - {name: fio, createObjSpec: {workload: fio, vars: {storageClass: other}}}\n    - {name: s, snapshotSpec: {actionName: fio}}\n    - {name: r, restoreSpec: {actionName: s, attach: true}}\n", []string{
			"create persistentvolumeclaims: to make the volumes of fio, r", "delete persistentvolumeclaims: to make the volumes of fio, r",
			"patch persistentvolumes: to remove the volumes of fio, r",
			"create pods: to hold the volumes of r; to run fio", "delete pods: to hold the volumes of r; to run fio",
			"create secrets: for the tokens of the agents in the pods of fio, r", "delete secrets: for the tokens of the agents in the pods of fio, r",
			"list secrets: for the tokens of the agents in the pods of fio, r",
			"list volumesnapshots.snapshot.storage.k8s.io: to see when the snapshots are taken of s", "watch volumesnapshots.snapshot.storage.k8s.io: to see when the snapshots are taken of s",
			"delete volumesnapshots.snapshot.storage.k8s.io: to remove the snapshots of s",
			"list volumesnapshotcontents.snapshot.storage.k8s.io: to see when the snapshots are taken of s", "watch volumesnapshotcontents.snapshot.storage.k8s.io: to see when the snapshots are taken of s",
			"patch volumesnapshotcontents.snapshot.storage.k8s.io: to remove the snapshots of s",
			"delete volumesnapshotcontents.snapshot.storage.k8s.io: to remove the snapshots of s",
			"create volumesnapshots.snapshot.storage.k8s.io: to take the snapshots of s",
			"list volumesnapshotclasses.snapshot.storage.k8s.io: to check the class of s"}},
		{"the rest", "", `    - {name: e, createObjSpec: {volume: {storageClass: fast, genericEphemeralSpec: {}}}}
    - {name: st, createObjSpec: {volume: {staticSpec: {driver: a.example, handle: h}}}}
    - {name: g, snapshotSpec: {actionName: st, group: true, snapshotClass: group-a}}
    - {name: m, modifySpec: {actionName: e, volumeAttributesClass: silver}}
    - {name: n, modifySpec: {actionName: e, parameters: {a: b}}}
  library: [{configMapSpec: {namespace: lib}}]
`, []string{
			"create pods: to hold the volumes of e", "delete pods: to hold the volumes of e",
			"create secrets: for the tokens of the agents in the pods of e", "delete secrets: for the tokens of the agents in the pods of e", "list secrets: for the tokens of the agents in the pods of e",
			"create persistentvolumeclaims: to make the volumes of st", "delete persistentvolumeclaims: to make the volumes of st",
			"create persistentvolumes: to take in the existing volume of st", "delete persistentvolumes: to take in the existing volume of st",
			"list volumesnapshots.snapshot.storage.k8s.io: to see when the snapshots are taken of g", "watch volumesnapshots.snapshot.storage.k8s.io: to see when the snapshots are taken of g",
			"delete volumesnapshots.snapshot.storage.k8s.io: to remove the snapshots of g",
			"list volumesnapshotcontents.snapshot.storage.k8s.io: to see when the snapshots are taken of g", "watch volumesnapshotcontents.snapshot.storage.k8s.io: to see when the snapshots are taken of g",
			"create volumegroupsnapshots.groupsnapshot.storage.k8s.io: to take the group snapshots of g", "delete volumegroupsnapshots.groupsnapshot.storage.k8s.io: to take the group snapshots of g",
			"list volumegroupsnapshots.groupsnapshot.storage.k8s.io: to take the group snapshots of g", "watch volumegroupsnapshots.groupsnapshot.storage.k8s.io: to take the group snapshots of g",
			"list volumegroupsnapshotclasses.groupsnapshot.storage.k8s.io: to check the class of g",
			"patch persistentvolumeclaims: to give another class to the volumes of m, n; to label the volumes of one group for g",
			"list volumeattributesclasses.storage.k8s.io: to check the class of m; to make a class of the parameters of n",
			"create volumeattributesclasses.storage.k8s.io: to make a class of the parameters of n", "delete volumeattributesclasses.storage.k8s.io: to make a class of the parameters of n",
			"list configmaps in namespace lib: to read the library there"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustPlan(t, Input{Classes: someClasses(),
				ConfigMaps: func(context.Context, string) ([]corev1.ConfigMap, error) {
					return nil,
						nil
				}}, "spec:\n  actions:\n"+tt.actions)
			var got []string
			clusterScoped := map[string]bool{"persistentvolumes": true, "volumeattachments": true,
				"storageclasses": true, "volumesnapshotcontents": true,
				"volumesnapshotclasses": true, "volumegroupsnapshotclasses": true, "volumeattributesclasses": true}
			for _, r := range Rights(p) {
				got = append(got, r.String())
				if r.ClusterScoped != clusterScoped[r.Resource] {
					t.Errorf("%s: of the cluster: %v", r, r.ClusterScoped)
				}
			}
			if diff := cmp.Diff(append(base(tt.configs), tt.want...), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestKindsOnCluster checks that a plan for a cluster needs the kinds of its actions.
func TestKindsOnCluster(t *testing.T) {
	p := mustPlan(t, Input{Classes: someClasses()}, `spec:
  actions:
    - {name: v, createObjSpec: {volume: {}}}
    - {name: s, snapshotSpec: {actionName: v}}
    - {name: r, restoreSpec: {actionName: s}}
    - {name: c, cloneSpec: {actionName: v}}
    - {name: g, resizeSpec: {actionName: v, increaseBy: 1Gi}}
    - {name: d, deleteSpec: {actionName: r}}
`)
	want := map[op.Kind]bool{op.Create: true, op.Snapshot: true, op.Restore: true, op.Clone: true, op.Resize: true,
		op.Delete: true}
	if diff := cmp.Diff(want, p.Needs.Kinds); diff != "" {
		t.Error(diff)
	}
}

// TestLibraryIsRestricted checks that the pods of the library meet the Pod Security
// Standard "restricted".
func TestLibraryIsRestricted(t *testing.T) {
	for _, name := range []string{"db-bench", "dbench", "dd", "etcd", "fio", "fio-mix", "idle", "integrity",
		"integrity-block", "kernels", "megahit", "nginx-wrk", "pgbench", "redis-benchmark", "sysbench-fileio",
		"sysbench-oltp", "write-once", "ycsb"} {
		p := mustPlan(t, Input{},
			fmt.Sprintf("spec: {actions: [{name: a, createObjSpec: {workload: %s, vars: {storageClass: x}}}]}\n", name))
		w, err := p.Actions[0].Workload.Render("r", 0)
		if err != nil {
			t.Fatal(err)
		}
		s := w.Pods[0].Spec
		if c := s.SecurityContext; c == nil || !*c.RunAsNonRoot || *c.RunAsUser == 0 || c.FSGroup == nil ||
			c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: %+v", name, s.SecurityContext)
		}
		for _, c := range append(s.InitContainers, s.Containers...) {
			if sc := c.SecurityContext; sc == nil || *sc.AllowPrivilegeEscalation ||
				!cmp.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("%s/%s: %+v", name, c.Name, sc)
			}
		}
	}
}

// TestBlockVolumesOfNull checks that null has raw block volumes on one machine only: no container gets a device of its
// files, and a kubelet cannot take them away again.
func TestBlockVolumesOfNull(t *testing.T) {
	const text = "spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: \"null\", volumeMode: Block}}}]}\n"
	in := Input{Classes: &Classes{Storage: map[string]storagev1.StorageClass{
		"null": {ObjectMeta: metav1.ObjectMeta{Name: "null"}, Provisioner: "null" + driverSuffix}}}}
	p, said := onCluster(t, in, text)
	want := "createObjSpec.volume.volumeMode: null has no raw block volumes on a cluster (loopfile can do it)"
	if p != nil || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	if p, problems := load(t, Input{Files: []File{{Name: "x.yaml", Data: []byte(head + text)}}}); p == nil {
		t.Errorf("on one machine: %v", problems)
	}
}
