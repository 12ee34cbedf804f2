package csidriver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
)

// btrfs keeps each volume in a subvolume and each snapshot in a read-only one. Quota groups enforce sizes if
// the StorageClass asks for that; otherwise sizes are only accounted for.
type btrfs struct{ pool }

const paramQuota = "quota"

func newBtrfs(d *driver) backend {
	return btrfs{pool{base: d.opts.BaseDir, size: d.opts.PoolSize, fsType: "btrfs", smallest: 256 * mib,
		mkfs: []string{"mkfs.btrfs", "-q", "-f", "-K"}, native: isBtrfs}}
}

func isBtrfs(dir string) (bool, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return st.Type == unix.BTRFS_SUPER_MAGIC, os.NewSyscallError("statfs", err)
}

func (b btrfs) volumePath(id string) string   { return filepath.Join(b.volumes(), id) }
func (b btrfs) snapshotPath(id string) string { return filepath.Join(b.snapshots(), id) }

func (btrfs) modes() []csi.VolumeCapability_AccessMode_Mode { return anyMode }
func (btrfs) parameters() []string                          { return []string{paramQuota} }

func (btrfs) shape(v *volume, _ *origin) (int64, int64, error) {
	if v.Block {
		return 0, 0, invalid("backend btrfs does not support raw block volumes: use loopfile")
	}
	if q := v.Params[paramQuota]; q != "" && q != "true" && q != "false" {
		return 0, 0, invalid("invalid parameter %s=%q: want true or false", paramQuota, q)
	}
	return mib, mib, nil
}

func (b btrfs) create(ctx context.Context, v *volume, src *origin) error {
	if err := b.remove(ctx, *v); err != nil {
		return err
	}
	path := b.volumePath(v.ID)
	args := []string{"subvolume", "create", path}
	switch {
	case src == nil:
	case src.snapshot != nil:
		args = []string{"subvolume", "snapshot", b.snapshotPath(src.snapshot.ID), path}
	default:
		args = []string{"subvolume", "snapshot", b.volumePath(src.volume.ID), path}
	}
	if err := hostfs.Run(ctx, "btrfs", args...); err != nil {
		return err
	}
	if src == nil {
		if err := os.Chmod(path, 0o777); err != nil { // the pod may run as any user
			return err
		}
	}
	return b.limit(ctx, *v, v.Size)
}

// limit sets the quota of a volume that asks for one. Enabling quotas is idempotent.
func (b btrfs) limit(ctx context.Context, v volume, size int64) error {
	if v.Params[paramQuota] != "true" {
		return nil
	}
	if err := hostfs.Run(ctx, "btrfs", "quota", "enable", b.dir()); err != nil {
		return err
	}
	return hostfs.Run(ctx, "btrfs", "qgroup", "limit", strconv.FormatInt(size, 10), b.volumePath(v.ID))
}

func (b btrfs) remove(ctx context.Context, v volume) error {
	return deleteSubvolume(ctx, b.volumePath(v.ID))
}

func deleteSubvolume(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return hostfs.Run(ctx, "btrfs", "subvolume", "delete", path)
}

func (b btrfs) snapshot(ctx context.Context, s snapshot, v volume) error {
	path := b.snapshotPath(s.ID)
	if err := deleteSubvolume(ctx, path); err != nil {
		return err
	}
	return hostfs.Run(ctx, "btrfs", "subvolume", "snapshot", "-r", b.volumePath(v.ID), path)
}

func (b btrfs) removeSnapshot(ctx context.Context, s snapshot) error {
	return deleteSubvolume(ctx, b.snapshotPath(s.ID))
}

func (b btrfs) expand(ctx context.Context, v *volume, size int64) error {
	return b.limit(ctx, *v, size)
}

func (b btrfs) publish(_ context.Context, v *volume, _, path string, readOnly bool) error {
	return publishDir(b.volumePath(v.ID), path, readOnly)
}

func (btrfs) unpublish(_ context.Context, _ volume, path string) error { return unpublishDir(path) }

// destroy deletes the subvolumes if the pool is the base directory's own file system; a pool image is removed
// as a whole.
func (b btrfs) destroy(ctx context.Context) error {
	var problems []error
	if m, err := hostfs.At(b.dir()); err == nil && m == nil {
		for _, dir := range []string{b.volumes(), b.snapshots()} {
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				problems = append(problems, deleteSubvolume(ctx, filepath.Join(dir, e.Name())))
			}
		}
	}
	return errors.Join(append(problems, b.pool.destroy())...)
}
