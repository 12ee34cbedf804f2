// Package config has the manifests of an installation in a cluster. They are the
// one source: "cnsbench install" applies or prints them, and the Helm chart is
// generated from them (go test ./config -update).
package config

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cnsbench/cnsbench/config/crd"
)

//go:embed install/*.yaml csi-proxy/*.yaml
var files embed.FS

// What the manifests say, to be replaced by what an installation wants.
const (
	DefaultNamespace = "cnsbench-system"
	DefaultImage     = "cnsbench/cnsbench:devel"
	// exampleNamespace is the namespace of Benchmarks in manifests that each of them has.
	exampleNamespace = "benchmark-namespace"
	// apiServerPorts are in the rules for connections to the API server.
	apiServerPorts = "[{port: 443, protocol: TCP}, {port: 6443, protocol: TCP}]"
	// lastFlag is the operator's last argument. The namespaces that it watches follow.
	lastFlag = "            - --health-address=:8081\n"
)

// names of the manifests, in the order in which they are applied.
var names = []string{"namespace", "network", "network-benchmarks", "admission", "operator-role", "operator", "results",
	"roles"}

// Options are what differs between installations. Zero values are those of the
// manifests.
type Options struct {
	Namespace string
	Image     string
	// ResultsStorageClass of the volume with the bundles; empty: the cluster's
	// default. It should not be the class under test.
	ResultsStorageClass string
	// ResultsSize of that volume, e.g. 10Gi.
	ResultsSize string
	// ResultsArgs are further flags of the results service, e.g. --retain-for=720h.
	ResultsArgs []string
	// CSIProxy adds proxies on drivers' sockets; nil: none.
	CSIProxy *CSIProxy
	// BenchmarkNamespaces get the NetworkPolicies of runners and agents.
	BenchmarkNamespaces []string
	// Namespaced limits the operator to BenchmarkNamespaces: it watches and has rights only there.
	Namespaced bool
	// NoNetworkPolicies leaves all NetworkPolicies out.
	NoNetworkPolicies bool
	// APIServerPorts are the TCP ports on which pods reach the API server; empty: 443 and 6443.
	APIServerPorts []int
}

var imageName = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9._/:@]*$`)

func (o *Options) complete() error {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Image == "" {
		o.Image = DefaultImage
	}
	if problems := validation.IsDNS1123Label(o.Namespace); problems != nil {
		return fmt.Errorf("namespace %q: %s", o.Namespace, strings.Join(problems, ", "))
	}
	if !imageName.MatchString(o.Image) {
		return fmt.Errorf("image %q is not the name of an image", o.Image)
	}
	if o.ResultsSize != "" {
		if _, err := resource.ParseQuantity(o.ResultsSize); err != nil {
			return fmt.Errorf("size of the results volume %q: %w", o.ResultsSize, err)
		}
	}
	for _, a := range o.ResultsArgs {
		if !strings.HasPrefix(a, "--") {
			return fmt.Errorf("argument of the results service %q: want --FLAG or --FLAG=VALUE", a)
		}
	}
	for _, ns := range o.BenchmarkNamespaces {
		if problems := validation.IsDNS1123Label(ns); problems != nil {
			return fmt.Errorf("namespace of Benchmarks %q: %s", ns, strings.Join(problems, ", "))
		}
	}
	for _, port := range o.APIServerPorts {
		if problems := validation.IsValidPortNum(port); problems != nil {
			return fmt.Errorf("port of the API server %d: %s", port, strings.Join(problems, ", "))
		}
	}
	if o.Namespaced && len(o.BenchmarkNamespaces) == 0 {
		return errors.New("a namespaced operator needs at least one namespace of Benchmarks")
	}
	return nil
}

// texts returns the manifests that a name stands for: none, one, or one for each namespace of Benchmarks.
func (o *Options) texts(name, text string) []string {
	text = strings.NewReplacer(DefaultNamespace, o.Namespace, DefaultImage, o.Image).Replace(text)
	switch name {
	case "network", "network-benchmarks":
		if o.NoNetworkPolicies {
			return nil
		}
		text = strings.ReplaceAll(text, apiServerPorts, o.ports())
	case "operator-role":
		if !o.Namespaced {
			return []string{text}
		}
		text = inNamespace(text, exampleNamespace)
	case "operator":
		return []string{strings.Replace(text, lastFlag, lastFlag+o.watched(), 1)}
	}
	if !strings.Contains(text, exampleNamespace) {
		return []string{text}
	}
	var all []string
	for _, ns := range o.BenchmarkNamespaces {
		all = append(all, strings.ReplaceAll(text, exampleNamespace, ns))
	}
	return all
}

func (o *Options) ports() string {
	if len(o.APIServerPorts) == 0 {
		return apiServerPorts
	}
	var all []string
	for _, port := range o.APIServerPorts {
		all = append(all, fmt.Sprintf("{port: %d, protocol: TCP}", port))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// watched returns the operator's arguments that limit it to namespaces.
func (o *Options) watched() string {
	var b strings.Builder
	if o.Namespaced {
		for _, ns := range o.BenchmarkNamespaces {
			fmt.Fprintf(&b, "            - --watch-namespace=%s\n", ns)
		}
	}
	return b.String()
}

// inNamespace makes a Role and a RoleBinding of a manifest with a ClusterRole and its binding.
func inNamespace(text, namespace string) string {
	text = strings.ReplaceAll(text, "kind: ClusterRole", "kind: Role")
	return strings.ReplaceAll(text, "metadata:\n", "metadata:\n  namespace: "+namespace+"\n")
}

// Objects are all objects of an installation, in the order in which they are
// applied.
func Objects(o Options) ([]*unstructured.Unstructured, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	all, err := decode("crd", crd.Benchmark)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		objects, err := o.read("install/"+name+".yaml", name)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	if o.CSIProxy != nil {
		objects, err := o.csiProxy()
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, errors.Join(o.resultsVolume(find(all, "PersistentVolumeClaim", "cnsbench-results")),
		o.resultsArgs(find(all, "Deployment", "cnsbench-results")))
}

// read reads the objects of a manifest, as the installation wants them.
func (o *Options) read(file, name string) (all []*unstructured.Unstructured, err error) {
	text, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for _, one := range o.texts(name, string(text)) {
		objects, err := decode(name, []byte(one))
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// csiProxy returns the CSI proxies' objects: the namespace first, the DaemonSets last.
func (o *Options) csiProxy() ([]*unstructured.Unstructured, error) {
	proxies, err := o.read("csi-proxy/csi-proxy.yaml", "csi-proxy")
	if err != nil {
		return nil, err
	}
	policies, err := o.read("csi-proxy/network.yaml", "network")
	if err != nil {
		return nil, err
	}
	sample := proxies[len(proxies)-1]
	sets, err := o.CSIProxy.objects(sample)
	return slices.Concat(proxies[:len(proxies)-1], policies, sets), err
}

func (o *Options) resultsVolume(claim *unstructured.Unstructured) error {
	var errs []error
	if o.ResultsStorageClass != "" {
		errs = append(errs, unstructured.SetNestedField(claim.Object, o.ResultsStorageClass, "spec",
			"storageClassName"))
	}
	if o.ResultsSize != "" {
		errs = append(errs, unstructured.SetNestedField(claim.Object, o.ResultsSize, "spec", "resources", "requests",
			"storage"))
	}
	return errors.Join(errs...)
}

// resultsArgs adds flags to the results service.
func (o *Options) resultsArgs(deployment *unstructured.Unstructured) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil || len(o.ResultsArgs) == 0 {
		return err
	}
	c := containers[0].(map[string]any)
	args := c["args"].([]any)
	for _, a := range o.ResultsArgs {
		args = append(args, a)
	}
	c["args"] = args
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}

// find returns the object of a kind and name, which every installation has.
func find(all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	return all[slices.IndexFunc(all, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == kind && u.GetName() == name
	})]
}

// decode reads the documents of one manifest.
func decode(name string, text []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := d.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
}
