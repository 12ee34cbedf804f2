package csidriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver/loopdev"
	"github.com/cnsbench/cnsbench/internal/machine"
)

// pool is a file system that can share blocks between files: the base directory's own, or one in a sparse
// image file mounted below it.
type pool struct {
	base string
	size int64
	// fsType is the image's file system, smallest its smallest size in bytes, mkfs the program and arguments
	// that format a file.
	fsType   string
	smallest int64
	mkfs     []string
	// native reports whether a directory's own file system is suitable.
	native func(dir string) (bool, error)
}

func (p pool) dir() string   { return filepath.Join(p.base, "pool") }
func (p pool) image() string { return filepath.Join(p.base, "pool.img") }

func (p pool) volumes() string   { return filepath.Join(p.dir(), "volumes") }
func (p pool) snapshots() string { return filepath.Join(p.dir(), "snapshots") }

// prepare creates the pool or mounts an existing one.
func (p pool) prepare(ctx context.Context) error {
	if err := os.MkdirAll(p.dir(), 0o755); err != nil {
		return err
	}
	mounted, err := hostfs.At(p.dir())
	if err != nil {
		return err
	}
	if mounted == nil {
		if err := p.provide(ctx); err != nil {
			return err
		}
	}
	return errors.Join(os.MkdirAll(p.volumes(), 0o755), os.MkdirAll(p.snapshots(), 0o755))
}

func (p pool) provide(ctx context.Context) error {
	if _, err := os.Stat(p.image()); err == nil {
		return p.mount()
	}
	if ok, err := p.native(p.dir()); ok || err != nil {
		return err
	}
	if err := p.format(ctx); err != nil {
		return err
	}
	return p.mount()
}

// format creates the image under a temporary name, so that an image with the final name is always complete.
func (p pool) format(ctx context.Context) error {
	if p.size < p.smallest {
		return fmt.Errorf("pool of %d bytes is too small for %s: want at least %d", p.size, p.fsType, p.smallest)
	}
	fresh := p.image() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := makeSparse(fresh, p.size); err != nil {
		return err
	}
	if err := hostfs.Run(ctx, p.mkfs[0], append(p.mkfs[1:len(p.mkfs):len(p.mkfs)], fresh)...); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return errors.Join(hostfs.SyncFile(fresh), os.Rename(fresh, p.image()), hostfs.SyncFile(p.base))
}

// mount attaches the image with autoclear, so that the device is detached with the unmount.
func (p pool) mount() error {
	dev, err := loopdev.Attach(p.image(), loopdev.Options{AutoClear: true})
	if err != nil {
		return err
	}
	return errors.Join(hostfs.Mount(dev.Path, p.dir(), p.fsType, unix.MS_NOATIME, ""), dev.Close())
}

// available returns what the pool's volumes may still claim. An image is not overcommitted by volumes;
// snapshots use the same space as they diverge, so a pool needs room beyond its volumes.
func (p pool) available(allocated int64) (int64, error) {
	if _, err := os.Stat(p.image()); err != nil {
		return diskAvailable(p.dir())
	}
	space, err := machine.SpaceOf(p.dir())
	return space.Bytes - allocated, err
}

// describeSpace describes what available measures.
func (p pool) describeSpace() (of, cure string) {
	image, err := os.Stat(p.image())
	if err != nil {
		return describeDisk(p.dir())
	}
	return fmt.Sprintf("the pool (%s)", formatSize(image.Size())), "make the pool larger: " + option("pool-size")
}

// destroy unmounts and removes the pool, including its mounts elsewhere, and waits for its device to be free: a process
// that is being started may have a copy of the mounts for a moment. It is no error if that takes long: the device is
// detached with its last user.
func (p pool) destroy() error {
	at, err := hostfs.At(p.dir())
	if err != nil {
		return err
	}
	if at != nil {
		if _, err := os.Stat(p.image()); err == nil && p.fsType == "xfs" {
			_ = hostfs.ShutdownXFS(p.dir()) // an optimisation
		}
		mounts, err := hostfs.AllMounts()
		if err != nil {
			return err
		}
		for _, m := range mounts {
			if m.Major == at.Major && m.Minor == at.Minor {
				err = errors.Join(err, forceUnmount(m.Mountpoint))
			}
		}
		if err != nil {
			return err
		}
		if err := loopdev.Detach(at.Source, p.image(), busyTimeout); err != nil && !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return errors.Join(os.RemoveAll(p.dir()), os.RemoveAll(p.image()), os.RemoveAll(p.image()+".new"))
}

func makeSparse(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}
