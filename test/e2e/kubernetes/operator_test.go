//go:build e2e

// Package kubernetes tests CNSBench on a real cluster through its user interfaces.
package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/operator"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// TestInstalled runs the tests that install the operator and disturb no other test. A cluster has one operator, so that
// they follow each other; the one that itself runs tests beside each other is last, when most other tests are over.
// Without $KUBECONFIG it is skipped.
func TestInstalled(t *testing.T) {
	t.Parallel()
	t.Run("namespaced operator", testNamespacedOperator)
	t.Run("operator", testOperator)
}

// testOperator checks the operator: its installation, the execution of Benchmarks, its response to faults, and its
// removal.
func testOperator(t *testing.T) {
	bed := newBed(t)
	bed.install(t)
	t.Run("at once", func(t *testing.T) {
		for name, test := range rotation.Half(t, map[string]func(*testing.T, *testBed){
			"carries Listing 1 out":                   testListing1Applied,
			"carries a Benchmark out":                 testOperatorCompletes,
			"says what is wrong with a Benchmark":     testOperatorInvalid,
			"says why a run failed":                   testOperatorFails,
			"asks whether its creator may make pods":  testOperatorCreator,
			"names the rights that are missing":       testOperatorNoRights,
			"names a missing ServiceAccount":          testOperatorNoAccount,
			"names an exceeded quota":                 testOperatorQuota,
			"gives runs of a driver their turns":      testOperatorQueue,
			"cleans up after a lost runner":           testOperatorLostRunner,
			"ends a run whose Benchmark is deleted":   testOperatorDelete,
			"lets a namespace go":                     testOperatorNamespace,
			"shows columns and verdicts":              testOperatorColumns,
			"runs the occasions of a scheduled study": testScheduledStudy,
		}) {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // each in a separate namespace
				test(t, bed)
			})
		}
	})
	t.Run("goes on after a restart", func(t *testing.T) { testOperatorRestart(t, bed) })
	t.Run("is led by another when its leader is killed", func(t *testing.T) { testOperatorLeader(t, bed) })
	t.Run("refuses to uninstall what is in use", func(t *testing.T) { testOperatorUninstallRefused(t, bed) })
}

// smallBenchmark creates, attaches and snapshots volumes on the null driver.
const smallBenchmark = `
spec:
  serviceAccountName: bench
  queue: Share
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
    - {name: snapshots-are-taken, expr: 'max(snapshots.ready) < duration("60s")'}
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

// wait waits until a condition is true.
func (p *project) wait(b *v1alpha1.Benchmark, condition string) {
	p.t.Helper()
	p.until(p.t.Context(), fmt.Sprintf("condition %s of %s", condition, b.Name), func() (bool, string) {
		if err := p.Get(p.t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			return false, err.Error()
		}
		text, _ := yaml.Marshal(b.Status)
		if end := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionFailed); end != nil &&
			end.Status == metav1.ConditionTrue && condition != v1alpha1.ConditionFailed &&
			condition != v1alpha1.ConditionClean {
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
	if err := p.List(p.t.Context(), &list, client.InNamespace(p.name),
		client.MatchingLabels{"cnsbench.dev/runner-of": operator.RunID(b), "cnsbench.dev/role": "runner"}); err != nil {
		p.t.Fatal(err)
	}
	if len(list.Items) != 1 {
		p.t.Fatalf("%d runners", len(list.Items))
	}
	return &list.Items[0]
}

// hasVolumes waits until a run has created volumes.
func (p *project) hasVolumes(b *v1alpha1.Benchmark) {
	p.t.Helper()
	p.wait(b, v1alpha1.ConditionRunning)
	p.until(p.t.Context(), "the run has made volumes",
		func() (bool, string) { return len(p.volumes(p.t.Context())) == 2, "" })
}

// testOperatorCompletes checks the status of a successful Benchmark and that its Job is deleted
// with it.
func testOperatorCompletes(t *testing.T, bed *testBed) {
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

// testOperatorInvalid checks the condition of a Benchmark with an unknown StorageClass.
func testOperatorInvalid(t *testing.T, bed *testBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("5s", "no-such-class")
	p.wait(b, v1alpha1.ConditionFailed)
	p.expect(b, v1alpha1.ConditionFailed, "InvalidBenchmark", "no-such-class")
	p.delete(b)
}

// testOperatorNoRights checks that a Benchmark whose account lacks rights fails and names a missing
// right.
func testOperatorNoRights(t *testing.T, bed *testBed) {
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

// testOperatorCreator checks that an account that may create Benchmarks but not pods cannot create
// a Benchmark, because Benchmarks create pods with the rights of any account of the namespace.
func testOperatorCreator(t *testing.T, bed *testBed) {
	p := bed.project(t, noAccount)
	p.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "creator", Namespace: p.name}})
	as, subject := "system:serviceaccount:"+p.name+":creator", "--serviceaccount="+p.name+":creator"
	p.kubectl("create", "role", "benchmarks", "-n", p.name, "--verb=create", "--resource=benchmarks.cnsbench.dev")
	p.kubectl("create", "rolebinding", "benchmarks", "-n", p.name, "--role=benchmarks", subject)
	file := filepath.Join(t.TempDir(), "b.yaml")
	const head = "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: b}\n"
	text := head + fmt.Sprintf(smallBenchmark, "5s", "null")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	create := func(want string) {
		t.Helper()
		p.until(t.Context(), "creating one says "+want, func() (bool, string) { // roles take effect with a delay
			cmd := exec.Command("kubectl", "create", "--dry-run=server", "--as="+as, "-n", p.name, "-f", file)
			out, _ := cmd.CombinedOutput()
			return strings.Contains(string(out), want), string(out)
		})
	}
	create(as + " may not create pods in namespace " + p.name)
	p.kubectl("create", "role", "pods", "-n", p.name, "--verb=create", "--resource=pods")
	p.kubectl("create", "rolebinding", "pods", "-n", p.name, "--role=pods", subject)
	create("created")
}

// testOperatorNoAccount checks the condition of a Benchmark whose ServiceAccount does not exist.
func testOperatorNoAccount(t *testing.T, bed *testBed) {
	p := bed.project(t, noAccount)
	b := p.benchmark("5s", "null")
	p.until(t.Context(), "the condition says why", func() (bool, string) {
		_ = p.Get(t.Context(), client.ObjectKeyFromObject(b), b)
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		return c != nil && c.Reason == "FailedCreate" &&
			strings.Contains(c.Message, `serviceaccount "bench" not found`), fmt.Sprintf("%+v", c)
	})
	p.delete(b)
}

// testOperatorQuota checks that the condition names the quota that prevents the runner's Job.
func testOperatorQuota(t *testing.T, bed *testBed) {
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
		return c != nil && c.Reason == "FailedCreate" &&
			strings.Contains(c.Message, "exceeded quota: none"), fmt.Sprintf("%+v", c)
	})
	p.delete(b)
}

// testOperatorLostRunner checks that a run fails if its runner pod is deleted, and that its objects
// are removed.
// testOperatorQueue starts runs in two namespaces on a driver that does not exist: the second waits until the first has
// failed.
func testOperatorQueue(t *testing.T, bed *testBed) {
	var runs [2]*v1alpha1.Benchmark
	var projects [2]*project
	for i := range runs {
		p := bed.project(t, noRights)
		p.allow("default")
		text := p.writing("node: node1, storageClass: " + p.classWithoutDriver())
		p.apply(strings.Replace(text, "queue: Share", "queue: Wait", 1) + writer)
		b := &v1alpha1.Benchmark{ObjectMeta: metav1.ObjectMeta{Name: "e2e", Namespace: p.name}}
		if runs[i], projects[i] = b, p; i == 0 {
			p.wait(b, v1alpha1.ConditionReady)
			p.until(t.Context(), "the first claim", func() (bool, string) { return len(p.left()) > 0, "" })
		}
	}
	first, second := runs[0], runs[1]
	projects[1].wait(second, v1alpha1.ConditionQueued)
	projects[1].expect(second, v1alpha1.ConditionQueued, "DriverInUse", "another namespace uses nobody.example")
	if got := projects[1].kubectl("get", "benchmark", "e2e"); !strings.Contains(got, "Queued") {
		t.Errorf("kubectl get: %s", got)
	}
	for i, b := range []*v1alpha1.Benchmark{first, second} {
		projects[i].wait(b, v1alpha1.ConditionFailed)
		projects[i].expect(b, v1alpha1.ConditionFailed, "RunFailed", "is not bound")
	}
	// A run releases its drivers last, just before its container ends.
	if c := meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionQueued); c.Reason != "Turn" ||
		c.LastTransitionTime.Add(5*time.Second).Before(first.Status.CompletionTime.Time) {
		t.Errorf("the first ended at %v; the second's turn: %+v", first.Status.CompletionTime, c)
	}
	for i, b := range []*v1alpha1.Benchmark{first, second} {
		projects[i].wait(b, v1alpha1.ConditionClean)
		projects[i].nothingLeft()
		projects[i].delete(b)
	}
}

func testOperatorLostRunner(t *testing.T, bed *testBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("10m", "null")
	p.hasVolumes(b)
	if err := p.Delete(t.Context(), p.runner(b), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	p.wait(b, v1alpha1.ConditionFailed)
	p.expect(b, v1alpha1.ConditionFailed, "RunnerLost", "pod") // gone, or killed if observed first
	p.wait(b, v1alpha1.ConditionClean)
	p.expect(b, v1alpha1.ConditionClean, "ByCleanup", "")
	p.nothingLeft()
	p.delete(b)
}

// testOperatorDelete checks that the objects of an active run are removed if its Benchmark is
// deleted.
func testOperatorDelete(t *testing.T, bed *testBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("10m", "null")
	p.hasVolumes(b)
	p.delete(b)
	p.nothingLeft()
}

// testOperatorNamespace checks that the volumes of an active run are removed if its namespace is
// deleted.
func testOperatorNamespace(t *testing.T, bed *testBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("10m", "null")
	p.hasVolumes(b)
	if err := p.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}}); err != nil {
		t.Fatal(err)
	} // project.remove waits for the namespace and checks for volumes
}

// testOperatorRestart checks that after the manager is killed during a run there is no second
// runner and the status is updated.
func testOperatorRestart(t *testing.T, bed *testBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("15s", "null")
	p.wait(b, v1alpha1.ConditionRunning)
	managers := client.MatchingLabels{"app.kubernetes.io/component": "operator"}
	if err := p.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(bed.namespace), managers,
		client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	p.wait(b, v1alpha1.ConditionComplete)
	if jobs := p.jobs(); len(jobs) != 1 {
		t.Errorf("Jobs %v", jobs)
	}
	p.nothingLeft()
	p.delete(b)
}

// testOperatorLeader checks that after the leading manager of two is killed during a run the other
// one takes over and creates no second runner.
func testOperatorLeader(t *testing.T, bed *testBed) {
	p := bed.project(t, allRights)
	scale := func(n string) {
		p.kubectl("scale", "-n", bed.namespace, "deployment/cnsbench-operator", "--replicas="+n)
		p.kubectl("rollout", "status", "-n", bed.namespace, "deployment/cnsbench-operator", "--timeout=3m")
	}
	scale("2")
	t.Cleanup(func() { scale("1") })
	leader := func() string {
		holder := p.kubectl("get", "lease", "-n", bed.namespace, "cnsbench-operator", "-o",
			"jsonpath={.spec.holderIdentity}")
		pod, _, _ := strings.Cut(holder, "_")
		return pod
	}
	b := p.benchmark("40s", "null")
	p.wait(b, v1alpha1.ConditionRunning)
	first := leader()
	p.kubectl("delete", "pod", "-n", bed.namespace, "--grace-period=0", "--force", first)
	p.until(t.Context(), "another leads", func() (bool, string) {
		now := leader()
		return now != "" && now != first, now
	})
	p.wait(b, v1alpha1.ConditionComplete)
	if jobs := p.jobs(); len(jobs) != 1 {
		t.Errorf("Jobs %v", jobs)
	}
	p.nothingLeft()
	p.delete(b)
}

const operatorNodeLost = "the node of an operator's runner that is lost"

// TestOperatorNodeLost checks that a run ends if its runner's node is disconnected and an
// administrator adds the out-of-service taint, and that its objects are removed while the node is
// away.
func TestOperatorNodeLost(t *testing.T) {
	bed := newBed(t)
	rotation.Turn(t, 3, faults, operatorNodeLost)
	p := bed.project(t, allRights)
	p.breaks()
	bed.install(t)
	b := p.benchmark("10m", "null")
	p.hasVolumes(b)
	node := p.runner(b).Spec.NodeName
	p.killNode(node)
	killed := time.Now()
	p.kubectl("wait", "--for=condition=Ready=Unknown", "--timeout=3m", "node/"+node)
	const taint = "node.kubernetes.io/out-of-service"
	p.kubectl("taint", "node", node, taint+"=nodeshutdown:NoExecute")
	t.Cleanup(func() { p.kubectl("taint", "node", node, taint+"-") })
	p.wait(b, v1alpha1.ConditionFailed)
	p.expect(b, v1alpha1.ConditionFailed, "RunnerLost", node)
	failed := time.Now()
	p.wait(b, v1alpha1.ConditionClean)
	p.expect(b, v1alpha1.ConditionClean, "ByCleanup", "")
	t.Logf("%s was cut off: the run had failed %v later, and all was removed %v after that: %s", node,
		failed.Sub(killed).Round(time.Second),
		time.Since(failed).Round(time.Second), meta.FindStatusCondition(b.Status.Conditions,
			v1alpha1.ConditionFailed).Message)
	p.nothingLeft()
	p.delete(b)
}

// testOperatorColumns checks the columns of kubectl get and the Events of a Benchmark.
func testOperatorColumns(t *testing.T, bed *testBed) {
	p := bed.project(t, allRights)
	b := p.benchmark("5s", "null")
	kubectl := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "kubectl",
			append([]string{"-n", p.name}, args...)...).CombinedOutput()
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
	if got := strings.Fields(lines[1]); len(got) != 6 || got[0] != "small" || got[1] != "Completed" ||
		got[2] != operator.RunID(b) || got[4] != "0" {
		t.Errorf("row %q", lines[1])
	}
	p.until(t.Context(), "Events tell of it", func() (bool, string) {
		out := kubectl("get", "events", "--field-selector", "involvedObject.kind=Benchmark", "-o",
			"custom-columns=R:.reason", "--no-headers")
		return strings.Contains(out, "RunnerUp") && strings.Contains(out, "Completed"), out
	})
	p.delete(b)
}

// testOperatorUninstallRefused checks that uninstall is refused while a Benchmark exists, and names
// it.
func testOperatorUninstallRefused(t *testing.T, bed *testBed) {
	p := bed.project(t, noAccount)
	b := p.benchmark("5s", "null")
	out, err := bed.cnsbench(t, "uninstall")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 2 ||
		!strings.Contains(out, p.name+"/small") {
		t.Errorf("%v: %s", err, out)
	}
	p.delete(b)
}
