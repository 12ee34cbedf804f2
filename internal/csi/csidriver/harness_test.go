package csidriver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/test/looptest"
)

// serveEnv makes the test binary run as a driver process, so that tests can kill it.
const serveEnv = "CSIDRIVER_TEST_SERVE"

func TestMain(m *testing.M) {
	if config := os.Getenv(serveEnv); config != "" {
		if err := serveForTest(config); err != nil {
			fmt.Fprintln(os.Stderr, "driver:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	switch apart := os.Getenv(apartEnv); {
	case os.Geteuid() != 0 || apart == "settled":
	case apart == "":
		os.Exit(runApart())
	default:
		if err := errors.Join(letGo(), os.Setenv(apartEnv, "settled")); err != nil {
			fmt.Fprintln(os.Stderr, "unmounting other people's devices:", err)
		}
	}
	os.Exit(m.Run())
}

// apartEnv marks the process of the tests in its own mount namespace ("new"), and the processes that it starts
// ("settled").
const apartEnv = "CSIDRIVER_TEST_APART"

// runApart runs the tests in a separate mount namespace. Otherwise any process that creates a mount namespace, other
// tests included, would copy the mounts of these tests and keep their loop devices busy.
func runApart() int {
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), apartEnv+"=new")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread that started the process ends
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "running the tests in a mount namespace:", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// letGo unmounts loop devices of other processes in this namespace, whose copies of the mounts would keep them busy.
func letGo() error {
	mounts, err := hostfs.AllMounts()
	for _, m := range mounts {
		if strings.HasPrefix(m.Source, "/dev/loop") && m.Mountpoint != "/" {
			err = errors.Join(err, unix.Unmount(m.Mountpoint, unix.MNT_DETACH))
		}
	}
	return err
}

type testConfig struct {
	Options
	Socket string
}

func serveForTest(config string) (err error) {
	var c testConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	s, err := New(c.Options)
	if err != nil {
		return err
	}
	return errors.Join(s.Serve(ctx, c.Socket), s.Close())
}

// process is a driver in a separate process, with clients.
type process struct {
	t      testing.TB
	config testConfig
	cmd    *exec.Cmd
	conn   *grpc.ClientConn

	csi.ControllerClient
	csi.GroupControllerClient
	csi.NodeClient
}

// start runs a driver. At the end of the test it checks that Destroy leaves no mount and no loop device.
func start(t testing.TB, o Options) *process {
	t.Helper()
	needs(t, o.Backend)
	dir := t.TempDir()
	if o.BaseDir == "" {
		o.BaseDir = filepath.Join(dir, "base")
	}
	if o.TruthLog == "" {
		o.TruthLog = filepath.Join(dir, "truth.jsonl")
	}
	p := &process{t: t, config: testConfig{Options: o, Socket: filepath.Join(dir, "s")}}
	t.Cleanup(func() {
		p.kill()
		if err := Destroy(o); err != nil {
			t.Errorf("Destroy: %v", err)
		}
		if left := leftovers(t, dir); len(left) > 0 {
			t.Errorf("left behind after Destroy: %s", strings.Join(left, ", "))
		}
		if _, err := os.Stat(o.BaseDir); err == nil {
			t.Errorf("%s is left after Destroy", o.BaseDir)
		}
	})
	p.run()
	return p
}

func needs(t testing.TB, backend string) {
	t.Helper()
	need := Requirements(backend)
	if need.Root && os.Geteuid() != 0 {
		t.Skipf("backend %s needs root", backend)
	}
	for _, m := range need.Missing() {
		t.Skipf("%s is missing; the package %s brings it", m.Name, m.Package)
	}
}

// leftovers returns the mounts and loop devices that belong to dir.
func leftovers(t testing.TB, dir string) []string {
	t.Helper()
	var left []string
	mounts, err := hostfs.AllMounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		if strings.Contains(m.Mountpoint+m.Root+m.Source, dir) {
			left = append(left, "mount "+m.Mountpoint)
		}
	}
	return append(left, looptest.Below(dir)...)
}

// run starts the process and waits until it responds.
func (p *process) run() {
	p.t.Helper()
	config, err := json.Marshal(p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serveEnv+"="+string(config))
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	// Dial the socket directly first, because gRPC waits a second after a failed connection.
	waitFor(p.t, "the driver's socket", func() bool {
		conn, err := net.Dial("unix", p.config.Socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	p.conn, err = grpc.NewClient("unix://"+p.config.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.t.Fatal(err)
	}
	p.ControllerClient, p.GroupControllerClient, p.NodeClient =
		csi.NewControllerClient(p.conn), csi.NewGroupControllerClient(p.conn), csi.NewNodeClient(p.conn)
	waitFor(p.t, "the driver to answer", func() bool {
		_, err := csi.NewIdentityClient(p.conn).Probe(p.t.Context(), &csi.ProbeRequest{})
		return err == nil
	})
}

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

// kill sends SIGKILL and waits for the end of the process.
func (p *process) kill() {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.conn.Close()
	p.cmd = nil
}

// terminate sends SIGTERM. The process must exit without an error.
func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the driver did not end well after SIGTERM: %v", err)
	}
	_ = p.conn.Close()
	p.cmd = nil
}

// truth returns the records of the truth log.
func (p *process) truth() []Record {
	p.t.Helper()
	f, err := os.Open(p.config.TruthLog)
	if err != nil {
		p.t.Fatal(err)
	}
	defer shut(p.t, f)
	var records []Record
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			p.t.Fatalf("truth log: %v", err)
		}
		records = append(records, r)
	}
	return records
}

func (p *process) truthOf(rpc string) []Record {
	return slices.DeleteFunc(p.truth(), func(r Record) bool { return r.RPC != rpc })
}

func ok[T any](resp T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
}

func mountCap(fsType string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

func blockCap() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// testVolume is a volume created by a test, with its staging and target paths.
type testVolume struct {
	p               *process
	id              string
	cap             *csi.VolumeCapability
	staging, target string
}

func (p *process) create(name string, size int64, c *csi.VolumeCapability, src *csi.VolumeContentSource,
	params map[string]string) *testVolume {
	p.t.Helper()
	resp := ok(p.CreateVolume(p.t.Context(), &csi.CreateVolumeRequest{Name: name,
		VolumeCapabilities: []*csi.VolumeCapability{c},
		CapacityRange:      &csi.CapacityRange{RequiredBytes: size}, VolumeContentSource: src, Parameters: params}))(p.t)
	dir := filepath.Dir(p.config.Socket)
	return &testVolume{p: p, id: resp.GetVolume().GetVolumeId(), cap: c,
		staging: filepath.Join(dir, name+"-staging"), target: filepath.Join(dir, name+"-target")}
}

// use attaches, stages and publishes the volume, except for the steps that the backend does not support.
func (v *testVolume) use() *testVolume {
	p := v.p
	p.t.Helper()
	if p.config.Backend == "null" || p.config.Backend == "loopfile" {
		ok(p.ControllerPublishVolume(p.t.Context(),
			&csi.ControllerPublishVolumeRequest{VolumeId: v.id, NodeId: "local", VolumeCapability: v.cap}))(p.t)
		if err := os.MkdirAll(v.staging, 0o755); err != nil {
			p.t.Fatal(err)
		}
		ok(p.NodeStageVolume(p.t.Context(), &csi.NodeStageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging,
			VolumeCapability: v.cap}))(p.t)
	}
	ok(p.NodePublishVolume(p.t.Context(), &csi.NodePublishVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging,
		TargetPath: v.target, VolumeCapability: v.cap}))(p.t)
	return v
}

// drop reverts use and deletes the volume.
func (v *testVolume) drop() {
	p := v.p
	p.t.Helper()
	ok(p.NodeUnpublishVolume(p.t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target}))(p.t)
	if p.config.Backend == "null" || p.config.Backend == "loopfile" {
		ok(p.NodeUnstageVolume(p.t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: v.id,
			StagingTargetPath: v.staging}))(p.t)
		ok(p.ControllerUnpublishVolume(p.t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: v.id}))(p.t)
	}
	ok(p.DeleteVolume(p.t.Context(), &csi.DeleteVolumeRequest{VolumeId: v.id}))(p.t)
}

func (p *process) snap(name, volume string) string {
	p.t.Helper()
	return ok(p.CreateSnapshot(p.t.Context(), &csi.CreateSnapshotRequest{Name: name,
		SourceVolumeId: volume}))(p.t).GetSnapshot().GetSnapshotId()
}

func fromSnapshot(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
}

func fromVolume(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id}}}
}

func (v *testVolume) write(file, text string) {
	v.p.t.Helper()
	if err := os.WriteFile(filepath.Join(v.target, file), []byte(text), 0o644); err != nil {
		v.p.t.Fatal(err)
	}
}

func (v *testVolume) read(file string) string {
	v.p.t.Helper()
	text, err := os.ReadFile(filepath.Join(v.target, file))
	if err != nil {
		v.p.t.Fatal(err)
	}
	return string(text)
}
