package cli

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cnsbench/cnsbench/config"
)

// createRights makes a ServiceAccount for the runner alone, and binds it to the
// rules of the roles cnsbench-runner, in its namespace, and
// cnsbench-runner-cluster. It returns the account's name.
func (r *podRun) createRights(ctx context.Context) (string, error) {
	inside, err := rulesOf("cnsbench-runner")
	if err != nil {
		return "", err
	}
	cluster, err := rulesOf("cnsbench-runner-cluster")
	if err != nil {
		return "", err
	}
	meta, rbac, opts := r.meta(), r.set.RbacV1(), metav1.CreateOptions{}
	wide := *meta.DeepCopy() // what is in no namespace cannot be owned by what is in one
	wide.Namespace, wide.OwnerReferences = "", nil
	to := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: meta.Name}
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: meta.Name, Namespace: r.namespace}}
	for _, create := range []func() error{
		func() error {
			_, err := r.set.CoreV1().ServiceAccounts(r.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, opts)
			return err
		},
		func() error {
			_, err := rbac.Roles(r.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: inside}, opts)
			return err
		},
		func() error {
			b := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: to("Role"), Subjects: subjects}
			_, err := rbac.RoleBindings(r.namespace).Create(ctx, b, opts)
			return err
		},
		func() error {
			_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: wide, Rules: cluster}, opts)
			return err
		},
		func() error {
			b := &rbacv1.ClusterRoleBinding{ObjectMeta: wide, RoleRef: to("ClusterRole"), Subjects: subjects}
			_, err := rbac.ClusterRoleBindings().Create(ctx, b, opts)
			return err
		},
	} {
		if err := create(); err != nil {
			return "", fmt.Errorf("--create-rbac: %w; name a ServiceAccount that has the rights: spec.serviceAccountName", err)
		}
	}
	return meta.Name, nil
}

// removeRights deletes what createRights has made for a run, if check accepts its
// labels; nil: this process has made it. What is in the namespace goes with the
// run's Lease too.
func (c *cluster) removeRights(ctx context.Context, name string, check func(labels map[string]string) error) error {
	rbac := c.set.RbacV1()
	return errors.Join(
		removeRight(ctx, name, check, rbac.ClusterRoleBindings()),
		removeRight(ctx, name, check, rbac.ClusterRoles()),
		removeRight(ctx, name, check, rbac.RoleBindings(c.namespace)),
		removeRight(ctx, name, check, rbac.Roles(c.namespace)),
		removeRight(ctx, name, check, c.set.CoreV1().ServiceAccounts(c.namespace)),
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
		if apierrors.IsForbidden(err) { // who may not look at roles, or delete them, has not made any
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

// rulesOf are those of a role of the installation.
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
	return nil, fmt.Errorf("there is no role %s", name)
}
