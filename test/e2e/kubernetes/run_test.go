//go:build e2e

package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/record"
)

const toolsImage = "localhost/cnsbench-tools:test"

// command is one `cnsbench run` on the cluster.
type command struct {
	*exec.Cmd
	out    bytes.Buffer
	bundle string
}

func (p *project) command(runner, yaml string, flags ...string) *command {
	p.t.Helper()
	dir := p.t.TempDir()
	file := filepath.Join(dir, "benchmark.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o644); err != nil {
		p.t.Fatal(err)
	}
	c := &command{bundle: filepath.Join(dir, "bundle")}
	args := append([]string{"run", file, "--engine", "kubernetes", "--runner", runner, "--namespace", p.name, "--image", p.image, "--out", c.bundle}, flags...)
	c.Cmd = exec.Command(p.binary, args...)
	c.Stdout, c.Stderr = io.MultiWriter(&c.out, p.t.Output()), io.MultiWriter(&c.out, p.t.Output())
	return c
}

// ends runs the command and checks how it ended and what it said.
func (p *project) ends(c *command, code int, says ...string) {
	p.t.Helper()
	_ = c.Run() // its code is looked at
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

// TestRun runs Benchmarks by the command, and makes them fail in the ways that
// clusters know.
func TestRun(t *testing.T) {
	bed := newOperatorBed(t)
	for name, test := range map[string]func(*project){
		"Listing 1 in a runner's pod":  testListing1,
		"a class that is missing":      testNoClass,
		"an image that cannot be had":  testNoImage,
		"a quota that is exceeded":     testQuota,
		"a claim that stays pending":   testPending,
		"an interrupt":                 testInterrupt,
		"a runner that is killed":      testKilled,
		"an API server that restarts":  testRestart,
		"rights that the runner lacks": testNoRights,
	} {
		t.Run(name, func(t *testing.T) { test(bed.project(t, noRights)) })
	}
}

// receiver counts the documents that are posted to it, from wherever pods are.
func receiver(t *testing.T) (url string, documents *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "10.99.0.1:0") // the machine, as the test bed's pods see it
	if err != nil {
		t.Skipf("the receiver needs the test bed's bridge: %v", err)
	}
	documents = new(atomic.Int64)
	s := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err == nil && len(b) > 2 && r.Method == http.MethodPost {
			documents.Add(1)
		}
		w.WriteHeader(http.StatusCreated)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String() + "/fio/_doc/", documents
}

// testListing1 runs the paper's Listing 1, changed in the names of classes and
// images and in its lengths.
func testListing1(p *project) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "paper", "listing1.yaml"))
	if err != nil {
		p.t.Fatal(err)
	}
	url, documents := receiver(p.t)
	file, _, _ := strings.Cut(string(text), "\n---\n")
	file = strings.NewReplacer("obs-r1", "loopfile-xfs", "obs-csi", "loopfile", "interval: 60s", "interval: 5s", "http://es:9200/fio/_doc/", url).Replace(file)
	admin := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: p.name + "-admin"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: p.name}}}
	p.create(admin)
	p.t.Cleanup(func() { _ = p.Delete(context.Background(), admin) })
	c := p.command("pod", file, "--set", "fio.runtime=12", "--set", "fio.volumeSize=320Mi", "--set", "fio.image="+toolsImage)
	p.ends(c, 0, "fio, 3 instances", "snapshots")
	b, err := record.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	if b.Run.State != record.Complete {
		p.t.Errorf("the run is %s: %s", b.Run.State, b.Run.Reason)
	}
	if n := documents.Load(); n < 3 {
		p.t.Errorf("%d documents were posted, want one for each instance at least", n)
	}
}

func testNoClass(p *project) {
	p.ends(p.command("local", volumes("loopfil", "")), 1, `"loopfil"`, "loopfile")
}

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

func testPending(p *project) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Provisioner: "nobody.example"}
	p.create(class)
	p.t.Cleanup(func() { _ = p.Delete(context.Background(), class) })
	p.ends(p.command("local", volumes(p.name, "")), 0, "is not bound")
}

func testInterrupt(p *project) {
	c := p.command("local", volumes("hostdir", ", attach: true"))
	time.AfterFunc(8*time.Second, func() { _ = c.Process.Signal(os.Interrupt) })
	p.ends(c, 130)
}

func testKilled(p *project) {
	c := p.command("local", volumes("hostdir", ", attach: true"))
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(8 * time.Second)
	_ = c.Process.Signal(syscall.SIGKILL)
	_ = c.Wait() // it was killed
	if len(p.left()) == 0 {
		p.t.Error("the runner was killed too late: there is nothing to clean up")
	}
	if out, err := p.cnsbench(p.t, "cleanup", c.bundle); err != nil {
		p.t.Errorf("cleanup: %v\n%s", err, out)
	}
	p.nothingLeft()
}

// testRestart: ops that meet a server that is away fail and say so; the watches
// are lost, come back, and the gap is on record.
func testRestart(p *project) {
	bed := filepath.Join("..", "..", "..", "out", "testbed")
	program, err := filepath.Abs(filepath.Join(bed, "bin", "testbed"))
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		p.t.Skipf("only the test bed's API server is ours to restart: %v", err)
	}
	c := p.command("local", strings.Replace(volumes("hostdir", ""), "runtime: 15s", "runtime: 30s", 1))
	time.AfterFunc(8*time.Second, func() {
		restart := exec.Command(program, "restart", "apiserver")
		dir, _ := filepath.Abs(bed)
		restart.Env = append(os.Environ(), "TESTBED_DIR="+dir)
		if out, err := restart.CombinedOutput(); err != nil {
			p.t.Errorf("restart: %v\n%s", err, out)
		}
	})
	p.ends(c, 0)
	text, err := os.ReadFile(filepath.Join(c.bundle, "log.jsonl"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, want := range []string{"was lost", "is back after"} {
		if !strings.Contains(string(text), want) {
			p.t.Errorf("the log does not say that a watch %s", want)
		}
	}
}

// testNoRights: what the runner may not do is listed whole before anything is
// made.
func testNoRights(p *project) {
	c := p.command("pod", volumes("hostdir", ""))
	p.ends(c, 2, "rights are missing", "create persistentvolumeclaims", "watch persistentvolumes")
}
