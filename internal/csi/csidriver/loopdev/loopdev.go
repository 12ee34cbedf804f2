// Package loopdev attaches image files to Linux loop devices with the kernel's ioctls: losetup would cost a
// process per call and hides whether direct I/O was granted.
package loopdev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Major is the major number of loop devices; the minor number is the index.
const Major = 7

// SectorSize is the logical block size of every device in bytes. The kernel would choose by the image: 512
// for a new one, 4096 for one that shares blocks; a file system made on the first could then not be mounted
// from its copy.
const SectorSize = 4096

const (
	control     = "/dev/loop-control"
	maxAttempts = 100
	retryPause  = 5 * time.Millisecond
)

// Device is an attached loop device, held open until Close.
type Device struct {
	Path string
	// DirectIO reports that the device bypasses the page cache of its image.
	DirectIO bool
	file     *os.File
}

// Close releases the device; it stays attached unless it was attached with autoclear and has no other user.
func (d *Device) Close() error { return d.file.Close() }

// Options of Attach.
type Options struct {
	ReadOnly bool
	// AutoClear detaches the device when its last user, a mount or the Device, ends.
	AutoClear bool
}

// Attach binds the image to a free loop device, with direct I/O if its file system allows that.
func Attach(image string, o Options) (*Device, error) {
	mode := os.O_RDWR
	flags := uint32(unix.LO_FLAGS_DIRECT_IO)
	if o.ReadOnly {
		mode, flags = os.O_RDONLY, flags|unix.LO_FLAGS_READ_ONLY
	}
	if o.AutoClear {
		flags |= unix.LO_FLAGS_AUTOCLEAR
	}
	backing, err := os.OpenFile(image, mode, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close() // the device has its own reference
	config := unix.LoopConfig{Fd: uint32(backing.Fd()), Size: SectorSize, Info: unix.LoopInfo64{Flags: flags}}
	copy(config.Info.File_name[:unix.LO_NAME_SIZE-1], filepath.Base(image))

	for range maxAttempts {
		d, err := configureFree(&config, mode)
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attach %s to a loop device: %w", image, err)
		}
		time.Sleep(retryPause) // another process took the device in between
	}
	return nil, fmt.Errorf("attach %s: other processes took the free loop device %d times", image, maxAttempts)
}

func configureFree(config *unix.LoopConfig, mode int) (*Device, error) {
	index, err := freeIndex()
	if err != nil {
		return nil, err
	}
	path, err := node(index)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlLoopConfigure(int(file.Fd()), config); err != nil {
		return nil, errors.Join(os.NewSyscallError("LOOP_CONFIGURE", err), file.Close())
	}
	status, err := unix.IoctlLoopGetStatus64(int(file.Fd()))
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("LOOP_GET_STATUS64", err), file.Close())
	}
	return &Device{Path: path, DirectIO: status.Flags&unix.LO_FLAGS_DIRECT_IO != 0, file: file}, nil
}

// freeIndex returns a free device, which the kernel creates if all are taken.
func freeIndex() (int, error) {
	ctl, err := os.OpenFile(control, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("%w: loop devices need root and the kernel module loop", err)
	}
	defer ctl.Close()
	index, err := unix.IoctlRetInt(int(ctl.Fd()), unix.LOOP_CTL_GET_FREE)
	return index, os.NewSyscallError("LOOP_CTL_GET_FREE", err)
}

// node returns the device's node and creates it where no devtmpfs does.
func node(index int) (string, error) {
	path := "/dev/loop" + strconv.Itoa(index)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(Major, uint32(index))))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return "", fmt.Errorf("create the node %s: %w", path, err)
	}
	return path, nil
}

// Detach frees the device if it still has the image, and waits up to patience for its users to end.
func Detach(path, image string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(retryPause) {
		if !Carries(path, image) {
			return nil
		}
		if err := release(path); err != nil {
			return fmt.Errorf("detach %s from %s: %w", path, image, err)
		}
		if Carries(path, image) && time.Now().After(deadline) {
			return fmt.Errorf("detach %s from %s: in use, will be detached with its last user: %w", path, image,
				unix.EBUSY)
		}
	}
}

func release(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	err = unix.IoctlSetInt(int(file.Fd()), unix.LOOP_CLR_FD, 0)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EBUSY) {
		err = nil // already free, or freed with its last user
	}
	return errors.Join(os.NewSyscallError("LOOP_CLR_FD", err), file.Close())
}

// SetCapacity makes the device use the current size of its image.
func SetCapacity(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = unix.IoctlSetInt(int(file.Fd()), unix.LOOP_SET_CAPACITY, 0)
	return errors.Join(os.NewSyscallError("LOOP_SET_CAPACITY", err), file.Close())
}

// SetReadAhead sets the device's read-ahead in KiB.
func SetReadAhead(path, kib string) error {
	return os.WriteFile(filepath.Join(sysfs(path), "queue/read_ahead_kb"), []byte(kib), 0)
}

// Carries reports whether the device is attached to the image.
func Carries(path, image string) bool { return backing(sysfs(path)) == image }

// Below maps each device with an image below dir to its image. Both are named as the kernel names them,
// without symbolic links.
func Below(dir string) (map[string]string, error) {
	all, err := filepath.Glob("/sys/block/loop*")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, sys := range all {
		if image := backing(sys); strings.HasPrefix(image, strings.TrimSuffix(dir, "/")+"/") {
			found["/dev/"+filepath.Base(sys)] = image
		}
	}
	return found, nil
}

func sysfs(path string) string { return filepath.Join("/sys/block", filepath.Base(path)) }

// backing returns the path of a device's image, or "".
func backing(sys string) string {
	text, err := os.ReadFile(filepath.Join(sys, "loop/backing_file"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), " (deleted)")
}
