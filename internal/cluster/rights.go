package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/internal/plan"
)

// CheckRights returns an error that lists every right which the plan needs and the user lacks.
func (c *Cluster) CheckRights(ctx context.Context, p *plan.Plan) error {
	missing, err := c.Missing(ctx, p, c.MayI)
	if err != nil {
		return fmt.Errorf("review rights: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("missing rights:\n  %s\ncnsbench doctor --rbac FILE prints the roles that "+
		"give them; for a runner's pod, --create-rbac makes an account for the run", RightsText(missing))
}

// RightsText lists rights, one per line.
func RightsText(rights []plan.Right) string {
	lines := make([]string, len(rights))
	for i, r := range rights {
		lines[i] = r.String()
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n  ")
}

// Missing lists the rights that the plan needs and that may denies. It asks the API server for the resources of
// kinds that only the Benchmark's manifests name.
func (c *Cluster) Missing(ctx context.Context, p *plan.Plan, may AccessReview) ([]plan.Right, error) {
	var missing []plan.Right
	for _, r := range plan.Rights(p) {
		if r.Kind != "" && c.Client == nil {
			return nil, fmt.Errorf("without a cluster it is not known which resource kind %s is", r.Kind)
		}
		if r.Kind != "" {
			kind, err := c.Client.Find(ctx, schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
			if err != nil {
				return nil, err
			}
			r.Resource, r.ClusterScoped = kind.Resource, !kind.Namespaced
		}
		namespace := cmp.Or(r.Namespace, c.Namespace)
		if r.ClusterScoped {
			namespace = ""
		}
		allowed, err := may(ctx, &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource})
		if err != nil {
			return nil, err
		}
		if !allowed {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// AccessReview asks the API server whether a subject may do something.
type AccessReview func(context.Context, *authorizationv1.ResourceAttributes) (bool, error)

// MayI reviews the user of this command.
func (c *Cluster) MayI(ctx context.Context, what *authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}
	answer, err := c.Set.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

// MayAccount reviews a ServiceAccount of the run's namespace.
func (c *Cluster) MayAccount(name string) AccessReview {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + c.Namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + c.Namespace, "system:authenticated"},
	}
	return func(ctx context.Context, what *authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		review.Spec.ResourceAttributes = what
		answer, err := c.Set.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	}
}
