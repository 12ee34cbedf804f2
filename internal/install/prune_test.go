package install

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/cnsbench/cnsbench/config"
)

// An installation that is limited to a namespace takes the rights in the others from its operator, and leaves what it
// has not made.
func TestPrune(t *testing.T) {
	before, err := config.Objects(config.Options{BenchmarkNamespaces: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	after, err := config.Objects(config.Options{BenchmarkNamespaces: []string{"a"}, Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	var there []runtime.Object
	for _, u := range before {
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: fieldManager}})
		there = append(there, u)
	}
	helms := before[slices.IndexFunc(before, func(u *unstructured.Unstructured) bool {
		return u.GetName() == "cnsbench-agents"
	})].DeepCopy()
	helms.SetNamespace("c")
	helms.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "helm"}})
	lists := map[schema.GroupVersionResource]string{}
	for _, v := range varying {
		lists[v] = map[string]string{"clusterrolebindings": "ClusterRoleBindingList", "clusterroles": "ClusterRoleList",
			"rolebindings": "RoleBindingList", "roles": "RoleList", "networkpolicies": "NetworkPolicyList"}[v.Resource]
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, append(there, helms)...)
	i := &Installer{dynamic: client, Say: t.Logf}
	if err := i.Prune(t.Context(), after, true); err != nil {
		t.Fatal(err)
	}
	if len(client.Actions()) != len(varying) {
		t.Errorf("--dry-run did more than list: %v", client.Actions())
	}
	if err := i.Prune(t.Context(), after, false); err != nil {
		t.Fatal(err)
	}
	want := []string{"clusterrolebindings /cnsbench-operator", "clusterroles /cnsbench-operator",
		"networkpolicies b/cnsbench-agents", "networkpolicies b/cnsbench-runners",
		"networkpolicies b/cnsbench-runners-of-commands"}
	if diff := cmp.Diff(want, deleted(client)); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

func deleted(client *fake.FakeDynamicClient) (all []string) {
	for _, a := range client.Actions() {
		if d, ok := a.(interface{ GetName() string }); ok && a.GetVerb() == "delete" {
			all = append(all, a.GetResource().Resource+" "+a.GetNamespace()+"/"+d.GetName())
		}
	}
	slices.Sort(all)
	return all
}
