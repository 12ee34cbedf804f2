package podrunner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// MissingRights lists the rights that the plan needs and the Benchmark's ServiceAccount lacks. A user who may not
// review the rights of others gets an empty list: the runner lists what is missing.
func MissingRights(ctx context.Context, on *cluster.Cluster, p *plan.Plan) (
	missing []plan.Right, account string, err error) {
	account = cmp.Or(p.Benchmark.Spec.ServiceAccountName, "default")
	missing, err = on.Missing(ctx, p, on.MayAccount(account))
	if apierrors.IsForbidden(err) {
		return nil, account, nil
	}
	return missing, account, err
}

// rights are an account and the roles that give it what the runner of a plan needs.
type rights struct {
	account     *corev1.ServiceAccount
	role        *rbacv1.Role
	binding     *rbacv1.RoleBinding
	wide        *rbacv1.ClusterRole
	wideBinding *rbacv1.ClusterRoleBinding
}

// rightsOf are the rules of the roles cnsbench-runner (in its namespace) and cnsbench-runner-cluster, and the further
// rules that the plan needs, for the account that meta names. wide is of the objects without a namespace.
func rightsOf(ctx context.Context, on *cluster.Cluster, p *plan.Plan, meta, wide metav1.ObjectMeta) (*rights, error) {
	inside, outside, err := rules(ctx, on, p)
	if err != nil {
		return nil, err
	}
	kind := func(name string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: name}
	}
	to := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: meta.Name, Namespace: meta.Namespace}}
	return &rights{
		account: &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: meta},
		role: &rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta, Rules: inside},
		binding: &rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: meta, RoleRef: to("Role", meta.Name),
			Subjects: subjects},
		wide: &rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: wide, Rules: outside},
		wideBinding: &rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: wide,
			RoleRef: to("ClusterRole", wide.Name), Subjects: subjects},
	}, nil
}

// RightsManifest returns the objects that an administrator applies, so that a ServiceAccount can run the plan in the
// namespace of the cluster, as a stream of YAML documents.
func RightsManifest(ctx context.Context, on *cluster.Cluster, p *plan.Plan, account string) ([]byte, error) {
	meta := metav1.ObjectMeta{Name: account, Namespace: on.Namespace}
	r, err := rightsOf(ctx, on, p, meta, metav1.ObjectMeta{Name: "cnsbench-" + on.Namespace + "-" + account})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, o := range []any{r.account, r.role, r.binding, r.wide, r.wideBinding} {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

// createRights creates a ServiceAccount for the runner, with what rightsOf gives. It returns the account's name. The
// ClusterRole owns its binding, and allows its own deletion: a runner whose command is gone deletes it.
func (r *Runner) createRights(ctx context.Context) (string, error) {
	meta := r.meta()
	wide := *meta.DeepCopy() // a cluster-scoped object cannot have an owner in a namespace
	wide.Namespace, wide.OwnerReferences = "", nil
	of, err := rightsOf(ctx, r.Cluster, r.Plan, meta, wide)
	if err != nil {
		return "", err
	}
	of.wide.Rules = append(of.wide.Rules, rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName},
		Resources: []string{"clusterroles"}, ResourceNames: []string{wide.Name}, Verbs: []string{"delete"}})
	rbac := r.Set.RbacV1()
	const failed = "--create-rbac: %w; name a ServiceAccount that has the rights: spec.serviceAccountName"
	role, err := rbac.ClusterRoles().Create(ctx, of.wide, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf(failed, err)
	}
	of.wideBinding.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: of.wide.APIVersion, Kind: of.wide.Kind, Name: role.Name, UID: role.UID}}
	for _, create := range []func(context.Context) error{
		creation(r.Set.CoreV1().ServiceAccounts(r.Namespace), of.account),
		creation(rbac.Roles(r.Namespace), of.role),
		creation(rbac.RoleBindings(r.Namespace), of.binding),
		creation(rbac.ClusterRoleBindings(), of.wideBinding),
	} {
		if err := create(ctx); err != nil {
			return "", fmt.Errorf(failed, err)
		}
	}
	return meta.Name, nil
}

// creation creates an object when it is called.
func creation[T any](in interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
}, o T) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := in.Create(ctx, o, metav1.CreateOptions{})
		return err
	}
}

// rules are the runner's rules in the namespace of the cluster, and outside of it.
func rules(ctx context.Context, on *cluster.Cluster, p *plan.Plan) (inside, outside []rbacv1.PolicyRule, err error) {
	if inside, err = rulesOf("cnsbench-runner"); err != nil {
		return nil, nil, err
	}
	if outside, err = rulesOf("cnsbench-runner-cluster"); err != nil {
		return nil, nil, err
	}
	more, err := on.Missing(ctx, p, func(_ context.Context, a *authorizationv1.ResourceAttributes) (bool, error) {
		return allow(outside, a) || a.Namespace == on.Namespace && allow(inside, a), nil
	})
	for _, m := range more {
		rule := rbacv1.PolicyRule{APIGroups: []string{m.Group}, Verbs: []string{m.Verb},
			Resources: []string{resourceName(m.Resource, m.Subresource)}}
		if m.ClusterScoped || m.Namespace != "" && m.Namespace != on.Namespace {
			outside = append(outside, rule)
		} else {
			inside = append(inside, rule)
		}
	}
	return inside, outside, err
}

// allow says whether one of the rules grants a right.
func allow(rules []rbacv1.PolicyRule, a *authorizationv1.ResourceAttributes) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, a.Group) && slices.Contains(r.Verbs, a.Verb) &&
			slices.Contains(r.Resources, resourceName(a.Resource, a.Subresource))
	})
}

// resourceName is the name of a resource in a role.
func resourceName(resource, subresource string) string {
	if subresource == "" {
		return resource
	}
	return resource + "/" + subresource
}

// removeRights deletes what createRights has created for a run, if check accepts its labels; a nil check accepts all.
func removeRights(ctx context.Context, on *cluster.Cluster, name string,
	check func(labels map[string]string) error) error {
	rbac := on.Set.RbacV1()
	return errors.Join(
		removeRight(ctx, name, check, rbac.ClusterRoleBindings()),
		removeRight(ctx, name, check, rbac.ClusterRoles()),
		removeRight(ctx, name, check, rbac.RoleBindings(on.Namespace)),
		removeRight(ctx, name, check, rbac.Roles(on.Namespace)),
		removeRight(ctx, name, check, on.Set.CoreV1().ServiceAccounts(on.Namespace)),
	)
}

// removable is a client of one kind of object.
type removable[T metav1.Object] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

func removeRight[T metav1.Object](ctx context.Context, name string, check func(map[string]string) error,
	from removable[T]) error {
	opts := metav1.DeleteOptions{}
	absent := func(err error) error {
		if apierrors.IsForbidden(err) { // a user without rights on roles has created none
			return nil
		}
		return ignoreNotFound(err)
	}
	if check != nil {
		o, err := from.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return absent(err)
		}
		if err := check(o.GetLabels()); err != nil {
			return fmt.Errorf("%T %s: %w", o, name, err)
		}
		uid := o.GetUID()
		opts.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	return absent(from.Delete(ctx, name, opts))
}

// rulesOf are the rules of a role of the installation.
func rulesOf(name string) ([]rbacv1.PolicyRule, error) {
	objects, err := config.Objects(config.Options{})
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if o.GetKind() == "ClusterRole" && o.GetName() == name {
			var role rbacv1.ClusterRole
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role)
			return role.Rules, err
		}
	}
	return nil, fmt.Errorf("role %s not found", name)
}
