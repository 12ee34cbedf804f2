package plan

import (
	"context"
	"io"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// File is an input file: its content, and its name for messages.
type File = parse.File

// Problem is an error or a warning about a file, with its place.
type Problem = parse.Problem

// Input holds everything that a plan depends on.
type Input struct {
	// Files hold YAML documents: one Benchmark, and optionally StorageClasses,
	// VolumeSnapshotClasses, VolumeAttributesClasses, Secrets of CSI drivers and
	// ConfigMaps. A ConfigMap with the label type: workload is a library entry.
	Files []File
	// Set holds changes to the Benchmark in the form KEY=VALUE. See parse.ApplySets for the keys.
	Set []string
	// Capabilities are those of the engine that executes the plan.
	Capabilities engine.Capabilities
	// Library holds the workloads other than those in Files; nil: the built-in library.
	Library *workload.Library
	// Classes are the classes of the cluster (engine kubernetes); nil: not known.
	Classes *Classes
	// ConfigMaps lists the library entries (label type: workload) in a namespace, for
	// spec.library; nil: no cluster is available.
	ConfigMaps func(ctx context.Context, namespace string) ([]corev1.ConfigMap, error)
	// ToolsImage is the image of the library's programs, {{TOOLS_IMAGE}} in templates;
	// empty: that of this version, beside Image.
	ToolsImage string
	// Image is the image of cnsbench, {{CNSBENCH_IMAGE}} in templates; empty: the
	// published image of this version.
	Image string
	// Folder opens a folder that spec.library names; nil: folders cannot be read.
	Folder func(path string) (fs.FS, error)
	// ObjectSpec resolves the objectSpec of a workload; nil: objectSpec is rejected.
	ObjectSpec workload.SpecResolver
	// Parsers are parsers of workload outputs in addition to the built-in ones.
	Parsers map[string]parser.Func
	// Open opens a file that the Benchmark names, such as a trace; nil: files cannot be
	// read.
	Open func(path string) (io.ReadCloser, error)
	// Endpoints are the sockets of CSI drivers that the engine does not start, by
	// provisioner. The key "" stands for a driver whose name is not known yet: any
	// class may be its own.
	Endpoints map[string]string
	// Substitute maps a driver to the driver that replaces it. SubstituteReason is the
	// reason for the replacement, for messages.
	Substitute       map[string]string
	SubstituteReason string
	// CannotGrow returns why mounted volumes of a driver with a file system ("": the driver's default) cannot grow on
	// this machine, or "" if they can; nil: not known.
	CannotGrow func(driver, fsType string) string
	// Seed is used if the Benchmark sets no seed. The caller chooses it.
	Seed uint64
	// Precondition loads the Benchmark of a Study's precondition, not the one that it
	// repeats.
	Precondition bool
}

// Classes are the classes of a cluster, by name. A nil map means that the classes
// of that kind are not known: names are not checked. An empty map means that the
// cluster has no class of that kind.
type Classes struct {
	Storage       map[string]storagev1.StorageClass
	Snapshot      map[string]engine.SnapshotClass
	GroupSnapshot map[string]engine.SnapshotClass
	Attributes    map[string]storagev1.VolumeAttributesClass
}

// Unread names the kinds of classes that are not known.
func (c *Classes) Unread() (kinds []string) {
	if c.Storage == nil {
		kinds = append(kinds, "StorageClasses")
	}
	if c.Snapshot == nil {
		kinds = append(kinds, "VolumeSnapshotClasses")
	}
	return kinds
}
