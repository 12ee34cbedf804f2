package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver/loopdev"
	"github.com/cnsbench/cnsbench/test/storagedriver/csikit"
)

// export is an RBD image as a block device: qemu-storage-daemon offers it as a file, by FUSE, and a loop device with
// direct I/O has that file. It stands in for the kernel's rbd and nbd, which not every kernel has.
type export struct {
	dir string // its own, by the image's UUID

	// Device is the loop device, Staging where the volume is staged, FSType "" for a block device.
	Device, Staging, FSType string
}

func (e *export) image() string  { return filepath.Join(e.dir, "image") }
func (e *export) pid() string    { return filepath.Join(e.dir, "pid") }
func (e *export) record() string { return filepath.Join(e.dir, "stage.json") }

// loadExport returns the export of a directory, or nil if there is none.
func loadExport(dir string) (*export, error) {
	e := &export{dir: dir}
	text, err := os.ReadFile(e.record())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e, json.Unmarshal(text, e)
}

func (e *export) save() error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return os.WriteFile(e.record(), text, 0o600)
}

// attach starts the daemon and attaches the loop device. On failure it undoes both.
func (e *export) attach(ctx context.Context, conf, pool, image string, creds credentials, readOnly bool) (err error) {
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return err
	}
	if err := e.save(); err != nil { // so that what follows is found, also after a kill
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.detach())
		}
	}()
	if err := os.WriteFile(e.image(), nil, 0o600); err != nil {
		return err
	}
	if err := e.startDaemon(ctx, conf, pool, image, creds, readOnly); err != nil {
		return err
	}
	device, err := loopdev.Attach(e.image(), loopdev.Options{ReadOnly: readOnly})
	if err != nil {
		return err
	}
	e.Device = device.Path
	if !device.DirectIO {
		err = fmt.Errorf("loop device %s has no direct I/O: reads would come from the page cache", device.Path)
	}
	return errors.Join(err, device.Close(), e.save())
}

func (e *export) startDaemon(ctx context.Context, conf, pool, image string, creds credentials, readOnly bool) error {
	key, err := keyFile(e.dir, creds)
	if err != nil {
		return err
	}
	defer os.Remove(key)
	onOff := map[bool]string{false: "off", true: "on"}
	return csikit.Launch(ctx, e.dir, "qemu-storage-daemon", "--daemonize", "--pidfile", e.pid(),
		"--object", "secret,id=key,format=base64,file="+key,
		"--blockdev", strings.Join([]string{"driver=rbd", "node-name=d", "pool=" + pool, "image=" + image, "conf=" + conf,
			"user=" + creds.id, "key-secret=key", "cache.direct=on", "discard=unmap", "read-only=" + onOff[readOnly]}, ","),
		"--export", "type=fuse,id=e,node-name=d,mountpoint="+e.image()+",growable=on,allow-other=on,writable="+
			onOff[!readOnly])
}

// grow makes the device as large as the image. The daemon does not notice what others do to its image: truncating the
// file is what tells it.
func (e *export) grow(size int64) error {
	info, err := os.Stat(e.image())
	if err != nil {
		return err
	}
	if info.Size() < size {
		if err := os.Truncate(e.image(), size); err != nil {
			return err
		}
	}
	return loopdev.SetCapacity(e.Device)
}

// detach undoes attach, in the only order that loses nothing: the loop device first, then the daemon.
func (e *export) detach() error {
	if e.Device != "" {
		if err := loopdev.Detach(e.Device, e.image(), csikit.Patience); err != nil {
			return err
		}
	}
	if err := e.stopDaemon(); err != nil {
		return err
	}
	if m, err := hostfs.At(e.image()); err == nil && m != nil { // of a daemon that was killed
		_ = unix.Unmount(e.image(), unix.MNT_DETACH)
	}
	return os.RemoveAll(e.dir)
}

func (e *export) stopDaemon() error {
	text, err := os.ReadFile(e.pid())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", e.pid(), err)
	}
	ours, err := csikit.Processes("qemu-storage-daemon", e.pid())
	if err != nil || len(ours) == 0 {
		return err // it has ended, and its number may be another's
	}
	if err := unix.Kill(pid, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return csikit.AwaitEnd(pid, csikit.EndPatience)
}

// thaw unfreezes a file system that a killed driver may have left frozen.
func (e *export) thaw() error {
	if e.FSType == "" {
		return nil
	}
	dir, err := os.Open(e.Staging)
	if err != nil {
		return err
	}
	defer dir.Close()
	return hostfs.Thaw(dir)
}

// unmountDevice removes every mount of the device: of its file system, and bind mounts of the device itself.
func (e *export) unmountDevice() error {
	var st unix.Stat_t
	if err := unix.Stat(e.Device, &st); err != nil {
		return err
	}
	mounts, err := hostfs.AllMounts()
	if err != nil {
		return err
	}
	var problems []error
	for _, m := range mounts {
		asFile := m.FSType == "devtmpfs" && m.Root == "/"+filepath.Base(e.Device)
		if asFile || m.Major == int(unix.Major(st.Rdev)) && m.Minor == int(unix.Minor(st.Rdev)) {
			problems = append(problems, hostfs.Unmount(m.Mountpoint, csikit.Patience))
		}
	}
	return errors.Join(problems...)
}

const fsHeader = 4096 // bytes that hold the superblocks' magic numbers and sizes

// fileSystem returns the type and size in bytes of a device's file system: ext4, xfs, or "" for none.
func fileSystem(device string) (string, int64, error) {
	f, err := os.Open(device)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	head := make([]byte, fsHeader)
	if _, err := f.ReadAt(head, 0); err != nil {
		return "", 0, err
	}
	fsType, size := superblock(head)
	return fsType, size, nil
}
