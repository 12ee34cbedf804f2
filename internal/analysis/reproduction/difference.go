package reproduction

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Group is a kind of facts. A difference of an earlier group is more likely to change results.
type Group string

// The groups, in order.
const (
	Request Group = "request" // what was asked for
	Storage Group = "storage" // the driver, its classes, its limits and its device
	Machine Group = "machine" // kernel, CPU, memory, limits of this program, nodes
	Program Group = "program" // versions and hashes of programs
	Place   Group = "place"   // names, and parts that the run did not use
)

var groups = []Group{Request, Storage, Machine, Program, Place}

// Difference is a fact that two runs do not share.
type Difference struct {
	Fact  string `json:"fact"`
	Group Group  `json:"group"`
	// Then and Now are the values; nil: there is none.
	Then *string `json:"then"`
	Now  *string `json:"now"`
}

// volatile are the facts that differ between any two runs, or that name the run's own places. They are not compared.
var volatile = regexp.MustCompile(`^(` + strings.Join([]string{
	`collectedAt`, `format`, `load`, `memory\.availableBytes`, `warnings`, `cgroup\.path`, `clockSync\..*`,
	`filesystems\[[^]]*\]\.(freeBytes|path|device)`, `blockDevices\[[^]]*\]\.device`,
	`programs\..*\.path`,
	`engine\.drivers\[[^]]*\]\.(endpoint|baseDir)`, `engine\.csiProxies.*`, `engine\.notReadable\..*`,
	`engine\.(storageClasses|snapshotClasses)\..*\.metadata\..*`, `engine\.driverProcess\.program\.path`,
	`versions\.bundleFormat`,
}, "|") + `)$`)

// transient are devices that programs make and remove; one that holds a file system in use has a role instead of its
// name.
var transient = regexp.MustCompile(`^blockDevices\[(loop|ram|zram|nbd|sr|fd|dm-)\d*\]`)

// backing are facts of a device with a role that name it: they say nothing where it is a transient one.
var backing = regexp.MustCompile(
	`^blockDevices\[(storage|bundle)\]\.(name|on)$|^filesystems\[(storage|bundle)\]\.source$`)

// patterns assign facts to groups; the first that matches counts.
var patterns = []struct {
	group Group
	match *regexp.Regexp
}{
	{Request, regexp.MustCompile(`^(benchmark|variables|variants|limits)\.|^(seed|platform|inject)$|^trace\[`)},
	{Place, regexp.MustCompile(`^(hostname$|blockDevices\[bundle\]|filesystems\[bundle\]|` +
		`engine\.(server|namespace|node|storageDir)$)`)},
	{Place, regexp.MustCompile(`^filesystems\[storage\]\.(mount|source)$|^blockDevices\[storage\]\.name$`)},
	{Storage, regexp.MustCompile(`^(classDrivers\.|blockDevices\[storage\]|filesystems\[storage\])`)},
	{Storage, regexp.MustCompile(`^engine\.(drivers|driverProcess|storageClasses|snapshotClasses|driverPods|limits|csi|` +
		`volume|providerObjects|groupSnapshots)`)},
	{Machine, regexp.MustCompile(`^(kernel|kernelParameters|cpu|memory|cgroup|sysctls|clocksource|virtualization)\b`)},
	{Machine, regexp.MustCompile(`^engine\.(nodes|serverVersion|featureGates|agentDelivery)`)},
	{Program, regexp.MustCompile(`^(versions|tools|programs)\.|^workload\[|^engine\.image$|^os$`)},
}

func groupOf(fact string, runs ...Facts) Group {
	if class, ok := strings.CutPrefix(fact, "engine.storageClasses."); ok && !usesClass(class, runs) {
		return Place
	}
	if class, ok := strings.CutPrefix(fact, snapshotClasses); ok && !usesSnapshotClass(class, runs) {
		return Place
	}
	for _, p := range patterns {
		if p.match.MatchString(fact) {
			return p.group
		}
	}
	return Place
}

// usesClass reports whether one of the runs used the StorageClass whose name begins fact.
func usesClass(fact string, runs []Facts) bool {
	for _, f := range runs {
		for name := range f {
			class, ok := strings.CutPrefix(name, "classDrivers.")
			if ok && (fact == class || strings.HasPrefix(fact, class+".")) {
				return true
			}
		}
	}
	return false
}

const snapshotClasses = "engine.volumeSnapshotClasses."

// usesSnapshotClass reports whether one of the runs used a driver of the VolumeSnapshotClass whose name begins fact.
func usesSnapshotClass(fact string, runs []Facts) bool {
	drivers := map[string]bool{}
	for _, f := range runs {
		for name, value := range f {
			class, ok := strings.CutPrefix(name, snapshotClasses)
			if class, driver := strings.CutSuffix(class, ".driver"); ok && driver && strings.HasPrefix(fact, class+".") {
				drivers[value] = true
			}
		}
	}
	for _, f := range runs {
		for name, value := range f {
			if strings.HasPrefix(name, "classDrivers.") && drivers[value] {
				return true
			}
		}
	}
	return false
}

// compared drops the facts that are not compared.
func (f Facts) compared() Facts {
	kept := Facts{}
	for name, value := range f {
		if volatile.MatchString(name) || transient.MatchString(name) ||
			backing.MatchString(name) && onTransient(value) {
			continue
		}
		kept[name] = value
	}
	for name := range kept { // driverPods has the same of any pod, under names that last
		if strings.HasPrefix(name, "engine.driverPods.") {
			kept.drop("engine.limits")
			break
		}
	}
	return kept
}

func (f Facts) drop(prefix string) {
	for name := range f {
		if strings.HasPrefix(name, prefix) {
			delete(f, name)
		}
	}
}

// onTransient says whether a value names a device that programs make and remove, or a file behind one.
func onTransient(value string) bool {
	name := strings.TrimPrefix(value, "/dev/")
	return transient.MatchString("blockDevices["+name+"]") || strings.HasPrefix(value, "/") && name == value
}

// Comparison are the differences between two sets of facts.
type Comparison struct {
	// Compared counts the facts that both have, Volatile those of the later one that are not compared.
	Compared int `json:"compared"`
	Volatile int `json:"volatile"`
	// Differences are in order of their groups and names.
	Differences []Difference `json:"differences"`
	// OneSided are facts that one version of the program does not record, or that one run had no right to read: whether
	// they differ cannot be known.
	OneSided []string `json:"recordedByOneVersion"`
}

// CompareFacts compares the facts of an earlier run with those of a later one. recorded is the format of each
// environment.json: a fact that only a later format has is not a difference, and neither is one of a part of the
// cluster that a run could not read.
func CompareFacts(then, now Facts, recorded [2]int) Comparison {
	a, b := then.compared(), now.compared()
	c := Comparison{Volatile: len(now) - len(b), Differences: []Difference{}, OneSided: []string{}}
	for name, was := range a {
		is, ok := b[name]
		switch {
		case !ok && (recorded[0] != recorded[1] || now.lacks(name)):
			c.OneSided = append(c.OneSided, name)
		case !ok:
			c.Differences = append(c.Differences, Difference{name, groupOf(name, then, now), &was, nil})
		default:
			c.Compared++
			if is != was {
				c.Differences = append(c.Differences, Difference{name, groupOf(name, then, now), &was, &is})
			}
		}
	}
	for name, is := range b {
		if _, ok := a[name]; ok {
			continue
		}
		if recorded[0] != recorded[1] || then.lacks(name) {
			c.OneSided = append(c.OneSided, name)
			continue
		}
		c.Differences = append(c.Differences, Difference{name, groupOf(name, then, now), nil, &is})
	}
	slices.Sort(c.OneSided)
	slices.SortFunc(c.Differences, func(x, y Difference) int {
		return cmp.Or(cmp.Compare(slices.Index(groups, x.Group), slices.Index(groups, y.Group)),
			strings.Compare(x.Fact, y.Fact))
	})
	return c
}

// lacks reports whether a fact is of a part of the cluster that the run could not read.
func (f Facts) lacks(name string) bool {
	of, ok := strings.CutPrefix(name, "engine.")
	if !ok {
		return false
	}
	of = strings.TrimPrefix(of, "providerObjects.")
	for key := range f {
		part, unread := strings.CutPrefix(key, unreadFacts)
		if unread && (strings.HasPrefix(of, part) || strings.HasPrefix(name, "engine."+part)) {
			return true
		}
	}
	return false
}

// unreadFacts begins the names of the parts that could not be read.
const unreadFacts = "engine.notReadable."

// compareBundles compares the facts of two bundles.
func compareBundles(then, now *bundle.Bundle) (Comparison, error) {
	var facts [2]Facts
	var recorded [2]int
	for i, b := range []*bundle.Bundle{then, now} {
		var err error
		if facts[i], err = Of(b); err != nil {
			return Comparison{}, err
		}
		e, err := b.Environment()
		if err != nil {
			return Comparison{}, err
		}
		recorded[i] = e.Format
	}
	return CompareFacts(facts[0], facts[1], recorded), nil
}
