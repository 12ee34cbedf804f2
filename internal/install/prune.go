package install

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// varying are the resources of which an installation has more or fewer, depending on its options.
var varying = []schema.GroupVersionResource{
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
}

// prunable selects objects of an installation, but not of CSI proxies, which uninstall removes with their namespace.
const prunable = "app.kubernetes.io/name=cnsbench,app.kubernetes.io/component in (operator,results,benchmarks)"

// Prune deletes roles, bindings and NetworkPolicies in all namespaces that an earlier Apply with other options has
// created and that are not among objects. Without it, an operator that is limited to some namespaces would keep its
// rights in the others.
func (i *Installer) Prune(ctx context.Context, objects []*unstructured.Unstructured, dryRun bool) error {
	wanted := map[string]bool{}
	for _, u := range objects {
		wanted[describe(u)] = true
	}
	for _, resource := range varying {
		list, err := i.dynamic.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: prunable})
		if err != nil {
			return fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for k := range list.Items {
			u := &list.Items[k]
			if wanted[describe(u)] || !applied(u) {
				continue
			}
			if err := i.prune(ctx, resource, u, dryRun); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *Installer) prune(ctx context.Context, resource schema.GroupVersionResource, u *unstructured.Unstructured,
	dryRun bool) error {
	if dryRun {
		i.Say("would delete %s", describe(u))
		return nil
	}
	uid := u.GetUID()
	err := i.dynamic.Resource(resource).Namespace(u.GetNamespace()).Delete(ctx, u.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", describe(u), err)
	}
	i.Say("deleted %s", describe(u))
	return nil
}

// applied reports whether install has applied an object, and not, for example, Helm.
func applied(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == fieldManager
	})
}
