// Package hostfs wraps the file system operations of the Linux kernel that the drivers use: mounts, freezing,
// reflinks and copies.
package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Mounts lists the mounts at or below a path in this process's namespace, the latest first, which is the
// order of unmounting.
func Mounts(below string) ([]*mountinfo.Info, error) {
	all, err := AllMounts()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(m *mountinfo.Info) bool { return !Within(m.Mountpoint, below) }), nil
}

// AllMounts lists the mounts of this process's namespace, the latest first.
func AllMounts() ([]*mountinfo.Info, error) {
	all, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	slices.Reverse(all)
	return all, nil
}

// Within reports whether path is dir or below it; both are clean.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// At returns the topmost mount at path, or nil.
func At(path string) (*mountinfo.Info, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	all, err := AllMounts()
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.Mountpoint == path {
			return m, nil
		}
	}
	return nil, nil
}

// resolve follows the links in the parent of path, as the mount table does.
func resolve(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return filepath.Join(dir, filepath.Base(path)), err
}

// Bind mounts source, a directory or a file, at target and creates target if it does not exist. On failure it
// removes what it created.
func Bind(source, target string, readOnly bool) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	made, err := makePoint(target, info.IsDir())
	if err != nil {
		return err
	}
	err = mount(source, target, "", unix.MS_BIND, "")
	if err == nil && readOnly {
		if err = mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			_ = unix.Unmount(target, unix.MNT_DETACH)
		}
	}
	if err != nil && made {
		_ = os.Remove(target)
	}
	return err
}

// Mount mounts a device and creates target if it does not exist. On failure it removes what it created.
func Mount(device, target, fsType string, flags uintptr, options string) error {
	made, err := makePoint(target, true)
	if err != nil {
		return err
	}
	if err := mount(device, target, fsType, flags, options); err != nil {
		if made {
			_ = os.Remove(target)
		}
		return err
	}
	return nil
}

func mount(source, target, fsType string, flags uintptr, options string) error {
	if err := unix.Mount(source, target, fsType, flags, options); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}

// makePoint creates a mount point if it does not exist and reports whether it did.
func makePoint(path string, dir bool) (bool, error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	if dir {
		return true, os.Mkdir(path, 0o755)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// Unmount removes every mount at path; none is no error. A busy mount is retried for patience.
func Unmount(path string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		switch err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); {
		case err == nil:
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EBUSY) && time.Now().Before(deadline):
			time.Sleep(20 * time.Millisecond)
		default:
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
}

// RemovePoint removes the empty directory, file or link of a mount point; a missing one is no error.
func RemovePoint(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// goingDown is XFS_IOC_GOINGDOWN, _IOR('X', 125, uint32); noLogFlush is
// XFS_FSOP_GOING_FLAGS_NOLOGFLUSH.
const (
	goingDown  = 0x8004587d
	noLogFlush = 2
)

// ShutdownXFS discards the unwritten data of the XFS mounted at dir, so that unmounting costs nothing; for an
// image that is about to be removed. Freeing the extents of files snapshotted under random writes can take
// longer than the run.
func ShutdownXFS(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("XFS_IOC_GOINGDOWN",
		unix.IoctlSetPointerInt(int(f.Fd()), goingDown, noLogFlush)), f.Close())
}
