package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// needRights finds out whether the ServiceAccount of the runner's pod has the rights
// that the plan needs. Where it lacks some and someone sits at the terminal, they
// are asked whether to make an account for this run, as --create-rbac does. Who may
// not ask for the rights of others goes on: the runner lists what is missing.
func (c *cluster) needRights(ctx context.Context, s *streams, f *clusterFlags, p *plan.Plan) error {
	if f.createRBAC {
		return nil
	}
	account := cmp.Or(p.Benchmark.Spec.ServiceAccountName, "default")
	missing, err := c.missing(ctx, p, c.mayAccount(account))
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil || len(missing) == 0 {
		return err
	}
	lacks := fmt.Sprintf("ServiceAccount %s in namespace %s, as which the run's pod runs, lacks rights:\n  %s",
		account, c.namespace, rightsText(missing))
	if s.atTerminal() {
		fmt.Fprintf(s.err, "%s\nMake a ServiceAccount with these rights for this run, and remove it afterwards? [y/N] ", lacks)
		answer, _ := bufio.NewReader(s.in).ReadString('\n') // its end is a no
		if f.createRBAC = strings.EqualFold(strings.TrimSpace(answer), "y"); f.createRBAC {
			return nil
		}
	}
	return fmt.Errorf("%s\nnothing was made; --create-rbac makes an account with them for this run, and removes it afterwards; "+
		"or name one that has them: spec.serviceAccountName (docs/kubernetes.md)", lacks)
}

// atTerminal says whether a question can be asked and answered.
func (s *streams) atTerminal() bool {
	if s.terminal != nil {
		return s.terminal()
	}
	f, ok := s.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// createRights makes a ServiceAccount for the runner alone, and binds it to the
// rules of the roles cnsbench-runner, in its namespace, and
// cnsbench-runner-cluster, and to what else this plan needs. It returns the
// account's name.
func (r *podRun) createRights(ctx context.Context) (string, error) {
	inside, cluster, err := r.rules(ctx)
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

// rules are what the runner may do in its namespace, and what in the cluster.
func (r *podRun) rules(ctx context.Context) (inside, cluster []rbacv1.PolicyRule, err error) {
	if inside, err = rulesOf("cnsbench-runner"); err != nil {
		return nil, nil, err
	}
	if cluster, err = rulesOf("cnsbench-runner-cluster"); err != nil {
		return nil, nil, err
	}
	more, err := r.missing(ctx, r.plan, func(_ context.Context, a *authorizationv1.ResourceAttributes) (bool, error) {
		return allow(cluster, a) || a.Namespace == r.namespace && allow(inside, a), nil
	})
	for _, m := range more {
		rule := rbacv1.PolicyRule{APIGroups: []string{m.Group}, Resources: []string{resourceName(m.Resource, m.Subresource)}, Verbs: []string{m.Verb}}
		if m.ClusterScoped || m.Namespace != "" && m.Namespace != r.namespace {
			cluster = append(cluster, rule)
		} else {
			inside = append(inside, rule)
		}
	}
	return inside, cluster, err
}

// allow says whether one of the rules gives a right.
func allow(rules []rbacv1.PolicyRule, a *authorizationv1.ResourceAttributes) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, a.Group) && slices.Contains(r.Verbs, a.Verb) &&
			slices.Contains(r.Resources, resourceName(a.Resource, a.Subresource))
	})
}

// resourceName is what a role calls a resource.
func resourceName(resource, subresource string) string {
	if subresource == "" {
		return resource
	}
	return resource + "/" + subresource
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
