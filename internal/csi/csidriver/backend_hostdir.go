package csidriver

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/internal/machine"
)

// hostdir keeps each volume and snapshot in a directory and copies one to make the other. Sizes are accounted
// for but not enforced. A volume is published by a bind mount or, where the kernel refuses that, by a
// symbolic link.
type hostdir struct{ base string }

// HostdirVolumes returns the directory with a directory for each volume of backend hostdir.
func HostdirVolumes(base string) string { return hostdir{base}.volumePath("") }

func newHostdir(d *driver) backend { return hostdir{d.opts.BaseDir} }

func (h hostdir) volumePath(id string) string   { return filepath.Join(h.base, "volumes", id) }
func (h hostdir) snapshotPath(id string) string { return filepath.Join(h.base, "snapshots", id) }

func (hostdir) modes() []csi.VolumeCapability_AccessMode_Mode { return anyMode }
func (hostdir) parameters() []string                          { return nil }

func (h hostdir) prepare(context.Context) error {
	return errors.Join(os.MkdirAll(h.volumePath(""), 0o755), os.MkdirAll(h.snapshotPath(""), 0o755))
}

func (hostdir) shape(v *volume, _ *origin) (int64, int64, error) {
	if v.Block {
		return 0, 0, invalid("backend hostdir does not support raw block volumes: use loopfile")
	}
	return 1, 1, nil
}

func (h hostdir) available(int64) (int64, error) { return diskAvailable(h.base) }

// diskAvailable returns the bytes that an ordinary user can still write to the file system of dir, as many as there can be
// if it does not say.
func diskAvailable(dir string) (int64, error) {
	space, err := machine.SpaceOf(dir)
	if err == nil && space.FreeBytes < 0 {
		return math.MaxInt64, nil
	}
	return space.FreeBytes, err
}

func (h hostdir) describeSpace() (of, cure string) { return describeDisk(h.base) }

// describeDisk describes what diskAvailable measures.
func describeDisk(dir string) (of, cure string) {
	return "the file system of " + dir, "free some space, or choose another file system: run --storage-dir, or csi driver --base-dir"
}

func (h hostdir) create(_ context.Context, v *volume, src *origin) error {
	path := h.volumePath(v.ID)
	if err := hostfs.RemoveTree(path); err != nil {
		return err
	}
	switch {
	case src == nil:
		if err := os.Mkdir(path, 0o777); err != nil {
			return err
		}
		return os.Chmod(path, 0o777) // the pod may run as any user
	case src.snapshot != nil:
		return hostfs.CopyTree(h.snapshotPath(src.snapshot.ID), path)
	}
	return hostfs.CopyTree(h.volumePath(src.volume.ID), path)
}

func (h hostdir) remove(_ context.Context, v volume) error {
	return hostfs.RemoveTree(h.volumePath(v.ID))
}

func (h hostdir) snapshot(_ context.Context, s snapshot, v volume) error {
	if err := hostfs.RemoveTree(h.snapshotPath(s.ID)); err != nil {
		return err
	}
	return hostfs.CopyTree(h.volumePath(v.ID), h.snapshotPath(s.ID))
}

func (h hostdir) removeSnapshot(_ context.Context, s snapshot) error {
	return hostfs.RemoveTree(h.snapshotPath(s.ID))
}

func (hostdir) expand(context.Context, *volume, int64) error { return nil }

func (h hostdir) publish(_ context.Context, v *volume, _, path string, readOnly bool) error {
	return publishDir(h.volumePath(v.ID), path, readOnly)
}

// publishDir mounts a directory at path.
func publishDir(dir, path string, readOnly bool) error {
	if link, err := os.Readlink(path); err == nil && link == dir {
		return nil
	}
	if m, err := hostfs.At(path); err != nil || m != nil {
		return err // already mounted; the common part has checked that it is this volume
	}
	err := hostfs.Bind(dir, path, readOnly)
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	if readOnly {
		return status.Errorf(codes.InvalidArgument,
			"publishing read-only needs a bind mount, and the kernel refuses that: %v", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // empty directory created by the caller
		return err
	}
	return os.Symlink(dir, path)
}

func (hostdir) unpublish(_ context.Context, _ volume, path string) error {
	return unpublishDir(path)
}

func unpublishDir(path string) error {
	if err := hostfs.Unmount(path, busyTimeout); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	return hostfs.RemovePoint(path)
}

// destroy removes the directories, which Destroy has unmounted.
func (h hostdir) destroy(context.Context) error {
	return errors.Join(hostfs.RemoveTree(h.volumePath("")), hostfs.RemoveTree(h.snapshotPath("")))
}
