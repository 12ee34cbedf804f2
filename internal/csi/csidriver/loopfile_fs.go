package csidriver

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver/loopdev"
	"github.com/cnsbench/cnsbench/internal/op"
)

// stage formats a new volume and mounts it.
func (l *loopfile) stage(ctx context.Context, v *volume, path string, flags []string) error {
	if v.Block {
		return nil
	}
	mounted, err := l.mountedAt(*v, path)
	if err != nil || mounted {
		return err
	}
	if !v.Formatted {
		if err := l.format(ctx, v); err != nil {
			return err
		}
	}
	if v.NeedsGrow && !v.Attached.ReadOnly && !growsMounted(*v) {
		if err := growUnmounted(ctx, v.Attached.Device); err != nil {
			return err
		}
		v.NeedsGrow = false
	}
	mountFlags, options, err := mountOptions(*v, flags)
	if err != nil {
		return err
	}
	if err := hostfs.Mount(v.Attached.Device, path, v.FSType, mountFlags, options); err != nil {
		return err
	}
	if !v.NeedsGrow || v.Attached.ReadOnly {
		return nil
	}
	if err := l.growAt(ctx, *v, path); err != nil {
		return errors.Join(err, hostfs.Unmount(path, busyTimeout))
	}
	v.NeedsGrow = false
	return nil
}

func (l *loopfile) unstage(_ context.Context, _ volume, path string) error {
	return hostfs.Unmount(path, busyTimeout)
}

// format creates the file system and records that before the volume is mounted: after a crash, a volume that
// may hold data must not be formatted again.
func (l *loopfile) format(ctx context.Context, v *volume) error {
	if v.Attached.ReadOnly {
		return status.Errorf(codes.FailedPrecondition, "volume %s has no file system yet and is attached read-only",
			v.ID)
	}
	began := time.Now()
	err := mkfs(ctx, v.FSType, v.Attached.Device)
	part(ctx, op.PartMkfs, began)
	took := time.Since(began)
	l.d.log.write(Record{Event: eventMkfs, Volume: v.ID, StartUnixNs: began.UnixNano(), EndUnixNs: wall(began, took),
		DurationNs: int64(took), Device: v.Attached.Device})
	if err != nil {
		return err
	}
	v.Formatted = true
	return l.d.keepIntent(*v)
}

// mkfs formats a device that is all zeros. Without the option, mkfs.ext4 would leave a kernel thread zeroing
// inode tables during the first minutes of the workload.
func mkfs(ctx context.Context, fsType, device string) error {
	if fsType == "xfs" {
		return hostfs.Run(ctx, "mkfs.xfs", "-q", "-f", "-K", device)
	}
	common := []string{"-q", "-F", "-m", "0", "-E"}
	err := hostfs.Run(ctx, "mkfs.ext4", append(common, "nodiscard,assume_storage_prezeroed=1", device)...)
	if err != nil && strings.Contains(err.Error(), "assume_storage_prezeroed") { // e2fsprogs before 1.47
		return hostfs.Run(ctx, "mkfs.ext4", append(common, "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
			device)...)
	}
	return err
}

// fsTypeOf returns the file system of an image: "ext4", "xfs", or "" for neither.
func fsTypeOf(image string) (string, error) {
	f, err := os.Open(image)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 4*kib)
	if _, err := io.ReadFull(f, head); err != nil {
		return "", err
	}
	return detectFS(head), nil
}

// detectFS checks the magic numbers of the kernel's fs/ext4/ext4.h and fs/xfs/libxfs/xfs_format.h.
func detectFS(head []byte) string {
	const extMagicAt = 1024 + 0x38
	switch {
	case len(head) > extMagicAt+1 && head[extMagicAt] == 0x53 && head[extMagicAt+1] == 0xef:
		return "ext4"
	case strings.HasPrefix(string(head), "XFSB"):
		return "xfs"
	}
	return ""
}

// mountFlag has the mount options that are kernel flags; the others are passed to the file system as text.
var mountFlag = map[string]uintptr{
	"ro": unix.MS_RDONLY, "rw": 0, "defaults": 0, "noatime": unix.MS_NOATIME, "nodiratime": unix.MS_NODIRATIME, "relatime": unix.MS_RELATIME,
	"strictatime": unix.MS_STRICTATIME, "lazytime": unix.MS_LAZYTIME, "sync": unix.MS_SYNCHRONOUS, "dirsync": unix.MS_DIRSYNC,
	"nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
}

// mountOptions converts the mount options of a StorageClass. XFS snapshots and clones have their source's
// UUID, so XFS needs nouuid to mount them.
func mountOptions(v volume, options []string) (flags uintptr, data string, err error) {
	var rest []string
	if v.FSType == "xfs" {
		rest = append(rest, "nouuid")
	}
	for option := range strings.SplitSeq(strings.Join(options, ","), ",") {
		flag, ok := mountFlag[option]
		switch {
		case ok:
			flags |= flag
		case strings.ContainsAny(option, " \t\n"):
			return 0, "", invalid("%q is not a mount option", option)
		case option != "" && option != "nouuid":
			rest = append(rest, option)
		}
	}
	if v.Attached.ReadOnly {
		flags |= unix.MS_RDONLY
	}
	return flags, strings.Join(rest, ","), nil
}

// grow resizes the device and the mounted file system to the image's size.
func (l *loopfile) grow(ctx context.Context, v *volume) error {
	if v.Attached == nil {
		return status.Errorf(codes.FailedPrecondition, "volume %s is not attached", v.ID)
	}
	if err := loopdev.SetCapacity(v.Attached.Device); err != nil || v.Block || !v.NeedsGrow {
		return err
	}
	path, err := l.mountPoint(*v)
	if err != nil {
		return err
	}
	if path != "" {
		return l.growAt(ctx, *v, path)
	}
	return status.Errorf(codes.FailedPrecondition, "volume %s is not mounted; stage it first", v.ID)
}

// mountPoint returns a path at which the volume's file system is mounted, or "".
func (l *loopfile) mountPoint(v volume) (string, error) {
	for path := range v.Staged {
		if mounted, err := l.mountedAt(v, path); err != nil || mounted {
			return path, err
		}
	}
	return "", nil
}

// growsMounted reports whether this process may grow the volume's mounted file system: for ext4 the kernel
// requires CAP_SYS_RESOURCE, which containers often lack.
func growsMounted(v volume) bool {
	return v.FSType != "ext4" || hostfs.HasCapability(unix.CAP_SYS_RESOURCE)
}

// growUnmounted grows an unmounted ext4 file system; resize2fs requires a check first.
func growUnmounted(ctx context.Context, device string) error {
	err := hostfs.Run(ctx, "e2fsck", "-f", "-p", device)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // it replayed the journal
		err = nil
	}
	if err != nil {
		return err
	}
	return hostfs.Run(ctx, "resize2fs", device)
}

func (l *loopfile) growAt(ctx context.Context, v volume, path string) error {
	if !growsMounted(v) {
		return status.Errorf(codes.FailedPrecondition, "growing a mounted ext4 needs CAP_SYS_RESOURCE, which the driver lacks; volume %s will grow when it is staged again", v.ID)
	}
	if v.FSType == "xfs" {
		return hostfs.Run(ctx, "xfs_growfs", "-d", path)
	}
	return hostfs.Run(ctx, "resize2fs", v.Attached.Device)
}

// imageCopy is one image to be copied, to a file that does not exist.
type imageCopy struct {
	vol  volume
	snap string // the snapshot's id; empty for a clone
	to   string
}

func (l *loopfile) snapshot(ctx context.Context, s snapshot, v volume) error {
	return l.snapshotGroup(ctx, []snapshot{s}, []volume{v})
}

func (l *loopfile) snapshotGroup(ctx context.Context, snaps []snapshot, vols []volume) error {
	shots := make([]imageCopy, len(snaps))
	for i, s := range snaps {
		shots[i] = imageCopy{vol: vols[i], snap: s.ID, to: l.snapshotImage(s.ID)}
		if err := os.RemoveAll(shots[i].to); err != nil {
			return err
		}
	}
	if err := l.copyFrozen(ctx, shots); err != nil {
		return err
	}
	// Sync after the thaw, so that workloads do not wait for it.
	for _, s := range shots {
		if err := hostfs.SyncFile(s.to); err != nil {
			return err
		}
	}
	return hostfs.SyncFile(l.snapshots())
}

// copyFrozen freezes all volumes, reflinks their images and thaws, so that the copies are of one instant.
// Freezing writes back the file system; reflinking writes back the page cache of the image.
func (l *loopfile) copyFrozen(ctx context.Context, shots []imageCopy) (err error) {
	var frozen []*freeze
	defer func() {
		for _, f := range slices.Backward(frozen) {
			err = errors.Join(err, f.thaw(l.d.log))
		}
		if len(frozen) > 0 {
			part(ctx, op.PartFreeze, frozen[0].began)
		}
	}()
	for _, s := range shots {
		f, err := l.freeze(s)
		if err != nil {
			return err
		}
		if f != nil {
			frozen = append(frozen, f)
		}
	}
	for _, s := range shots {
		if err := hostfs.Reflink(l.image(s.vol.ID), s.to); err != nil {
			return err
		}
	}
	var hold time.Duration
	for _, f := range frozen {
		hold = max(hold, f.hold)
	}
	time.Sleep(hold)
	return nil
}

// freeze is a frozen file system.
type freeze struct {
	imageCopy
	dir         *os.File
	hold        time.Duration
	began       time.Time
	untilFrozen time.Duration
}

// freeze freezes the volume's file system; nil if it is not mounted. A raw block device is only written back:
// its image is as after a power failure.
func (l *loopfile) freeze(s imageCopy) (*freeze, error) {
	if s.vol.Attached == nil {
		return nil, nil
	}
	if s.vol.Block {
		return nil, hostfs.SyncFile(s.vol.Attached.Device)
	}
	path, err := l.mountPoint(s.vol)
	if err != nil || path == "" {
		return nil, err
	}
	return freezeAt(s, path)
}

func freezeAt(s imageCopy, path string) (*freeze, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	hold, _ := time.ParseDuration(s.vol.Mutable[mutFreezeHold]) // validated when it was set; absent: 0
	f := &freeze{imageCopy: s, dir: dir, hold: hold, began: time.Now()}
	if err := hostfs.Freeze(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	f.untilFrozen = time.Since(f.began)
	return f, nil
}

// thaw thaws the file system and logs the freeze.
func (f *freeze) thaw(log *truthLog) error {
	err := hostfs.Thaw(f.dir)
	took := time.Since(f.began)
	log.write(Record{Event: eventFreeze, Volume: f.vol.ID, Snapshot: f.snap, StartUnixNs: f.began.UnixNano(),
		FrozenUnixNs: wall(f.began, f.untilFrozen), EndUnixNs: wall(f.began,
			took), DurationNs: int64(took), HeldNs: int64(took - f.untilFrozen)})
	return errors.Join(err, f.dir.Close())
}

// thaw thaws a volume that a killed driver may have left frozen.
func (l *loopfile) thaw(v volume) error {
	path, err := l.mountPoint(v)
	if err != nil || path == "" {
		return err
	}
	return thawPath(path)
}

func thawPath(path string) error {
	dir, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	return errors.Join(hostfs.Thaw(dir), dir.Close())
}

// loopfile keeps each volume in an image file on a loop device. Attaching binds the device, staging formats
// and mounts it, publishing bind-mounts it; a snapshot freezes the file system, reflinks the image and thaws.
type loopfile struct {
	pool
	d *driver
}

func (l *loopfile) image(id string) string { return filepath.Join(l.volumes(), id+".img") }

func (l *loopfile) snapshotImage(id string) string { return filepath.Join(l.snapshots(), id+".img") }

// mountedAt reports whether the volume's file system is mounted at path; another mount there is an error.
func (l *loopfile) mountedAt(v volume, path string) (bool, error) {
	m, err := hostfs.At(path)
	if err != nil || m == nil {
		return false, err
	}
	if v.Attached == nil || m.Source != v.Attached.Device {
		return false, status.Errorf(codes.FailedPrecondition, "%s carries another mount, of %s", path, m.Source)
	}
	return true, nil
}

// Parameters of loopfile.
const (
	paramFSType    = "csi.storage.k8s.io/fstype"
	mutFreezeHold  = "freezeHold"   // additional duration of a snapshot's freeze
	mutReadAhead   = "readAheadKiB" // of the block device
	maxFreezeHold  = time.Minute
	wrongFSMessage = "invalid file system %q: loopfile supports ext4 and xfs"
)
