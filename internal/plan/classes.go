package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// driverSuffix ends the names of the drivers in the box.
const driverSuffix = ".csi.cnsbench.dev"

// backends are the drivers in the box.
var backends = []string{"null", "hostdir", "loopfile", "btrfs"}

// What not every one of them can do.
const (
	canBlock  = "has no raw block volumes"
	canGroup  = "has no group snapshots"
	canModify = "cannot modify volumes"
)

// lacks is what a driver in the box would refuse in the run; the truth is in
// internal/engine/csidriver: the interfaces that its backends satisfy, and
// what their shape refuses.
var lacks = map[string]map[string]bool{
	"hostdir" + driverSuffix: {canBlock: true, canGroup: true, canModify: true},
	"btrfs" + driverSuffix:   {canBlock: true, canGroup: true, canModify: true},
}

// lacking reports volumes whose driver, one in the box, does not have what is
// asked of it.
func (l *loader) lacking(path string, claims []corev1.PersistentVolumeClaim, what string) bool {
	if l.classes.unlimited {
		return false
	}
	for _, driver := range sortedKeys(l.drivers(claims)) {
		if !lacks[driver][what] {
			continue
		}
		hint := "loopfile can do it"
		for _, of := range sortedKeys(l.in.Substitute) {
			if l.in.Substitute[of] == driver && l.classes.said[of] {
				hint = fmt.Sprintf("it stands in for %s: %s", strings.TrimSuffix(of, driverSuffix), l.in.SubstituteReason)
			}
		}
		l.fail(path, hint, "%s %s", strings.TrimSuffix(driver, driverSuffix), what)
		return true
	}
	return false
}

const (
	fsTypeKey       = "csi.storage.k8s.io/fstype"
	defaultClassKey = "storageclass.kubernetes.io/is-default-class"
)

// classes are the StorageClasses and their like that names resolve to: those
// of the files, then (engine local) those of the drivers in the box.
type classes struct {
	l         *loader
	storage   map[string]storagev1.StorageClass
	snapshot  map[string]engine.SnapshotClass
	modify    map[string]storagev1.VolumeAttributesClass
	builtIn   map[string]bool // names of snapshot classes that are not of the files
	said      map[string]bool // substitutions that were reported
	unlimited bool            // any name will do
}

func (c *classes) init(l *loader) {
	*c = classes{l: l, storage: map[string]storagev1.StorageClass{}, snapshot: map[string]engine.SnapshotClass{},
		modify: map[string]storagev1.VolumeAttributesClass{}, builtIn: map[string]bool{}, said: map[string]bool{},
		unlimited: l.in.AnyDriver || l.in.Capabilities.Engine == "kubernetes"}
	l.plan.StorageClasses = map[string]storagev1.StorageClass{}
	l.plan.SnapshotClasses = map[string]engine.SnapshotClass{}
	if l.in.Capabilities.Engine != "local" {
		return
	}
	for _, b := range backends {
		c.storage[b] = storageClass(b, b+driverSuffix, nil)
		c.snapshot[b] = engine.SnapshotClass{Name: b, Driver: b + driverSuffix}
		c.builtIn[b] = true
	}
	const xfs = "loopfile-xfs"
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

// snapshotClass is as much of a VolumeSnapshotClass or a
// VolumeGroupSnapshotClass as we use.
type snapshotClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Driver            string            `json:"driver"`
	Parameters        map[string]string `json:"parameters,omitempty"`
	DeletionPolicy    string            `json:"deletionPolicy"`
}

// add takes a class from a document of a file.
func (c *classes) add(d *document, kind string) {
	fail := func(path, hint, message string) {
		at := d.find(path)
		c.l.problems = append(c.l.problems, Problem{File: at.file, Line: at.line, Column: at.col, Path: path, Message: message, Hint: hint})
	}
	var name, driver, driverField string
	switch kind {
	case "StorageClass":
		var sc storagev1.StorageClass
		if !c.l.strict(d, &sc) {
			return
		}
		name, driver, driverField = sc.Name, sc.Provisioner, "provisioner"
		c.storage[name] = sc
	case "VolumeAttributesClass":
		var vac storagev1.VolumeAttributesClass
		if !c.l.strict(d, &vac) {
			return
		}
		name, driver, driverField = vac.Name, vac.DriverName, "driverName"
		c.modify[name] = vac
		c.l.plan.given = append(c.l.plan.given, d.value)
	default:
		var sc snapshotClass
		if !c.l.strict(d, &sc) {
			return
		}
		name, driver, driverField = sc.Name, sc.Driver, "driver"
		if sc.DeletionPolicy != "Delete" && sc.DeletionPolicy != "Retain" {
			fail("deletionPolicy", "Delete or Retain", fmt.Sprintf("%q is not a deletionPolicy", sc.DeletionPolicy))
		}
		c.snapshot[name] = engine.SnapshotClass{Name: name, Driver: driver, Parameters: sc.Parameters, Retain: sc.DeletionPolicy == "Retain"}
		delete(c.builtIn, name)
	}
	if name == "" {
		fail("metadata", "", "metadata.name is missing")
	}
	if driver == "" {
		fail("", "such as null"+driverSuffix, driverField+" is missing: it names the driver")
	}
}

// volumes resolves a StorageClass that is named at path and notes that the
// plan uses it; false if there is none, which has been reported.
func (c *classes) volumes(path, name string) (storagev1.StorageClass, bool) {
	if name == "" {
		name = c.defaultClass()
	}
	if sc, ok := c.l.plan.StorageClasses[name]; ok {
		return sc, true
	}
	sc, ok := c.storage[name]
	switch {
	case name == "":
		c.l.fail(path, "such as storageClass: loopfile; the class called null is written \"null\"",
			"a storageClass is missing, and no StorageClass here is the default")
		return sc, false
	case !ok && c.unlimited:
		sc = storageClass(name, "", nil)
	case !ok:
		c.l.fail(path, or(suggest(name, sortedKeys(c.storage)), "put its StorageClass beside the Benchmark"),
			"there is no StorageClass %q", name)
		return sc, false
	}
	if sc.Provisioner, ok = c.driver(path, "StorageClass", name, sc.Provisioner); !ok {
		return sc, false
	}
	c.l.plan.StorageClasses[name] = sc
	return sc, true
}

// defaultClass is the one StorageClass of the files that says it is.
func (c *classes) defaultClass() string {
	for _, name := range sortedKeys(c.storage) {
		if c.storage[name].Annotations[defaultClassKey] == "true" {
			return name
		}
	}
	return ""
}

// driver replaces a driver by its substitute and checks that there is one.
func (c *classes) driver(path, kind, class, driver string) (string, bool) {
	if c.unlimited {
		return driver, true
	}
	if other, ok := c.l.in.Substitute[driver]; ok {
		if !c.said[driver] {
			c.l.warn(path, "", "%s stands in for %s: %s", strings.TrimSuffix(other, driverSuffix),
				strings.TrimSuffix(driver, driverSuffix), c.l.in.SubstituteReason)
			c.said[driver] = true
		}
		return other, true
	}
	if b, ours := strings.CutSuffix(driver, driverSuffix); ours && slices.Contains(backends, b) {
		return driver, true
	}
	var have []string
	for _, b := range backends {
		have = append(have, b+driverSuffix)
	}
	c.l.fail(path, or(suggest(driver, have), "reach one that runs on this machine with --csi-endpoint"),
		"%s %q is of driver %q, which engine %s does not have", kind, class, driver, c.l.in.Capabilities.Engine)
	return driver, false
}

// snapshots resolves a VolumeSnapshotClass that is named at path for volumes
// of the given drivers; without a name, the one that there is for the driver.
func (c *classes) snapshots(path, name string, drivers map[string]bool) (string, bool) {
	if name == "" {
		return c.snapshotsOf(path, drivers)
	}
	sc, ok := c.snapshot[name]
	switch {
	case !ok && c.unlimited:
		sc = engine.SnapshotClass{Name: name}
	case !ok:
		c.l.fail(path, or(suggest(name, sortedKeys(c.snapshot)), "put its VolumeSnapshotClass beside the Benchmark"),
			"there is no VolumeSnapshotClass %q", name)
		return "", false
	}
	if sc.Driver, ok = c.driver(path, "VolumeSnapshotClass", name, sc.Driver); !ok {
		return "", false
	}
	if !c.unlimited && len(drivers) > 0 && (len(drivers) > 1 || !drivers[sc.Driver]) {
		c.l.fail(path, "a snapshot is taken by the driver that has the volume", "VolumeSnapshotClass %q is of driver %s, the volumes are of %s",
			name, sc.Driver, strings.Join(sortedKeys(drivers), " and "))
		return "", false
	}
	c.l.plan.SnapshotClasses[name] = sc
	return name, true
}

// snapshotsOf finds the snapshot class for a driver: the only one of the
// files, else the one in the box; where any driver will do, none is needed.
func (c *classes) snapshotsOf(path string, drivers map[string]bool) (string, bool) {
	var own, box []string
	for _, name := range sortedKeys(c.snapshot) {
		d := c.snapshot[name].Driver
		if other, ok := c.l.in.Substitute[d]; ok {
			d = other
		}
		switch {
		case !c.unlimited && !drivers[d], c.unlimited && c.builtIn[name]:
		case c.builtIn[name]:
			box = append(box, name)
		default:
			own = append(own, name)
		}
	}
	if len(own) == 0 && len(box) > 0 {
		own = box[:1]
	}
	if len(own) == 0 && c.unlimited {
		return "", true
	}
	if len(own) == 1 && len(drivers) <= 1 {
		return c.snapshots(path, own[0], drivers)
	}
	c.l.fail(path, "snapshotClass: one of "+strings.Join(own, ", "), "snapshotClass is missing, and there is not exactly one for the volumes' driver")
	return "", false
}

// attributes resolves a VolumeAttributesClass to its parameters.
func (c *classes) attributes(path, name string) map[string]string {
	vac, ok := c.modify[name]
	if !ok {
		c.l.fail(path, or(suggest(name, sortedKeys(c.modify)), "put its VolumeAttributesClass beside the Benchmark, or give parameters"),
			"there is no VolumeAttributesClass %q", name)
		return nil
	}
	if _, ok := c.driver(path, "VolumeAttributesClass", name, vac.DriverName); !ok {
		return nil
	}
	return maps.Clone(vac.Parameters)
}

// or joins two hints, the first of which may be empty.
func or(a, b string) string {
	switch {
	case a == "":
		return b
	case strings.HasSuffix(a, "?"):
		return a + " Or " + b
	}
	return a + "; or " + b
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
