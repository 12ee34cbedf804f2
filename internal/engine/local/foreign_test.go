package local_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/enginetest"
)

// handDriver is a CNSBench driver that the engine did not start.
type handDriver struct {
	csi.ControllerClient
	csi.NodeClient
	cmd          *exec.Cmd
	socket, base string
}

func startDriver(t *testing.T, backend string, more ...string) *handDriver {
	t.Helper()
	d := &handDriver{socket: filepath.Join(t.TempDir(), "s"), base: filepath.Join(t.TempDir(), "run", backend)}
	if err := os.MkdirAll(d.base, 0o755); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"csi", "driver", "--backend", backend, "--base-dir", d.base}, more...)
	t.Cleanup(func() {
		if out, err := exec.Command(filepath.Join(bin, "cnsbench"),
			append(args, "--destroy")...).CombinedOutput(); err != nil {
			t.Errorf("destroy: %v: %s", err, out)
		}
	})
	d.cmd = exec.Command(filepath.Join(bin, "cnsbench"), append(args, "--socket", d.socket)...)
	d.cmd.Stderr = os.Stderr
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	conn, err := grpc.NewClient("unix://"+d.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	d.ControllerClient, d.NodeClient = csi.NewControllerClient(conn), csi.NewNodeClient(conn)
	if _, err := csi.NewIdentityClient(conn).Probe(t.Context(), &csi.ProbeRequest{},
		grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	return d
}

// kill sends SIGKILL to the driver and waits for its end.
func (d *handDriver) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// silent is a sink for runs without workloads. It fails the test on an error of the engine.
type silent struct {
	engine.Sink
	t *testing.T
}

func (s silent) Log(source, line string) { s.t.Log(source, line) }
func (s silent) Failed(err error)        { s.t.Error(err) }

// foreignRun is an engine that uses a driver which it did not start.
type foreignRun struct {
	*local.Engine
	t      *testing.T
	clock  op.Clock
	ledger *bundle.Ledger
}

func openForeign(t *testing.T, socket string) *foreignRun {
	t.Helper()
	ledger, err := bundle.OpenLedger(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close() })
	r := &foreignRun{Engine: local.New(local.Options{Endpoints: map[string]string{"": "unix://" + socket}, RemoveTimeout: 2 * time.Second,
		AgentPath: filepath.Join(bin, "cnsbench-agent")}),
		t: t, clock: op.NewClock(), ledger: ledger}
	if err := r.Open(t.Context(), engine.Session{RunID: "r", Clock: r.clock, Ledger: ledger, Sink: silent{t: t},
		Dir:            t.TempDir(),
		StorageClasses: map[string]storagev1.StorageClass{"sc": {}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func (r *foreignRun) do(q engine.Request) (op.Op, engine.Object, error) {
	tr, o, made := op.NewTrace(r.clock), op.Op{}, []engine.Object(nil)
	err := r.Prepare(q)
	if err == nil {
		made, err = r.Do(r.t.Context(), enginetest.Complete(q), tr)
	}
	tr.Fill(&o)
	return o, append(made, engine.Object{})[0], err
}

func volumeRequest(name string, from *engine.Object) engine.Request {
	class := "sc"
	claim := corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}}}}
	return engine.Request{Name: name, Volume: &engine.Volume{Claim: claim, FromVolume: from}}
}

// TestCloneBesideResize checks that a clone requests the new size of a source that is resized at the same time, in
// either order. The driver delays CreateVolume before its work and the response to ControllerExpandVolume after it.
func TestCloneBesideResize(t *testing.T) {
	d := startDriver(t, "null", "--inject",
		"rpcs: {CreateVolume: {delay: 100ms}, ControllerExpandVolume: {delay: 300ms, when: after}}")
	r := openForeign(t, d.socket)
	for name, tt := range map[string]struct {
		cloneFirst bool
		attempts   int
	}{"resize first": {false, 1}, "clone first": {true, 2}} {
		name = strings.ReplaceAll(name, " ", "-")
		t.Run(name, func(t *testing.T) {
			_, source, err := r.do(volumeRequest("source-"+name, nil))
			if err != nil {
				t.Fatal(err)
			}
			resized := make(chan error)
			resizeAfter, cloneAfter := time.Duration(0), 40*time.Millisecond
			if tt.cloneFirst {
				resizeAfter, cloneAfter = cloneAfter, resizeAfter
			}
			go func() {
				time.Sleep(resizeAfter)
				_, _, err := r.do(engine.Request{Name: "resize", Kind: op.Resize, Target: source,
					Resize: &engine.Resize{Bytes: 2 * source.Bytes}})
				resized <- err
			}()
			time.Sleep(cloneAfter)
			o, clone, err := r.do(volumeRequest("clone-"+name, &source))
			if err != nil || clone.Bytes != 2*source.Bytes || o.Attempts != tt.attempts {
				t.Errorf("a clone of %d bytes in %d attempts, %v; want %d in %d", clone.Bytes, o.Attempts, err,
					2*source.Bytes, tt.attempts)
			}
			if err := <-resized; err != nil {
				t.Error(err)
			}
		})
	}
	if err := r.Teardown(t.Context(), r.ledger); err != nil {
		t.Error(err)
	}
}

// TestCreateFailsForGood checks a volume whose creation fails again during the removal, so that its existence is
// unknown. The volume stays in the ledger, and the removal ends with an error.
func TestCreateFailsForGood(t *testing.T) {
	d := startDriver(t, "null", "--inject", "rpcs: {CreateVolume: {error: 100% INTERNAL}}")
	r := openForeign(t, d.socket)
	if _, _, err := r.do(volumeRequest("v", nil)); err == nil {
		t.Fatal("the volume was made")
	}
	for range 2 {
		err := r.Teardown(t.Context(), r.ledger)
		if want := "volume v: Internal: CreateVolume"; err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("removal: %v; want %q", err, want)
		}
		if open := r.ledger.Open(); len(open) != 1 || open[0].Name != "v" {
			t.Errorf("the ledger lists %v", open)
		}
	}
}
