package operator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	manifests "github.com/cnsbench/cnsbench/config"
)

// TestRightsAreThoseOfTheManifests checks that the manifests grant exactly the rights that the operator checks at its
// start.
func TestRightsAreThoseOfTheManifests(t *testing.T) {
	objects, err := manifests.Objects(manifests.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
						granted = append(granted, Right{group.(string), resource.(string), verb.(string),
							u.GetKind() == "Role"}.String())
					}
				}
			}
		}
	}
	var asked []string
	for _, r := range Rights() {
		asked = append(asked, r.String())
	}
	slices.Sort(granted)
	slices.Sort(asked)
	if diff := cmp.Diff(granted, asked); diff != "" {
		t.Errorf("granted (-) and asked for (+) differ:\n%s", diff)
	}
}
