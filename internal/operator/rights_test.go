package operator

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "github.com/cnsbench/cnsbench/config"
)

// TestRightsAreThoseOfTheManifests checks that the manifests grant exactly the rights that the operator checks at its
// start.
func TestRightsAreThoseOfTheManifests(t *testing.T) {
	objects, err := manifests.Objects(manifests.Options{})
	if err != nil {
		t.Fatal(err)
	}
	own := func(u *unstructured.Unstructured) bool { return u.GetKind() == "Role" }
	if diff := cmp.Diff(grantedTo(objects, own), asked(Rights())); diff != "" {
		t.Errorf("granted (-) and asked for (+) differ:\n%s", diff)
	}
}

// TestNamespacedRights checks that in namespaced mode the operator has the same rights in its namespaces, none for the
// whole cluster, and asks for them only there.
func TestNamespacedRights(t *testing.T) {
	watch := []string{"a", "b"}
	objects, err := manifests.Objects(manifests.Options{BenchmarkNamespaces: watch, Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range watch {
		there := slices.DeleteFunc(slices.Clone(objects), func(u *unstructured.Unstructured) bool {
			return u.GetNamespace() != ns
		})
		if diff := cmp.Diff(grantedTo(there, func(*unstructured.Unstructured) bool { return false }),
			asked(slices.DeleteFunc(Rights(), func(r Right) bool { return r.Own }))); diff != "" {
			t.Errorf("in namespace %s, granted (-) and asked for (+) differ:\n%s", ns, diff)
		}
	}
	for _, u := range objects {
		if u.GetNamespace() == "" && u.GetName() == "cnsbench-operator" {
			t.Errorf("%s cnsbench-operator is for the whole cluster", u.GetKind())
		}
	}
	reviews := &reviews{}
	err = checkRights(t.Context(), reviews, &Options{Watch: watch, LeaderElect: true, Namespace: "own"})
	if want := "delete jobs.batch in namespace b"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v: want one with %q", err, want)
	}
	for _, a := range reviews.asked {
		if !slices.Contains(append(watch, "own"), a.Namespace) {
			t.Errorf("asked for %s %s in namespace %q", a.Verb, a.Resource, a.Namespace)
		}
	}
	for ns := range cacheOptions(watch).DefaultNamespaces {
		if !slices.Contains(watch, ns) {
			t.Errorf("watches namespace %q", ns)
		}
	}
	if n := len(cacheOptions(watch).DefaultNamespaces); n != 2 || cacheOptions(nil).DefaultNamespaces != nil {
		t.Errorf("watches %d namespaces; without a list, %v", n, cacheOptions(nil).DefaultNamespaces)
	}
}

// reviews answers SelfSubjectAccessReviews: all is allowed but deleting Jobs in namespace b.
type reviews struct {
	client.Writer
	asked []authorizationv1.ResourceAttributes
}

func (r *reviews) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	review := o.(*authorizationv1.SelfSubjectAccessReview)
	a := *review.Spec.ResourceAttributes
	r.asked = append(r.asked, a)
	review.Status.Allowed = a.Resource != "jobs" || a.Verb != "delete" || a.Namespace != "b"
	return nil
}

// grantedTo lists the operator's rights in the roles of objects; own says which roles are for its own namespace.
func grantedTo(objects []*unstructured.Unstructured, own func(*unstructured.Unstructured) bool) []string {
	var granted []string
	for _, u := range objects {
		if u.GetName() != "cnsbench-operator" && u.GetName() != "cnsbench-operator-leader" {
			continue
		}
		rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
		for _, r := range rules {
			m := r.(map[string]any)
			for _, group := range m["apiGroups"].([]any) {
				for _, resource := range m["resources"].([]any) {
					for _, verb := range m["verbs"].([]any) {
						right := Right{Group: group.(string), Resource: resource.(string), Verb: verb.(string), Own: own(u)}
						if names, _ := m["resourceNames"].([]any); len(names) == 1 {
							right.Name = names[0].(string)
						}
						granted = append(granted, right.String())
					}
				}
			}
		}
	}
	slices.Sort(granted)
	return granted
}

func asked(rights []Right) (all []string) {
	for _, r := range rights {
		all = append(all, r.String())
	}
	slices.Sort(all)
	return all
}
