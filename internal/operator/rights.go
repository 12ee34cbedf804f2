package operator

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Right is a right that the operator needs, in all namespaces unless Own is set.
type Right struct {
	Group, Resource, Verb string
	Own                   bool // only in the operator's own namespace
}

func (r Right) String() string {
	where := "in all namespaces"
	if r.Own {
		where = "in its own namespace"
	}
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	return fmt.Sprintf("%s %s %s", r.Verb, resource, where)
}

// Rights returns the rights that the operator needs. The manifests grant exactly these.
func Rights() []Right {
	var all []Right
	grant := func(group, resource, verbs string) {
		for _, v := range strings.Fields(verbs) {
			all = append(all, Right{Group: group, Resource: resource, Verb: v})
		}
	}
	grant("cnsbench.dev", "benchmarks", "get list watch patch")
	grant("cnsbench.dev", "benchmarks/status", "update")
	grant("cnsbench.dev", "benchmarks/finalizers", "update")
	grant("cnsbench.dev", "benchmarks/results", "get update")
	grant("batch", "jobs", "get list watch create delete")
	grant("", "pods", "list watch")
	grant("", "configmaps", "get create")
	grant("", "namespaces", "get")
	grant("", "events", "list")
	grant("events.k8s.io", "events", "create patch")
	return append(all,
		Right{"coordination.k8s.io", "leases", "get", true}, Right{"coordination.k8s.io", "leases", "create", true},
		Right{"coordination.k8s.io", "leases", "update", true},
		Right{"", "events", "create", true}, Right{"", "events", "patch", true})
}

// checkRights checks all rights by SelfSubjectAccessReviews. Its error names the missing ones.
func checkRights(ctx context.Context, c client.Writer, namespace string, elect bool) error {
	var missing []string
	for _, r := range Rights() {
		if r.Own && !elect {
			continue
		}
		resource, sub, _ := strings.Cut(r.Resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: r.Group, Resource: resource, Subresource: sub, Verb: r.Verb}}}
		if r.Own {
			review.Spec.ResourceAttributes.Namespace = namespace
		}
		if err := c.Create(ctx, review); err != nil {
			return fmt.Errorf("review the operator's rights: %w", err)
		}
		if !review.Status.Allowed {
			missing = append(missing, r.String())
		}
	}
	if missing != nil {
		return fmt.Errorf("the operator's ServiceAccount lacks rights: %s; ClusterRole cnsbench-operator grants them "+
			"(cnsbench install)", strings.Join(missing, ", "))
	}
	return nil
}
