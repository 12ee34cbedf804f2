package csidriver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
)

// nullCapacity is the reported capacity of null: 1 PiB.
const nullCapacity = int64(1) << 50

// null only creates target paths: a directory, or a sparse file for a block volume. The common part keeps the
// lists.
type null struct{ d *driver }

func newNull(d *driver) backend { return null{d} }

// nullMutable are the mutable parameters that null accepts and records.
var nullMutable = []string{"iops", "throughput"}

func (null) modes() []csi.VolumeCapability_AccessMode_Mode { return anyMode }

// anyMode has all access modes: on one node, directories serve every mode.
var anyMode = []csi.VolumeCapability_AccessMode_Mode{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
}

func (null) parameters() []string                                      { return nil }
func (null) shape(*volume, *origin) (int64, int64, error)              { return 1, 1, nil }
func (null) available(allocated int64) (int64, error)                  { return nullCapacity - allocated, nil }
func (null) attach(context.Context, *volume) error                     { return nil }
func (null) detach(context.Context, volume) error                      { return nil }
func (null) grow(context.Context, *volume) error                       { return nil }
func (null) fences()                                                   {}
func (null) modify(context.Context, volume) error                      { return nil }
func (null) remove(context.Context, volume) error                      { return nil }
func (null) destroy(context.Context) error                             { return nil }
func (null) expand(context.Context, *volume, int64) error              { return nil }
func (null) create(context.Context, *volume, *origin) error            { return nil }
func (null) snapshot(context.Context, snapshot, volume) error          { return nil }
func (null) removeSnapshot(context.Context, snapshot) error            { return nil }
func (null) snapshotGroup(context.Context, []snapshot, []volume) error { return nil }

func (null) checkMutable(params map[string]string) error {
	return checkMutable(params, map[string]func(string) error{nullMutable[0]: checkUint, nullMutable[1]: checkUint})
}

// checkMutable validates parameters with a table of checks.
func checkMutable(params map[string]string, checks map[string]func(string) error) error {
	for key, value := range params {
		check, ok := checks[key]
		if !ok {
			return invalid("unknown mutable parameter %q: want one of %s", key,
				strings.Join(slices.Sorted(maps.Keys(checks)), ", "))
		}
		if err := check(value); err != nil {
			return invalid("mutable parameter %s: %v", key, err)
		}
	}
	return nil
}

func checkUint(s string) error {
	if _, err := strconv.ParseUint(s, 10, 63); err != nil {
		return fmt.Errorf("invalid integer %q", s)
	}
	return nil
}

func (null) stage(_ context.Context, _ *volume, path string, _ []string) error {
	return os.MkdirAll(path, 0o755)
}

// unstage removes the directory if it is empty.
func (null) unstage(_ context.Context, _ volume, path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

func (n null) publish(_ context.Context, v *volume, _, path string, _ bool) error {
	if v.Block {
		return publishSparse(path, v.Size)
	}
	err := os.Mkdir(path, 0o777)
	if err == nil {
		return os.Chmod(path, 0o777) // the pod may run as any user
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if old, ok := n.d.vols.get(v.ID); ok {
		if _, again := old.Published[path]; again {
			return nil
		}
	}
	if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
		return status.Errorf(codes.FailedPrecondition, "the target path %s exists and is not an empty directory", path)
	}
	return nil
}

// publishSparse creates a sparse file in place of a block device.
func publishSparse(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// unpublish removes the path and what pods wrote there, unless something is mounted below it.
func (null) unpublish(_ context.Context, _ volume, path string) error {
	mounts, err := hostfs.Mounts(path)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return status.Errorf(codes.FailedPrecondition, "%s is still mounted", mounts[0].Mountpoint)
	}
	return hostfs.RemoveTree(path)
}
