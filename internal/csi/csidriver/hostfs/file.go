package hostfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The requests of ioctl(2) from linux/fs.h that x/sys/unix does not name.
const (
	fiFreeze = 0xc0045877 // _IOWR('X', 119, int)
	fiThaw   = 0xc0045878 // _IOWR('X', 120, int)
)

// Freeze writes back the file system that holds dir and blocks every writer until Thaw.
func Freeze(dir *os.File) error {
	return os.NewSyscallError("FIFREEZE", unix.IoctlSetInt(int(dir.Fd()), fiFreeze, 0))
}

// Thaw lets writers go on; that the file system is not frozen is no error.
func Thaw(dir *os.File) error {
	err := unix.IoctlSetInt(int(dir.Fd()), fiThaw, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return os.NewSyscallError("FITHAW", err)
}

// Reflink makes target, which must not exist, share all blocks of source. It does not sync target.
func Reflink(source, target string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close() // only read
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = os.NewSyscallError("FICLONE", unix.IoctlFileClone(int(out.Fd()), int(in.Fd())))
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(fmt.Errorf("reflinking %s to %s: %w", source, target, err), os.Remove(target))
	}
	return nil
}

// CanReflink probes whether files in dir can share blocks.
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
		return false, nil // that it fails is the answer
	}
	return true, os.Remove(probe.Name() + ".copy")
}

// SyncFile makes a file, or a directory's entries, durable.
func SyncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
