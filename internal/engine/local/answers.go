package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// codeDriverFault is the code of ops whose driver gave an answer that contradicts the request, an earlier answer or
// the machine. What such an op measured is not what was asked for, so it fails.
const codeDriverFault = "DriverFault"

// fault is an answer of the driver that cannot be true.
func (d *driver) fault(rpc, format string, args ...any) error {
	return engine.Errorf(codeDriverFault, "%s: %s is at fault: it answered OK, but %s", rpc, d.title(),
		fmt.Sprintf(format, args...))
}

// checkVolume checks the answer to CreateVolume as the external-provisioner does, and that no other volume has its ID.
// keep says that the driver has a volume of that answer, which is to be removed.
func (e *Engine) checkVolume(v *volume, got *csi.Volume) (keep bool, err error) {
	id, stated, want := got.GetVolumeId(), got.GetCapacityBytes(), v.request.GetCapacityRange().GetRequiredBytes()
	if id == "" {
		return false, v.driver.fault("CreateVolume", "the volume has no ID")
	}
	if other := e.claimID(v.driver, engine.VolumeObject, id, v.object.Name); other != "" {
		return false, v.driver.fault("CreateVolume", "%s is the ID of volume %s already", id, other)
	}
	switch source := v.request.GetVolumeContentSource(); {
	case stated != 0 && stated < want: // 0: unknown, which CSI allows
		return true, v.driver.fault("CreateVolume", "the volume has %d bytes of the %d requested", stated, want)
	case source.GetSnapshot().GetSnapshotId() != got.GetContentSource().GetSnapshot().GetSnapshotId(),
		source.GetVolume().GetVolumeId() != got.GetContentSource().GetVolume().GetVolumeId():
		return true, v.driver.fault("CreateVolume", "the volume is not a copy of %s", v.object.Source)
	}
	return true, nil
}

// claimID notes the object that an ID belongs to. If it is another one's already, it returns that one's name.
func (e *Engine) claimID(d *driver, kind engine.ObjectKind, id, name string) (other string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := objectID{d, kind, id}
	if holder, ok := e.ids[key]; ok && holder != name {
		return holder
	}
	e.ids[key] = name
	return ""
}

// checkSnapshot checks the answer to CreateSnapshot.
func (e *Engine) checkSnapshot(s *snapshot, got *csi.Snapshot) (keep bool, err error) {
	id, source := got.GetSnapshotId(), got.GetSourceVolumeId()
	if id == "" {
		return false, s.driver.fault("CreateSnapshot", "the snapshot has no ID")
	}
	if other := e.claimID(s.driver, engine.SnapshotObject, id, s.object.Name); other != "" {
		return false, s.driver.fault("CreateSnapshot", "%s is the ID of snapshot %s already", id, other)
	}
	if source != s.request.GetSourceVolumeId() {
		return true, s.driver.fault("CreateSnapshot", "the snapshot is of volume %q, requested was %s", source,
			s.request.GetSourceVolumeId())
	}
	return true, nil
}

// checkGroup checks that a group has one snapshot of each volume.
func (d *driver) checkGroup(volumes []string, got *csi.VolumeGroupSnapshot) error {
	const rpc = "CreateVolumeGroupSnapshot"
	missing := make(map[string]bool, len(volumes))
	for _, v := range volumes {
		missing[v] = true
	}
	for _, s := range got.GetSnapshots() {
		if s.GetSnapshotId() == "" {
			return d.fault(rpc, "a snapshot of the group has no ID")
		}
		if !missing[s.GetSourceVolumeId()] {
			return d.fault(rpc, "a snapshot of the group is of volume %q, which was not requested, or twice",
				s.GetSourceVolumeId())
		}
		delete(missing, s.GetSourceVolumeId())
	}
	switch {
	case got.GetGroupSnapshotId() == "":
		return d.fault(rpc, "the group has no ID")
	case len(missing) > 0:
		return d.fault(rpc, "the group lacks %d of %d volumes", len(missing), len(volumes))
	}
	return nil
}

// checkExpanded checks the size after an expansion; 0: the driver does not state it.
func (d *driver) checkExpanded(rpc string, stated, want int64) error {
	if stated != 0 && stated < want {
		return d.fault(rpc, "the volume has %d bytes of the %d requested", stated, want)
	}
	return nil
}

// checkPublished checks that the volume is at its path: else the workload would write to the machine's own disk, and
// that would be measured. A driver without storage says so in its manifest.
func (v *volume) checkPublished() error {
	const rpc = "NodePublishVolume"
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, v.targetPath, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
	switch kind := st.Mode & unix.S_IFMT; {
	case errors.Is(err, fs.ErrNotExist):
		return v.driver.fault(rpc, "there is nothing at %s", v.targetPath)
	case err != nil:
		return fmt.Errorf("%s: %w", v.targetPath, err)
	case kind == unix.S_IFBLK, v.driver.info.GetManifest()[op.UnmountedKey] != "":
		return nil
	case kind == unix.S_IFLNK:
		err = v.checkLink(rpc)
	case st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0: // a kernel before 5.8
	case st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0:
		err = v.checkMount(rpc, &st)
	default:
		err = v.driver.fault(rpc, "nothing is mounted at %s", v.targetPath)
	}
	if err == nil && !v.is(&v.used) {
		err = v.checkNew(rpc)
	}
	if err == nil {
		v.set(&v.used, true)
	}
	return err
}

// checkLink checks that a symbolic link in place of a mount leads to a block device, or below the directory that the
// driver's manifest names.
func (v *volume) checkLink(rpc string) error {
	to, err := filepath.EvalSymlinks(v.targetPath)
	if err != nil {
		return v.driver.fault(rpc, "the link at %s leads nowhere: %v", v.targetPath, err)
	}
	var st unix.Stat_t
	if v.block() && unix.Stat(to, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK {
		return nil
	}
	below := v.driver.info.GetManifest()[op.LinkedKey]
	if filepath.IsAbs(below) && filepath.Clean(below) != "/" && within(filepath.Clean(below), to) {
		return nil
	}
	return v.driver.fault(rpc, "a link to %s is published: want a mount", to)
}

// checkNew checks that a volume that is published for the first time, and is no copy, is no directory with files of this
// machine: of its root file system, or of that of the run's own directory.
func (v *volume) checkNew(rpc string) error {
	if v.block() || v.request.GetVolumeContentSource() != nil {
		return nil
	}
	var at, root, scratch unix.Stat_t
	err := errors.Join(unix.Stat(v.targetPath, &at), unix.Stat("/", &root), unix.Stat(filepath.Dir(v.targetPath), &scratch))
	if err != nil {
		return fmt.Errorf("%s: %w", v.targetPath, err)
	}
	if at.Dev != root.Dev && at.Dev != scratch.Dev {
		return nil
	}
	dir, err := os.Open(v.targetPath)
	if err != nil {
		return nil // its workload will be told
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(1)
	if len(names) == 0 {
		return nil
	}
	return v.driver.fault(rpc, "the new volume at %s is a directory of this machine with files, such as %q",
		v.targetPath, names[0])
}

// checkMount checks that the mount at the volume's path is what was asked for: the file system of the StorageClass, and
// not the staging directory itself, which a driver publishes whose own mount there has failed or has ended. It is part
// of the op, so it reads the table of mounts, whose length is that of all volumes, only if something is suspicious.
func (v *volume) checkMount(rpc string, at *unix.Statx_t) error {
	var scratch unix.Statx_t
	dir := filepath.Dir(v.stagePath)
	if err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_STATX_DONT_SYNC, 0, &scratch); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	here := at.Dev_major == scratch.Dev_major && at.Dev_minor == scratch.Dev_minor
	want := v.capability.GetMount().GetFsType()
	if !here && !otherFS(v.targetPath, want) {
		return nil
	}
	m, err := mountAt(v.targetPath)
	if err != nil {
		return fmt.Errorf("%s: %w", rpc, err)
	}
	stage, err := mountAt(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", rpc, err)
	}
	switch {
	case here && within(placeIn(stage, v.stagePath), m.Root):
		return v.driver.fault(rpc, "nothing is mounted at the staging path %s: the directory of this machine's %s is "+
			"published", v.stagePath, m.FSType)
	case !here && m.Root == "/": // else it is a directory, whose driver ignores the type
		return v.driver.fault(rpc, "the volume has %s (%s), requested was %s", m.FSType, m.Source, want)
	}
	return nil
}

// localFS are the types in statfs(2) of file systems that a driver makes itself. Drivers of network storage ignore the
// type that is requested.
var localFS = map[string]int64{"ext2": unix.EXT4_SUPER_MAGIC, "ext3": unix.EXT4_SUPER_MAGIC,
	"ext4": unix.EXT4_SUPER_MAGIC, "xfs": unix.XFS_SUPER_MAGIC, "btrfs": unix.BTRFS_SUPER_MAGIC}

// otherFS reports whether a file system that a driver makes itself was requested, and another of them is there.
func otherFS(path, want string) bool {
	var st unix.Statfs_t
	if localFS[want] == 0 || unix.Statfs(path, &st) != nil {
		return false
	}
	for _, magic := range localFS {
		if int64(st.Type) == magic { //nolint:unconvert // 32 bits on some platforms
			return magic != localFS[want]
		}
	}
	return false
}

// notReadyAnyMore adds to the error of a restore that the driver has since stated the snapshot as not ready, if it
// says so, unless the run is deleting it. It asks only after a failure, so that no successful op waits for it.
func (e *Engine) notReadyAnyMore(ctx context.Context, name string, err error) error {
	s := e.findSnapshot(name)
	if s == nil || s.request == nil || !s.driver.controllerCaps[csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS] {
		return err
	}
	ready, askErr := s.ready(context.WithValue(ctx, opTraceKey{}, nil)) // not a part of the op
	if askErr != nil || ready || s.deleting.Load() {
		return err
	}
	return engine.Errorf(codeDriverFault, "%v; %s is at fault: it stated snapshot %s as ready to use, and now as not "+
		"ready", err, s.driver.title(), name).Wrap(err)
}
