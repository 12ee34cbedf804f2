package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/hints"
)

// onlyDriver returns the provisioner of the only driver that the engine does not start; empty: it has not said its name.
func (c *classes) onlyDriver() string {
	for provisioner := range c.endpoints {
		return provisioner
	}
	return ""
}

// missing reports a class that does not exist.
func (c *classes) missing(path, kind, name string, have []string) {
	if !c.cluster {
		c.report.Fail(path, hints.Or(hints.Suggest(name, have), fmt.Sprintf("put its %s beside the Benchmark", kind)),
			"%s %q not found", kind, name)
		return
	}
	cure := "create it"
	if _, ok := c.beside[kind+"/"+name]; ok {
		cure = "kubectl apply the one beside the Benchmark, which does not count on a cluster"
	}
	c.report.Fail(path, hints.Or(hints.Suggest(name, have), cure), "%s %q not found in the cluster", kind, name)
}

// volumes resolves the StorageClass that is named at path and adds it to the plan. An
// empty name selects the default class. It returns false if it reported a problem. If
// the cluster's classes are not known, its default class is returned without a name.
func (c *classes) volumes(path, name string) (storagev1.StorageClass, bool) {
	if name == "" {
		name = c.defaultClass()
	}
	if sc, ok := c.usedStorage[name]; ok {
		return sc, true
	}
	sc, ok := c.storage[name]
	switch {
	case name == "" && c.cluster && c.any[storageKind]:
		return sc, true
	case name == "" && c.cluster:
		c.report.Fail(path, hints.Or(hints.Listed(sortedKeys(c.storage)), "such as storageClass: NAME"),
			"a storageClass is missing, and no StorageClass of the cluster is the default")
		return sc, false
	case name == "":
		c.report.Fail(path, "such as storageClass: loopfile; the class called null is written \"null\"",
			"a storageClass is missing, and no StorageClass here is the default")
		return sc, false
	case !ok && c.any[storageKind]:
		sc = storageClass(name, c.onlyDriver(), nil)
	case !ok:
		c.missing(path, storageKind, name, sortedKeys(c.storage))
		return sc, false
	}
	if sc.Provisioner, ok = c.driver(path, storageKind, name, sc.Provisioner); !ok {
		return sc, false
	}
	if !c.cluster && !c.checkParameters(path, storageKind, name, sc.Parameters) {
		return sc, false
	}
	c.usedStorage[name] = sc
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
	_, external := c.endpoints[driver]
	if c.cluster || external {
		return driver, true
	}
	if other, ok := c.in.Substitute[driver]; ok {
		if !c.said[driver] {
			c.report.Warn(path, "", "%s stands in for %s: %s", strings.TrimSuffix(other, driverSuffix),
				strings.TrimSuffix(driver, driverSuffix), c.in.SubstituteReason)
			c.said[driver] = true
		}
		return other, true
	}
	b, ours := strings.CutSuffix(driver, driverSuffix)
	if _, unnamed := c.endpoints[""]; ours && slices.Contains(backends, b) || unnamed {
		return driver, true
	}
	var have []string
	for _, b := range backends {
		have = append(have, b+driverSuffix)
	}
	c.report.Fail(path,
		hints.Or(hints.Suggest(driver, have), "reach one that runs on this machine with --csi-endpoint"),
		"%s %q is of driver %q, which engine %s does not have", kind, class, driver, c.in.Capabilities.Engine)
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
		sc = engine.SnapshotClass{Name: name, Driver: c.onlyDriver()}
	case !ok:
		c.missing(path, kind, name, sortedKeys(have))
		return "", false
	}
	if sc.Driver, ok = c.driver(path, kind, name, sc.Driver); !ok {
		return "", false
	}
	if sc.Driver != "" && len(drivers) > 0 && (len(drivers) > 1 || !drivers[sc.Driver]) {
		c.report.Fail(path, "a snapshot is taken by the driver that has the volume",
			"%s %q is of driver %s, the volumes are of %s",
			kind, name, sc.Driver, strings.Join(sortedKeys(drivers), " and "))
		return "", false
	}
	if !c.cluster && !c.checkParameters(path, kind, name, sc.Parameters) {
		return "", false
	}
	c.usedSnapshots[name] = sc
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
		if other, ok := c.in.Substitute[d]; ok {
			d = other
		}
		switch {
		case c.builtIn[name] && c.any[kind] && len(drivers) == 0:
		case len(drivers) > 0 && !drivers[d]:
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
		c.report.Fail(path, "snapshotClass: one of its driver", "there is no %s of the volumes' driver %s", kind,
			strings.Join(sortedKeys(drivers), " and "))
	default:
		c.report.Fail(path, "snapshotClass: one of "+strings.Join(own, ", "),
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
	if c.in.Classes != nil {
		_, inCluster = c.in.Classes.Attributes[name]
	}
	switch {
	case !ok && c.cluster && c.any[attributesKind]:
		return nil, name
	case !ok:
		c.report.Fail(path, hints.Or(hints.Suggest(name, sortedKeys(c.modify)),
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
		c.report.Fail(path, "a volume is modified by the driver that has it",
			"VolumeAttributesClass %q is of driver %s, the volumes are of %s",
			name, vac.DriverName, strings.Join(sortedKeys(drivers), " and "))
	}
	return maps.Clone(vac.Parameters), class
}

// of returns the StorageClass of a claim, and false if it was not resolved.
func (c *classes) of(claim *corev1.PersistentVolumeClaim) (storagev1.StorageClass, bool) {
	sc, ok := c.usedStorage[className(claim)]
	return sc, ok
}

// className returns the name of the claim's StorageClass. It is empty both for the
// default class and for a claim that sets storageClassName to "".
func className(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return ""
	}
	return *c.Spec.StorageClassName
}
