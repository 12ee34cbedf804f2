package csidriver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver/loopdev"
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
			if err := d.mayUndo(v, path); err != nil {
				problems = append(problems, err)
				continue
			}
			problems = append(problems, forceUnmount(path), d.backend.unpublish(ctx, v, path))
		}
		for path := range v.Staged {
			if err := d.mayUndo(v, path); err != nil {
				problems = append(problems, err)
				continue
			}
			problems = append(problems, forceUnmount(path))
		}
	}
	return errors.Join(append(problems, d.backend.destroy(ctx))...)
}

// mayUndo refuses targets outside of the directories of the options. The parent is resolved, since it may be a link.
func (d *driver) mayUndo(v volume, path string) error {
	if len(d.opts.Below) == 0 {
		return nil
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		parent, err = filepath.Dir(path), nil
	}
	if err != nil {
		return err
	}
	for _, dir := range append([]string{d.opts.BaseDir}, d.opts.Below...) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if hostfs.Within(filepath.Clean(parent), dir) {
			return nil
		}
	}
	return fmt.Errorf("volume %s is recorded at %s, which is not below %s: left alone", v.ID, path,
		strings.Join(d.opts.Below, " or "))
}

// Made lists what Destroy would undo: volumes, snapshots, mounts, loop devices and the base directory. It changes
// nothing.
func Made(o Options) (list []string, err error) {
	o, err = o.complete()
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(o.BaseDir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	d := &driver{opts: o, vols: &table[volume]{path: o.state("volumes"), rows: map[string]volume{}},
		snaps: &table[snapshot]{path: o.state("snapshots"), rows: map[string]snapshot{}}}
	err = errors.Join(d.vols.read(), d.snaps.read())
	for _, v := range d.vols.all() {
		list = append(list, fmt.Sprintf("volume %s (%s)", v.ID, v.Name))
		for _, path := range slices.Sorted(maps.Keys(v.Published)) {
			list = append(list, "target "+path)
		}
		for _, path := range slices.Sorted(maps.Keys(v.Staged)) {
			list = append(list, "target "+path)
		}
	}
	for _, s := range d.snaps.all() {
		list = append(list, fmt.Sprintf("snapshot %s (%s)", s.ID, s.Name))
	}
	devices, below := loopdev.Below(o.BaseDir)
	for _, dev := range slices.Sorted(maps.Keys(devices)) {
		list = append(list, fmt.Sprintf("loop device %s of %s", dev, devices[dev]))
	}
	mounts, all := hostfs.AllMounts()
	for _, m := range mounts {
		if devices[m.Source] != "" || hostfs.Within(m.Mountpoint, o.BaseDir) {
			list = append(list, "mount "+m.Mountpoint)
		}
	}
	return append(list, "directory "+o.BaseDir), errors.Join(err, below, all)
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
