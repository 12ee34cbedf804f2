package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// typed converts the objects of a kind.
func typed[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) (all []*T) {
	t.Helper()
	for _, u := range objects {
		if u.GetKind() != kind {
			continue
		}
		var o T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &o, true); err != nil {
			t.Fatalf("%s %s: %v", kind, u.GetName(), err)
		}
		all = append(all, &o)
	}
	return all
}

// Every pod of the installation is isolated in both directions, and connections reach declared ports only.
func TestNetworkPolicies(t *testing.T) {
	objects, err := Objects(Options{Namespace: "own", CSIProxy: &CSIProxy{Drivers: []CSIDriver{
		{"a.example.com", "/a/csi.sock"}, {"b.example.com", "/b/csi.sock"}}}})
	if err != nil {
		t.Fatal(err)
	}
	policies := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
	got := map[string][]int{}
	for _, w := range workloads(t, objects) {
		var ports []int
		for _, p := range policies {
			if !selects(t, p, w) {
				continue
			}
			if len(p.Spec.PolicyTypes) != 2 {
				t.Errorf("policy %s isolates in %v only", p.Name, p.Spec.PolicyTypes)
			}
			for _, rule := range p.Spec.Ingress {
				if len(rule.From) == 0 || len(rule.Ports) == 0 {
					t.Errorf("policy %s lets everyone in, or to all ports: %+v", p.Name, rule)
				}
				for _, port := range rule.Ports {
					ports = append(ports, port.Port.IntValue())
				}
			}
			for _, rule := range p.Spec.Egress {
				if len(rule.Ports) == 0 {
					t.Errorf("policy %s lets %s connect to all ports", p.Name, w.name)
				}
			}
			got[w.name] = ports
		}
	}
	want := map[string][]int{"cnsbench-operator": {8080}, "cnsbench-results": {8443},
		"cnsbench-csi-proxy-a-example-com": {9443}, "cnsbench-csi-proxy-b-example-com": {9443}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ports that others can reach (-want +got):\n%s", diff)
	}
}

// workload is a Deployment or DaemonSet: where its pods are, and their labels.
type workload struct {
	name, namespace string
	labels          map[string]string
}

func workloads(t *testing.T, objects []*unstructured.Unstructured) (all []workload) {
	t.Helper()
	for _, d := range typed[appsv1.Deployment](t, objects, "Deployment") {
		all = append(all, workload{d.Name, d.Namespace, d.Spec.Template.Labels})
	}
	for _, d := range typed[appsv1.DaemonSet](t, objects, "DaemonSet") {
		all = append(all, workload{d.Name, d.Namespace, d.Spec.Template.Labels})
	}
	return all
}

func selects(t *testing.T, p *networkingv1.NetworkPolicy, w workload) bool {
	t.Helper()
	return p.Namespace == w.namespace && matches(t, &p.Spec.PodSelector, w.labels)
}

func matches(t *testing.T, s *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(set))
}

// Who may connect to whom, among the pods of one namespace of Benchmarks.
func TestNetworkPoliciesOfBenchmarks(t *testing.T) {
	objects, err := Objects(Options{BenchmarkNamespaces: []string{"measure"}})
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]map[string]string{
		"agent":             {"cnsbench.dev/run": "r"},
		"operator's runner": {"cnsbench.dev/runner-of": "r", "cnsbench.dev/role": "runner"},
		"command's runner":  {"cnsbench.dev/runner": "r"},
		"other":             {"app": "web"},
	}
	policies := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
	policies = slices.DeleteFunc(policies, func(p *networkingv1.NetworkPolicy) bool { return p.Namespace != "measure" })
	got := map[string]string{}
	for _, to := range slices.Sorted(maps.Keys(pods)) {
		var from []string
		for name, set := range pods {
			if reaches(t, policies, set, pods[to]) {
				from = append(from, name)
			}
		}
		slices.Sort(from)
		got[to] = strings.Join(from, ", ")
	}
	want := map[string]string{
		"agent":             "agent, command's runner, operator's runner",
		"operator's runner": "agent",
		"command's runner":  "agent",
		"other":             "agent, command's runner, operator's runner, other", // not isolated
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("who reaches whom (-want +got):\n%s", diff)
	}
}

// reaches reports whether ingress rules let a pod connect to another one of the same namespace.
func reaches(t *testing.T, policies []*networkingv1.NetworkPolicy, from, to map[string]string) bool {
	t.Helper()
	isolated := false
	for _, p := range policies {
		if !matches(t, &p.Spec.PodSelector, to) {
			continue
		}
		isolated = true
		for _, rule := range p.Spec.Ingress {
			for _, peer := range rule.From {
				if peer.NamespaceSelector == nil && matches(t, peer.PodSelector, from) {
					return true
				}
			}
		}
	}
	return !isolated
}

// The options switch policies off, and set the ports of the API server.
func TestNetworkPolicyOptions(t *testing.T) {
	all := Options{CSIProxy: &CSIProxy{}, BenchmarkNamespaces: []string{"a", "b"}, APIServerPorts: []int{16443}}
	objects, err := Objects(all)
	if err != nil {
		t.Fatal(err)
	}
	policies := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
	if len(policies) != 3+2*3 {
		t.Errorf("%d policies", len(policies))
	}
	for _, p := range policies {
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				if n := port.Port.IntValue(); n == 443 || n == 6443 {
					t.Errorf("policy %s lets pods connect to port %d", p.Name, n)
				}
			}
		}
	}
	all.NoNetworkPolicies = true
	if objects, err = Objects(all); err != nil {
		t.Fatal(err)
	}
	if n := len(typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")); n != 0 {
		t.Errorf("%d policies although they are switched off", n)
	}
}
