package csidriver

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver/inject"
)

const (
	kib = int64(1) << 10
	mib = kib << 10
	gib = mib << 10

	// DefaultPoolSize is the default size of a pool image.
	DefaultPoolSize   = 16 * gib
	defaultVolumeSize = gib
)

// backends maps each name to its constructor.
var backends = map[string]func(*driver) backend{
	"null":     newNull,
	"hostdir":  newHostdir,
	"loopfile": newLoopfile,
	"btrfs":    newBtrfs,
}

// Backends lists the backends by name, sorted.
func Backends() []string { return slices.Sorted(maps.Keys(backends)) }

// DriverName returns the CSI driver name of a backend.
func DriverName(backend string) string { return backend + ".csi.cnsbench.dev" }

// complete validates the options and sets the defaults.
func (o Options) complete() (Options, error) {
	if backends[o.Backend] == nil {
		return o, fmt.Errorf("invalid CSI backend %q: want one of %s", o.Backend, strings.Join(Backends(), ", "))
	}
	if o.BaseDir == "" && o.Backend != "null" {
		return o, fmt.Errorf("backend %s needs a base directory", o.Backend)
	}
	if o.Capacity < 0 || o.RoundTo < 0 || o.PoolSize < 0 {
		return o, errors.New("capacity, rounding and pool size cannot be negative")
	}
	if o.NodeID == "" {
		o.NodeID = "local"
	}
	if _, twice := o.Nodes[o.NodeID]; twice {
		return o, fmt.Errorf("node id %q is both the driver's own and a further node's", o.NodeID)
	}
	if o.PoolSize == 0 {
		o.PoolSize = DefaultPoolSize
	}
	if o.Version == "" {
		o.Version = "devel"
	}
	if o.FSType == "" {
		o.FSType = "ext4"
	}
	if o.BaseDir == "" {
		return o, nil
	}
	base, err := filepath.Abs(o.BaseDir)
	if err != nil {
		return o, err
	}
	// The kernel's tables name mounts and images without symbolic links.
	if resolved, err := filepath.EvalSymlinks(base); err == nil {
		base = resolved
	}
	o.BaseDir = base
	return o, nil
}

func (o Options) injector() (*inject.Injector, error) {
	spec, err := inject.Load(o.Inject, RPCs())
	if err != nil {
		return nil, err
	}
	return inject.New(spec, o.Seed), nil
}

// Program is a host program that a backend calls and its Debian package.
type Program struct{ Name, Package string }

// Requirement is what a backend needs on the machine.
type Requirement struct {
	// Root: the backend needs root to mount and attach.
	Root     bool
	Programs []Program
}

var requirements = map[string]Requirement{
	"loopfile": {Root: true, Programs: programs("mkfs.ext4", "resize2fs", "e2fsck", "mkfs.xfs", "xfs_growfs")},
	"btrfs":    {Root: true, Programs: programs("mkfs.btrfs", "btrfs")},
}

func programs(names ...string) []Program {
	var all []Program
	for _, name := range names {
		all = append(all, Program{Name: name, Package: hostfs.Package(name)})
	}
	return all
}

// Requirements returns what a backend needs on the machine.
func Requirements(backend string) Requirement { return requirements[backend] }

// check fails if this process lacks the privileges.
func (r Requirement) check(backend string) error {
	if r.Root && os.Geteuid() != 0 {
		return fmt.Errorf("backend %s mounts and attaches devices: run it as root, or use hostdir", backend)
	}
	return nil
}

// Limit returns a known limitation of a backend on this machine, or "".
func Limit(backend string) string {
	return CannotGrow(backend, "ext4")
}

// CannotGrow returns why mounted volumes of a backend with a file system cannot grow on this machine, or "" if they
// can.
func CannotGrow(backend, fsType string) string {
	if backend == "loopfile" && !growsMounted(volume{FSType: cmp.Or(fsType, "ext4")}) {
		return "a mounted ext4 cannot be grown here (no CAP_SYS_RESOURCE); xfs can"
	}
	return ""
}

// MakesPool reports whether a backend makes an image for its volumes on a file system of that type, because
// it cannot share blocks between files.
func MakesPool(backend, fsType string) bool {
	switch backend {
	case "loopfile":
		return fsType != "xfs" && fsType != "btrfs"
	case "btrfs":
		return fsType != "btrfs"
	}
	return false
}

// Missing lists the programs that are not on this machine's PATH.
func (r Requirement) Missing() []Program {
	return slices.DeleteFunc(slices.Clone(r.Programs), func(p Program) bool {
		_, err := hostfs.Find(p.Name)
		return err == nil
	})
}
