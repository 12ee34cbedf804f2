//go:build e2e

package kubernetes

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// command is one `cnsbench run` on the cluster.
type command struct {
	*exec.Cmd
	out    *output
	bundle string
	over   chan struct{} // closed when the command has ended
}

// output is the output of a command so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (p *project) command(runner, yaml string, flags ...string) *command {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "benchmark.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return p.commandOn(runner, file, flags...)
}

// commandOn returns a command that runs an existing file.
func (p *project) commandOn(runner, file string, flags ...string) *command {
	p.t.Helper()
	c := &command{bundle: filepath.Join(p.t.TempDir(), "bundle"), out: &output{}, over: make(chan struct{})}
	args := append([]string{"run", file, "--engine", "kubernetes", "--runner", runner, "--namespace", p.name, "--image",
		p.image, "--out", c.bundle}, flags...)
	c.Cmd = exec.Command(p.binary, args...)
	c.Stdout, c.Stderr = io.MultiWriter(c.out, p.t.Output()), io.MultiWriter(c.out, p.t.Output())
	return c
}

// ends runs the command and checks its exit code and output.
func (p *project) ends(c *command, code int, says ...string) {
	p.t.Helper()
	p.start(c)
	p.ended(c, code, says...)
}

// start starts the command. If the test fails before the command ends, the command is interrupted.
func (p *project) start(c *command) {
	p.t.Helper()
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // the exit code is checked later
		close(c.over)
	}()
	p.t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt) // no effect if it has ended
		<-c.over
	})
}

// during waits until done returns true while the command runs.
func (p *project) during(c *command, what string, done func() bool) {
	p.t.Helper()
	p.until(p.t.Context(), what, func() (bool, string) {
		ok := done()
		select {
		case <-c.over:
			if !ok {
				p.t.Fatalf("the command has ended, but not: %s\n%s", what, c.out)
			}
		default:
		}
		return ok, c.out.String()
	})
}

// underway starts the command and returns when the run has created some volumes.
func (p *project) underway(c *command) {
	p.t.Helper()
	p.start(c)
	p.during(c, "the run has made volumes", func() bool { return len(p.volumes(p.t.Context())) > 2 })
}

// ended waits until the command ends and checks its exit code and output.
func (p *project) ended(c *command, code int, says ...string) {
	p.t.Helper()
	<-c.over
	if got := c.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, want := range says {
		if !strings.Contains(c.out.String(), want) {
			p.t.Errorf("it did not say %q", want)
		}
	}
	p.nothingLeft()
}

// summarised checks that a command has printed the summary of its run exactly once. The command
// prints it from the bundle and does not forward that of a runner in a pod.
func (p *project) summarised(c *command) {
	p.t.Helper()
	for _, head := range []string{"bundle: ", "report: "} {
		n := 0
		for line := range strings.Lines(c.out.String()) {
			if strings.HasPrefix(line, head) {
				n++
			}
		}
		if n != 1 {
			p.t.Errorf("%d lines begin with %q, want 1\n%s", n, head, c.out)
		}
	}
}

func volumes(class string, rest string) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  runtime: 15s
  actions:
    - name: vol
      rateName: r
      timeout: 12s
      createObjSpec: {volume: {storageClass: %q, size: 64Mi%s}}
  rates:
    - {name: r, constantRateSpec: {interval: 1s}}
`, class, rest)
}

// TestRun checks Benchmarks that the command runs on a cluster, with the failures that occur on
// clusters.
func TestRun(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	for name, test := range rotation.Half(t, map[string]func(*project){
		"Listing 1 in a runner's pod":        testListing1,
		"a class that is missing":            testNoClass,
		"an image that cannot be had":        testNoImage,
		"a quota that is exceeded":           testQuota,
		"a claim that stays pending":         testPending,
		"a pod that no node takes":           testUnschedulable,
		"an interrupt":                       testInterrupt,
		"a runner that is killed":            testKilled,
		"a runner's pod that is killed":      testRunnerKilled,
		"a command that is killed":           testCommandKilled,
		"a killed command, cleaned up":       testCommandKilledCleanup,
		"rights that the runner lacks":       testNoRights,
		"a snapshot class that is missing":   testNoSnapshotClass,
		"a snapshot class of another driver": testSnapshotClassOfAnother,
		"a driver without snapshots":         testDriverWithoutSnapshots,
		"a namespace that is deleted":        testNamespaceDeleted,
		"agents whose clocks are wrong":      testClockOffset,
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each in a separate namespace
			test(bed.project(t, noRights))
		})
	}
}

// TestRunOfBrokenCluster checks Benchmarks that the command runs while one component of the cluster
// at a time is unavailable.
func TestRunOfBrokenCluster(t *testing.T) {
	bed := newBed(t)
	for name, test := range map[string]func(*project){
		"a driver whose csi-snapshotter is away": testNoSnapshotter,
		"a snapshot that is stalled":             testStalledSnapshot,
		"a snapshot that no op made":             testOrphan,
		"an API server that restarts":            testRestart,
		"a node that is away for a while":        testNodeHealed,
		"a node that is lost":                    testNodeLost,
		"a node whose disk is full":              testNodeDiskFull,
		"agents that are cut off":                testCutOff,
	} {
		t.Run(name, func(t *testing.T) {
			rotation.Turn(t, 3, faults, name)
			test(bed.project(t, noRights))
		})
	}
}

// faults are those of a cluster beside which no other test runs; every other one takes a minute or more. CI has three
// of them for a commit.
var faults = []string{"a node that is away for a while", "a driver whose csi-snapshotter is away", "a node that is lost",
	"a snapshot that is stalled", operatorNodeLost, "a snapshot that no op made", "agents that are cut off",
	"an API server that restarts", "a node whose disk is full"}

// testNoClass checks that an unknown StorageClass is rejected with a suggestion.
func testNoClass(p *project) {
	p.ends(p.command("local", volumes("loopfil", "")), 1, `"loopfil"`, "loopfile")
}

// testNoImage checks that a run fails and names the image if it cannot be pulled.
func testNoImage(p *project) {
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  actions:
    - name: fio
      createObjSpec: {workload: fio, vars: {storageClass: hostdir, volumeSize: 64Mi, runtime: 5, image: "localhost/nowhere:1"}}
`)
	p.ends(c, 2, "localhost/nowhere:1")
}

// testQuota checks that creations beyond a quota are recorded as failed ops.
func testQuota(p *project) {
	p.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: p.name},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"persistentvolumeclaims": resource.MustParse("2")}}})
	p.until(p.t.Context(), "the quota counts", func() (bool, string) {
		var q corev1.ResourceQuota
		err := p.Get(p.t.Context(), clientKey(p.name, "small"), &q)
		return err == nil && len(q.Status.Hard) > 0, fmt.Sprint(err)
	})
	p.ends(p.command("local", volumes("hostdir", "")), 0, "2 ok", "exceeded quota")
}

// testPending checks that a claim that is never bound is reported with its driver.
func testPending(p *project) {
	p.ends(p.command("local", volumes(p.classWithoutDriver(), "")), 0, "claim cnsb-", "is not bound", "nobody.example")
}

// testInterrupt checks that an interrupted command exits with 130 and leaves nothing.
func testInterrupt(p *project) {
	c := p.command("local", volumes("hostdir", ", attach: true"))
	p.underway(c)
	_ = c.Process.Signal(os.Interrupt)
	p.ended(c, 130)
}

// testKilled checks that cleanup removes the objects of a run whose command was killed.
func testKilled(p *project) {
	c := p.command("local", volumes("hostdir", ", attach: true"))
	p.underway(c)
	_ = c.Process.Signal(syscall.SIGKILL)
	<-c.over
	if len(p.left()) == 0 {
		p.t.Error("the runner was killed too late: there is nothing to clean up")
	}
	if out, err := p.cnsbench(p.t, "cleanup", c.bundle); err != nil {
		p.t.Errorf("cleanup: %v\n%s", err, out)
	}
	p.nothingLeft()
}

// testCommandKilled checks that the runner's pod ends by itself after its command is killed. The
// pod removes the objects of the run, and the roles of --create-rbac. The objects that were created for the pod are
// deleted with its Lease.
func testCommandKilled(p *project) {
	long := strings.Replace(volumes("hostdir", ", attach: true"), "runtime: 15s", "runtime: 5m", 1)
	c := p.command("pod", long, "--runner-patience", "10s", "--create-rbac")
	p.underway(c)
	b, err := bundle.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	made := []string{"get", "pods,configmaps,secrets,leases,pvc,serviceaccounts,roles,rolebindings,clusterroles," +
		"clusterrolebindings", "-l", "cnsbench.dev/runner=" + b.Run.ID, "-o", "name"}
	if roles := p.kubectl(made...); !strings.Contains(roles, "clusterrole.") {
		p.t.Errorf("no ClusterRole: %s", roles)
	}
	_ = c.Process.Signal(syscall.SIGKILL)
	<-c.over
	p.until(p.t.Context(), "nothing is left of the runner and its run", func() (bool, string) {
		runner := p.kubectl(made...)
		left := p.left()
		return len(left) == 0 && !strings.Contains(runner, "/"), fmt.Sprint(left, runner)
	})
}

// testCommandKilledCleanup checks that `cleanup BUNDLE` stops the runner's pod of a command that
// was killed at any moment, and removes the objects of its run.
func testCommandKilledCleanup(p *project) {
	p.bind("default", "cluster-admin")
	long := strings.Replace(volumes("hostdir", ", attach: true"), "runtime: 15s", "runtime: 5m", 1)
	runner := func() string {
		return p.kubectl("get", "pods,configmaps,secrets,leases", "-l", "cnsbench.dev/runner", "-o", "name")
	}
	for moment, reached := range map[string]func() bool{
		"there is a pod":       func() bool { return strings.Contains(runner(), "pod/") },
		"the run makes things": func() bool { return len(p.left()) > 2 },
	} {
		c := p.command("pod", long)
		p.start(c)
		p.during(c, moment, reached)
		_ = c.Process.Signal(syscall.SIGKILL)
		<-c.over
		if out, err := p.cnsbench(p.t, "cleanup", c.bundle); err != nil {
			p.t.Errorf("%s: cleanup: %v\n%s", moment, err, out)
		}
		if left := runner(); strings.Contains(left, "/") {
			p.t.Errorf("%s: of the runner is left: %s", moment, left)
		}
		p.nothingLeft()
	}
}

// testRestart checks a run during a restart of the API server. Ops fail with the cause. The watches
// are lost, and because the server answers their resource version with 410 they start with a new
// list. The log has the gap.
func testRestart(p *project) {
	p.breaks()
	c := p.command("local", strings.Replace(volumes("hostdir", ""), "runtime: 15s", "runtime: 30s", 1))
	p.underway(c)
	p.testbed("restart", "apiserver")
	p.ended(c, 0)
	text, err := os.ReadFile(filepath.Join(c.bundle, "log.jsonl"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, want := range []string{"was lost", "too old resource version", "is back after"} {
		if !strings.Contains(string(text), want) {
			p.t.Errorf("the log does not say that a watch %s", want)
		}
	}
}

// testNoRights checks that the command lists all missing rights of the run pod's account before it
// creates anything.
func testNoRights(p *project) {
	c := p.command("pod", volumes("hostdir", ""))
	p.ends(c, 1, "lacks rights", "create persistentvolumeclaims", "watch persistentvolumes", "--create-rbac")
}
