package cli

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// onePlan returns the plan of a Benchmark that creates a volume.
func onePlan(t *testing.T) *plan.Plan {
	t.Helper()
	const text = "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: b}\n" +
		"spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: sc}}}]}\n"
	p, problems := plan.Load(t.Context(), plan.Input{
		Files: []plan.File{{Name: "b.yaml", Data: []byte(text)}}, Capabilities: kubernetes.Capabilities()})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

// answering returns a cluster whose API server answers SubjectAccessReviews with the results of answer.
func answering(answer func(authorizationv1.SubjectAccessReviewSpec) (bool, error)) *cluster.Cluster {
	set := fake.NewClientset()
	set.PrependReactor("create", "subjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
		review := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		allowed, err := answer(review.Spec)
		review.Status.Allowed = allowed
		return true, review, err
	})
	return &cluster.Cluster{Namespace: "n", Set: set}
}

// TestCheckRunnerRights checks that rights missing to the account of the run's pod are named before anything is
// created, and that the creation of an account is offered.
func TestCheckRunnerRights(t *testing.T) {
	p := onePlan(t)
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
		{"has all", func(authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, nil }, true, "", false,
			false, false},
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
			f := &runFlags{}
			s := &streams{in: strings.NewReader(tt.typed), err: &said, terminal: func() bool { return tt.terminal }}
			err := f.checkRunnerRights(t.Context(), s, answering(tt.answer), p)
			if (err != nil) != tt.fails || f.CreateRBAC != tt.made ||
				strings.Contains(said.String(), "[y/N]") != tt.asked {
				t.Errorf("error %v, account %v, said %q", err, f.CreateRBAC, said.String())
			}
			for _, want := range []string{"create persistentvolumeclaims", "--create-rbac", "spec.serviceAccountName"} {
				if tt.fails && !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
		})
	}
}
