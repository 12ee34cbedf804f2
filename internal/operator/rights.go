package operator

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pinMap is the ConfigMap of an installation with the pin of the certificate of the results service.
const pinMap = "cnsbench-results"

// Right is a right that the operator needs: in its own namespace if Own is set, else in all that it watches.
type Right struct {
	Group, Resource, Verb string
	Own                   bool   // only in the operator's own namespace
	Name                  string // of the one object; empty: any
}

func (r Right) String() string { return r.in("") }

// in describes the right in a namespace; "" is all.
func (r Right) in(namespace string) string {
	where := "in all namespaces"
	switch {
	case r.Own:
		where = "in its own namespace"
	case namespace != "":
		where = "in namespace " + namespace
	}
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Name != "" {
		resource += " " + r.Name
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
	grant("coordination.k8s.io", "leases", "list watch")
	grant("", "namespaces", "get")
	grant("", "events", "list")
	grant("events.k8s.io", "events", "create patch")
	own := func(group, resource, verb, name string) {
		all = append(all, Right{Group: group, Resource: resource, Verb: verb, Own: true, Name: name})
	}
	for _, verb := range []string{"get", "create", "update"} {
		own("coordination.k8s.io", "leases", verb, "")
	}
	own("", "events", "create", "")
	own("", "events", "patch", "")
	own("", "configmaps", "get", pinMap)
	return all
}

// places returns the namespaces in which a right is needed; "" is all.
func (o *Options) places(r Right) []string {
	switch {
	case r.Name == pinMap && o.PublishedPin == nil, r.Name == "" && r.Own && !o.LeaderElect:
		return nil
	case r.Own:
		return []string{o.Namespace}
	case len(o.Watch) == 0:
		return []string{""}
	}
	return o.Watch
}

// checkRights checks all rights by SelfSubjectAccessReviews. Its error names the missing ones.
func checkRights(ctx context.Context, c client.Writer, o *Options) error {
	var missing []string
	for _, r := range Rights() {
		for _, namespace := range o.places(r) {
			ok, err := allowed(ctx, c, r, namespace)
			if err != nil {
				return fmt.Errorf("review the operator's rights: %w", err)
			}
			if !ok {
				missing = append(missing, r.in(namespace))
			}
		}
	}
	if missing != nil {
		return fmt.Errorf("the operator's ServiceAccount lacks rights: %s; the role cnsbench-operator grants them "+
			"(cnsbench install)", strings.Join(missing, ", "))
	}
	return nil
}

func allowed(ctx context.Context, c client.Writer, r Right, namespace string) (bool, error) {
	resource, sub, _ := strings.Cut(r.Resource, "/")
	a := &authorizationv1.ResourceAttributes{Namespace: namespace, Group: r.Group, Resource: resource,
		Subresource: sub, Verb: r.Verb, Name: r.Name}
	if r.Group == "" && r.Resource == "namespaces" {
		a.Name = namespace // a Role grants the right to get its own namespace only
	}
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}
