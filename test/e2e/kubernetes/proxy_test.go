//go:build e2e

package kubernetes

import (
	"context"
	"fmt"
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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cnsbench/cnsbench/config"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/record"
)

// proxyObjects are those that an installation with a proxy on one driver's
// sockets adds.
func (bed *testBed) proxyObjects(t *testing.T, driver config.CSIDriver) []client.Object {
	t.Helper()
	plain, err := config.Objects(config.Options{Image: bed.image})
	if err != nil {
		t.Fatal(err)
	}
	all, err := config.Objects(config.Options{Image: bed.image, CSIProxy: &config.CSIProxy{Drivers: []config.CSIDriver{driver}, Token: "0123456789abcdef0123"}})
	if err != nil {
		t.Fatal(err)
	}
	var list []client.Object
	for _, o := range all[len(plain):] {
		list = append(list, o)
	}
	return list
}

// proxied puts a proxy on a driver's sockets until the test ends.
func (bed *testBed) proxied(t *testing.T, driver config.CSIDriver) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: config.ProxyNamespace}}
	if err := bed.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
		t.Fatalf("namespace %s is there already (%v): not touching it", ns.Name, err)
	}
	t.Cleanup(func() { bed.unproxied(t) })
	for _, o := range bed.proxyObjects(t, driver) {
		if err := bed.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	bed.proxiesRun(t)
}

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

// proxiesRun waits until each node has a proxy.
func (bed *testBed) proxiesRun(t *testing.T) {
	t.Helper()
	p := &project{bed, t, ""}
	p.until(t.Context(), "a proxy runs on each node", func() (bool, string) {
		var sets appsv1.DaemonSetList
		err := bed.List(t.Context(), &sets, client.InNamespace(config.ProxyNamespace))
		if err != nil || len(sets.Items) != 1 {
			return false, fmt.Sprint(err, len(sets.Items))
		}
		s := sets.Items[0].Status
		return s.ObservedGeneration > 0 && s.DesiredNumberScheduled == 2 && s.NumberAvailable == 2 && s.UpdatedNumberScheduled == 2, fmt.Sprintf("%+v", s)
	})
}

// ownDriver is a driver's node service on each node, called without pause as
// kubelets call: with a connection for each call.
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
	dir, err := os.MkdirTemp("", "csi-") // short: sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	d := &ownDriver{t: t}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, node := range []string{"node1", "node2"} {
		socket := filepath.Join(dir, "csi-"+node+".sock")
		cmd := exec.Command(bed.binary, "csi-driver", "--backend", "null", "--socket", socket, "--node-id", node, "--base-dir", filepath.Join(dir, node))
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
		for deadline := time.Now().Add(20 * time.Second); d.call(ctx, s) != nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("nobody answers at %s", s)
			}
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
	defer c.Close() // a test's
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

// since says how many calls there were and which failed since the last time.
func (d *ownDriver) since() (calls int, failed []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	calls, failed = d.calls, d.failed
	d.calls, d.failed = 0, nil
	return calls, failed
}

// taken says on how many nodes a proxy stands on the socket.
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
	deadline := time.Now().Add(2 * time.Minute)
	for d.taken() != taken {
		if time.Now().After(deadline) {
			entries, _ := os.ReadDir(filepath.Dir(d.sockets[0]))
			d.t.Fatalf("%s: %d sockets are taken over, want %d: %v", what, d.taken(), taken, entries)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// processes are those of the proxy on one socket: the guard and, its child, the
// proxy.
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

// TestCSIProxy stands on the sockets of a driver of its own, and goes away in
// every way that a pod can, while the driver is called without pause.
func TestCSIProxy(t *testing.T) {
	bed := newBed(t)
	if _, err := os.Stat(filepath.Join(testbedDir(), "bin", "testbed")); err != nil {
		t.Skipf("the nodes' sockets are reached on the test bed only: %v", err)
	}
	d := newOwnDriver(t, bed)
	bed.proxied(t, config.CSIDriver{Name: "own.example.com", Socket: d.path()})
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

	// The listener dies with the proxy; its guard needs a moment to see it.
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
	bed.proxiesRun(t)
	step("that container runs again", 0)

	bed.unproxied(t)
	d.until("after the namespace was deleted", 0)
	time.Sleep(100 * time.Millisecond)
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

// TestCSIProxyInRun: a run that may read the token has the instants at which
// volumes were published, without being told of the proxies; one that may not
// runs all the same, and says so.
func TestCSIProxyInRun(t *testing.T) {
	bed := newBed(t)
	sockets := "/run/cnsbench-testbed/btrfs-"
	if _, err := os.Stat(sockets + "node1.sock"); err != nil {
		t.Skipf("needs the test bed: %v", err)
	}
	bed.proxied(t, config.CSIDriver{Name: "btrfs.csi.cnsbench.dev", Socket: sockets + nodeName + ".sock"})
	p := bed.project(t, noRights)
	yaml := strings.Replace(volumes("btrfs", ", attach: true"), "runtime: 15s", "runtime: 5s", 1)
	for _, tt := range []struct {
		name  string
		flags []string
		sees  bool
	}{{"found", nil, true}, {"told not to", []string{"--csi-proxy", "none"}, false}} {
		t.Run(tt.name, func(t *testing.T) {
			c := p.command("local", yaml, tt.flags...)
			p.ends(c, 0)
			b, err := record.Open(c.bundle)
			if err != nil {
				t.Fatal(err)
			}
			published := 0
			for o, err := range b.Ops() {
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range o.Milestones {
					if m.Name == op.Published && m.Source == "csi" {
						published++
					}
				}
			}
			if (published > 0) != tt.sees {
				t.Errorf("%d ops have the instant of publishing", published)
			}
		})
	}
	t.Run("by its ServiceAccount", func(t *testing.T) {
		// The documented binding is what lets it.
		for _, allowed := range []bool{false, true} {
			if allowed {
				b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: config.ProxyNamespace},
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "cnsbench-csi-proxy-reader"}, Subjects: p.subjects(account)}
				p.create(b)
			}
			for verb, what := range map[string]string{"list": "pods", "get": "secrets/" + config.ProxySecret} {
				got := strings.TrimSpace(p.mayI(verb, what))
				if got != map[bool]string{false: "no", true: "yes"}[allowed] {
					t.Errorf("bound %v: %s %s: %s", allowed, verb, what, got)
				}
			}
			if got := strings.TrimSpace(p.mayI("list", "secrets")); got != "no" {
				t.Errorf("bound %v: it may list secrets: %s", allowed, got)
			}
		}
	})
}

// mayI asks the cluster what the project's account may do where the proxies are.
func (p *project) mayI(verb, what string) string {
	p.t.Helper()
	kubectl := filepath.Join(testbedDir(), "bin", "kubectl")
	out, _ := exec.Command(kubectl, "auth", "can-i", verb, what, "-n", config.ProxyNamespace, "--as=system:serviceaccount:"+p.name+":"+account).Output() // "no" is exit code 1
	return string(out)
}
