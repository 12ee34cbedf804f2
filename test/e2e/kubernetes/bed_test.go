//go:build e2e

package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// testBed is the cluster with the operator under test.
type testBed struct {
	client.Client
	binary, image, namespace string
}

// patience is the limit of each wait. The longest wait is for a runner that loses its rights when
// its namespace is deleted.
const patience = 7 * time.Minute

// alone are tests of minutes beside which no other runs. CI runs two of them for a commit.
var alone = []string{"TestDocument", "TestCSIProxy", "TestDisruptions", "TestCSIProxyInRun", "TestChaos"}

func newBed(t *testing.T) *testBed {
	t.Helper()
	if slices.Contains(alone, t.Name()) {
		rotation.Turn(t, 2, alone, t.Name())
	}
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Skip("needs a cluster: KUBECONFIG is not set (make testbed-up)")
	}
	cluster, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	bed := &testBed{Client: c, binary: os.Getenv("CNSBENCH_BIN"), image: os.Getenv("CNSBENCH_IMAGE"),
		namespace: "cnsbench-system"}
	if bed.image == "" {
		bed.image = "localhost/cnsbench:dev" // the image of the test bed
	}
	if bed.binary == "" {
		bed.binary = t.TempDir()
		build := exec.Command("go", "build", "-o", bed.binary, "./cmd/cnsbench")
		build.Dir = filepath.Join("..", "..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
	}
	bed.binary = filepath.Join(bed.binary, "cnsbench")
	return bed
}

// cnsbench runs the program and returns its output.
func (bed *testBed) cnsbench(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), bed.binary, args...)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, t.Output()), io.MultiWriter(&out, t.Output())
	err := cmd.Run()
	return out.String(), err
}

// breaks skips the test on a cluster whose components the tests must not disturb.
func (p *project) breaks() {
	p.t.Helper()
	if _, err := os.Stat(filepath.Join(testbedDir(), "bin", "testbed")); err != nil {
		p.t.Skipf("breaks parts of the cluster, so that it needs the test bed: %v", err)
	}
}

func testbedDir() string { return filepath.Dir(os.Getenv("KUBECONFIG")) }

// testbed runs the test bed's program.
func (p *project) testbed(args ...string) {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(testbedDir(), "bin", "testbed"), args...)
	cmd.Env = append(os.Environ(), "TESTBED_DIR="+testbedDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Errorf("testbed %v: %v\n%s", args, err, out)
	}
}

// install installs the operator with the given flags. At the end of the test it uninstalls it and
// checks that nothing is left.
func (bed *testBed) install(t *testing.T, flags ...string) {
	t.Helper()
	args := bed.installation(flags...)
	if out, err := bed.cnsbench(t, append(slices.Clip(args), "--dry-run")...); err != nil {
		t.Fatalf("dry run: %v\n%s", err, out)
	}
	for _, ns := range []string{bed.namespace, config.ProxyNamespace} {
		if err := bed.Get(t.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Fatalf("namespace %s is there already, or the dry run made it (%v): not touching it", ns, err)
		}
	}
	t.Cleanup(func() { bed.uninstall(t) })
	if _, err := bed.cnsbench(t, args...); err != nil {
		t.Fatal(err)
	}
	if out, err := bed.cnsbench(t, args...); err != nil { // install is idempotent
		t.Fatalf("again: %v\n%s", err, out)
	}
}

// installation returns the arguments of an install with the given flags.
func (bed *testBed) installation(flags ...string) []string {
	return append([]string{"install", "--image", bed.image, "--results-storage-class", "hostdir", "--results-size",
		"1Gi", "--timeout", "4m"}, flags...)
}

func (bed *testBed) uninstall(t *testing.T) {
	// Without --force, because the test must not delete what another user has applied meanwhile.
	// t's context has ended.
	cmd := exec.Command(bed.binary, "uninstall", "--delete-results", "--timeout", "5m")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("uninstall: %v\n%s", err, out)
	}
	ctx := context.Background()
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bed.namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: config.ProxyNamespace}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "benchmarks.cnsbench.dev"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cnsbench-operator"}}} {
		if err := bed.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left (%v)", o, o.GetName(), err)
		}
	}
}

// project is a namespace with a ServiceAccount that may run Benchmarks.
type project struct {
	*testBed
	t    *testing.T
	name string
}

const account = "bench"

// rights selects the roles that an account gets.
type rights int

const (
	allRights rights = iota
	noRights
	noAccount
)

func (bed *testBed) project(t *testing.T, r rights) *project {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-e2e-",
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := bed.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	p := &project{bed, t, ns.Name}
	t.Cleanup(func() { p.remove(ns) })
	if r == noAccount {
		return p
	}
	p.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: p.name}})
	if r == noRights {
		return p
	}
	p.allow(account)
	return p
}

// allow gives an account the rights that the documentation describes.
func (p *project) allow(account string) {
	p.t.Helper()
	p.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: p.name},
		RoleRef: clusterRole("cnsbench-runner"), Subjects: p.subjects(account)})
	p.bind(account, "cnsbench-runner-cluster")
}

// bind binds an account to a ClusterRole in the whole cluster.
func (p *project) bind(account, role string) {
	p.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: p.name + "-" + role},
		RoleRef: clusterRole(role), Subjects: p.subjects(account)}
	p.create(binding)
	p.t.Cleanup(func() { _ = p.Delete(context.Background(), binding) })
}

func (p *project) subjects(account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: p.name}}
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// remove deletes the namespace and checks for leftovers of a run.
func (p *project) remove(ns *corev1.Namespace) {
	ctx := context.Background()
	if p.t.Failed() {
		p.tell(ctx)
	}
	if err := p.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
		p.t.Error(err)
	}
	p.until(ctx, "the namespace is gone", func() (bool, string) {
		err := p.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		return apierrors.IsNotFound(err), fmt.Sprintf("%v %v", err, ns.Status.Conditions)
	})
	p.until(ctx, "no volume is left", func() (bool, string) {
		left := p.volumes(ctx)
		return len(left) == 0, fmt.Sprint(left)
	})
}

// tell logs the Benchmarks and pods of the namespace after a failed test.
func (p *project) tell(ctx context.Context) {
	var all v1alpha1.BenchmarkList
	var pods corev1.PodList
	if err := p.List(ctx, &all, client.InNamespace(p.name)); err != nil && !meta.IsNoMatchError(err) {
		p.t.Log(err)
	}
	if err := p.List(ctx, &pods, client.InNamespace(p.name)); err != nil {
		p.t.Log(err)
	}
	for _, b := range all.Items {
		text, _ := yaml.Marshal(b.Status)
		p.t.Logf("Benchmark %s:\n%s", b.Name, text)
	}
	for _, pod := range pods.Items {
		text, _ := yaml.Marshal(pod.Status.ContainerStatuses)
		p.t.Logf("pod %s (%s):\n%s", pod.Name, pod.Status.Phase, text)
		out, _ := exec.Command("kubectl", "logs", "-n", p.name, pod.Name, "--all-containers",
			"--tail=30").CombinedOutput()
		p.t.Logf("%s", out)
	}
}

// volumes returns the names of the PersistentVolumes of the namespace's claims.
func (p *project) volumes(ctx context.Context) (names []string) {
	var list corev1.PersistentVolumeList
	if err := p.List(ctx, &list); err != nil {
		p.t.Error(err)
	}
	for _, pv := range list.Items {
		if pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.Namespace == p.name {
			names = append(names, pv.Name)
		}
	}
	return names
}

func (p *project) create(o client.Object) {
	p.t.Helper()
	if err := p.Create(p.t.Context(), o); err != nil {
		p.t.Fatal(err)
	}
}

// until waits until done returns true. On a timeout it fails the test with the last state.
func (p *project) until(ctx context.Context, what string, done func() (ok bool, state string)) {
	p.t.Helper()
	var last string
	held := false
	poll(patience, 200*time.Millisecond, func() bool {
		held, last = done()
		return held || ctx.Err() != nil
	})
	if !held {
		p.t.Fatalf("not within %v: %s\n%s", patience, what, last)
	}
}

// poll calls ok at an interval until it returns true or the time is over. It reports whether ok
// returned true.
func poll(within, interval time.Duration, ok func() bool) bool {
	for end := time.Now().Add(within); !ok(); time.Sleep(interval) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// left lists the objects of runs in the namespace.
func (p *project) left() (all []string) {
	p.t.Helper()
	ctx := context.Background()
	var claims corev1.PersistentVolumeClaimList
	var pods corev1.PodList
	var secrets corev1.SecretList
	if err := errors.Join(p.List(ctx, &claims, client.InNamespace(p.name)),
		p.List(ctx, &pods, client.InNamespace(p.name), client.HasLabels{"cnsbench.dev/run"}),
		p.List(ctx, &secrets, client.InNamespace(p.name), client.HasLabels{"cnsbench.dev/run"})); err != nil {
		p.t.Fatal(err)
	}
	for _, o := range claims.Items {
		all = append(all, "claim "+o.Name)
	}
	for _, o := range pods.Items {
		all = append(all, "pod "+o.Name)
	}
	for _, o := range secrets.Items {
		all = append(all, "secret "+o.Name)
	}
	return append(all, p.volumes(ctx)...)
}

func (p *project) nothingLeft() {
	p.t.Helper()
	if left := p.left(); len(left) > 0 {
		p.t.Errorf("left: %v", left)
	}
}

func clientKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}
