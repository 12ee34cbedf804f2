package plan

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

const (
	fsTypeKey       = "csi.storage.k8s.io/fstype"
	defaultClassKey = "storageclass.kubernetes.io/is-default-class"
)

// classes resolves the names of StorageClasses, VolumeSnapshotClasses,
// VolumeGroupSnapshotClasses and VolumeAttributesClasses. On a cluster, names refer
// to the cluster's classes. Otherwise they refer to the classes in the files, then
// to those of the built-in drivers.
type classes struct {
	report   *parse.Report
	in       *Input
	storage  map[string]storagev1.StorageClass
	snapshot map[string]engine.SnapshotClass
	group    map[string]engine.SnapshotClass
	modify   map[string]storagev1.VolumeAttributesClass
	builtIn  map[string]bool // names of snapshot classes that are built in, not from a file
	beside   map[string]bool // class documents in the files of a cluster's run, by KIND/NAME
	said     map[string]bool // drivers whose substitution was reported
	any      map[string]bool // kinds of which any name is accepted
	// endpoints are the sockets of drivers that the engine does not start, by provisioner; "": of an unknown one.
	endpoints map[string]string
	secrets   engine.Secrets
	cluster   bool // names refer to the cluster's classes

	// usedStorage and usedSnapshots are the classes that were resolved, by name.
	usedStorage   map[string]storagev1.StorageClass
	usedSnapshots map[string]engine.SnapshotClass
}

// newClasses returns the classes that names refer to, files included.
func newClasses(report *parse.Report, in *Input, files []classFile, endpoints map[string]string) *classes {
	c := &classes{report: report, in: in, endpoints: endpoints, storage: map[string]storagev1.StorageClass{},
		snapshot: map[string]engine.SnapshotClass{}, modify: map[string]storagev1.VolumeAttributesClass{},
		builtIn: map[string]bool{}, beside: map[string]bool{}, said: map[string]bool{},
		cluster: in.Capabilities.Cluster, usedStorage: map[string]storagev1.StorageClass{},
		usedSnapshots: map[string]engine.SnapshotClass{}}
	c.group = c.snapshot       // without a cluster, both kinds share one set of names
	one := len(endpoints) == 1 // whose classes need no document
	c.any = map[string]bool{storageKind: one, snapshotKind: one, groupKind: one}
	switch {
	case in.Capabilities.Cluster:
		c.ofCluster(in.Classes)
	case in.Capabilities.BuiltInDrivers:
		c.inTheBox()
	}
	for _, f := range files {
		c.add(f)
	}
	return c
}

// ofCluster adds the cluster's classes, as far as they are known.
func (c *classes) ofCluster(known *Classes) {
	if known == nil {
		known = &Classes{}
	}
	c.any = map[string]bool{storageKind: known.Storage == nil, snapshotKind: known.Snapshot == nil,
		groupKind: known.GroupSnapshot == nil, attributesKind: known.Attributes == nil}
	maps.Copy(c.storage, known.Storage)
	maps.Copy(c.snapshot, known.Snapshot)
	maps.Copy(c.modify, known.Attributes)
	c.group = known.GroupSnapshot
}

// inTheBox adds the classes of the built-in drivers.
func (c *classes) inTheBox() {
	for _, b := range backends {
		c.storage[b] = storageClass(b, b+driverSuffix, nil)
		c.snapshot[b] = engine.SnapshotClass{Name: b, Driver: b + driverSuffix}
		c.builtIn[b] = true
	}
	const xfs = xfsClass
	c.storage[xfs] = storageClass(xfs, "loopfile"+driverSuffix, map[string]string{fsTypeKey: "xfs"})
	c.snapshot[xfs] = engine.SnapshotClass{Name: xfs, Driver: "loopfile" + driverSuffix}
	c.builtIn[xfs] = true
}

func storageClass(name, provisioner string, parameters map[string]string) storagev1.StorageClass {
	yes := true
	reclaim := corev1.PersistentVolumeReclaimDelete
	return storagev1.StorageClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Provisioner: provisioner, Parameters: parameters, ReclaimPolicy: &reclaim, AllowVolumeExpansion: &yes,
	}
}

// add adds the class in a document of a file.
func (c *classes) add(f classFile) {
	if c.cluster && c.passOver(f) {
		return
	}
	switch f.kind {
	case storageKind:
		c.storage[f.name] = *f.storage
	case attributesKind:
		c.modify[f.name] = *f.attributes
	default:
		c.snapshot[f.name] = *f.snapshot
		delete(c.builtIn, f.name)
	}
}

// passOver records a class document that the cluster's class of the same name
// overrides, and warns of it. A VolumeAttributesClass that the cluster does not have
// is used: the engine creates a class with its parameters. Then passOver returns false.
func (c *classes) passOver(f classFile) bool {
	c.beside[f.kind+"/"+f.name] = true
	has, there := c.clusterDriver(f.kind, f.name)
	if f.kind == attributesKind && !there {
		return false
	}
	message := fmt.Sprintf("the cluster's %s %q counts, not this one", f.kind, f.name)
	switch {
	case !there && !c.any[f.kind]:
		return true // reported where it is used
	case !there:
		message = fmt.Sprintf("on a cluster its own %s %q counts, not this one", f.kind, f.name)
	case has != f.driver:
		message += fmt.Sprintf(": its driver is %s, and not %s", has, f.driver)
	}
	c.report.Warnings = append(c.report.Warnings, f.doc.Problem("metadata.name", "", "%s", message))
	return true
}

// clusterDriver returns the driver of a class in the cluster; ok is false if the
// cluster is not known to have the class.
func (c *classes) clusterDriver(kind, name string) (driver string, ok bool) {
	switch kind {
	case storageKind:
		sc, ok := c.storage[name]
		return sc.Provisioner, ok
	case attributesKind:
		vac, ok := c.modify[name]
		return vac.DriverName, ok
	case groupKind:
		sc, ok := c.group[name]
		return sc.Driver, ok
	}
	sc, ok := c.snapshot[name]
	return sc.Driver, ok
}
