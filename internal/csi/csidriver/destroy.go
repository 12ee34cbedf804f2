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

// Destroy undoes everything that drivers did under BaseDir: it thaws and unmounts the volumes, frees their loop devices,
// removes volumes, snapshots, pool and state. It needs no running driver, and refuses while there is one; it is
// idempotent, and Options need only Backend and BaseDir. What it could not undo is in the error.
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
	if err != nil {
		return err
	}
	d := &driver{opts: o}
	d.be = backends[o.Backend](d)
	_ = d.openTables() // what a damaged record hides, the backend finds in the kernel's tables
	// The root of a call path, and one that is not to be cut short.
	if err = errors.Join(d.destroy(context.Background()), d.close()); err == nil {
		err = os.RemoveAll(filepath.Join(o.BaseDir, "state"))
		// Another Destroy may have been at work until its end gave us the lock.
		if gone := os.Remove(filepath.Join(o.BaseDir, "lock")); !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("clearing %s: %w", o.BaseDir, err), closeFile(lock))
	}
	_ = os.Remove(o.BaseDir) // when nothing else is in it
	return closeFile(lock)
}

// destroy takes away what the state knows of, then what the backend finds.
func (d *driver) destroy(ctx context.Context) error {
	var problems []error
	rec, _ := d.be.(recoverer)
	// All are thawed before any is unmounted: a process that waits for a frozen one keeps others busy until it can die.
	for _, v := range d.vols.all() {
		if rec != nil {
			problems = append(problems, rec.thaw(v))
		}
	}
	for _, v := range d.vols.all() {
		for path := range v.Published {
			problems = append(problems, unmountHard(path), d.be.unpublish(ctx, v, path))
		}
		for path := range v.Staged {
			problems = append(problems, unmountHard(path))
		}
	}
	return errors.Join(append(problems, d.be.destroy(ctx))...)
}

// unmountHard unmounts a path, lazily when it stays busy, which it then reports.
func unmountHard(path string) error {
	if m, err := hostfs.At(path); err != nil || m == nil {
		return err
	}
	err := hostfs.Unmount(path, busyPatience)
	if errors.Is(err, unix.EBUSY) {
		_ = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		return fmt.Errorf("%w; it is in use by a process and was detached lazily: end that process and destroy again", err)
	}
	return err
}
