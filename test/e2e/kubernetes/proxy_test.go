//go:build e2e

package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/operator"
	"github.com/cnsbench/cnsbench/test/enginetest"
)

// unproxied removes the proxies as an administrator would.
func (bed *testBed) unproxied(t *testing.T) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: config.ProxyNamespace}}
	if err := bed.Delete(context.Background(), ns); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	p := &project{bed, t, ""}
	p.until(context.Background(), "the proxies' namespace is gone", func() (bool, string) {
		err := bed.Get(context.Background(), client.ObjectKeyFromObject(ns), ns)
		return apierrors.IsNotFound(err), fmt.Sprint(err, ns.Status.Conditions)
	})
}

// ownDriver is a driver's node service on each node. Clients call it continuously as kubelets do:
// with one connection per call.
type ownDriver struct {
	t       *testing.T
	sockets []string

	mu     sync.Mutex
	calls  int
	failed []string
}

const nodeName = "$(NODE_NAME)"

func newOwnDriver(t *testing.T, bed *testBed) *ownDriver {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi-") // a short path, because the length of a socket path is limited
	if err != nil {
		t.Fatal(err)
	}
	d := &ownDriver{t: t}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, node := range []string{"node1", "node2"} {
		socket := filepath.Join(dir, "csi-"+node+".sock")
		cmd := exec.Command(bed.binary, "csi", "driver", "--backend", "null", "--socket", socket, "--node-id", node,
			"--base-dir", filepath.Join(dir, node))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		d.sockets = append(d.sockets, socket)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	for _, s := range d.sockets {
		if !poll(20*time.Second, 20*time.Millisecond, func() bool { return d.call(ctx, s) == nil }) {
			t.Fatalf("no answer at %s", s)
		}
		all.Go(func() {
			for ctx.Err() == nil {
				err := d.call(ctx, s)
				d.note(err)
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	return d
}

func (d *ownDriver) path() string {
	return filepath.Join(filepath.Dir(d.sockets[0]), "csi-"+nodeName+".sock")
}

func (d *ownDriver) call(ctx context.Context, socket string) error {
	c, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer c.Close() // test only
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = csi.NewIdentityClient(c).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	return err
}

func (d *ownDriver) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if err != nil && status.Code(err) != codes.Canceled {
		d.failed = append(d.failed, err.Error())
	}
}

// since waits for a number of calls. It returns the number of calls since its last use and the
// errors of the failed calls.
func (d *ownDriver) since() (calls int, failed []string) {
	const enough = 20
	poll(20*time.Second, 5*time.Millisecond, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.calls >= enough
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	calls, failed = d.calls, d.failed
	d.calls, d.failed = 0, nil
	return calls, failed
}

// taken returns the number of nodes on which a proxy listens on the driver's socket.
func (d *ownDriver) taken() (n int) {
	for _, s := range d.sockets {
		if _, err := os.Lstat(s + ".cnsbench-upstream"); err == nil {
			n++
		}
	}
	return n
}

func (d *ownDriver) until(what string, taken int) {
	d.t.Helper()
	if !poll(2*time.Minute, 20*time.Millisecond, func() bool { return d.taken() == taken }) {
		entries, _ := os.ReadDir(filepath.Dir(d.sockets[0]))
		d.t.Fatalf("%s: %d sockets are taken over, want %d: %v", what, d.taken(), taken, entries)
	}
}

// processes returns the PIDs of the guard of the proxy on a socket and of its child, the proxy.
func (d *ownDriver) processes(socket string) (guard, proxy int) {
	d.t.Helper()
	wanted := "--take-over=/csi/" + filepath.Base(socket)
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		text, _ := os.ReadFile(path)
		if !slices.Contains(strings.Split(string(text), "\x00"), wanted) {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		parents[pid], _ = strconv.Atoi(f[1])
	}
	for pid, parent := range parents {
		if _, ok := parents[parent]; ok {
			return parent, pid
		}
	}
	d.t.Fatalf("no guard with its proxy of %s among %v", socket, parents)
	return 0, 0
}

// TestCSIProxy checks that a driver serves its clients without errors while CSI proxies on its
// sockets start and end in every way in which a pod can end. Only a proxy that is killed may fail a
// few calls. The driver is called continuously.
func TestCSIProxy(t *testing.T) {
	bed := newBed(t)
	if _, err := os.Stat(filepath.Join(testbedDir(), "bin", "testbed")); err != nil {
		t.Skipf("the nodes' sockets are reached on the test bed only: %v", err)
	}
	d := newOwnDriver(t, bed)
	bed.install(t, "--csi-proxy", "own.example.com="+d.path())
	d.until("after the installation", 2)
	step := func(what string, allowed int) {
		t.Helper()
		calls, failed := d.since()
		t.Logf("%s: %d calls, %d failed", what, calls, len(failed))
		if calls == 0 || len(failed) > allowed {
			t.Errorf("%s: %d of %d calls failed: %.400q", what, len(failed), calls, failed)
		}
	}
	step("installed", 0)

	if err := bed.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(config.ProxyNamespace)); err != nil {
		t.Fatal(err)
	}
	d.until("after its pods were deleted", 0)
	step("the pods are deleted", 0)
	d.until("once it has new pods", 2)
	step("new pods", 0)

	// The listener ends with the proxy. Its guard needs a moment to detect this.
	_, proxy := d.processes(d.sockets[0])
	_ = syscall.Kill(proxy, syscall.SIGKILL)
	d.until("after the proxy was killed", 1)
	step("the proxy is killed", 50)
	d.until("once its container runs again", 2)

	guard, _ := d.processes(d.sockets[1])
	step("its container runs again", 0)
	_ = syscall.Kill(guard, syscall.SIGKILL)
	d.until("after the guard was killed", 1)
	step("the guard is killed", 0)
	d.until("once that container runs again", 2)
	step("that container runs again", 0)

	bed.unproxied(t)
	d.until("after the namespace was deleted", 0)
	step("the namespace is deleted", 0)
	entries, err := os.ReadDir(filepath.Dir(d.sockets[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "cnsbench") {
			t.Errorf("%s is left beside the driver's socket", e.Name())
		}
	}
}

// attached is a Benchmark that attaches a volume of a driver that stages volumes, and one of a
// driver that does not.
const attached = `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  serviceAccountName: bench
  queue: Share # other tests use these drivers
  gracePeriod: 1s
  actions:
    - {name: btrfs, createObjSpec: {volume: {storageClass: btrfs, size: 64Mi, attach: true}}}
    - {name: loopfile, createObjSpec: {volume: {storageClass: loopfile, size: 64Mi, attach: true}}}
`

// TestCSIProxyInRun checks proxies that the command installs on the sockets of two active drivers.
// A run that may read the token records when volumes were staged and published, without a setting
// for the proxies. A run that may not read it works without these times. After uninstall the
// drivers have their sockets back.
func TestCSIProxyInRun(t *testing.T) {
	bed := newBed(t)
	const sockets = "/run/cnsbench-testbed/"
	if _, err := os.Stat(sockets + "btrfs-node1.sock"); err != nil {
		t.Skipf("needs the test bed: %v", err)
	}
	t.Cleanup(func() { // runs after the uninstall
		if left, err := filepath.Glob(sockets + "*cnsbench-*"); err != nil || len(left) > 0 {
			t.Errorf("left beside the drivers' sockets: %v, %v", left, err)
		}
	})
	bed.install(t, "--csi-proxy", "btrfs.csi.cnsbench.dev="+sockets+"btrfs-"+nodeName+".sock", "--csi-proxy",
		"loopfile.csi.cnsbench.dev="+sockets+"loopfile-"+nodeName+".sock")
	if taken, _ := filepath.Glob(sockets + "*.sock.cnsbench-upstream"); len(taken) != 4 {
		t.Errorf("proxies stand on %v, want two drivers on two nodes", taken)
	}
	t.Run("by the command", func(t *testing.T) {
		p := bed.project(t, allRights)
		for _, flags := range [][]string{nil, {"--csi-proxy", "none"}} {
			c := p.command("local", attached, flags...)
			p.ends(c, 0)
			p.observed(p.events(c.bundle), flags == nil)
		}
	})
	t.Run("by the operator", func(t *testing.T) {
		p := bed.project(t, allRights)
		p.observed(p.applied(attached), false)
		p.kubectl("create", "rolebinding", p.name, "-n", config.ProxyNamespace, "--role=cnsbench-csi-proxy-reader",
			"--serviceaccount="+p.name+":"+account)
		if got := strings.TrimSpace(p.mayI("list", "secrets")); got != "no" {
			t.Errorf("it may list secrets: %s", got)
		}
		p.observed(p.applied(attached), true)
	})
	t.Run("where no driver is", func(t *testing.T) {
		out, err := bed.cnsbench(t, "install", "--image", bed.image, "--results-storage-class", "hostdir",
			"--results-size", "1Gi", "--timeout", "20s",
			"--csi-proxy", "null.csi.cnsbench.dev="+sockets+"misspelt.sock")
		if err == nil || !strings.Contains(out, "0 of 2 nodes have it") || !strings.Contains(out, "check its name") {
			t.Errorf("%v, %s", err, out)
		}
	})
}

// applied applies the Benchmark e2e, waits for its end and deletes it. It returns the ops, which
// the results service still has.
func (p *project) applied(yaml string) []op.Op {
	p.t.Helper()
	p.apply(yaml)
	b := &v1alpha1.Benchmark{ObjectMeta: metav1.ObjectMeta{Name: "e2e", Namespace: p.name}}
	p.wait(b, v1alpha1.ConditionComplete)
	p.delete(b)
	return p.events("--cluster", p.name+"/"+operator.RunID(b), "--results-account", account)
}

// events returns the ops of a bundle as printed by the command.
func (p *project) events(bundle ...string) (ops []op.Op) {
	p.t.Helper()
	cmd := exec.Command(p.binary, append([]string{"show", "--events"}, bundle...)...)
	cmd.Stderr = p.t.Output()
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var o op.Op
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return ops
		} else if err != nil {
			p.t.Fatal(err)
		}
		enginetest.CheckMilestones(p.t, o)
		ops = append(ops, o)
	}
}

// observed checks that the ops of attached have the times from the CSI proxies at which their
// volumes were staged and published, or, if want is false, that they have none.
func (p *project) observed(ops []op.Op, want bool) {
	p.t.Helper()
	got := map[string]bool{}
	for _, o := range ops {
		if o.Outcome != op.OK {
			p.t.Errorf("%s: %s", &o, o.Message)
		}
		for _, m := range o.Milestones {
			if m.Name == op.Staged || m.Name == op.Published {
				got[o.Action+" "+m.Name+" by "+m.Source] = true
			}
		}
		if want {
			p.inOrder(&o, op.Scheduled, op.Published, op.Running)
		}
	}
	all := map[string]bool{}
	if want {
		all = map[string]bool{"btrfs published by csi": true, "loopfile staged by csi": true,
			"loopfile published by csi": true}
	}
	if diff := cmp.Diff(all, got); diff != "" {
		p.t.Errorf("observed (-want +got):\n%s", diff)
	}
}

// mayI returns whether the project's account has a right in the namespace of the proxies, as
// kubectl prints it.
func (p *project) mayI(verb, what string) string {
	p.t.Helper()
	kubectl := filepath.Join(testbedDir(), "bin", "kubectl")
	// kubectl exits with 1 if the answer is "no".
	out, _ := exec.Command(kubectl, "auth", "can-i", verb, what, "-n", config.ProxyNamespace,
		"--as=system:serviceaccount:"+p.name+":"+account).Output()
	return string(out)
}
