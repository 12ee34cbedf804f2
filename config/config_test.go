package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnsbench/cnsbench/config/crd"
)

var update = flag.Bool("update", false, "write the chart anew")

const chart = "../charts/cnsbench"

// swap is a passage that a manifest has exactly once, and the chart a value for.
type swap struct {
	from, to  string
	manifests []string
}

var swaps = []swap{
	{"          resources:\n            requests: {cpu: 20m, memory: 64Mi}\n            limits: {memory: 256Mi}\n",
		"          resources: {{- toYaml .Values.operator.resources | nindent 12 }}\n", []string{"operator"}},
	{"          resources:\n            requests: {cpu: 20m, memory: 64Mi}\n            limits: {memory: 1Gi}\n",
		"          resources: {{- toYaml .Values.results.resources | nindent 12 }}\n", []string{"results"}},
	{lastFlag, lastFlag +
		"            {{- if .Values.operator.namespaced }}\n            {{- range .Values.benchmarkNamespaces }}\n" +
		"            - --watch-namespace={{ . }}\n            {{- end }}\n            {{- end }}\n" +
		"            {{- with .Values.operator.extraArgs }}{{ toYaml . | nindent 12 }}{{ end }}\n", []string{"operator"}},
	{"            - --publish-pin=cnsbench-results\n", "            - --publish-pin=cnsbench-results\n" +
		"            {{- with .Values.results.extraArgs }}{{ toYaml . | nindent 12 }}{{ end }}\n", []string{"results"}},
	{"  replicas: 1\n", "  replicas: {{ .Values.operator.replicas }}\n", []string{"operator"}},
	{"    requests: {storage: 10Gi}\n",
		"    requests: {storage: {{ .Values.results.size | quote }} }\n  {{- with .Values.results.storageClass }}\n  storageClassName: {{ . | quote }}\n  {{- end }}\n", []string{"results"}},
	{"imagePullPolicy: IfNotPresent", "imagePullPolicy: {{ .Values.image.pullPolicy }}",
		[]string{"operator", "results"}},
}

// What the chart has in the place of the example's driver, in a range over the
// drivers.
var proxySwaps = []swap{
	{from: "      nodeSelector: {kubernetes.io/os: linux}\n", to: "      nodeSelector:\n        kubernetes.io/os: linux\n        {{- with $.Values.csiProxy.nodeSelector }}{{ toYaml . | nindent 8 }}{{ end }}\n"},
	{from: "      tolerations: [{operator: Exists}] # where the driver is\n",
		to: "      tolerations: {{- toYaml $.Values.csiProxy.tolerations | nindent 8 }}\n"},
	{from: "      priorityClassName: system-node-critical # neither evicted nor the first to be killed for memory\n",
		to: "      {{- with $.Values.csiProxy.priorityClassName }}\n      priorityClassName: {{ . }} # neither evicted nor the first to be killed for memory\n      {{- end }}\n"},
	{from: "          resources:\n            requests: {cpu: 10m, memory: 64Mi} # no limit: at it both the proxy and its guard would be killed\n",
		to: "          resources: {{- toYaml $.Values.csiProxy.resources | nindent 12 }}\n"},
	{from: "  name: cnsbench-csi-proxy-driver-example-com\n",
		to: "  name: cnsbench-csi-proxy-{{ .name | replace \".\" \"-\" | lower }}\n"},
	{from: "--take-over=/csi/csi.sock", to: "--take-over=/csi/{{ base $socket }}"},
	{from: "hostPath: {path: /var/lib/kubelet/plugins/driver.example.com, type: Directory}",
		to: "hostPath: {path: {{ dir $socket | quote }}, type: Directory}"},
	{from: "imagePullPolicy: IfNotPresent", to: "imagePullPolicy: {{ $.Values.image.pullPolicy }}"},
	{from: DefaultImage, to: `{{ include "cnsbench.image" $ }}`},
}

// proxyToken keeps the token that is there: proxies and runs have it.
const proxyToken = `apiVersion: v1
kind: Secret
metadata:
  name: cnsbench-csi-proxy
  namespace: cnsbench-csi-proxy
  labels:
    app.kubernetes.io/name: cnsbench
    app.kubernetes.io/component: csi-proxy
type: Opaque
{{- $there := (lookup "v1" "Secret" "cnsbench-csi-proxy" "cnsbench-csi-proxy").data }}
{{- if and $there (not .Values.csiProxy.token) }}
data:
  token: {{ $there.token }}
{{- else }}
stringData:
  token: {{ .Values.csiProxy.token | default (randAlphaNum 32) | quote }}
{{- end }}
`

// proxyTemplate is off unless it is asked for, and has a DaemonSet for each driver.
func proxyTemplate(t *testing.T) string {
	t.Helper()
	b, err := files.ReadFile("csi-proxy/csi-proxy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	once, each, found := strings.Cut(string(b), "---\n# One for each driver.\n")
	if !found {
		t.Fatal("the DaemonSet is not last in csi-proxy.yaml")
	}
	for _, s := range proxySwaps {
		if n := strings.Count(each, s.from); n != 1 {
			t.Fatalf("csi-proxy.yaml has this passage %d times instead of once; the chart has a value for it:\n%s", n,
				s.from)
		}
		each = strings.Replace(each, s.from, s.to, 1)
	}
	each = pullSecrets(strings.ReplaceAll(each, exampleDriver, "{{ .name }}"), "$")
	return "# Generated from config/csi-proxy/csi-proxy.yaml: go test ./config -update\n{{- if .Values.csiProxy.enabled }}\n" + once + "---\n" + proxyToken +
		"{{- range .Values.csiProxy.drivers }}\n{{- $socket := .socket | default (printf \"" + socketsDir +
		"%s/csi.sock\" .name) }}\n---\n" + each + "{{- end }}\n{{- end }}\n"
}

// template makes a template of the chart from a manifest.
func template(t *testing.T, name string) string {
	t.Helper()
	b, err := files.ReadFile("install/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, s := range swaps {
		if !slices.Contains(s.manifests, name) {
			continue
		}
		if n := strings.Count(text, s.from); n != 1 {
			t.Fatalf("%s.yaml has this passage %d times instead of once; the chart has a value for it:\n%s", name, n,
				s.from)
		}
		text = strings.Replace(text, s.from, s.to, 1)
	}
	text = pullSecrets(strings.ReplaceAll(text, DefaultImage, `{{ include "cnsbench.image" . }}`), ".")
	text = strings.ReplaceAll(text, DefaultNamespace, "{{ $.Release.Namespace }}")
	return generated("install/"+name) + conditional(text, name)
}

var podAccount = regexp.MustCompile(`(?m)^      serviceAccountName: \S+\n`)

// pullSecrets gives the pods of a template the secrets of the registry. dot is the template's root.
func pullSecrets(text, dot string) string {
	return podAccount.ReplaceAllStringFunc(text, func(line string) string {
		return line + `      {{- with include "cnsbench.pullSecrets" ` + dot + " }}{{ . | nindent 6 }}{{ end }}\n"
	})
}

func generated(from string) string {
	return "# Generated from config/" + from + ".yaml: go test ./config -update\n"
}

// conditional leaves out what values switch off, and repeats what each namespace of Benchmarks has.
func conditional(text, name string) string {
	const policies = "{{- if .Values.networkPolicies.enabled }}\n"
	text = strings.ReplaceAll(text, apiServerPorts, "[{{ range $i, $port := .Values.networkPolicies.apiServerPorts }}"+
		"{{ if $i }}, {{ end }}{port: {{ $port }}, protocol: TCP}{{ end }}]")
	switch name {
	case "network":
		return policies + text + "{{- end }}\n"
	case "network-benchmarks":
		return policies + each(text) + "{{- end }}\n"
	case "operator-role":
		return "{{- if .Values.operator.namespaced }}\n" +
			each(inNamespace(text, exampleNamespace)) + "{{- else }}\n" + text + "{{- end }}\n"
	}
	return text
}

// each repeats a manifest for each namespace of Benchmarks.
func each(text string) string {
	return "{{- range .Values.benchmarkNamespaces }}\n---\n" + strings.ReplaceAll(text, exampleNamespace, "{{ . }}") +
		"{{- end }}\n"
}

// proxyNetworkTemplate is off unless both the proxy and policies are wanted.
func proxyNetworkTemplate(t *testing.T) string {
	t.Helper()
	b, err := files.ReadFile("csi-proxy/network.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return generated("csi-proxy/network") + "{{- if and .Values.csiProxy.enabled .Values.networkPolicies.enabled }}\n" +
		string(b) + "{{- end }}\n"
}

func TestChartIsGeneratedFromTheManifests(t *testing.T) {
	want := map[string]string{"crds/cnsbench.dev_benchmarks.yaml": string(crd.Benchmark),
		"templates/csi-proxy.yaml": proxyTemplate(t), "templates/csi-proxy-network.yaml": proxyNetworkTemplate(t)}
	for _, name := range names {
		if name != "namespace" { // helm makes it, or it is there
			want["templates/"+name+".yaml"] = template(t, name)
		}
	}
	for file, text := range want {
		path := filepath.Join(chart, file)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s is out of date (go test ./config -update):\n%s", path, diff)
		}
	}
}

func TestObjectsFitTheInstallation(t *testing.T) {
	all, err := Objects(Options{Namespace: "elsewhere", Image: "example/cnsbench:v9", ResultsStorageClass: "slow",
		ResultsSize: "3Gi"})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, u := range all {
		fmt.Fprintln(&text, u.Object)
		if ns := u.GetNamespace(); ns != "" && ns != "elsewhere" {
			t.Errorf("%s %s is in namespace %q", u.GetKind(), u.GetName(), ns)
		}
	}
	for _, left := range []string{DefaultNamespace, DefaultImage} {
		if strings.Contains(text.String(), left) {
			t.Errorf("%q is still in the objects", left)
		}
	}
	for _, want := range []string{"cnsbench-results.elsewhere.svc", "storageClassName:slow", "storage:3Gi",
		"namespace:elsewhere", "value:example/cnsbench:v9"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in the objects", want)
		}
	}
}

func TestObjectsRefuseWhatIsNoName(t *testing.T) {
	for _, o := range []Options{{Namespace: "a: b"}, {Image: "x\n  evil: true"}, {Image: "x y"},
		{ResultsSize: "much"}, {BenchmarkNamespaces: []string{"a\n"}}, {Namespaced: true}, {ResultsArgs: []string{"x"}}, {APIServerPorts: []int{0}}} {
		if _, err := Objects(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// rule is one grant: what the manifests give and what the page must explain.
var tableRow = regexp.MustCompile("^\\| `([^`]*)` \\| `([^`]+)` \\| `([^`]+)` \\| (.+) \\|$")

// The page explains each rule of each role once, with a reason, and no other.
func TestEveryRuleIsExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/design/rbac.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	role := ""
	for _, line := range strings.Split(string(page), "\n") {
		if name, ok := strings.CutPrefix(line, "### "); ok {
			role = strings.Trim(name, "`")
			continue
		}
		if m := tableRow.FindStringSubmatch(line); m != nil {
			grant := role + ": " + m[1] + " " + m[2] + " " + m[3]
			if explained[grant] {
				t.Errorf("explained twice: %s", grant)
			}
			if len(m[4]) < 20 {
				t.Errorf("%s: %q is no reason", grant, m[4])
			}
			explained[grant] = true
		}
	}
	objects, err := Objects(Options{CSIProxy: &CSIProxy{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, grant := range grants(objects) {
		if !explained[grant] {
			t.Errorf("docs/design/rbac.md does not explain: %s", grant)
		}
		delete(explained, grant)
	}
	for grant := range explained {
		t.Errorf("docs/design/rbac.md explains what no manifest grants: %s", grant)
	}
}

// grants lists the rules of all roles as "role: group resources verbs".
func grants(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, u := range objects {
		rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
		for _, r := range rules {
			m := r.(map[string]any)
			all = append(all, fmt.Sprintf("%s: %s %s %s", u.GetName(), list(m["apiGroups"]), list(m["resources"]),
				list(m["verbs"])))
		}
	}
	return all
}

func list(v any) string {
	var words []string
	for _, w := range v.([]any) {
		words = append(words, w.(string))
	}
	return strings.Join(words, ", ")
}
