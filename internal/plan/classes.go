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

// driverSuffix is the suffix of the names of the built-in drivers.
const driverSuffix = ".csi.cnsbench.dev"

// backends are the names of the built-in drivers without driverSuffix.
var backends = []string{"null", "hostdir", "loopfile", "btrfs"}

// Features that some built-in drivers lack, as worded in messages.
const (
	canBlock  = "has no raw block volumes"
	canGroup  = "has no group snapshots"
	canModify = "cannot modify volumes"
)

// lacks lists, by driver, the features that a built-in driver would reject during the
// run. It must match internal/csi/csidriver: the interfaces that the backends
// implement and the volumes that their shape methods reject.
var lacks = map[string]map[string]bool{
	"hostdir" + driverSuffix: {canBlock: true, canGroup: true, canModify: true},
	"btrfs" + driverSuffix:   {canBlock: true, canGroup: true, canModify: true},
}

// lacking reports a problem if a built-in driver of the claims lacks a feature, and
// returns true in that case.
func (l *loader) lacking(path string, claims []corev1.PersistentVolumeClaim, what string) bool {
	if l.in.AnyDriver {
		return false
	}
	for _, driver := range sortedKeys(l.drivers(claims)) {
		if !lacks[driver][what] {
			continue
		}
		hint := "loopfile can do it"
		for _, of := range sortedKeys(l.in.Substitute) {
			if l.in.Substitute[of] == driver && l.classes.said[of] {
				hint = fmt.Sprintf("it stands in for %s: %s", strings.TrimSuffix(of, driverSuffix),
					l.in.SubstituteReason)
			}
		}
		l.fail(path, hint, "%s %s", strings.TrimSuffix(driver, driverSuffix), what)
		return true
	}
	return false
}

// Kinds of classes.
const (
	storageKind    = "StorageClass"
	snapshotKind   = "VolumeSnapshotClass"
	groupKind      = "VolumeGroupSnapshotClass"
	attributesKind = "VolumeAttributesClass"
)

const (
	fsTypeKey       = "csi.storage.k8s.io/fstype"
	defaultClassKey = "storageclass.kubernetes.io/is-default-class"
)

// Classes are the classes of a cluster, by name. A nil map means that the classes
// of that kind are not known: names are not checked. An empty map means that the
// cluster has no class of that kind.
type Classes struct {
	Storage       map[string]storagev1.StorageClass
	Snapshot      map[string]engine.SnapshotClass
	GroupSnapshot map[string]engine.SnapshotClass
	Attributes    map[string]storagev1.VolumeAttributesClass
}

// classes resolves the names of StorageClasses, VolumeSnapshotClasses,
// VolumeGroupSnapshotClasses and VolumeAttributesClasses. On a cluster, names refer
// to the cluster's classes. Otherwise they refer to the classes in the files, then
// to those of the built-in drivers.
type classes struct {
	l        *loader
	storage  map[string]storagev1.StorageClass
	snapshot map[string]engine.SnapshotClass
	group    map[string]engine.SnapshotClass
	modify   map[string]storagev1.VolumeAttributesClass
	builtIn  map[string]bool   // names of snapshot classes that are built in, not from a file
	beside   map[string]beside // class documents in the files that the cluster's classes override, by KIND/NAME
	said     map[string]bool   // drivers whose substitution was reported
	any      map[string]bool   // kinds of which any name is accepted
	cluster  bool              // names refer to the cluster's classes
}

// beside is a class document in a file that the cluster's class overrides.
type beside struct{ kind, name, driver string }

func (c *classes) init(l *loader) {
	*c = classes{l: l, storage: map[string]storagev1.StorageClass{}, snapshot: map[string]engine.SnapshotClass{},
		modify: map[string]storagev1.VolumeAttributesClass{}, builtIn: map[string]bool{}, beside: map[string]beside{}, said: map[string]bool{},
		cluster: l.in.Capabilities.Cluster}
	c.group = c.snapshot // without a cluster, both kinds share one set of names
	c.any = map[string]bool{storageKind: l.in.AnyDriver, snapshotKind: l.in.AnyDriver, groupKind: l.in.AnyDriver}
	l.plan.StorageClasses = map[string]storagev1.StorageClass{}
	l.plan.SnapshotClasses = map[string]engine.SnapshotClass{}
	switch {
	case l.in.Capabilities.Cluster:
		c.ofCluster(l.in.Classes)
	case l.in.Capabilities.BuiltInDrivers:
		c.inTheBox()
	}
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

// snapshotClass has the fields of a VolumeSnapshotClass or a
// VolumeGroupSnapshotClass that CNSBench uses.
type snapshotClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Driver            string            `json:"driver"`
	Parameters        map[string]string `json:"parameters,omitempty"`
	DeletionPolicy    string            `json:"deletionPolicy"`
}

// add adds the class in a document of a file.
func (c *classes) add(d *document, kind string) {
	fail := func(path, hint, message string) {
		at := d.find(path)
		c.l.problems = append(c.l.problems, Problem{File: at.file, Line: at.line, Column: at.col, Path: path,
			Message: message, Hint: hint})
	}
	var name, driver, driverField string
	var use func() // registers the class for lookups
	switch kind {
	case storageKind:
		var sc storagev1.StorageClass
		if !c.l.strict(d, &sc) {
			return
		}
		name, driver, driverField = sc.Name, sc.Provisioner, "provisioner"
		use = func() { c.storage[name] = sc }
	case attributesKind:
		var vac storagev1.VolumeAttributesClass
		if !c.l.strict(d, &vac) {
			return
		}
		name, driver, driverField = vac.Name, vac.DriverName, "driverName"
		use = func() { c.modify[name] = vac }
		c.l.plan.Given = append(c.l.plan.Given, d.value)
	default:
		var sc snapshotClass
		if !c.l.strict(d, &sc) {
			return
		}
		name, driver, driverField = sc.Name, sc.Driver, "driver"
		if sc.DeletionPolicy != "Delete" && sc.DeletionPolicy != "Retain" {
			fail("deletionPolicy", "Delete or Retain", fmt.Sprintf("%q is not a deletionPolicy", sc.DeletionPolicy))
		}
		use = func() {
			c.snapshot[name] = engine.SnapshotClass{Name: name, Driver: driver, Parameters: sc.Parameters,
				Retain: sc.DeletionPolicy == "Retain"}
			delete(c.builtIn, name)
		}
	}
	if c.cluster {
		c.passOver(d, kind, name, driver, use)
	} else {
		use()
	}
	if name == "" {
		fail("metadata", "", "metadata.name is missing")
	}
	if driver == "" {
		fail("", "such as null"+driverSuffix, driverField+" is missing: it names the driver")
	}
}

// passOver records a class document that the cluster's class of the same name
// overrides, and warns of it. A VolumeAttributesClass that the cluster does not have
// is used: the engine creates a class with its parameters.
func (c *classes) passOver(d *document, kind, name, driver string, use func()) {
	c.beside[kind+"/"+name] = beside{kind, name, driver}
	if kind == attributesKind {
		if _, there := c.modify[name]; !there {
			use()
			return
		}
	}
	has, there := c.clusterDriver(kind, name)
	message := fmt.Sprintf("the cluster's %s %q counts, not this one", kind, name)
	switch {
	case !there && !c.any[kind]:
		return // reported where it is used
	case !there:
		message = fmt.Sprintf("on a cluster its own %s %q counts, not this one", kind, name)
	case has != driver:
		message += fmt.Sprintf(": its driver is %s, and not %s", has, driver)
	}
	at := d.find("metadata.name")
	c.l.warnings = append(c.l.warnings, Problem{File: at.file, Line: at.line, Column: at.col, Path: "metadata.name",
		Message: message})
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

// missing reports a class that does not exist.
func (c *classes) missing(path, kind, name string, have []string) {
	if !c.cluster {
		c.l.fail(path, or(suggest(name, have), fmt.Sprintf("put its %s beside the Benchmark", kind)),
			"%s %q not found", kind, name)
		return
	}
	cure := "create it"
	if _, ok := c.beside[kind+"/"+name]; ok {
		cure = "kubectl apply the one beside the Benchmark, which does not count on a cluster"
	}
	c.l.fail(path, or(suggest(name, have), cure), "%s %q not found in the cluster", kind, name)
}

// volumes resolves the StorageClass that is named at path and adds it to the plan. An
// empty name selects the default class. It returns false if it reported a problem. If
// the cluster's classes are not known, its default class is returned without a name.
func (c *classes) volumes(path, name string) (storagev1.StorageClass, bool) {
	if name == "" {
		name = c.defaultClass()
	}
	if sc, ok := c.l.plan.StorageClasses[name]; ok {
		return sc, true
	}
	sc, ok := c.storage[name]
	switch {
	case name == "" && c.cluster && c.any[storageKind]:
		return sc, true
	case name == "" && c.cluster:
		c.l.fail(path, or(listed(sortedKeys(c.storage)), "such as storageClass: NAME"),
			"a storageClass is missing, and no StorageClass of the cluster is the default")
		return sc, false
	case name == "":
		c.l.fail(path, "such as storageClass: loopfile; the class called null is written \"null\"",
			"a storageClass is missing, and no StorageClass here is the default")
		return sc, false
	case !ok && c.any[storageKind]:
		sc = storageClass(name, "", nil)
	case !ok:
		c.missing(path, storageKind, name, sortedKeys(c.storage))
		return sc, false
	}
	if sc.Provisioner, ok = c.driver(path, storageKind, name, sc.Provisioner); !ok {
		return sc, false
	}
	c.l.plan.StorageClasses[name] = sc
	return sc, true
}

// defaultClass returns the name of the StorageClass that is annotated as the default.
// Of several it returns the newest, as Kubernetes does. It is empty if there is none.
func (c *classes) defaultClass() string {
	best := ""
	for _, name := range sortedKeys(c.storage) {
		sc := c.storage[name]
		if sc.Annotations[defaultClassKey] != "true" {
			continue
		}
		if newest := c.storage[best].CreationTimestamp; best == "" || newest.Before(&sc.CreationTimestamp) {
			best = name
		}
	}
	return best
}

// driver returns the substitute of a driver, or the driver itself if it has none. It
// returns false, after reporting a problem, if the engine does not have the driver.
func (c *classes) driver(path, kind, class, driver string) (string, bool) {
	if c.cluster || c.l.in.AnyDriver {
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

// snapshots resolves the VolumeSnapshotClass, or the VolumeGroupSnapshotClass if group
// is set, that is named at path, for volumes of the given drivers. An empty name
// selects the class of the driver. It returns false if it reported a problem.
func (c *classes) snapshots(path, name string, drivers map[string]bool, group bool) (string, bool) {
	kind, have := snapshotKind, c.snapshot
	if group && c.cluster {
		kind, have = groupKind, c.group
	}
	if name == "" {
		if name = c.snapshotsOf(path, kind, have, drivers); name == "" {
			return "", c.any[kind]
		}
	}
	sc, ok := have[name]
	switch {
	case !ok && c.any[kind]:
		sc = engine.SnapshotClass{Name: name}
	case !ok:
		c.missing(path, kind, name, sortedKeys(have))
		return "", false
	}
	if sc.Driver, ok = c.driver(path, kind, name, sc.Driver); !ok {
		return "", false
	}
	if !c.l.in.AnyDriver && sc.Driver != "" && len(drivers) > 0 && (len(drivers) > 1 || !drivers[sc.Driver]) {
		c.l.fail(path, "a snapshot is taken by the driver that has the volume",
			"%s %q is of driver %s, the volumes are of %s",
			kind, name, sc.Driver, strings.Join(sortedKeys(drivers), " and "))
		return "", false
	}
	c.l.plan.SnapshotClasses[name] = sc
	return name, true
}

// snapshotsOf returns the name of the snapshot class for a driver. Classes in the files
// or the cluster take precedence over built-in ones. Of several it returns the
// default. It returns an empty name if any class is accepted, so that none is needed,
// or if it reported that there is not exactly one class.
func (c *classes) snapshotsOf(path, kind string, have map[string]engine.SnapshotClass, drivers map[string]bool) string {
	var own, box, chosen []string
	for _, name := range sortedKeys(have) {
		d := have[name].Driver
		if other, ok := c.l.in.Substitute[d]; ok {
			d = other
		}
		switch {
		case c.builtIn[name] && c.any[kind]:
		case !c.any[kind] && len(drivers) > 0 && !drivers[d]:
		case c.builtIn[name]:
			box = append(box, name)
		default:
			own = append(own, name)
			if have[name].Default {
				chosen = append(chosen, name)
			}
		}
	}
	switch {
	case len(chosen) == 1:
		own = chosen
	case len(own) == 0 && len(box) > 0:
		own = box[:1]
	}
	switch {
	case len(own) == 0 && c.any[kind]:
	case len(own) == 1 && len(drivers) <= 1:
		return own[0]
	case len(own) == 0:
		c.l.fail(path, "snapshotClass: one of its driver", "there is no %s of the volumes' driver %s", kind,
			strings.Join(sortedKeys(drivers), " and "))
	default:
		c.l.fail(path, "snapshotClass: one of "+strings.Join(own, ", "),
			"snapshotClass is missing, and there is not exactly one for the volumes' driver")
	}
	return ""
}

// attributes resolves a VolumeAttributesClass for volumes of the given drivers. It
// returns the parameters, if they are known, and the name of the class if the cluster
// has it.
func (c *classes) attributes(path, name string, drivers map[string]bool) (parameters map[string]string, class string) {
	vac, ok := c.modify[name]
	_, ours := c.beside[attributesKind+"/"+name]
	inCluster := false
	if c.l.in.Classes != nil {
		_, inCluster = c.l.in.Classes.Attributes[name]
	}
	switch {
	case !ok && c.cluster && c.any[attributesKind]:
		return nil, name
	case !ok:
		c.l.fail(path, or(suggest(name, sortedKeys(c.modify)),
			"put its VolumeAttributesClass beside the Benchmark, or give parameters"),
			"VolumeAttributesClass %q not found", name)
		return nil, ""
	case c.cluster && (inCluster || !ours):
		class = name
	}
	if _, ok := c.driver(path, attributesKind, name, vac.DriverName); !ok {
		return nil, ""
	}
	if c.cluster && vac.DriverName != "" && len(drivers) > 0 && (len(drivers) > 1 || !drivers[vac.DriverName]) {
		c.l.fail(path, "a volume is modified by the driver that has it",
			"VolumeAttributesClass %q is of driver %s, the volumes are of %s",
			name, vac.DriverName, strings.Join(sortedKeys(drivers), " and "))
	}
	return maps.Clone(vac.Parameters), class
}

// listed returns a hint that lists the names, or an empty string if there are none or
// more than maxListed.
func listed(names []string) string {
	if len(names) == 0 || len(names) > maxListed {
		return ""
	}
	return "there are: " + strings.Join(names, ", ")
}

// or joins two hints with "or". The first may be empty.
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
