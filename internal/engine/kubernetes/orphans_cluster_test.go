//go:build e2e

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/enginetest"
)

// forgetful is a driver that creates a new object at each call, so that repeated or abandoned calls leave orphans.
type forgetful struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	name string

	mu        sync.Mutex
	n         int
	volumes   map[string]bool
	snapshots map[string]string // id → volume
	stalls    int               // of further CreateSnapshot
	fails     int               // of further CreateVolume, after the work is done
}

func (f *forgetful) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: f.name, VendorVersion: "1"}, nil
}

func (f *forgetful) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (f *forgetful) GetPluginCapabilities(context.Context,
	*csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}}}}, nil
}

func (f *forgetful) ControllerGetCapabilities(context.Context,
	*csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	var all []*csi.ControllerServiceCapability
	for _, t := range []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES, csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS} {
		all = append(all,
			&csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}}})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: all}, nil
}

func (f *forgetful) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	id := fmt.Sprintf("vol-%d", f.n)
	f.volumes[id] = true
	if f.fails > 0 {
		f.fails--
		return nil, status.Error(codes.Internal, "it was made, but that is not known")
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id,
		CapacityBytes: r.GetCapacityRange().GetRequiredBytes()}}, nil
}

func (f *forgetful) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.volumes, r.GetVolumeId())
	return &csi.DeleteVolumeResponse{}, nil
}

func (f *forgetful) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse,
	error) {
	f.mu.Lock()
	f.n++
	id := fmt.Sprintf("snap-%d", f.n)
	f.snapshots[id] = r.GetSourceVolumeId()
	stall := f.stalls > 0
	f.stalls--
	f.mu.Unlock()
	if stall {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{SnapshotId: id, SourceVolumeId: r.GetSourceVolumeId(),
		CreationTime: timestamppb.Now(), ReadyToUse: true}}, nil
}

func (f *forgetful) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse,
	error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.snapshots, r.GetSnapshotId())
	return &csi.DeleteSnapshotResponse{}, nil
}

func (f *forgetful) ListVolumes(context.Context, *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &csi.ListVolumesResponse{}
	for id := range f.volumes {
		answer.Entries = append(answer.Entries, &csi.ListVolumesResponse_Entry{Volume: &csi.Volume{VolumeId: id}})
	}
	return answer, nil
}

func (f *forgetful) ListSnapshots(context.Context, *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &csi.ListSnapshotsResponse{}
	for id, volume := range f.snapshots {
		answer.Entries = append(answer.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: &csi.Snapshot{SnapshotId: id,
			SourceVolumeId: volume, CreationTime: timestamppb.Now(), ReadyToUse: true}})
	}
	return answer, nil
}

const (
	orphanToken = "of-this-test-alone-and-long"
	// sidecarTimeout is the sidecars' timeout of a call.
	sidecarTimeout = 2 * time.Second
)

// behindSidecars serves the driver behind a proxy and the test bed's csi-provisioner and csi-snapshotter, with
// classes of its name, and returns the proxy's address.
func behindSidecars(t *testing.T, client *api.Client, f *forgetful) (proxy string) {
	t.Helper()
	bed := filepath.Join("..", "..", "..", "out", "testbed", "bin")
	if dir := os.Getenv("TESTBED_DIR"); dir != "" {
		bed = filepath.Join(dir, "bin")
	}
	for _, sidecar := range []string{"csi-provisioner", "csi-snapshotter"} {
		if _, err := os.Stat(filepath.Join(bed, sidecar)); err != nil {
			t.Skipf("the test needs the test bed's sidecars: %v", err)
		}
	}
	dir, err := os.MkdirTemp("", "orph") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	serveDriver(t, f, filepath.Join(dir, "driver"))
	p, err := csiproxy.New(csiproxy.Options{Upstream: filepath.Join(dir, "driver"),
		Listen: filepath.Join(dir, "proxied"), Driver: f.name, Grace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	running.Go(func() { _ = p.Serve(ctx, l, orphanToken) })
	t.Cleanup(func() { stop(); running.Wait() })
	for _, sidecar := range []string{"csi-provisioner", "csi-snapshotter"} {
		startSidecar(t, exec.Command(filepath.Join(bed, sidecar), "--csi-address="+filepath.Join(dir, "proxied"),
			"--kubeconfig="+os.Getenv("KUBECONFIG"),
			"--leader-election=false", "--timeout="+sidecarTimeout.String(), "--retry-interval-start=500ms"))
	}
	classesOf(t, client, f.name)
	return l.Addr().String()
}

func serveDriver(t *testing.T, f *forgetful, socket string) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	csi.RegisterIdentityServer(s, f)
	csi.RegisterControllerServer(s, f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
}

func startSidecar(t *testing.T, c *exec.Cmd) {
	c.Stderr = t.Output()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
}

func classesOf(t *testing.T, client *api.Client, driver string) {
	sc := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, Provisioner: driver}
	vsc := &api.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, Driver: driver,
		DeletionPolicy: "Delete"}
	for _, one := range []struct {
		kind   api.Kind
		object api.Object
	}{{api.StorageClasses, sc}, {api.VolumeSnapshotClasses, vsc}} {
		if _, err := client.Create(t.Context(), one.kind, "", one.object, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := client.Delete(context.WithoutCancel(t.Context()), one.kind, "", driver,
				metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func claimOf(class string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}}}}
}

// TestOrphans: CreateSnapshot exceeds the sidecar's timeout twice, and a CreateVolume fails after its work, with a
// driver that creates a new object each time. The ops have their attempts, the causes are reported, and the orphans
// are listed: by the driver's list through a proxy, and without one by the names to look for.
func TestOrphans(t *testing.T) {
	t.Parallel()
	config := testBed(t)
	client, err := api.New(config, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	f := &forgetful{name: fmt.Sprintf("forgetful-%d.cnsbench.dev", os.Getpid()),
		volumes: map[string]bool{"of-before": true}, snapshots: map[string]string{}}
	proxy := behindSidecars(t, client, f)
	ns := namespace(t, client, "orphans-")
	for _, tt := range []struct {
		name, id string
		proxies  []string
	}{{"through a proxy", "0000abcd", []string{proxy}}, {"without", "0000abce", nil}} {
		t.Run(tt.name, func(t *testing.T) {
			f.forget()
			r := newRun(t, config, ns, tt.id, v1alpha1.QueueFail)
			r.Proxies, r.ProxyToken = tt.proxies, orphanToken
			if err := r.Open(t.Context(),
				engine.Session{RunID: r.id, Clock: op.NewClock(), Ledger: r.ledger, Sink: quiet{t}, Dir: t.TempDir(),
					Needs:          engine.Needs{Kinds: map[op.Kind]bool{op.Snapshot: true}},
					StorageClasses: map[string]storagev1.StorageClass{f.name: {}}}); err != nil {
				t.Fatal(err)
			}
			made, snapshot := r.stalledSnapshot(f)
			t.Logf("%d attempts, %v", snapshot.Attempts, snapshot.Milestones)
			if want := map[bool]int{true: 3, false: 2}[len(tt.proxies) > 0]; snapshot.Attempts < want {
				t.Errorf("the snapshot took %d attempts, want %d", snapshot.Attempts, want)
			}
			r.failedVolume(f)
			if err := r.Teardown(context.WithoutCancel(t.Context()), r.ledger); err != nil {
				t.Error(err)
			}
			left := f.left()
			said := r.Report(context.WithoutCancel(t.Context()))
			var text []string
			for _, x := range said.Findings {
				text = append(text, x.Name+": "+x.Evidence)
				t.Log(x.Severity, x.Name, x.Evidence)
			}
			all := strings.Join(text, "\n")
			if !strings.Contains(all, "DeadlineExceeded") {
				t.Error("nothing says that the sidecar's calls timed out")
			}
			if len(tt.proxies) == 0 {
				if !strings.Contains(all, "orphanPossible: ") || !strings.Contains(all, "Internal") {
					t.Error("nothing says that the driver may keep a volume")
				}
				return
			}
			if len(left) < 3 || slices.Contains(left, made.Handle) {
				t.Errorf("the driver kept %v; want two snapshots and a volume at least", left)
			}
			for _, id := range left {
				if !strings.Contains(all, id) {
					t.Errorf("orphan %s is not listed", id)
				}
			}
			if strings.Contains(all, "of-before") || strings.Contains(all, "orphanPossible") {
				t.Error("what was there before, or was looked for, is called an orphan")
			}
		})
	}
}

// forget clears the driver's state and makes the next calls fail.
func (f *forgetful) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.volumes, f.snapshots = map[string]bool{"of-before": true}, map[string]string{}
	f.stalls = 2
}

func (f *forgetful) left() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for id := range f.volumes {
		if id != "of-before" {
			all = append(all, id)
		}
	}
	for id := range f.snapshots {
		all = append(all, id)
	}
	return all
}

func (r *runOn) do(ctx context.Context, request engine.Request) (op.Op, []engine.Object, error) {
	if err := r.Prepare(request); err != nil {
		r.t.Fatal(err)
	}
	tr := op.NewTrace(r.Session.Clock)
	o := op.Op{Started: r.Session.Clock.Now()}
	made, err := r.Do(ctx, enginetest.Complete(request), tr)
	o.Ended = r.Session.Clock.Now()
	tr.Fill(&o)
	return o, made, err
}

// stalledSnapshot creates a volume and a snapshot of it, which the driver stalls.
func (r *runOn) stalledSnapshot(f *forgetful) (engine.Object, op.Op) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	_, made, err := r.do(ctx,
		engine.Request{Name: "vol-0", Action: "vol", Volume: &engine.Volume{Claim: claimOf(f.name)}})
	if err != nil {
		r.t.Fatal(err)
	}
	o, snaps, err := r.do(ctx,
		engine.Request{Name: "snap-0", Action: "snap", Snapshot: &engine.Snapshot{Sources: made, Class: f.name}})
	if err != nil {
		r.t.Fatal(err)
	}
	return snaps[0], o
}

// failedVolume requests a volume whose creation fails after its work, and gives up.
func (r *runOn) failedVolume(f *forgetful) {
	f.mu.Lock()
	f.fails = 1 << 20
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.t.Context(), 4*time.Second)
	defer cancel()
	_, _, err := r.do(ctx, engine.Request{Name: "vol-1", Action: "vol", Volume: &engine.Volume{Claim: claimOf(f.name)}})
	if !errors.Is(err, context.DeadlineExceeded) {
		r.t.Fatalf("a volume that cannot be made: %v", err)
	}
	r.t.Log(err)
	gone, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	o, _, err := r.do(gone, engine.Request{Name: "vol-1",
		Kind: op.Delete, Target: engine.Object{Kind: engine.VolumeObject, Name: "vol-1"}})
	if err != nil || o.Attempts != 1 {
		r.t.Errorf("its claim is deleted at attempt %d: %v", o.Attempts, err)
	}
	f.mu.Lock()
	f.fails = 0
	f.mu.Unlock()
}
