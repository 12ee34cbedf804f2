package csidriver

import (
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

// Options configure one driver process.
type Options struct {
	// Backend is one of Backends().
	Backend string
	// BaseDir holds everything the driver keeps: state, images, the pool. It is made when absent. Only one driver may use
	// it at a time. With the null backend it may be empty: the lists then live in memory only.
	BaseDir string
	// NodeID is what NodeGetInfo returns and ControllerPublishVolume accepts.
	NodeID string
	// Nodes are further nodes that share this driver's storage because they are on the same machine: id → unix socket on
	// which Serve answers as that node. A volume of a single-node mode is attached to one of them at a time.
	Nodes map[string]string
	// Capacity limits the sum of the volumes' sizes in bytes; 0 leaves the limit to the backend.
	Capacity int64
	// RoundTo is the granularity in bytes to which sizes are rounded up; 0 means the backend's own.
	RoundTo int64
	// Inject is the path of an injection file, or its YAML itself; empty injects nothing.
	Inject string
	// Seed makes the injected faults repeatable.
	Seed uint64
	// TruthLog is the file to which one JSON line per RPC is appended; empty keeps no log.
	TruthLog string
	// FSType is the file system of loopfile volumes whose request names none; default ext4.
	FSType string
	// PoolSize is the size in bytes of the sparse pool image, for the backends that make one; default 16 GiB.
	PoolSize int64
	// Version is returned by GetPluginInfo; default "devel".
	Version string
}

const (
	kib = int64(1) << 10
	mib = kib << 10
	gib = mib << 10

	// DefaultPoolSize is the size of a pool image that nothing else is said of.
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

// DriverName is the CSI name of a backend's driver, as StorageClasses give it.
func DriverName(backend string) string { return backend + ".csi.cnsbench.dev" }

// complete checks the options and fills in the defaults.
func (o Options) complete() (Options, error) {
	if backends[o.Backend] == nil {
		return o, fmt.Errorf("no CSI backend is called %q; there are %s", o.Backend, strings.Join(Backends(), ", "))
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
		return o, fmt.Errorf("the node id %q is given twice: as the driver's own and as a further node", o.NodeID)
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

// Program is a host program that a backend calls, and the Debian package that brings it.
type Program struct{ Name, Package string }

// Requirement is what a backend needs of the machine.
type Requirement struct {
	// Root: the backend mounts and attaches, and cannot work without root.
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

// Requirements says what a backend needs of the machine.
func Requirements(backend string) Requirement { return requirements[backend] }

// check refuses a backend that this process has not the rights for, before it makes anything.
func (r Requirement) check(backend string) error {
	if r.Root && os.Geteuid() != 0 {
		return fmt.Errorf("backend %s mounts and attaches devices: run it as root, or take hostdir", backend)
	}
	return nil
}

// Limit says what a backend that has all it requires still cannot do on this machine; empty: nothing is known.
func Limit(backend string) string {
	if backend == "loopfile" && !growsMounted(volume{FSType: "ext4"}) {
		return "a mounted ext4 cannot be grown here (no CAP_SYS_RESOURCE); xfs can"
	}
	return ""
}

// MakesPool says whether a backend makes an image for its volumes on a file
// system of that type: it uses one that can share blocks between files itself.
func MakesPool(backend, fsType string) bool {
	switch backend {
	case "loopfile":
		return fsType != "xfs" && fsType != "btrfs"
	case "btrfs":
		return fsType != "btrfs"
	}
	return false
}

// Missing lists the programs of a requirement that are not on this machine's PATH.
func (r Requirement) Missing() []Program {
	return slices.DeleteFunc(slices.Clone(r.Programs), func(p Program) bool {
		_, err := hostfs.Find(p.Name)
		return err == nil
	})
}
