package workload

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

func prototype(t *testing.T) *Entry {
	t.Helper()
	text, err := os.ReadFile("testdata/prototype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &cm); err != nil {
		t.Fatal(err)
	}
	e, err := FromConfigMap(&cm, "test")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func instance(t *testing.T, e *Entry, given map[string]string, index int) *Instance {
	t.Helper()
	vars, problems := e.Resolve(given)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	i, err := e.Render(Params{Vars: vars, Action: "w", Index: index, Count: 3, RunID: "r1",
		Labels: map[string]string{"team": "a"}, Engine: "local"})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// A ConfigMap of the paper's prototype works as it is.
func TestRenderPrototype(t *testing.T) {
	got, err := yaml.Marshal(instance(t, prototype(t), map[string]string{"storageClass": "fast"}, 2))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/prototype.golden", string(got))
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// No two instances share an object, and what they refer to is their own.
func TestInstancesShareNothing(t *testing.T) {
	e := prototype(t)
	seen := map[string]bool{}
	for i := range 3 {
		in := instance(t, e, map[string]string{"storageClass": "fast"}, i)
		names := []string{in.Claims[0].Name, in.ConfigMaps[0].Name, in.Pods[0].Name}
		for _, n := range names {
			if seen[n] {
				t.Errorf("%s is there twice", n)
			}
			seen[n] = true
		}
		volumes := in.Pods[0].Spec.Volumes
		if got := volumes[0].PersistentVolumeClaim.ClaimName; got != names[0] {
			t.Errorf("claim %s, want %s", got, names[0])
		}
		if got := volumes[1].ConfigMap.Name; got != names[1] {
			t.Errorf("config map %s, want %s", got, names[1])
		}
	}
}

func TestResolve(t *testing.T) {
	e := prototype(t)
	if diff := cmp.Diff([]string{"config", "size", "storageClass"}, e.Variables()); diff != "" {
		t.Error(diff)
	}
	_, problems := e.Resolve(map[string]string{"sise": "1", "NUM_INSTANCES": "2"})
	var got []string
	for _, p := range problems {
		got = append(got, p.Error())
	}
	want := []string{
		"NUM_INSTANCES is set by CNSBench",
		`workload "writer" has no variable "sise"`,
		`workload "writer" needs a value for its variable "storageClass" (vars: {storageClass: …})`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSizeInBytes(t *testing.T) {
	cm := &corev1.ConfigMap{Data: map[string]string{"fill.sh": "{{size.bytes}} {{size}}",
		"pod.yaml": strings.Replace(podHead, "%s", "", 1) + "  containers: [{name: c, command: [a]}]\n"}}
	cm.Name, cm.Labels = "e", map[string]string{"type": "workload"}
	cm.Annotations = map[string]string{"cnsbench.type.size": "size", "cnsbench.default.size": "1.5Gi"}
	e, err := FromConfigMap(cm, "test")
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"": "1610612736 1.5Gi", "1{{INSTANCE_NUM}}M": "17000000 17M"} {
		given := map[string]string{}
		if value != "" {
			given["size"] = value
		}
		if got := instance(t, e, given, 7).ConfigMaps[0].Data["fill.sh"]; got != want {
			t.Errorf("size %q: got %q, want %q", value, got, want)
		}
	}
}

func TestSubstitute(t *testing.T) {
	values := map[string]string{"a": "1", "name": "x-{{INSTANCE_NUM}}", "braces": "{{other}}"}
	builtins := builtin(Params{Index: 7, Action: "fio", Count: 2, RunID: "r"})
	tests := []struct{ text, want, err string }{
		{text: "{{a}} {{ a }}", want: "1 1"},
		{text: "{{name}}", want: "x-7"},
		{text: "{{ACTION_NAME}}/{{ACTION_NAME_CAPS}}/{{NUM_INSTANCES}}/{{RUN_ID}}", want: "fio/FIO/2/r"},
		{text: "docker ps --format '{{.Names}}'", want: "docker ps --format '{{.Names}}'"},
		{text: "{{braces}}", want: "{{other}}"},
		{text: "{{missing}}", err: `variable "missing" has no value`},
		{text: "{{a", want: "{{a"},
		{text: strings.Repeat("{{big}}", 20), err: "more than 1048576 bytes when its variables are filled in"},
	}
	values["big"] = strings.Repeat("x", 1<<16)
	for _, tt := range tests {
		t.Run(tt.text[:min(len(tt.text), 20)], func(t *testing.T) {
			got, err := substitute(tt.text, values, builtins)
			if message(err) != tt.err || err == nil && got != tt.want {
				t.Errorf("got %q, %v; want %q, %s", got, err, tt.want, tt.err)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

const podHead = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%s}\nspec:\n"

func TestRenderProblems(t *testing.T) {
	pod := func(annotations, spec string) string {
		return strings.Replace(podHead, "%s", annotations, 1) + spec
	}
	tests := []struct{ name, manifest, want string }{
		{"no pod", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
			`workload "e" has no Pod and no Job (a manifest of kind Pod does the I/O)`},
		{"no containers", pod("", "  containers: []\n"), `e.yaml: Pod "p" has no containers`},
		{"no command", pod("", "  containers: [{name: c}]\n"), `e.yaml: container "c" of Pod "p" has no command (it is wrapped to be started and observed, so that its command must be given and not left to the image)`},
		{"typing error", pod("", "  container: []\n"),
			`e.yaml: not a valid Pod: error unmarshaling JSON: while decoding JSON: json: unknown field "container"`},
		{"unknown claim", pod("",
			"  containers: [{name: c, command: [a]}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: x}}]\n"),
			`e.yaml: volume "v": the workload has no PersistentVolumeClaim "x" (volumes of others cannot be used yet)`},
		{"unknown config map",
			pod("", "  containers: [{name: c, command: [a]}]\n  volumes: [{name: v, configMap: {name: x}}]\n"),
			`e.yaml: volume "v": the workload has no ConfigMap "x"`},
		{"network volume", pod("",
			"  containers: [{name: c, command: [a]}]\n  volumes: [{name: v, nfs: {server: s, path: /}}]\n"),
			`e.yaml: the kind of volume "v": not supported by engine local (emptyDir, configMap, hostPath, persistentVolumeClaim and ephemeral are)`},
		{"unknown mount", pod("",
			"  containers: [{name: c, command: [a], volumeMounts: [{name: d, mountPath: /d}]}]\n"),
			`e.yaml: container "c" of Pod "p" mounts "d", which is not a volume of the pod`},
		{"secret in env", pod("", "  containers: [{name: c, command: [a], env: [{name: E, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]\n"),
			`e.yaml: env E of container "c": this valueFrom is not supported by engine local`},
		{"sync names nothing", pod(", annotations: {sync: d}", "  containers: [{name: c, command: [a]}]\n"),
			`e.yaml: annotation sync names "d", which is not a container ("true", or some of: c)`},
		{"several pods", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {replicas: 3}\n",
			`e.yaml: a StatefulSet of more than one pod with podManagementPolicy OrderedReady: not supported by engine local (podManagementPolicy: Parallel, or give the action a count instead)`},
		{"ordered pods that wait", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, annotations: {role: workload, sync: \"true\"}}\nspec: {replicas: 2}\n",
			`e.yaml: StatefulSet "s" has 2 pods that wait at the barrier, and podManagementPolicy OrderedReady: the second is only made when the first is ready, but the first waits for all of them, so that they would wait for ever (podManagementPolicy: Parallel)`},
		{"too many pods", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {replicas: 2000000000, podManagementPolicy: Parallel}\n",
			`e.yaml: StatefulSet "s" has 2000000000 pods (1 to 256; the action's count makes more instances)`},
		{"parser without an interpreter", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, annotations: {container: busybox}}\ndata: {parse: cat $1}\n---\n" + pod(", annotations: {outputFile: /o, parser: mine}", "  containers: [{name: c, command: [a]}]\n"),
			`e.yaml: parser "mine" has no interpreter (its first line is such as #!/bin/sh)`},
		{"parser without a script", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, annotations: {container: busybox}}\n---\n" + pod(", annotations: {outputFile: /o, parser: mine}", "  containers: [{name: c, command: [a]}]\n"),
			`e.yaml: parser "mine" has no script (it is the only key of its ConfigMap, or one that begins with parse)`},
		{"service", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
			`e.yaml: an object of kind Service (v1): not supported by engine local`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &Entry{Name: "e", Parts: []Part{{"e.yaml", tt.manifest}}}
			_, err := e.Render(Params{Action: "a", Engine: "local"})
			var typed *Error
			if !errors.As(err, &typed) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestStatefulSetAndEphemeral(t *testing.T) {
	e := &Entry{Name: "e", Parts: []Part{{"e.yaml", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  template:
    spec:
      containers: [{name: db, command: [db], volumeMounts: [{name: store, mountPath: /s}]}]
  volumeClaimTemplates:
    - metadata: {name: store}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  containers: [{name: c, command: [c], volumeMounts: [{name: scratch, mountPath: /x}]}]
  volumes:
    - name: scratch
      ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}}
`}}}
	i, err := e.Render(Params{Action: "a", Engine: "local"})
	if err != nil {
		t.Fatal(err)
	}
	if len(i.Claims) != 2 || i.Claims[0].Name != "a-0-store-db-0" || i.Claims[0].Labels[LabelVolume] != "store" ||
		i.Claims[1].Name != "a-0-scratch" {
		t.Errorf("claims %v", i.Claims)
	}
	if !i.Pods[0].Service || i.Pods[1].Service {
		t.Errorf("service %v %v, want true false", i.Pods[0].Service, i.Pods[1].Service)
	}
	if got := i.Pods[1].Spec.Volumes[0].PersistentVolumeClaim; got == nil || got.ClaimName != "a-0-scratch" {
		t.Errorf("the ephemeral volume became %v", got)
	}
}

func TestFromFolder(t *testing.T) {
	fsys := fstest.MapFS{
		"mine/workload.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, annotations: {cnsbench.default.n: \"3\"}}\n")},
		"mine/pod.yaml":      {Data: []byte(strings.Replace(podHead, "%s", "", 1) + "  containers: [{name: c, command: [a, \"{{n}}\"], volumeMounts: [{name: f, mountPath: /f}]}]\n  volumes: [{name: f, configMap: {name: mine}}]\n")},
		"mine/tool.conf":     {Data: []byte("n={{n}}\n")},
		"mine/README.md":     {Data: []byte("{{not}} a part")},
		"notes.txt":          {Data: []byte("not an entry")},
	}
	l, err := FromFolders(fsys, "test")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mine"}, l.Names()); diff != "" {
		t.Fatal(diff)
	}
	e, _ := l.Get("mine")
	i := instance(t, e, nil, 0)
	if got := i.ConfigMaps[0].Data["tool.conf"]; got != "n=3\n" {
		t.Errorf("tool.conf %q", got)
	}
	if got := i.Pods[0].Spec.Volumes[0].ConfigMap.Name; got != i.ConfigMaps[0].Name {
		t.Errorf("mounts %s, want %s", got, i.ConfigMaps[0].Name)
	}
}

func TestNamesStayLabels(t *testing.T) {
	long := objectName("action-0", strings.Repeat("x", 300))
	if len(long) > maxName || long == objectName("action-0", strings.Repeat("x", 301)) {
		t.Errorf("%q is too long or not unique", long)
	}
}

func FuzzSubstitute(f *testing.F) {
	f.Add("{{a}} {{ b }} {{.C}} {{", "x{{INSTANCE_NUM}}")
	f.Add("{{{{a}}}}", "{{a}}")
	f.Fuzz(func(t *testing.T, text, value string) {
		out, err := substitute(text, map[string]string{"a": value}, builtin(Params{}))
		if err == nil && len(out) > maxText+len(text) {
			t.Errorf("%d bytes", len(out))
		}
	})
}

func FuzzRender(f *testing.F) {
	f.Add(strings.Replace(podHead, "%s", "", 1)+"  containers: [{name: c, command: [a]}]\n", "v")
	f.Add("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {containers: [{name: c, command: [\"{{a}}\"]}]}}}\n", "x: y")
	f.Add("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {volumeClaimTemplates: [{}]}\n", "")
	f.Add("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {a: \"{{a}}\"}}\n", "b")
	f.Add(asWritten, "")
	f.Fuzz(func(_ *testing.T, manifest, value string) {
		e := &Entry{Name: "e", Parts: []Part{{"m.yaml", manifest}}}
		for _, engine := range []string{"local", "kubernetes"} {
			_, _ = e.Render(Params{Vars: map[string]string{"a": value}, Action: "a", Engine: engine,
				Cluster: engine == "kubernetes"})
		}
	})
}

// TestValuesForTests checks the annotations cnsbench.test.VAR.
func TestValuesForTests(t *testing.T) {
	for _, tt := range []struct{ annotation, value, want string }{
		{"cnsbench.test.size", "1Mi", ""},
		{"cnsbench.test.size", "big", "annotation cnsbench.test.size: "},
		{"cnsbench.test.sise", "1Mi", `has no variable "sise"`},
	} {
		cm := &corev1.ConfigMap{Data: map[string]string{"a": "{{size}}"}}
		cm.Name, cm.Labels = "w", map[string]string{"type": "workload"}
		cm.Annotations = map[string]string{"cnsbench.type.size": "size", tt.annotation: tt.value}
		e, err := FromConfigMap(cm, "test")
		switch {
		case tt.want == "" && (err != nil || e.Tests["size"] != tt.value):
			t.Errorf("%s: %q, %v", tt.annotation, e.Tests, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.annotation, err, tt.want)
		}
	}
}

// TestImages: the images of the library are beside that of CNSBench.
func TestImages(t *testing.T) {
	for product, want := range map[string]string{
		"cnsbench/cnsbench:v1":                             "cnsbench",
		"registry.example.com:5000/a/cnsbench@sha256:00ab": "registry.example.com:5000/a",
		"localhost/cnsbench:dev":                           "localhost",
		"cnsbench:dev":                                     "docker.io/cnsbench",
		"":                                                 "docker.io/cnsbench",
	} {
		if got := Images(product); got != want {
			t.Errorf("beside %q is %q, want %q", product, got, want)
		}
	}
}

// TestRenderAgain: a further instance decodes no manifest that an earlier one has decoded, and shares nothing with it.
func TestRenderAgain(t *testing.T) {
	e := prototype(t)
	render := func() *Instance { return instance(t, e, map[string]string{"storageClass": "fast"}, 1) }
	want, err := yaml.Marshal(render())
	if err != nil {
		t.Fatal(err)
	}
	changed := render()
	for i := range changed.Pods {
		p := &changed.Pods[i]
		p.Labels["changed"], p.Spec.Containers[0].Image = "yes", "changed"
		clear(p.Spec.Containers[0].Command)
	}
	for i := range changed.Claims {
		clear(changed.Claims[i].Spec.AccessModes)
		clear(changed.Claims[i].Spec.Resources.Requests)
	}
	for i := range changed.ConfigMaps {
		clear(changed.ConfigMaps[i].Data)
	}
	got, err := yaml.Marshal(render())
	if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
		t.Errorf("after another was changed: %v %s", err, diff)
	}
	if n := testing.AllocsPerRun(10, func() { render() }); n > 1000 {
		t.Errorf("%.0f allocations: the manifests are decoded again", n)
	}
}
