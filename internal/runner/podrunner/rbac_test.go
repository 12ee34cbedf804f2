package podrunner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// planOf is what a Benchmark with these actions comes to on a cluster.
func planOf(t *testing.T, actions string) *plan.Plan {
	t.Helper()
	text := "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: b}\nspec: {actions: [" + actions +
		"]}\n"
	p, problems := plan.Load(t.Context(), plan.Input{
		Files: []plan.File{{Name: "b.yaml", Data: []byte(text)}}, Capabilities: kubernetes.Capabilities()})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

const (
	oneVolume = "{name: v, createObjSpec: {volume: {storageClass: sc}}}"
	drained   = oneVolume + ", {name: d, drainSpec: {nodeName: a}}"
)

// TestCreateRights: the roles that --create-rbac makes give what the plan needs, and
// no more than the roles of the installation where those are enough.
func TestCreateRights(t *testing.T) {
	for name, actions := range map[string]string{"volumes": oneVolume, "drain": drained} {
		t.Run(name, func(t *testing.T) {
			on := &cluster.Cluster{Namespace: "n", Set: fake.NewClientset()}
			r := &Runner{Cluster: on, Plan: planOf(t, actions), ID: "r"}
			account, err := r.createRights(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rbac := on.Set.RbacV1()
			role, err := rbac.Roles("n").Get(t.Context(), account, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wide, err := rbac.ClusterRoles().Get(t.Context(), account, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, right := range plan.Rights(r.Plan) {
				a := &authorizationv1.ResourceAttributes{Group: right.Group, Resource: right.Resource,
					Subresource: right.Subresource, Verb: right.Verb}
				if !allow(wide.Rules, a) && (right.ClusterScoped || !allow(role.Rules, a)) {
					t.Errorf("%s is not given", right)
				}
			}
			patch := &authorizationv1.ResourceAttributes{Resource: "nodes", Verb: "patch"}
			if allow(wide.Rules, patch) != (name == "drain") {
				t.Errorf("nodes may be patched: %v", allow(wide.Rules, patch))
			}
			binding, err := rbac.ClusterRoleBindings().Get(t.Context(), account, metav1.GetOptions{})
			if err != nil || len(binding.Subjects) != 1 || binding.Subjects[0].Name != account ||
				binding.RoleRef.Name != account {
				t.Errorf("%+v, %v", binding, err)
			}
			if err := removeRights(t.Context(), on, account, nil); err != nil {
				t.Fatal(err)
			}
			for _, a := range []func() (int, error){
				func() (int, error) {
					l, err := rbac.ClusterRoles().List(t.Context(), metav1.ListOptions{})
					return len(l.Items), err
				},
				func() (int, error) {
					l, err := rbac.Roles("").List(t.Context(), metav1.ListOptions{})
					return len(l.Items), err
				},
				func() (int, error) {
					l, err := on.Set.CoreV1().ServiceAccounts("").List(t.Context(), metav1.ListOptions{})
					return len(l.Items), err
				},
			} {
				if n, err := a(); n != 0 || err != nil {
					t.Errorf("%d are left, %v", n, err)
				}
			}
		})
	}
}

// TestRightsManifest: what an administrator applies names the account, its namespace, and the same rules.
func TestRightsManifest(t *testing.T) {
	on := &cluster.Cluster{Namespace: "measure"}
	text, err := RightsManifest(t.Context(), on, planOf(t, drained), "bench")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, part := range strings.Split(string(text), "---\n")[1:] {
		var o metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatal(err)
		}
		kinds[o.Kind] = o.Namespace + "/" + o.Name
	}
	want := map[string]string{"ServiceAccount": "measure/bench", "Role": "measure/bench", "RoleBinding": "measure/bench",
		"ClusterRole": "/cnsbench-measure-bench", "ClusterRoleBinding": "/cnsbench-measure-bench"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(text), "- nodes") || !strings.Contains(string(text), "- persistentvolumeclaims") {
		t.Errorf("rules are missing:\n%s", text)
	}
}
