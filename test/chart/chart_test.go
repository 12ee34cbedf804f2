// Package chart renders the Helm chart as its users would, and compares it with what
// "cnsbench install" applies. It is a module of its own, so that the product does
// not carry Helm.
package chart

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cnsbench/cnsbench/config"
)

const (
	dir       = "../../charts/cnsbench"
	namespace = "measuring"
)

// objects by kind/namespace/name.
type objects map[string]map[string]any

func (o objects) add(u *unstructured.Unstructured) {
	o[u.GetKind()+"/"+u.GetNamespace()+"/"+u.GetName()] = u.Object
}

func (o objects) read(t *testing.T, from, text string) {
	t.Helper()
	d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := d.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s is no YAML: %v\n%s", from, err, text)
		}
		if len(u.Object) > 0 {
			o.add(u)
		}
	}
}

func installed(t *testing.T, options config.Options) objects {
	t.Helper()
	all, err := config.Objects(options)
	if err != nil {
		t.Fatal(err)
	}
	found := objects{}
	for _, u := range all {
		found.add(u)
	}
	return found
}

// render is "helm install --namespace measuring", CustomResourceDefinitions
// included.
func render(t *testing.T, values map[string]any) objects {
	t.Helper()
	chart, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "cnsbench", Namespace: namespace,
		IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, v)
	if err != nil {
		t.Fatal(err)
	}
	all := objects{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, "NOTES.txt") {
			all.read(t, name, files[name])
		}
	}
	for _, c := range chart.CRDObjects() {
		all.read(t, c.Name, string(c.File.Data))
	}
	return all
}

// Everything that install applies, and nothing else, but for the namespace,
// which is Helm's business.
func TestChartIsWhatInstallApplies(t *testing.T) {
	cases := []struct {
		name    string
		values  map[string]any
		options config.Options
	}{
		{"as it is", nil, config.Options{}},
		{"with values",
			map[string]any{
				"image": map[string]any{"repository": "example/cnsbench", "tag": "v9"},
				"results": map[string]any{"storageClass": "slow", "size": "3Gi",
					"extraArgs": []any{"--retain-for=720h", "--quota-runs=9"}},
			},
			config.Options{Image: "example/cnsbench:v9", ResultsStorageClass: "slow", ResultsSize: "3Gi",
				ResultsArgs: []string{"--retain-for=720h", "--quota-runs=9"}}},
		{"with the CSI proxy",
			map[string]any{"csiProxy": map[string]any{
				"enabled": true, "token": "0123456789abcdef", "nodeSelector": map[string]any{"disk": "fast"},
				"drivers": []any{map[string]any{"name": "a.example.com"},
					map[string]any{"name": "B.com", "socket": "/opt/b/node.sock"}},
			}},
			config.Options{CSIProxy: &config.CSIProxy{Token: "0123456789abcdef",
				NodeSelector: map[string]string{"disk": "fast"}, Drivers: []config.CSIDriver{
					{Name: "a.example.com", Socket: "/var/lib/kubelet/plugins/a.example.com/csi.sock"}, {Name: "B.com",
						Socket: "/opt/b/node.sock"}}}}},
		{"limited to namespaces",
			map[string]any{
				"benchmarkNamespaces": []any{"a", "b"}, "operator": map[string]any{"namespaced": true},
				"networkPolicies": map[string]any{"apiServerPorts": []any{16443, 443}},
			},
			config.Options{BenchmarkNamespaces: []string{"a", "b"}, Namespaced: true, APIServerPorts: []int{16443, 443}}},
		{"without policies",
			map[string]any{
				"benchmarkNamespaces": []any{"a"}, "networkPolicies": map[string]any{"enabled": false},
				"csiProxy": map[string]any{"enabled": true, "token": "0123456789abcdef"},
			},
			config.Options{BenchmarkNamespaces: []string{"a"}, NoNetworkPolicies: true,
				CSIProxy: &config.CSIProxy{Token: "0123456789abcdef"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.options.Namespace = namespace
			want := installed(t, c.options)
			delete(want, "Namespace//"+namespace)
			if diff := cmp.Diff(want, render(t, c.values)); diff != "" {
				t.Errorf("install (-) and chart (+) differ:\n%s", diff)
			}
		})
	}
}

func TestValuesReachTheOperator(t *testing.T) {
	all := render(t, map[string]any{"operator": map[string]any{
		"replicas": 2, "extraArgs": []any{"--avoid-nodes=storage"}, "resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}}}})
	text := fmt.Sprint(all["Deployment/"+namespace+"/cnsbench-operator"])
	for _, want := range []string{"--health-address=:8081 --avoid-nodes=storage]", "replicas:2",
		"resources:map[limits:map[memory:1Gi] requests:"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the Deployment: %s", want, text)
		}
	}
}

// A token is made where none is given.
// TestRegistry: all images are those of the registry, and all pods have its secrets.
func TestRegistry(t *testing.T) {
	made := render(t, map[string]any{
		"global":           map[string]any{"imageRegistry": "registry.example.com/storage", "imagePullSecrets": []any{"a"}},
		"imagePullSecrets": []any{map[string]any{"name": "b"}}, "image": map[string]any{"digest": "sha256:00"},
		"csiProxy": map[string]any{"enabled": true, "drivers": []any{map[string]any{"name": "d.example.com"}}},
	})
	pods := 0
	for key, o := range made {
		spec, ok, err := unstructured.NestedMap(o, "spec", "template", "spec")
		if err != nil || !ok {
			continue
		}
		pods++
		text := fmt.Sprint(spec)
		const image = "image:registry.example.com/storage/cnsbench/cnsbench@sha256:00"
		if strings.Count(text, "image:") != strings.Count(text, image) ||
			!strings.Contains(text, "imagePullSecrets:[map[name:a] map[name:b]]") {
			t.Errorf("%s: %s", key, text)
		}
	}
	if pods < 3 {
		t.Errorf("%d pods, want those of operator, results service and proxy", pods)
	}
}

func TestChartMakesAToken(t *testing.T) {
	on := map[string]any{"csiProxy": map[string]any{"enabled": true}}
	token := func() string {
		return fmt.Sprint(render(t, on)["Secret/"+config.ProxyNamespace+"/"+config.ProxySecret]["stringData"])
	}
	first := token()
	if len(first) < len("map[token:]")+32 || first == token() {
		t.Errorf("token %s", first)
	}
}

func TestChartHasNoLint(t *testing.T) {
	result := lint.RunAll(dir, nil, namespace)
	for _, m := range result.Messages {
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
	chart, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := chart.Validate(); err != nil {
		t.Error(err)
	}
	if chart.Metadata.APIVersion != chartv2.APIVersionV2 {
		t.Errorf("apiVersion %s", chart.Metadata.APIVersion)
	}
}
