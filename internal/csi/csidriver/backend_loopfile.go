package csidriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver/loopdev"
)

func newLoopfile(d *driver) backend {
	return &loopfile{d: d, pool: pool{
		base: d.opts.BaseDir, size: d.opts.PoolSize, fsType: "xfs", smallest: 300 * mib,
		mkfs: []string{"mkfs.xfs", "-q", "-f", "-K", "-s", "size=4096", "-m", "reflink=1"}, native: hostfs.CanReflink,
	}}
}

// smallestFS is the smallest size of each file system in bytes. mkfs.xfs refuses less than 300 MiB.
var smallestFS = map[string]int64{"ext4": 16 * mib, "xfs": 300 * mib}

func (*loopfile) parameters() []string { return []string{paramFSType} }

func (*loopfile) modes() []csi.VolumeCapability_AccessMode_Mode {
	return []csi.VolumeCapability_AccessMode_Mode{
		csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
	}
}

func (l *loopfile) shape(v *volume, src *origin) (smallest, granularity int64, err error) {
	if v.Block {
		return mib, mib, nil
	}
	inherited, formatted := src.fs()
	switch {
	case v.FSType != "":
	case v.Params[paramFSType] != "":
		v.FSType = v.Params[paramFSType]
	case inherited != "":
		v.FSType = inherited
	default:
		v.FSType = l.d.opts.FSType
	}
	if formatted && inherited != v.FSType {
		return 0, 0, invalid("the content source has the file system %s, not %s", inherited, v.FSType)
	}
	smallest, ok := smallestFS[v.FSType]
	if !ok {
		return 0, 0, invalid(wrongFSMessage, v.FSType)
	}
	return smallest, mib, nil
}

// fs returns the file system of the content source and whether it is formatted.
func (o *origin) fs() (string, bool) {
	switch {
	case o == nil:
		return "", false
	case o.snapshot != nil:
		return o.snapshot.FSType, o.snapshot.Formatted
	}
	return o.volume.FSType, o.volume.Formatted
}

func (o *origin) block() bool {
	if o.snapshot != nil {
		return o.snapshot.Block
	}
	return o.volume.Block
}

func (l *loopfile) create(ctx context.Context, v *volume, src *origin) error {
	image := l.image(v.ID)
	if err := l.remove(ctx, *v); err != nil {
		return err
	}
	if src == nil {
		return makeSparse(image, v.Size)
	}
	if !v.Block {
		_, v.Formatted = src.fs()
		v.NeedsGrow = v.Size > src.size()
	}
	if src.snapshot != nil {
		if err := hostfs.Reflink(l.snapshotImage(src.snapshot.ID), image); err != nil {
			return err
		}
	} else if err := l.copyFrozen(ctx, []imageCopy{{vol: *src.volume, to: image}}); err != nil {
		return err
	}
	if err := errors.Join(os.Truncate(image, v.Size), hostfs.SyncFile(image)); err != nil {
		return err
	}
	return l.checkRawSource(v, src)
}

// checkRawSource accepts raw block data as the source of a file system volume only if it contains that file
// system; it would be formatted otherwise.
func (l *loopfile) checkRawSource(v *volume, src *origin) error {
	if v.Block || !src.block() {
		return nil
	}
	found, err := fsTypeOf(l.image(v.ID))
	if err == nil && found != v.FSType {
		err = invalid("the content source is raw data, not an %s file system", v.FSType)
	}
	v.Formatted = true
	return err
}

// remove detaches the devices of an interrupted creation and removes the image.
func (l *loopfile) remove(_ context.Context, v volume) error {
	devices, err := loopdev.Below(l.volumes())
	if err != nil {
		return err
	}
	image := l.image(v.ID)
	for dev, at := range devices {
		if at == image {
			err = errors.Join(err, detachDevice(dev, image))
		}
	}
	return errors.Join(err, os.RemoveAll(image))
}

func (l *loopfile) removeSnapshot(_ context.Context, s snapshot) error {
	return os.RemoveAll(l.snapshotImage(s.ID))
}

func (l *loopfile) expand(_ context.Context, v *volume, size int64) error {
	return errors.Join(os.Truncate(l.image(v.ID), size), hostfs.SyncFile(l.image(v.ID)))
}

func (l *loopfile) attach(ctx context.Context, v *volume) error {
	began := time.Now()
	dev, err := loopdev.Attach(l.image(v.ID), loopdev.Options{ReadOnly: v.Attached.ReadOnly})
	if err != nil {
		return err
	}
	v.Attached.Device = dev.Path
	took := time.Since(began)
	l.d.log.write(Record{Event: eventAttach, Volume: v.ID, StartUnixNs: began.UnixNano(), EndUnixNs: wall(began, took),
		DurationNs: int64(took), Device: dev.Path, DirectIO: &dev.DirectIO})
	return errors.Join(l.modify(ctx, *v), dev.Close())
}

func (l *loopfile) detach(_ context.Context, v volume) error {
	return detachDevice(v.Attached.Device, l.image(v.ID))
}

// detachDevice names the processes that keep a busy device mounted.
func detachDevice(dev, image string) error {
	err := loopdev.Detach(dev, image, busyTimeout)
	if holders := hostfs.Holders(dev); err != nil && len(holders) > 0 {
		return fmt.Errorf("%w; processes with it mounted in other mount namespaces: %s", err,
			strings.Join(holders, ", "))
	}
	return err
}

func (*loopfile) checkMutable(params map[string]string) error {
	return checkMutable(params, map[string]func(string) error{mutReadAhead: checkUint,
		mutFreezeHold: func(s string) error {
			hold, err := time.ParseDuration(s)
			if err != nil || hold < 0 || hold > maxFreezeHold {
				return fmt.Errorf("invalid duration %q: want 0s to %v", s, maxFreezeHold)
			}
			return nil
		}})
}

func (l *loopfile) modify(_ context.Context, v volume) error {
	if kib := v.Mutable[mutReadAhead]; kib != "" && v.Attached != nil {
		return loopdev.SetReadAhead(v.Attached.Device, kib)
	}
	return nil
}

func (l *loopfile) publish(_ context.Context, v *volume, staging, path string, readOnly bool) error {
	if m, err := hostfs.At(path); err != nil || m != nil {
		return err // already mounted; the common part has checked that it is this volume
	}
	if v.Block {
		if readOnly && !v.Attached.ReadOnly {
			return invalid("a raw block volume is published read-only only when it is attached so")
		}
		return hostfs.Bind(v.Attached.Device, path, readOnly)
	}
	mounted, err := l.mountedAt(*v, staging)
	if err != nil {
		return err
	}
	if !mounted {
		return status.Errorf(codes.FailedPrecondition, "volume %s is not mounted at %s; stage it again", v.ID, staging)
	}
	return hostfs.Bind(staging, path, readOnly)
}

func (l *loopfile) unpublish(_ context.Context, _ volume, path string) error {
	return unpublishDir(path)
}

// reconcile attaches what a reboot has detached and frees devices of unknown volumes.
func (l *loopfile) reconcile(ctx context.Context) error {
	devices, err := loopdev.Below(l.volumes())
	if err != nil {
		return err
	}
	problems := []error{}
	for _, v := range l.d.vols.all() {
		if v.Attached == nil {
			continue
		}
		if devices[v.Attached.Device] == l.image(v.ID) {
			delete(devices, v.Attached.Device)
			continue
		}
		v = v.clone()
		at := *v.Attached
		v.Attached = &at
		problems = append(problems, l.attach(ctx, &v), l.d.vols.put(v.ID, v))
	}
	for dev, image := range devices {
		problems = append(problems, detachDevice(dev, image))
	}
	return errors.Join(problems...)
}

// destroy needs no state: the kernel's tables list the devices of the images and their mounts.
func (l *loopfile) destroy(context.Context) error {
	devices, err := loopdev.Below(l.volumes())
	if err != nil {
		return err
	}
	mounts, err := hostfs.AllMounts()
	if err != nil {
		return err
	}
	var problems []error
	for _, m := range mounts { // all first: a process blocked on a frozen file system keeps other mounts busy
		if devices[m.Source] != "" {
			problems = append(problems, thawPath(m.Mountpoint))
		}
	}
	for _, m := range mounts {
		if devices[m.Source] != "" {
			problems = append(problems, forceUnmount(m.Mountpoint))
		} else if name, isNode := strings.CutPrefix(m.Root, "/loop"); isNode && devices["/dev/loop"+name] != "" {
			problems = append(problems, forceUnmount(m.Mountpoint)) // a published raw block device
		}
	}
	for dev, image := range devices {
		problems = append(problems, detachDevice(dev, image))
	}
	return errors.Join(append(problems, l.pool.destroy())...)
}
