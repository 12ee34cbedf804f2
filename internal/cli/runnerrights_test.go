package cli

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// planOf is what a Benchmark with these actions comes to on a cluster.
func planOf(t *testing.T, actions string) *plan.Plan {
	t.Helper()
	text := "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: b}\nspec: {actions: [" + actions + "]}\n"
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

// answering is a cluster whose API server says of SubjectAccessReviews what answer
// says.
func answering(answer func(authorizationv1.SubjectAccessReviewSpec) (bool, error)) *cluster {
	set := fake.NewClientset()
	set.PrependReactor("create", "subjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
		review := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		allowed, err := answer(review.Spec)
		review.Status.Allowed = allowed
		return true, review, err
	})
	return &cluster{namespace: "n", set: set}
}

// TestNeedRights: rights that the account of the run's pod lacks are named before
// anything is made, and an account for the run is offered.
func TestNeedRights(t *testing.T) {
	p := planOf(t, oneVolume)
	no := func(s authorizationv1.SubjectAccessReviewSpec) (bool, error) {
		if s.User != "system:serviceaccount:n:default" {
			t.Errorf("asked for %q", s.User)
		}
		return s.ResourceAttributes.Resource != "persistentvolumeclaims", nil
	}
	for _, tt := range []struct {
		name     string
		answer   func(authorizationv1.SubjectAccessReviewSpec) (bool, error)
		terminal bool
		typed    string
		asked    bool
		made     bool
		fails    bool
	}{
		{"has all", func(authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, nil }, true, "", false, false, false},
		{"no terminal", no, false, "y\n", false, false, true},
		{"yes", no, true, "y\n", true, true, false},
		{"no", no, true, "\n", true, false, true},
		{"the end", no, true, "", true, false, true},
		{"may not ask", func(authorizationv1.SubjectAccessReviewSpec) (bool, error) {
			return false, apierrors.NewForbidden(schema.GroupResource{}, "", nil)
		}, true, "", false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said strings.Builder
			f := &clusterFlags{}
			s := &streams{in: strings.NewReader(tt.typed), err: &said, terminal: func() bool { return tt.terminal }}
			err := answering(tt.answer).needRights(t.Context(), s, f, p)
			if (err != nil) != tt.fails || f.createRBAC != tt.made || strings.Contains(said.String(), "[y/N]") != tt.asked {
				t.Errorf("error %v, account %v, said %q", err, f.createRBAC, said.String())
			}
			for _, want := range []string{"create persistentvolumeclaims", "--create-rbac", "spec.serviceAccountName"} {
				if tt.fails && !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
		})
	}
}

// TestCreateRights: the roles that --create-rbac makes give what the plan needs, and
// no more than the roles of the installation where those are enough.
func TestCreateRights(t *testing.T) {
	for name, actions := range map[string]string{"volumes": oneVolume, "drain": drained} {
		t.Run(name, func(t *testing.T) {
			on := &cluster{namespace: "n", set: fake.NewClientset()}
			r := &podRun{cluster: on, plan: planOf(t, actions), id: "r"}
			account, err := r.createRights(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rbac := on.set.RbacV1()
			role, err := rbac.Roles("n").Get(t.Context(), account, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wide, err := rbac.ClusterRoles().Get(t.Context(), account, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, right := range plan.Rights(r.plan) {
				a := &authorizationv1.ResourceAttributes{Group: right.Group, Resource: right.Resource, Subresource: right.Subresource, Verb: right.Verb}
				if !allow(wide.Rules, a) && (right.ClusterScoped || !allow(role.Rules, a)) {
					t.Errorf("%s is not given", right)
				}
			}
			patch := &authorizationv1.ResourceAttributes{Resource: "nodes", Verb: "patch"}
			if allow(wide.Rules, patch) != (name == "drain") {
				t.Errorf("nodes may be patched: %v", allow(wide.Rules, patch))
			}
			binding, err := rbac.ClusterRoleBindings().Get(t.Context(), account, metav1.GetOptions{})
			if err != nil || len(binding.Subjects) != 1 || binding.Subjects[0].Name != account || binding.RoleRef.Name != account {
				t.Errorf("%+v, %v", binding, err)
			}
			if err := on.removeRights(t.Context(), account, nil); err != nil {
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
					l, err := on.set.CoreV1().ServiceAccounts("").List(t.Context(), metav1.ListOptions{})
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
