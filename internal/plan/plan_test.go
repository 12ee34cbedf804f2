package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/workload"
)

const head = "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: x}\n"

// good loads a Benchmark and fails the test if there are problems.
func good(t *testing.T, in Input, text string) *Plan {
	t.Helper()
	in.Files = []File{{Name: "x.yaml", Data: []byte(head + text)}}
	p, problems := load(t, in)
	for _, problem := range problems {
		t.Error(problem)
	}
	if p == nil {
		t.FailNow()
	}
	return p
}

// TestDefaults checks the defaults of the schema.
func TestDefaults(t *testing.T) {
	p := good(t, Input{Seed: 9}, `spec:
  actions:
    - {name: v, createObjSpec: {volume: {storageClass: loopfile}}}
    - {name: w, createObjSpec: {workload: fio, vars: {storageClass: hostdir}, canary: {}}}
    - {name: s, rateName: r, snapshotSpec: {actionName: v}}
    - {name: re, rateName: r, restoreSpec: {actionName: s}}
    - {name: c, rateName: p, cloneSpec: {actionName: v}}
    - {name: g, rateName: b, resizeSpec: {actionName: v, factor: 2}}
    - {name: m, rateName: cc, modifySpec: {actionName: v, parameters: {a: b}}}
    - {name: d, startAfter: 5s, deleteSpec: {actionName: v}}
  rates:
    - {name: r, constantRateSpec: {perSecond: 0.5}}
    - {name: p, poissonRateSpec: {perSecond: 3}}
    - {name: b, burstRateSpec: {size: 2, interval: 1s}}
    - {name: cc, concurrencySpec: {parallelism: 2}}
  outputs:
    - {name: f, fileSpec: {path: x}}
`)
	out, err := Render(p, "r1")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/defaults.golden", string(out))
}

// TestRatesAreResolved checks the resolution of spec.rates and of an action's startAfter.
func TestRatesAreResolved(t *testing.T) {
	p := good(t, Input{}, `spec:
  runtime: 1m
  actions:
    - {name: v, rateName: a, createObjSpec: {volume: {storageClass: hostdir}}}
    - {name: w, rateName: b, createObjSpec: {volume: {storageClass: hostdir}}}
    - {name: x, rateName: c, createObjSpec: {workload: write-once, vars: {storageClass: hostdir}}}
    - {name: y, startAfter: 3s, createObjSpec: {volume: {storageClass: hostdir}}}
    - {name: z, rateName: d, createObjSpec: {volume: {storageClass: hostdir}}}
  rates:
    - {name: a, startAfter: 2s, duration: 10s, limit: 4, maxInFlight: 3, onSaturation: queue, constantRateSpec: {interval: 2s}}
    - {name: b, burstRateSpec: {size: 5, interval: 2s}}
    - {name: c, concurrencySpec: {parallelism: 7, until: ended}}
    - name: d
      triggerRateSpec: {when: throughput(x.write) > 1e6, reset: throughput(x.write) < 1e5, for: 2s, cooldown: 4s}
`)
	want := []Rate{
		{Name: "a", Schedule: schedule.Constant{Interval: 2 * time.Second}, StartAfter: 2 * time.Second,
			Duration: 10 * time.Second, Limit: 4, MaxInFlight: 3, Queue: true},
		{Name: "b", Schedule: schedule.Burst{Size: 5, Interval: 2 * time.Second}, MaxInFlight: 10000},
		{Name: "c", Parallelism: 7, UntilEnded: true, MaxInFlight: 10000},
		{Name: "d", MaxInFlight: 10000, Condition: &Condition{When: "throughput(x.write) > 1e6",
			Reset: "throughput(x.write) < 1e5", For: 2 * time.Second, Cooldown: 4 * time.Second, Interval: time.Second}},
		{Name: "y.startAfter", Schedule: schedule.Constant{Interval: 3 * time.Second}, Limit: 1},
	}
	if diff := cmp.Diff(want, p.Rates); diff != "" {
		t.Error(diff)
	}
	if p.Actions[3].Rate != "y.startAfter" {
		t.Errorf("rate %q", p.Actions[3].Rate)
	}
}

// TestTargets checks the resolution of targets by action, volume name and labels.
func TestTargets(t *testing.T) {
	p := good(t, Input{}, `spec:
  actions:
    - {name: fio, createObjSpec: {workload: fio, labels: {tier: gold}, vars: {storageClass: loopfile-xfs}}}
    - {name: v, createObjSpec: {volume: {storageClass: btrfs}}}
    - {name: by-action, snapshotSpec: {actionName: fio}}
    - {name: by-claim, snapshotSpec: {volumeName: data}}
    - {name: by-volume, resizeSpec: {volumeName: v, increaseBy: 1Gi}}
    - {name: by-label, modifySpec: {labels: {tier: gold}, parameters: {iops: "3"}, select: newest}}
    - {name: group, snapshotSpec: {actionName: fio, group: true}}
    - {name: back, restoreSpec: {actionName: group, size: 2Gi}}
    - {name: gone, deleteSpec: {actionName: group}}
    - {name: stop, deleteSpec: {actionName: fio}}
`)
	want := map[string]Target{
		"by-action": {Kind: engine.VolumeObject, Action: "fio", Select: SelectAll},
		"by-claim": {Kind: engine.VolumeObject, Labels: map[string]string{"cnsbench.dev/volume": "data"},
			Select: SelectAll},
		"by-volume": {Kind: engine.VolumeObject, Volume: "v", Select: SelectAll},
		"by-label":  {Kind: engine.VolumeObject, Labels: map[string]string{"tier": "gold"}, Select: SelectNewest},
		"group":     {Kind: engine.VolumeObject, Action: "fio", Select: SelectAll},
		"back":      {Kind: engine.SnapshotObject, Action: "group", Select: SelectNewest},
		"gone":      {Kind: engine.GroupSnapshotObject, Action: "group", Select: SelectOldest},
		"stop":      {Kind: engine.WorkloadObject, Action: "fio", Select: SelectOldest},
	}
	got := map[string]Target{}
	for _, a := range p.Actions {
		if a.Target != nil {
			got[a.Name] = *a.Target
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if class := p.Actions[2].Snapshot.Class; p.SnapshotClasses[class].Driver != "loopfile.csi.cnsbench.dev" {
		t.Errorf("snapshots of loopfile-xfs are of class %q, %+v", class, p.SnapshotClasses[class])
	}
	v := p.Actions[7].Volume.Render("r1", 4)
	if *v.Claim.Spec.StorageClassName != "loopfile-xfs" || v.Claim.Name != "back-4" ||
		v.Claim.Spec.Resources.Requests.Storage().String() != "2Gi" {
		t.Errorf("restored volume %+v", v.Claim)
	}
	if diff := cmp.Diff(map[string]bool{"groupSnapshot": true}, p.Needs.Features); diff != "" {
		t.Error(diff)
	}
	if !p.Needs.Kinds[op.Restore] || p.Needs.Kinds[op.Clone] {
		t.Errorf("kinds %v", p.Needs.Kinds)
	}
}

func inHostdir(volumes, bytes int64) map[string]ClassBudget {
	return map[string]ClassBudget{"hostdir": {volumes, bytes}}
}

// TestBudget checks the sums of the budget and the contributions of open rates.
func TestBudget(t *testing.T) {
	tests := []struct {
		name, spec string
		want       Budget
	}{
		{"once", `spec:
  actions: [{name: fio, createObjSpec: {workload: fio, count: 3, vars: {storageClass: hostdir}}}]
`, Budget{Volumes: 3, Pods: 3, Bytes: 3 << 30, Ops: 3, Classes: inHostdir(3, 3<<30)}},
		{"of two classes", `spec:
  actions:
    - {name: fio, createObjSpec: {workload: fio, count: 2, matrix: {storageClass: [hostdir, loopfile]}}}
    - {name: b, cloneSpec: {actionName: fio, storageClass: loopfile, size: 2Gi}}
`, Budget{Volumes: 5, Pods: 4, Bytes: 6 << 30, Ops: 5,
			Classes: map[string]ClassBudget{"hostdir": {2, 2 << 30}, "loopfile": {3, 4 << 30}}}},
		{"snapshots within the runtime", `spec:
  runtime: 31s
  actions:
    - {name: fio, createObjSpec: {workload: fio, count: 3, vars: {storageClass: hostdir}}}
    - {name: s, rateName: r, snapshotSpec: {actionName: fio}}
  rates: [{name: r, startAfter: 1s, constantRateSpec: {perSecond: 0.1}}]
`, Budget{Volumes: 3, Pods: 3, Bytes: 3 << 30, Ops: 3 + 9, Snapshots: 9, Classes: inHostdir(3, 3<<30)}},
		{"an open rate is listed", `spec:
  actions:
    - {name: fio, createObjSpec: {workload: fio, vars: {storageClass: hostdir}}}
    - {name: s, rateName: r, snapshotSpec: {actionName: fio}}
    - {name: c, rateName: k, cloneSpec: {actionName: fio}}
  rates:
    - {name: r, constantRateSpec: {interval: 5s}}
    - {name: k, concurrencySpec: {parallelism: 4}}
`, Budget{Volumes: 1, Pods: 1, Bytes: 1 << 30, Ops: 1, Classes: inHostdir(1, 1<<30),
			Open: []string{"r: 0.2 snapshots per second until the workloads end",
				"k: as many volumes as 4 operations at once can make until the workloads end"}}},
		{"what acts on an open rate's", `spec:
  runtime: 10s
  actions:
    - {name: v, rateName: k, createObjSpec: {count: 2, volume: {storageClass: hostdir, size: 10Mi}}}
    - {name: s, rateName: r, snapshotSpec: {actionName: v}}
    - {name: b, rateName: r, restoreSpec: {actionName: s}}
    - {name: g, rateName: r, resizeSpec: {actionName: v, factor: 2, select: oldest}}
  rates:
    - {name: k, concurrencySpec: {parallelism: 4}}
    - {name: r, constantRateSpec: {interval: 2s}}
`, Budget{Volumes: 5, Bytes: 50 << 20, Ops: 10, Classes: inHostdir(5, 50<<20),
			Open: []string{"k: as many volumes as 4 operations at once can make until 10s after the barrier",
				"r: ever more snapshots per second until 10s after the barrier"}}},
		{"several things at an open rate", `spec:
  actions:
    - {name: fio, createObjSpec: {workload: fio, count: 3, vars: {storageClass: hostdir}}}
    - {name: s, rateName: r, snapshotSpec: {actionName: fio}}
    - {name: w, rateName: r, createObjSpec: {workload: write-once, vars: {storageClass: hostdir}}}
    - {name: d, rateName: r, deleteSpec: {actionName: s}}
  rates: [{name: r, constantRateSpec: {interval: 5s}}]
`, Budget{Volumes: 3, Pods: 3, Bytes: 3 << 30, Ops: 3, Classes: inHostdir(3, 3<<30),
			Open: []string{"r: 0.2 deletions, 0.2 pods, 0.6 snapshots and 0.2 volumes per second until the workloads end"}}},
		{"limits, restores and deletes", `spec:
  actions:
    - {name: v, rateName: r, createObjSpec: {count: 2, volume: {storageClass: loopfile, size: 10Mi}}}
    - {name: g, rateName: r, snapshotSpec: {actionName: v, group: true}}
    - {name: b, rateName: r, restoreSpec: {actionName: g}}
    - {name: d, rateName: r, deleteSpec: {actionName: b}}
  rates: [{name: r, limit: 5, constantRateSpec: {interval: 1s}}]
`, Budget{Volumes: 10 + 5, Snapshots: 50, Bytes: 15 * 10 << 20, Ops: 10 + 5 + 5 + 5,
			Classes: map[string]ClassBudget{"loopfile": {15, 15 * 10 << 20}}}},
		{"no overflow", `spec:
  runtime: 100000h
  actions: [{name: v, rateName: r, createObjSpec: {count: 10000, volume: {storageClass: hostdir, size: 1Pi}}}]
  rates: [{name: r, poissonRateSpec: {perSecond: 1000000}}]
`, Budget{Volumes: 3600000000000000000, Bytes: 1<<63 - 1, Ops: 3600000000000000000,
			Classes: inHostdir(3600000000000000000, 1<<63-1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := good(t, Input{}, tt.spec)
			b := p.Budget
			if tt.name == "limits, restores and deletes" && b.Open != nil {
				t.Errorf("open %v", b.Open)
			}
			if diff := cmp.Diff(tt.want, b); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBudgetOfHolders checks that the pods that hold attached volumes on a cluster are counted.
func TestBudgetOfHolders(t *testing.T) {
	const spec = `spec:
  actions:
    - {name: v, createObjSpec: {count: 20, volume: {storageClass: gp3, size: 1Mi, attach: true}}}
    - {name: s, snapshotSpec: {actionName: v, snapshotClass: snap}}
    - {name: r, restoreSpec: {actionName: s, attach: true}}
    - {name: c, cloneSpec: {actionName: v}}
`
	for cluster, want := range map[bool]int64{true: 20 + 1, false: 0} {
		in := Input{Endpoints: map[string]string{"": "/s"}, Capabilities: everything()}
		in.Capabilities.Cluster = cluster
		if got := good(t, in, spec).Budget; got.Pods != want || got.Volumes != 20+1+1 {
			t.Errorf("cluster %v: %+v, want %d pods, 22 volumes", cluster, got, want)
		}
	}
}

const gp3 = `spec:
  actions:
    - {name: v, createObjSpec: {volume: {storageClass: gp3}}}
    - {name: s, snapshotSpec: {actionName: v, snapshotClass: snap}}
`

// TestAnyDriver checks that names of classes are not checked if one driver's name is not known.
func TestAnyDriver(t *testing.T) {
	p := good(t, Input{Endpoints: map[string]string{"": "/s"}}, gp3)
	if _, ok := p.StorageClasses["gp3"]; !ok || p.SnapshotClasses["snap"].Name != "snap" {
		t.Errorf("classes %v, %v", p.StorageClasses, p.SnapshotClasses)
	}
}

// TestSubstituteDriver checks that a substitute replaces the driver of StorageClasses and
// snapshot classes, with one warning.
func TestSubstituteDriver(t *testing.T) {
	p := good(t, Input{Substitute: map[string]string{"loopfile.csi.cnsbench.dev": "hostdir.csi.cnsbench.dev"}, SubstituteReason: "loop devices need root"}, `spec:
  actions:
    - {name: v, createObjSpec: {volume: {storageClass: loopfile}}}
    - {name: w, createObjSpec: {volume: {storageClass: loopfile-xfs}}}
    - {name: s, snapshotSpec: {actionName: v}}
`)
	if got := p.StorageClasses["loopfile"].Provisioner; got != "hostdir.csi.cnsbench.dev" {
		t.Errorf("provisioner %s", got)
	}
	if got := p.SnapshotClasses[p.Actions[2].Snapshot.Class].Driver; got != "hostdir.csi.cnsbench.dev" {
		t.Errorf("snapshots of class %s by %s", p.Actions[2].Snapshot.Class, got)
	}
	want := "x.yaml:6:56: spec.actions[0].createObjSpec.volume.storageClass: hostdir stands in for loopfile: loop devices need root"
	if len(p.Warnings) != 1 || p.Warnings[0].String() != want {
		t.Errorf("warnings %v\nwant %s", p.Warnings, want)
	}
}

// TestSubstituteLacks checks that a feature that the substitute lacks is reported.
func TestSubstituteLacks(t *testing.T) {
	_, problems := load(t, Input{Substitute: map[string]string{"loopfile.csi.cnsbench.dev": "hostdir.csi.cnsbench.dev"},
		SubstituteReason: "loop devices need root",
		Files:            []File{{Name: "x.yaml", Data: []byte(head + "spec:\n  actions:\n    - {name: v, createObjSpec: {volume: {storageClass: loopfile, volumeMode: Block}}}\n")}}})
	want := "x.yaml:6:78: spec.actions[0].createObjSpec.volume.volumeMode: hostdir has no raw block volumes (it stands in for loopfile: loop devices need root)"
	if len(problems) != 1 || problems[0].String() != want {
		t.Errorf("got  %v\nwant %s", problems, want)
	}
}

// TestWarnings checks the warnings about questionable settings.
func TestWarnings(t *testing.T) {
	p := good(t, Input{}, `spec:
  runtime: 10s
  actions:
    - {name: v, outputs: {outputName: es}, rateName: late, createObjSpec: {volume: {storageClass: hostdir, size: 100}}}
  rates:
    - {name: late, startAfter: 5s, constantRateSpec: {interval: 5s}}
    - {name: unused, constantRateSpec: {interval: 5s}}
  outputs:
    - {name: es, httpPostSpec: {url: "http://es:9200/fio/_doc/"}}
    - {name: here, fileSpec: {path: here.jsonl}}
`)
	var got []string
	for _, w := range p.Warnings {
		got = append(got, w.String())
	}
	want := []string{
		`x.yaml:7:114: spec.actions[0].createObjSpec.volume.size: a size of 100 is less than 1Mi (Ki, Mi and Gi are the units; a bare number is bytes)`,
		`x.yaml:9:7: spec.rates[0]: the first trigger is due after 10s, but the run ends after 10s`,
		`x.yaml:10:14: spec.rates[1].name: no action uses rate "unused" (rateName of an action would use it)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestFolderLibrary checks that entries in a folder of spec.library override built-in
// entries, and that --set can change the folder.
func TestFolderLibrary(t *testing.T) {
	mine := fstest.MapFS{"fio/pod.yaml": {Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, command: [{a: b}]}]}\n")}}
	text := "spec:\n  library: [{folderSpec: {path: mine}}]\n  actions: [{name: a, createObjSpec: {workload: fio}}]\n"
	folder := func(path string) (fs.FS, error) {
		if path != "mine" {
			return nil, errors.New("no such folder")
		}
		return mine, nil
	}
	in := Input{Folder: folder, Files: []File{{Name: "x.yaml", Data: []byte(head + text)}}}
	_, problems := load(t, in)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "cannot unmarshal object") {
		t.Errorf("a command that is no list of texts: %v", problems)
	}
	mine["fio/pod.yaml"].Data = []byte(strings.Replace(string(mine["fio/pod.yaml"].Data), "{a: b}", "a", 1))
	p := good(t, Input{Folder: folder}, text)
	w, err := p.Actions[0].Workload.Render("r", 0)
	if err != nil || w.Pods[0].Name != "a-0-p" {
		t.Errorf("the folder does not win over the built-in entry: %v, %v", w.Pods, err)
	}
	p = good(t, Input{Folder: folder, Set: []string{"spec.library[0].folderSpec.path=mine"}},
		strings.Replace(text, "path: mine", "path: other", 1))
	if w, err := p.Actions[0].Workload.Render("r", 0); err != nil || w.Pods[0].Name != "a-0-p" {
		t.Errorf("the folder of the flag is not the one that is read: %v, %v", w.Pods, err)
	}
}

// TestSeveralFiles checks that a second file can have the classes, and that the plan is
// deterministic.
func TestSeveralFiles(t *testing.T) {
	in := Input{Files: []File{{Name: "a.yaml", Data: []byte(head + gp3)}, {Name: "classes.yaml", Data: []byte(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3}
provisioner: btrfs.csi.cnsbench.dev
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: snap}
driver: btrfs.csi.cnsbench.dev
deletionPolicy: Retain
`)}}}
	var texts []string
	for range 2 {
		p, problems := load(t, in)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if !p.SnapshotClasses["snap"].Retain {
			t.Error("deletionPolicy is lost")
		}
		out, err := Render(p, "r")
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(out))
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Error(diff)
	}
}

// TestRenderedAgain checks that the output of Render loads and gives the same plan.
func TestRenderedAgain(t *testing.T) {
	mine := `spec:
  seed: 3
  actions:
    - {name: v, createObjSpec: {volume: {storageClass: "null"}}}
    - {name: w, createObjSpec: {workload: mine, vars: {class: "null"}}}
    - {name: m, modifySpec: {actionName: v, volumeAttributesClass: silver}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: mine, labels: {type: workload}, annotations: {cnsbench.default.class: hostdir}}
data:
  job.ini: "[a]\\nx=1\\n"
  pod.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec: {resources: {requests: {storage: 1Gi}}, storageClassName: "{{class}}"}
    ---
    apiVersion: v1
    kind: Pod
    metadata: {name: p}
    spec:
      containers: [{name: c, image: x, command: ["true"], env: [{name: A, valueFrom: {configMapKeyRef: {name: other, key: a}}}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {a: b}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: silver}
driverName: null.csi.cnsbench.dev
parameters: {iops: "3"}
`
	for name, in := range map[string]Input{"own library": {}, "any driver": {Endpoints: map[string]string{"": "/s"}}} {
		text := mine
		if in.Endpoints != nil {
			text = gp3
		}
		t.Run(name, func(t *testing.T) {
			first, err := Render(good(t, in, text), "r")
			if err != nil {
				t.Fatal(err)
			}
			in.Files = []File{{Name: "rendered.yaml", Data: first}}
			p, problems := load(t, in)
			if len(problems) > 0 {
				t.Fatalf("%v\n%s", problems, first)
			}
			again, err := Render(p, "r")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(first), string(again)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// bomb returns a Benchmark whose actions expand to 9^levels values, by nested aliases.
func bomb(levels int) string {
	text := head + "a0: &a0 x\n"
	for i := range levels {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	return text + fmt.Sprintf("spec: {actions: *a%d}\n", levels)
}

// FuzzLoad checks that Load terminates in time for any file and flag, returns either a
// plan or problems, and that the plan renders.
func FuzzLoad(f *testing.F) {
	f.Add(small, "spec.runtime=10s")
	f.Add(head+gp3, "vars.x={a: b}")
	f.Add(head+"spec: {actions: [{name: a, createObjSpec: {workload: fio, vars: null}}], rates: [null]}",
		"spec.actions.0=3")
	f.Add("a: &a [*a]", "=")
	f.Add("a: &a {<<: *a}", "a.b=c")
	f.Add(bomb(9), "spec.runtime=[&a [x, x], *a]")
	f.Add(head+"a: &a {k: x, l: x, m: x}\nb: &b {k: *a, l: *a, m: *a}\nspec: {actions: [{name: w, createObjSpec: {workload: fio, vars: *b, varsList: [*b, *b]}}]}", "")
	f.Add("? [a]\n: b", "vars.=")
	f.Add(head+"spec: {actions: [{name: s, snapshotSpec: {actionName: r}}, {name: r, restoreSpec: {actionName: s}}]}",
		"")
	f.Add(head+"spec: {actions: [{name: w, createObjSpec: {workload: fio, varsList: [{}, {bs: 1}], matrix: {rw: [], bs: [1, 2]}, phases: [{startAfter: 1s, vars: {rw: read}}]}}]}", "w.rw=read")
	for _, pattern := range []string{"../../examples/*.yaml", "../../examples/*/*.yaml", "../../library/suites/*.yaml",
		"testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: no seeds: %v", pattern, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text), "vars.storageClass=hostdir")
		}
	}
	f.Fuzz(func(t *testing.T, text, set string) {
		in := Input{Files: []File{{Name: "f", Data: []byte(text)}}, Capabilities: local()}
		if set != "" {
			in.Set = []string{set}
		}
		if s, problems := LoadStudy(in.Files); s != nil && len(problems) > 0 {
			t.Errorf("a study with problems %v", problems)
		}
		begin := time.Now()
		p, problems := Load(t.Context(), in)
		// The limit allows for a busy machine: on an idle one the slowest seed takes 0.5 s.
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		if (p == nil) != (len(problems) > 0) {
			t.Errorf("plan %v with problems %v", p, problems)
		}
		if p != nil && p.Budget.Pods < 100 && p.Budget.Volumes < 100 {
			if _, err := Render(p, "r"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestMeasured(t *testing.T) {
	with := func(runtimes ...string) *Plan {
		w := &Workload{}
		for _, r := range runtimes {
			w.Params = append(w.Params, workload.Params{Vars: map[string]string{"runtime": r}})
		}
		return &Plan{Actions: []Action{{}, {Workload: w}}}
	}
	fixed := with("30")
	fixed.Runtime = time.Minute
	for _, tt := range []struct {
		plan *Plan
		want time.Duration
	}{
		{fixed, time.Minute}, {with("30", "2.5"), 30 * time.Second}, {with("x"), 0}, {&Plan{}, 0},
	} {
		if got := tt.plan.Measured(); got != tt.want {
			t.Errorf("%v, want %v", got, tt.want)
		}
	}
}
