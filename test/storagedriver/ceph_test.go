package storagedriver_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/test/rotation"
)

func cephUp(t *testing.T) cluster { return upAt(t, "CEPH_DIR", "ceph-up") }

// cephDriver is the driver of a class of examples/ceph: its socket, secret and snapshot class go by the name's start.
func cephDriver(t *testing.T, c cluster, name string) *driver {
	kind, _, _ := strings.Cut(name, "-")
	d := newDriver(t, filepath.Join(c.dir, kind+".sock"))
	all := classes(t, filepath.Join("../../examples/ceph", kind+".yaml"))
	d.class, d.snapshots = all["StorageClass/"+name], all["VolumeSnapshotClass/"+kind]
	if d.class.Kind == "" || d.snapshots.Kind == "" {
		t.Fatalf("examples/ceph/%s.yaml has no class %s or snapshot class %s", kind, name, kind)
	}
	d.secrets = classes(t, filepath.Join(c.dir, "secret.yaml"))["Secret/csi-"+kind+"-secret"].StringData
	return d
}

// cephClasses are the configurations of examples/ceph; CI runs three of them for a commit.
var cephClasses = []string{"cephfs-r1", "rbd-r3", "rbd-ec-xfs", "cephfs-r3", "rbd-r1", "rbd-r3/block", "cephfs-ec",
	"rbd-ec"}

// TestCeph takes a volume of each class through its life, with its data checked after each step, and looks for what is
// left.
func TestCeph(t *testing.T) {
	c := cephUp(t)
	t.Run("classes", func(t *testing.T) { // ends when all of them have
		for _, name := range cephClasses {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				rotation.Turn(t, 3, cephClasses, name)
				life(t, driverOf(t, name), strings.ReplaceAll(name, "/", "-"))
			})
		}
	})
	nothingLeft(t, c)
}

const dataSize = 3*mib + 4096

func life(t *testing.T, d *driver, name string) {
	v, _ := d.create(name, 384*mib, nil)
	again, _ := d.create(name, 384*mib, nil)
	if again.VolumeId != v.VolumeId {
		t.Errorf("a repeated request made another volume: %s, %s", v.VolumeId, again.VolumeId)
	}
	d.mount(v)
	first := d.write(v, "file", dataSize)
	snap := d.snapshot(name+"-snap", v)
	second := d.write(v, "file", dataSize/2) // both begin at 0
	if got := d.read(v, "file", dataSize/2); got != second {
		t.Errorf("read %s after %s was written", got, second)
	}

	restored, abortedOnce := d.create(name+"-restored", 384*mib, fromSnapshot(snap))
	clone, abortedAgain := d.create(name+"-clone", 512*mib, fromVolume(v))
	if cephfs := strings.HasPrefix(name, "cephfs"); cephfs != (abortedOnce+abortedAgain > 0) {
		t.Errorf("restoring answered ABORTED %d times, cloning %d times: for CephFS they are asynchronous, for RBD not",
			abortedOnce, abortedAgain)
	}
	d.mount(restored)
	d.mount(clone)
	if got := d.read(restored, "file", dataSize); got != first {
		t.Errorf("restored: %s, want %s, what the snapshot had", got, first)
	}
	if got := d.read(clone, "file", dataSize/2); got != second {
		t.Errorf("cloned: %s, want %s, what the volume had", got, second)
	}
	if got := d.total(clone); got < 512*mib*8/10 {
		t.Errorf("the clone has %d bytes, want 512 MiB", got)
	}
	d.expand(v, 512*mib)
	d.unmount(v)
	d.mount(v)
	if got := d.read(v, "file", dataSize/2); got != second {
		t.Errorf("after expansion and a new mount: %s, want %s", got, second)
	}
	if got := d.total(v); got < 512*mib*8/10 {
		t.Errorf("the expanded volume has %d bytes, want 512 MiB", got)
	}
	for _, v := range []*volume{clone, restored} {
		d.unmount(v)
		d.remove(v)
	}
	d.unmount(v)
	// Snapshots of RBD are clones. While an image has clones, the mgr retries its removal only each half minute, so
	// the snapshots are removed first.
	if strings.HasPrefix(d.class.Provisioner, "rbd") {
		d.removeSnapshot(snap)
	}
	d.remove(v)
	d.removeSnapshot(snap)
	d.removeSnapshot(snap) // idempotent
	d.remove(v)
}

// expand expands a volume that is mounted: at the controller, and at the node if that is asked for. A mounted ext4 may
// be refused by the node; it grows when it is staged again.
func (d *driver) expand(v *volume, size int64) {
	d.t.Helper()
	resp, err := d.ControllerExpandVolume(d.t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: v.VolumeId,
		Secrets: d.secrets, CapacityRange: &csi.CapacityRange{RequiredBytes: size}, VolumeCapability: d.capability()})
	if err != nil || resp.GetCapacityBytes() != size {
		d.t.Fatalf("expand: %v, %v", resp, err)
	}
	if !resp.GetNodeExpansionRequired() {
		return
	}
	_, err = d.NodeExpandVolume(d.t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: v.VolumeId,
		VolumePath: v.target, StagingTargetPath: v.staging, VolumeCapability: d.capability(),
		CapacityRange: &csi.CapacityRange{RequiredBytes: size}})
	refused := status.Code(err) == codes.FailedPrecondition && d.class.Parameters[sidecars+"fstype"] == "ext4"
	if err != nil && !refused {
		d.t.Fatal(err)
	}
}

// nothingLeft looks for what volumes leave in Ceph and on this machine. Images leave the trash by a task of the mgr.
func nothingLeft(t *testing.T, c cluster) {
	t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for {
		left := leftInCeph(t, c)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("left: %v", left)
			break
		}
		time.Sleep(time.Second)
	}
	if out, _ := exec.Command("losetup", "--list", "--noheadings", "--output", "BACK-FILE").Output(); strings.Contains(
		string(out), c.dir+"/") {
		t.Errorf("loop devices are left:\n%s", out)
	}
	if out, _ := exec.Command("findmnt", "--noheadings", "--list", "--output", "TARGET,FSTYPE").Output(); strings.Contains(
		string(out), c.dir+"/node") {
		t.Errorf("mounts are left:\n%s", out)
	}
	for _, program := range []string{"ceph-fuse", "qemu-storage-daemon"} {
		if out, _ := exec.Command("pgrep", "-a", "-f", "^"+program+" .*"+c.dir+"/").Output(); len(out) > 0 {
			t.Errorf("processes are left:\n%s", out)
		}
	}
}

func leftInCeph(t *testing.T, c cluster) []string {
	t.Helper()
	var left []string
	var subvolumes []struct{ Name string }
	if strings.Contains(c.run(t, "ceph", "fs", "subvolumegroup", "ls", "cfs"), `"csi"`) { // the first volume makes it
		text := c.run(t, "ceph", "fs", "subvolume", "ls", "cfs", "csi")
		if err := json.Unmarshal([]byte(text), &subvolumes); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range subvolumes {
		snaps := c.run(t, "ceph", "fs", "subvolume", "snapshot", "ls", "cfs", s.Name, "csi")
		left = append(left, s.Name+" "+snaps)
	}
	for _, pool := range []string{"rbd.r1", "rbd.r3"} {
		left = append(left, strings.Fields(c.run(t, "rbd", "ls", pool))...)
		left = append(left, strings.Fields(c.run(t, "rbd", "trash", "ls", pool))...)
	}
	for _, pool := range []string{"rbd.r1", "rbd.r3", "cfs.meta"} {
		for _, object := range []string{"csi.volumes.default", "csi.snaps.default"} {
			if strings.Contains(c.run(t, "rados", "-p", pool, "ls"), object) {
				left = append(left, strings.Fields(c.run(t, "rados", "-p", pool, "listomapkeys", object))...)
			}
		}
	}
	return left
}

// TestCephDemands checks that the driver refuses what ceph-csi refuses, in its words.
func TestCephDemands(t *testing.T) {
	c := cephUp(t)
	for _, name := range []string{"cephfs-r3", "rbd-r3"} {
		t.Run(name, func(t *testing.T) {
			d := cephDriver(t, c, name)
			v, _ := d.create("demands-"+name, 64*mib, nil)
			defer d.remove(v)
			volumes := []*csi.VolumeCapability{d.capability()}
			ctx := context.Background()
			for what, tt := range map[string]struct {
				call func() error
				want string
			}{
				"create": {func() error {
					_, err := d.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "x", Parameters: d.class.own(),
						VolumeCapabilities: volumes})
					return err
				}, "provided secret is empty"},
				"delete": {func() error {
					_, err := d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.VolumeId})
					return err
				}, "provided secret is empty"},
				"snapshot": {func() error {
					_, err := d.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "x", SourceVolumeId: v.VolumeId,
						Parameters: d.snapshots.own()})
					return err
				}, "provided secret is empty"},
				"snapshot without parameters": {func() error {
					_, err := d.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "x", SourceVolumeId: v.VolumeId,
						Secrets: d.secrets})
					return err
				}, "clusterID must be set"},
				"delete snapshot": {func() error {
					_, err := d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: v.VolumeId})
					return err
				}, "provided secret is empty"},
				"expand": {func() error {
					_, err := d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: v.VolumeId,
						CapacityRange: &csi.CapacityRange{RequiredBytes: gib}})
					return err
				}, "provided secret is empty"},
				"stage": {func() error {
					_, err := d.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: v.VolumeId,
						StagingTargetPath: d.dir, VolumeCapability: d.capability()})
					return err
				}, "stage secrets cannot be nil or empty"},
				"create with a wrong key": {func() error {
					_, err := d.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "x", Parameters: d.class.own(),
						VolumeCapabilities: volumes, Secrets: map[string]string{"userID": "admin",
							"userKey": "AQBwrongwrongwrongwrongwrongwrongwrongw=="}})
					return err
				}, "failed to establish the connection"},
			} {
				if err := tt.call(); err == nil || !strings.Contains(status.Convert(err).Message(), tt.want) {
					t.Errorf("%s: %v, want %q", what, err, tt.want)
				}
			}
		})
	}
}
