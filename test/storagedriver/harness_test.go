// Package storagedriver_test tests the drivers of this module on a real Ceph and GlusterFS, by CSI calls as a kubelet
// and the sidecars make them. Where make ceph-up or make gluster-up has not been run, the tests say so and skip.
package storagedriver_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/yaml"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// cluster is a storage cluster that is up.
type cluster struct {
	dir string
}

// upAt returns the cluster of a directory, or skips.
func upAt(t *testing.T, variable, target string) cluster {
	t.Helper()
	dir := os.Getenv(variable)
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Skipf("no cluster in $%s=%q: run make %s first", variable, dir, target)
	}
	return cluster{dir}
}

// run runs a command in the cluster's network namespace and returns its output.
func (c cluster) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("nsenter", append([]string{"--net=" + c.dir + "/netns"}, args...)...)
	cmd.Env = append(os.Environ(), "CEPH_CONF="+c.dir+"/ceph.conf")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

// class is a StorageClass, VolumeSnapshotClass or Secret of examples.
type class struct {
	Kind     string
	Metadata struct{ Name string }
	// Parameters are those of classes, StringData those of a Secret.
	Parameters, StringData map[string]string
	MountOptions           []string
	Provisioner            string
}

// classes reads the documents of a file.
func classes(t *testing.T, file string) map[string]class {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]class{}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var c class
		if err := yaml.Unmarshal([]byte(doc), &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[c.Kind+"/"+c.Metadata.Name] = c
	}
	return all
}

const sidecars = "csi.storage.k8s.io/"

// own are the parameters that reach the driver: the sidecars keep theirs.
func (c class) own() map[string]string {
	own := map[string]string{}
	for k, v := range c.Parameters {
		if !strings.HasPrefix(k, sidecars) {
			own[k] = v
		}
	}
	return own
}

// driver is a client of a driver with what a test needs to call it.
type driver struct {
	t *testing.T
	csi.ControllerClient
	csi.NodeClient
	csi.IdentityClient
	class, snapshots class
	secrets          map[string]string
	block            bool
	socket           string
	dir              string // of this test, for staging and target paths
}

func connect(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func newDriver(t *testing.T, socket string) *driver {
	conn := connect(t, socket)
	return &driver{t: t, socket: socket, ControllerClient: csi.NewControllerClient(conn),
		NodeClient: csi.NewNodeClient(conn), IdentityClient: csi.NewIdentityClient(conn), dir: t.TempDir()}
}

// driverOf is the driver of a class, as name or name/block, on the cluster that is up.
func driverOf(t *testing.T, name string) *driver {
	t.Helper()
	class, block := strings.CutSuffix(name, "/block")
	var d *driver
	if strings.HasPrefix(class, "gluster") {
		d = glusterDriver(t, glusterUp(t), class)
	} else {
		d = cephDriver(t, cephUp(t), class)
	}
	d.block = block
	return d
}

// volume is a volume, and where it is mounted.
type volume struct {
	*csi.Volume
	staging, target string
}

func (d *driver) capability() *csi.VolumeCapability {
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{
		Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	if d.block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return c
	}
	c.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{
		FsType: d.class.Parameters[sidecars+"fstype"], MountFlags: d.class.MountOptions}}
	return c
}

// repeat calls f until it no longer answers ABORTED, as the sidecars do, and returns how often it did. An image may be
// in use for a moment by the mgr, which removes a clone of it: as ceph-csi the driver then answers Internal, and
// csi-provisioner repeats every deletion that fails.
func (d *driver) repeat(what string, f func(context.Context) error) int {
	d.t.Helper()
	for aborted, deadline := 0, time.Now().Add(2*time.Minute); ; aborted++ {
		err := f(d.t.Context())
		switch {
		case err == nil:
			return aborted
		case status.Code(err) != codes.Aborted && !strings.Contains(err.Error(), "is still being used"),
			time.Now().After(deadline):
			d.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// create creates a volume; source is nil, or what it is made from.
func (d *driver) create(name string, size int64, source *csi.VolumeContentSource) (*volume, int) {
	d.t.Helper()
	v := &volume{}
	aborted := d.repeat("create "+name, func(ctx context.Context) error {
		resp, err := d.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name, Parameters: d.class.own(),
			Secrets: d.secrets, CapacityRange: &csi.CapacityRange{RequiredBytes: size}, VolumeContentSource: source,
			VolumeCapabilities: []*csi.VolumeCapability{d.capability()}})
		v.Volume = resp.GetVolume()
		return err
	})
	d.t.Cleanup(func() { d.giveUp(v) })
	return v, aborted
}

// giveUp removes what a failed test has left, as far as that goes.
func (d *driver) giveUp(v *volume) {
	if !d.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = d.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.VolumeId, TargetPath: v.target})
	_, _ = d.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.VolumeId, StagingTargetPath: v.staging})
	_, _ = d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.VolumeId, Secrets: d.secrets})
}

func (d *driver) mount(v *volume) {
	d.t.Helper()
	name := fmt.Sprintf("%x", sha256.Sum256([]byte(v.VolumeId)))[:8]
	v.staging, v.target = filepath.Join(d.dir, name+"-staging"), filepath.Join(d.dir, name+"-target")
	if err := os.MkdirAll(v.staging, 0o755); err != nil {
		d.t.Fatal(err)
	}
	d.repeat("stage", func(ctx context.Context) error {
		_, err := d.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: v.VolumeId, StagingTargetPath: v.staging,
			VolumeCapability: d.capability(), Secrets: d.secrets, VolumeContext: v.VolumeContext})
		return err
	})
	d.repeat("publish", func(ctx context.Context) error {
		_, err := d.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: v.VolumeId,
			StagingTargetPath: v.staging, TargetPath: v.target, VolumeCapability: d.capability(),
			VolumeContext: v.VolumeContext})
		return err
	})
}

func (d *driver) unmount(v *volume) {
	d.t.Helper()
	d.repeat("unpublish", func(ctx context.Context) error {
		_, err := d.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.VolumeId, TargetPath: v.target})
		return err
	})
	d.repeat("unstage", func(ctx context.Context) error {
		_, err := d.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.VolumeId,
			StagingTargetPath: v.staging})
		return err
	})
}

func (d *driver) remove(v *volume) {
	d.t.Helper()
	d.repeat("delete", func(ctx context.Context) error {
		_, err := d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.VolumeId, Secrets: d.secrets})
		return err
	})
}

func (d *driver) snapshot(name string, v *volume) *csi.Snapshot {
	d.t.Helper()
	var snap *csi.Snapshot
	d.repeat("snapshot "+name, func(ctx context.Context) error {
		resp, err := d.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: v.VolumeId,
			Secrets: d.secrets, Parameters: d.snapshots.own()})
		snap = resp.GetSnapshot()
		return err
	})
	d.t.Cleanup(func() {
		if d.t.Failed() {
			_, _ = d.DeleteSnapshot(context.Background(), &csi.DeleteSnapshotRequest{SnapshotId: snap.SnapshotId,
				Secrets: d.secrets})
		}
	})
	return snap
}

func (d *driver) removeSnapshot(s *csi.Snapshot) {
	d.t.Helper()
	d.repeat("delete snapshot", func(ctx context.Context) error {
		_, err := d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s.SnapshotId, Secrets: d.secrets})
		return err
	})
}

func fromSnapshot(s *csi.Snapshot) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: s.SnapshotId}}}
}

func fromVolume(v *volume) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.VolumeId}}}
}

// write writes random bytes to a file (or the device itself), syncs, and returns their checksum.
func (d *driver) write(v *volume, file string, size int) string {
	d.t.Helper()
	data := make([]byte, size)
	random := rand.NewChaCha8(sha256.Sum256([]byte(file + v.VolumeId)))
	_, _ = random.Read(data)
	flags := os.O_WRONLY
	if !d.block {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(d.path(v, file), flags, 0o644)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		d.t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		d.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		d.t.Fatal(err)
	}
	return checksum(data)
}

func (d *driver) path(v *volume, file string) string {
	if d.block {
		return v.target
	}
	return filepath.Join(v.target, file)
}

// read returns the checksum of a file's first bytes.
func (d *driver) read(v *volume, file string, size int) string {
	d.t.Helper()
	f, err := os.Open(d.path(v, file))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		d.t.Fatal(err)
	}
	return checksum(data)
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// total returns the size of a mounted file system or device by the driver's statistics.
func (d *driver) total(v *volume) int64 {
	d.t.Helper()
	resp, err := d.NodeGetVolumeStats(d.t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: v.VolumeId,
		VolumePath: v.target})
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.GetUsage()[0].GetTotal()
}
