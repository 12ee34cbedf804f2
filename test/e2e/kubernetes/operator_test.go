//go:build e2e

// Package kubernetes runs the product on a real cluster, as users would.
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
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/operator"
)

// operatorBed is the cluster with the operator in it.
type operatorBed struct {
	client.Client
	binary, image, namespace string
}

// operatorWait bounds each wait; longest takes a runner whose rights went with its
// namespace.
const operatorWait = 7 * time.Minute

// TestOperator installs the operator, has it carry Benchmarks out, breaks what
// can break, and takes it out again. Without $KUBECONFIG it is skipped.
func TestOperator(t *testing.T) {
	bed := newOperatorBed(t)
	bed.install(t)
	for name, test := range map[string]func(*testing.T, *operatorBed){
		"carries a Benchmark out":               testOperatorCompletes,
		"says what is wrong with a Benchmark":   testOperatorInvalid,
		"names the rights that are missing":     testOperatorNoRights,
		"names a missing ServiceAccount":        testOperatorNoAccount,
		"names an exceeded quota":               testOperatorQuota,
		"cleans up after a lost runner":         testOperatorLostRunner,
		"ends a run whose Benchmark is deleted": testOperatorDelete,
		"lets a namespace go":                   testOperatorNamespace,
		"goes on after a restart":               testOperatorRestart,
		"shows columns and verdicts":            testOperatorColumns,
		"refuses to uninstall what is in use":   testOperatorUninstallRefused,
	} {
		t.Run(name, func(t *testing.T) { test(t, bed) })
	}
}

func newOperatorBed(t *testing.T) *operatorBed {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Skip("needs a cluster: KUBECONFIG is not set (make testbed-up)")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	bed := &operatorBed{Client: c, binary: os.Getenv("CNSBENCH_BIN"), image: os.Getenv("CNSBENCH_IMAGE"), namespace: "cnsbench-system"}
	if bed.image == "" {
		bed.image = "localhost/cnsbench:dev" // the test bed's
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

// cnsbench runs the program and gives what it said.
func (bed *operatorBed) cnsbench(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), bed.binary, args...)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, t.Output()), io.MultiWriter(&out, t.Output())
	err := cmd.Run()
	return out.String(), err
}

// install installs, and at the end of the test removes everything and looks
// whether it is gone.
func (bed *operatorBed) install(t *testing.T) {
	t.Helper()
	args := []string{"install", "--image", bed.image, "--results-storage-class", "hostdir", "--results-size", "1Gi", "--timeout", "4m"}
	if out, err := bed.cnsbench(t, append(args, "--dry-run")...); err != nil {
		t.Fatalf("dry run: %v\n%s", err, out)
	}
	if err := bed.Get(t.Context(), client.ObjectKey{Name: bed.namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Fatalf("namespace %s is there already, or the dry run made it (%v): not touching it", bed.namespace, err)
	}
	t.Cleanup(func() { bed.uninstall(t) })
	if _, err := bed.cnsbench(t, args...); err != nil {
		t.Fatal(err)
	}
	if out, err := bed.cnsbench(t, args...); err != nil { // it can be repeated
		t.Fatalf("again: %v\n%s", err, out)
	}
}

func (bed *operatorBed) uninstall(t *testing.T) {
	// Without --force: what somebody else has applied meanwhile is not ours to
	// delete. t's context has ended.
	cmd := exec.Command(bed.binary, "uninstall", "--delete-results", "--timeout", "5m")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("uninstall: %v\n%s", err, out)
	}
	ctx := context.Background()
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bed.namespace}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "benchmarks.cnsbench.dev"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cnsbench-operator"}}} {
		if err := bed.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left (%v)", o, o.GetName(), err)
		}
	}
}

// project is a namespace with a ServiceAccount that may run Benchmarks.
type project struct {
	*operatorBed
	t    *testing.T
	name string
}

const account = "bench"

// rights say which of the roles an account gets.
type rights int

const (
	allRights rights = iota
	noRights
	noAccount
)

func (bed *operatorBed) project(t *testing.T, r rights) *project {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-e2e-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
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
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: p.name}}
	role := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	p.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: p.name}, RoleRef: role("cnsbench-runner"), Subjects: subjects})
	cluster := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: p.name}, RoleRef: role("cnsbench-runner-cluster"), Subjects: subjects}
	p.create(cluster)
	t.Cleanup(func() { _ = bed.Delete(context.Background(), cluster) })
	return p
}

// remove deletes the namespace and looks for what a run may have left behind it.
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

// tell says what stood there when a test failed.
func (p *project) tell(ctx context.Context) {
	var all v1alpha1.BenchmarkList
	var pods corev1.PodList
	if err := errors.Join(p.List(ctx, &all, client.InNamespace(p.name)), p.List(ctx, &pods, client.InNamespace(p.name))); err != nil {
		p.t.Log(err)
	}
	for _, b := range all.Items {
		text, _ := yaml.Marshal(b.Status)
		p.t.Logf("Benchmark %s:\n%s", b.Name, text)
	}
	for _, pod := range pods.Items {
		text, _ := yaml.Marshal(pod.Status.ContainerStatuses)
		p.t.Logf("pod %s (%s):\n%s", pod.Name, pod.Status.Phase, text)
		out, _ := exec.Command("kubectl", "logs", "-n", p.name, pod.Name, "--all-containers", "--tail=30").CombinedOutput()
		p.t.Logf("%s", out)
	}
}

// volumes are the PersistentVolumes of the namespace's claims.
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

// until waits for something, and fails the test with the last state otherwise.
func (p *project) until(ctx context.Context, what string, done func() (ok bool, state string)) {
	p.t.Helper()
	deadline := time.Now().Add(operatorWait)
	for {
		ok, state := done()
		if ok {
			return
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			p.t.Fatalf("not within %v: %s\n%s", operatorWait, what, state)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// volumes that are made, attached and snapshotted on the null driver.
const smallBenchmark = `
spec:
  serviceAccountName: bench
  runtime: %s
  seed: 3
  actions:
    - name: volumes
      createObjSpec: {count: 2, volume: {storageClass: "%s", size: 16Mi, attach: true}}
    - name: snapshots
      rateName: often
      snapshotSpec: {actionName: volumes, snapshotClass: "null"}
  rates:
    - {name: often, constantRateSpec: {interval: 2s}}
  slos:
    - {name: snapshots-are-taken, expr: 'p50(snapshots.ready) < duration("60s")'}
`

func (p *project) benchmark(runtime, class string) *v1alpha1.Benchmark {
	p.t.Helper()
	b := &v1alpha1.Benchmark{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, smallBenchmark, runtime, class), b); err != nil {
		p.t.Fatal(err)
	}
	b.Name, b.Namespace = "small", p.name
	p.create(b)
	return b
}

// wait waits for a condition to be true.
func (p *project) wait(b *v1alpha1.Benchmark, condition string) {
	p.t.Helper()
	p.until(p.t.Context(), fmt.Sprintf("condition %s of %s", condition, b.Name), func() (bool, string) {
		if err := p.Get(p.t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			return false, err.Error()
		}
		text, _ := yaml.Marshal(b.Status)
		if end := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionFailed); end != nil && end.Status == metav1.ConditionTrue && condition != v1alpha1.ConditionFailed && condition != v1alpha1.ConditionClean {
			p.t.Fatalf("it has failed:\n%s", text)
		}
		return meta.IsStatusConditionTrue(b.Status.Conditions, condition), string(text)
	})
}

func (p *project) expect(b *v1alpha1.Benchmark, condition, reason, message string) {
	p.t.Helper()
	c := meta.FindStatusCondition(b.Status.Conditions, condition)
	if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) {
		p.t.Errorf("condition %s is %+v; want reason %s and %q", condition, c, reason, message)
	}
}

// left are the objects of runs in the namespace.
func (p *project) left() (all []string) {
	p.t.Helper()
	ctx := context.Background()
	var claims corev1.PersistentVolumeClaimList
	var pods corev1.PodList
	var secrets corev1.SecretList
	if err := errors.Join(p.List(ctx, &claims, client.InNamespace(p.name)), p.List(ctx, &pods, client.InNamespace(p.name), client.HasLabels{"cnsbench.dev/run"}),
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

// delete deletes a Benchmark and waits until it is gone.
func (p *project) delete(b *v1alpha1.Benchmark) {
	p.t.Helper()
	if err := p.Delete(p.t.Context(), b); err != nil {
		p.t.Fatal(err)
	}
	p.until(p.t.Context(), "the Benchmark is gone", func() (bool, string) {
		err := p.Get(p.t.Context(), client.ObjectKeyFromObject(b), b)
		text, _ := yaml.Marshal(b.Status)
		return apierrors.IsNotFound(err), string(text)
	})
}

func (p *project) jobs() []string {
	p.t.Helper()
	var list batchv1.JobList
	if err := p.List(p.t.Context(), &list, client.InNamespace(p.name)); err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, j := range list.Items {
		names = append(names, j.Name)
	}
	return names
}

func (p *project) runner(b *v1alpha1.Benchmark) *corev1.Pod {
	p.t.Helper()
	var list corev1.PodList
	if err := p.List(p.t.Context(), &list, client.InNamespace(p.name), client.MatchingLabels{"cnsbench.dev/runner-of": operator.RunID(b), "cnsbench.dev/role": "runner"}); err != nil {
		p.t.Fatal(err)
	}
	if len(list.Items) != 1 {
		p.t.Fatalf("%d runners", len(list.Items))
	}
	return &list.Items[0]
}

// underway waits until a run has made volumes.
func (p *project) underway(b *v1alpha1.Benchmark) {
	p.t.Helper()
	p.wait(b, v1alpha1.ConditionRunning)
	p.until(p.t.Context(), "the run has made volumes", func() (bool, string) { return len(p.volumes(p.t.Context())) == 2, "" })
}

func testOperatorCompletes(t *testing.T, bed *operatorBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("6s", "null")
	p.wait(b, v1alpha1.ConditionComplete)
	p.expect(b, v1alpha1.ConditionComplete, "Completed", "")
	p.expect(b, v1alpha1.ConditionClean, "ByRunner", "")
	s := b.Status
	if s.Ops == nil || s.Ops.OK < 4 || s.Ops.Failed != 0 || s.Ops.Total != s.Ops.OK+s.Ops.Censored+s.Ops.Dropped {
		t.Errorf("ops %+v", s.Ops)
	}
	if len(s.Verdicts) != 1 || s.Verdicts[0].Verdict != "pass" {
		t.Errorf("verdicts %+v", s.Verdicts)
	}
	if s.StartTime == nil || s.CompletionTime == nil || s.CompletionTime.Sub(s.StartTime.Time) < 6*time.Second {
		t.Errorf("from %v to %v", s.StartTime, s.CompletionTime)
	}
	p.nothingLeft()
	p.delete(b)
	p.until(t.Context(), "its Job is gone", func() (bool, string) { j := p.jobs(); return len(j) == 0, fmt.Sprint(j) })
}

func testOperatorInvalid(t *testing.T, bed *operatorBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("5s", "no-such-class")
	p.wait(b, v1alpha1.ConditionFailed)
	p.expect(b, v1alpha1.ConditionFailed, "InvalidBenchmark", "no-such-class")
	p.delete(b)
}

func testOperatorNoRights(t *testing.T, bed *operatorBed) {
	p := bed.project(t, noRights)
	b := p.benchmark("5s", "null")
	p.wait(b, v1alpha1.ConditionFailed)
	failed := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionFailed)
	if !strings.Contains(failed.Message, "storageclasses") {
		t.Errorf("the missing right is not named: %+v", failed)
	}
	p.nothingLeft()
	p.delete(b)
}

func testOperatorNoAccount(t *testing.T, bed *operatorBed) {
	p := bed.project(t, noAccount)
	b := p.benchmark("5s", "null")
	p.until(t.Context(), "the condition says why", func() (bool, string) {
		_ = p.Get(t.Context(), client.ObjectKeyFromObject(b), b)
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == "FailedCreate" && strings.Contains(c.Message, `serviceaccount "bench" not found`), fmt.Sprintf("%+v", c)
	})
	p.delete(b)
}

func testOperatorQuota(t *testing.T, bed *operatorBed) {
	p := bed.project(t, allRights)
	p.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: p.name},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}}})
	p.until(t.Context(), "the quota counts", func() (bool, string) {
		q := &corev1.ResourceQuota{}
		err := p.Get(t.Context(), client.ObjectKey{Namespace: p.name, Name: "none"}, q)
		return err == nil && len(q.Status.Hard) > 0, fmt.Sprint(q.Status, err)
	})
	b := p.benchmark("5s", "null")
	p.until(t.Context(), "the condition names the quota", func() (bool, string) {
		_ = p.Get(t.Context(), client.ObjectKeyFromObject(b), b)
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == "FailedCreate" && strings.Contains(c.Message, "exceeded quota: none"), fmt.Sprintf("%+v", c)
	})
	p.delete(b)
}

func testOperatorLostRunner(t *testing.T, bed *operatorBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("10m", "null")
	p.underway(b)
	if err := p.Delete(t.Context(), p.runner(b), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	p.wait(b, v1alpha1.ConditionFailed)
	p.expect(b, v1alpha1.ConditionFailed, "RunnerLost", "pod") // gone, or killed: who saw it first
	p.wait(b, v1alpha1.ConditionClean)
	p.expect(b, v1alpha1.ConditionClean, "ByCleanup", "")
	p.nothingLeft()
	p.delete(b)
}

func testOperatorDelete(t *testing.T, bed *operatorBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("10m", "null")
	p.underway(b)
	p.delete(b)
	p.nothingLeft()
}

func testOperatorNamespace(t *testing.T, bed *operatorBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("10m", "null")
	p.underway(b)
	if err := p.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}}); err != nil {
		t.Fatal(err)
	} // project.remove waits for the namespace and looks for volumes
}

// The manager is killed while a run goes on: no second runner, and the status
// catches up.
func testOperatorRestart(t *testing.T, bed *operatorBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("15s", "null")
	p.wait(b, v1alpha1.ConditionRunning)
	managers := client.MatchingLabels{"app.kubernetes.io/component": "operator"}
	if err := p.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(bed.namespace), managers, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	p.wait(b, v1alpha1.ConditionComplete)
	if jobs := p.jobs(); len(jobs) != 1 {
		t.Errorf("Jobs %v", jobs)
	}
	p.nothingLeft()
	p.delete(b)
}

func testOperatorColumns(t *testing.T, bed *operatorBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("5s", "null")
	kubectl := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "kubectl", append([]string{"-n", p.name}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	kubectl("wait", "--for=condition=Complete", "--timeout=3m", "benchmark/small")
	lines := strings.Split(kubectl("get", "benchmarks"), "\n")
	if got := strings.Fields(lines[0]); !slices.Equal(got, []string{"NAME", "STATUS", "RUN", "OPS", "FAILED", "AGE"}) {
		t.Errorf("columns %v", got)
	}
	if got := strings.Fields(lines[1]); len(got) != 6 || got[0] != "small" || got[1] != "Completed" || got[2] != operator.RunID(b) || got[4] != "0" {
		t.Errorf("row %q", lines[1])
	}
	p.until(t.Context(), "Events tell of it", func() (bool, string) {
		out := kubectl("get", "events", "--field-selector", "involvedObject.kind=Benchmark", "-o", "custom-columns=R:.reason", "--no-headers")
		return strings.Contains(out, "RunnerUp") && strings.Contains(out, "Completed"), out
	})
	p.delete(b)
}

func testOperatorUninstallRefused(t *testing.T, bed *operatorBed) {
	p := bed.project(t, noAccount)
	b := p.benchmark("5s", "null")
	out, err := bed.cnsbench(t, "uninstall")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(out, p.name+"/small") {
		t.Errorf("%v: %s", err, out)
	}
	p.delete(b)
}
