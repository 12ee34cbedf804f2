package csidriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
)

// Destroy undoes everything that drivers did under BaseDir: it thaws and unmounts the volumes, frees their
// loop devices, and removes volumes, snapshots, pool and state. It fails while a driver is running, is
// idempotent, and needs only Backend and BaseDir of o. The error lists what it could not undo.
func Destroy(o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	if o.BaseDir == "" {
		return nil
	}
	if _, err := os.Stat(o.BaseDir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := lockBase(o.BaseDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // another Destroy has removed everything meanwhile
	}
	if err != nil {
		return err
	}
	d := &driver{opts: o}
	d.backend = backends[o.Backend](d)
	_ = d.openTables() // the backend finds what a damaged record hides in the kernel's tables
	// Must not be interrupted.
	if err = errors.Join(d.destroy(context.Background()), d.close()); err == nil {
		err = os.RemoveAll(filepath.Join(o.BaseDir, "state"))
		// Another Destroy may have held the lock until its end.
		if gone := os.Remove(filepath.Join(o.BaseDir, "lock")); !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("clear %s: %w", o.BaseDir, err), closeFile(lock))
	}
	_ = os.Remove(o.BaseDir) // if empty
	return closeFile(lock)
}

// destroy removes what the state lists, then what the backend finds.
func (d *driver) destroy(ctx context.Context) error {
	var problems []error
	rec, _ := d.backend.(recoverer)
	// Thaw all before unmounting any: a process blocked on a frozen file system keeps other mounts busy.
	for _, v := range d.vols.all() {
		if rec != nil {
			problems = append(problems, rec.thaw(v))
		}
	}
	for _, v := range d.vols.all() {
		for path := range v.Published {
			problems = append(problems, forceUnmount(path), d.backend.unpublish(ctx, v, path))
		}
		for path := range v.Staged {
			problems = append(problems, forceUnmount(path))
		}
	}
	return errors.Join(append(problems, d.backend.destroy(ctx))...)
}

// forceUnmount unmounts a path, lazily if it stays busy, which is reported as an error.
func forceUnmount(path string) error {
	if m, err := hostfs.At(path); err != nil || m == nil {
		return err
	}
	err := hostfs.Unmount(path, busyTimeout)
	if errors.Is(err, unix.EBUSY) {
		_ = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		return fmt.Errorf("%w; a process uses it, so it was unmounted lazily: end that process and destroy again", err)
	}
	return err
}
