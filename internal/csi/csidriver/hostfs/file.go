package hostfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Requests of ioctl(2) in linux/fs.h that x/sys/unix lacks.
const (
	fiFreeze = 0xc0045877 // _IOWR('X', 119, int)
	fiThaw   = 0xc0045878 // _IOWR('X', 120, int)
)

// Freeze writes back the file system that holds dir and blocks every writer until Thaw.
func Freeze(dir *os.File) error {
	return os.NewSyscallError("FIFREEZE", unix.IoctlSetInt(int(dir.Fd()), fiFreeze, 0))
}

// Thaw unblocks writers; a file system that is not frozen is no error.
func Thaw(dir *os.File) error {
	err := unix.IoctlSetInt(int(dir.Fd()), fiThaw, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return os.NewSyscallError("FITHAW", err)
}

// Reflink creates target, which must not exist, sharing all blocks of source. It does not sync target.
func Reflink(source, target string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = os.NewSyscallError("FICLONE", unix.IoctlFileClone(int(out.Fd()), int(in.Fd())))
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(fmt.Errorf("reflink %s to %s: %w", source, target, err), os.Remove(target))
	}
	return nil
}

// CanReflink reports whether files in dir can share blocks.
func CanReflink(dir string) (bool, error) {
	probe, err := os.CreateTemp(dir, ".reflink-")
	if err != nil {
		return false, err
	}
	defer os.Remove(probe.Name()) // best effort
	_, err = probe.Write(make([]byte, 4096))
	if err = errors.Join(err, probe.Close()); err != nil {
		return false, err
	}
	if err := Reflink(probe.Name(), probe.Name()+".copy"); err != nil {
		return false, nil // the failure is the result
	}
	return true, os.Remove(probe.Name() + ".copy")
}

// SyncFile syncs a file, or a directory's entries.
func SyncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
