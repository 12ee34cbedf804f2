// Package scorecard describes what the volumes of a StorageClass can do, how fast, and how it disturbs I/O. It makes
// a small Benchmark for each question, and reads the bundles of their runs; it runs nothing itself.
package scorecard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Class is one StorageClass under test.
type Class struct {
	Name   string
	Driver string
	// AttributesClass is the VolumeAttributesClass for the trial of modify; empty: Parameters, and without those the
	// trial is not done.
	AttributesClass string
	// SnapshotClass is the VolumeSnapshotClass; empty: that of the driver.
	SnapshotClass string
	Parameters    map[string]string
}

// Options shape the trials of all classes.
type Options struct {
	Size    string        // of each volume, a quantity
	N       int           // operations of each kind, one after another
	Disturb time.Duration // how long I/O is measured beside operations; 0: it is not
	Timeout time.Duration // of each operation
}

// Trial is one Benchmark.
type Trial struct {
	Name string // of the trial, such as "snapshot"
	// Shows are the capabilities that it tries, each by the operations of one action.
	Shows []Shown
	// After is the trial without whose success this one has no sense; empty: none.
	After string
	// Disturbs is the operation beside which I/O is measured; empty: none is.
	Disturbs string
	file     func(Class, Options) string
}

// Shown is a capability, and the action whose operations show it.
type Shown struct{ Capability, Action string }

// Trials of each class, in their order.
func Trials(o Options) []Trial {
	list := []Trial{
		{Name: "create", Shows: []Shown{{"create", "create"}, {"delete", "remove"}}, file: creating("")},
		{Name: "block", Shows: []Shown{{"block", "create"}}, After: "create", file: creating(", volumeMode: Block")},
		{Name: "rwx", Shows: []Shown{{"rwx", "create"}}, After: "create",
			file: creating(", accessModes: [ReadWriteMany]")},
		{Name: "snapshot", Shows: []Shown{{"snapshot", "snapshot"}, {"restore", "restore"}}, After: "create",
			file: snapshots},
		{Name: "clone", Shows: []Shown{{"clone", "clone"}}, After: "create", file: clones},
		{Name: "expand", Shows: []Shown{{"expand", "expand"}}, After: "create", file: expansions},
		{Name: "expand-detached", Shows: []Shown{{"expandDetached", "expand"}}, After: "create",
			file: detachedExpansions},
		{Name: "modify", Shows: []Shown{{"modify", "modify"}}, After: "create", file: modifications},
		{Name: "group-snapshot", Shows: []Shown{{"groupSnapshot", "snapshot"}}, After: "create", file: groups},
	}
	if o.Disturb > 0 {
		for _, d := range []struct{ operation, after, file string }{
			{"create", "create", besideCreate}, {"snapshot", "snapshot", besideSnapshot},
			{"clone", "clone", besideClone}, {"expand", "expand", besideExpand},
		} {
			list = append(list, Trial{Name: "beside-" + d.operation, After: d.after, Disturbs: d.operation,
				file: beside(d.operation, d.file)})
		}
	}
	return list
}

// Benchmark is the file of a trial.
func (t *Trial) Benchmark(c Class, o Options) string {
	return fmt.Sprintf("apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: scorecard-%s}\nspec:\n%s",
		t.Name, t.file(c, o))
}

// NotTried says why a class has no such trial; empty: it has.
func (t *Trial) NotTried(c Class) string {
	if t.Name == "modify" && c.AttributesClass == "" && len(c.Parameters) == 0 {
		return "no VolumeAttributesClass is given for it (--attributes-class)"
	}
	return ""
}

// serial is the rate of N operations, one after another. The runtime bounds a trial whose operations all time out: the
// second one is the last.
func serial(o Options) string {
	return fmt.Sprintf("  runtime: %v\n  rates:\n    - {name: serial, limit: %d, concurrencySpec: {parallelism: 1}}\n",
		o.Timeout+o.Timeout/2, o.N)
}

func action(o Options, format string, args ...any) string {
	return fmt.Sprintf("    - {timeout: %v, %s}\n", o.Timeout, fmt.Sprintf(format, args...))
}

// snapshots is what a snapshotSpec has of the class's VolumeSnapshotClass.
func (c *Class) snapshots() string {
	if c.SnapshotClass == "" {
		return ""
	}
	return fmt.Sprintf(", snapshotClass: %q", c.SnapshotClass)
}

func volume(c Class, o Options, more string) string {
	return fmt.Sprintf("{storageClass: %q, size: %s%s}", c.Name, o.Size, more)
}

func creating(more string) func(Class, Options) string {
	return func(c Class, o Options) string {
		return "  actions:\n" +
			action(o, "name: create, rateName: serial, then: [remove], createObjSpec: {volume: %s}",
				volume(c, o, ", attach: true"+more)) +
			action(o, "name: remove, deleteSpec: {actionName: create}") + serial(o)
	}
}

// source is the volume that the operations of a trial act on.
func source(c Class, o Options) string {
	return "  actions:\n" + action(o, "name: volume, createObjSpec: {volume: %s}", volume(c, o, ", attach: true"))
}

// each is an operation on a new volume each time, which is created before it and removed after it.
func each(c Class, o Options, attach bool, operation, of string) string {
	return "  actions:\n" + action(o, "name: volume, rateName: serial, then: [%s, remove], createObjSpec: {volume: %s}",
		operation, volume(c, o, fmt.Sprintf(", attach: %v", attach))) +
		action(o, "name: %s, %s", operation, of) +
		action(o, "name: remove, deleteSpec: {actionName: volume}") + serial(o)
}

func snapshots(c Class, o Options) string {
	return source(c, o) +
		action(o, "name: snapshot, rateName: serial, then: [restore, remove, drop], "+
			"snapshotSpec: {actionName: volume%s}", c.snapshots()) +
		action(o, "name: restore, restoreSpec: {actionName: snapshot, attach: true}") +
		action(o, "name: remove, deleteSpec: {actionName: restore}") +
		action(o, "name: drop, deleteSpec: {actionName: snapshot}") + serial(o)
}

func clones(c Class, o Options) string {
	return source(c, o) +
		action(o, "name: clone, rateName: serial, then: [remove], cloneSpec: {actionName: volume, attach: true}") +
		action(o, "name: remove, deleteSpec: {actionName: clone}") + serial(o)
}

func expansions(c Class, o Options) string {
	return source(c, o) +
		action(o, "name: expand, rateName: serial, resizeSpec: {actionName: volume, increaseBy: %s}", o.Size) + serial(o)
}

// detachedExpansions grow new volumes: Kubernetes begins no second expansion before a pod has mounted the volume.
func detachedExpansions(c Class, o Options) string {
	return each(c, o, false, "expand", fmt.Sprintf("resizeSpec: {actionName: volume, increaseBy: %s}", o.Size))
}

// modifications are of new volumes: on a cluster a volume that has the class already is not modified.
func modifications(c Class, o Options) string {
	to := fmt.Sprintf("volumeAttributesClass: %q", c.AttributesClass)
	if c.AttributesClass == "" {
		var list []string
		for _, k := range slices.Sorted(maps.Keys(c.Parameters)) { // a resumed scorecard compares the text
			list = append(list, fmt.Sprintf("%s: %q", k, c.Parameters[k]))
		}
		to = "parameters: {" + strings.Join(list, ", ") + "}"
	}
	return each(c, o, true, "modify", fmt.Sprintf("modifySpec: {actionName: volume, %s}", to))
}

func groups(c Class, o Options) string {
	return "  actions:\n" +
		action(o, "name: volume, createObjSpec: {count: 2, volume: %s}", volume(c, o, ", attach: true")) +
		action(o, "name: snapshot, rateName: serial, then: [drop], snapshotSpec: {actionName: volume, group: true}") +
		action(o, "name: drop, deleteSpec: {actionName: snapshot}") + serial(o)
}

// The operations beside which I/O is measured. What they make is deleted at once, outside the measured operation.
const (
	besideCreate   = "then: [remove], createObjSpec: {volume: VOLUME}"
	besideSnapshot = "then: [remove], snapshotSpec: {actionName: fioSNAPSHOTS}"
	besideClone    = "then: [remove], cloneSpec: {actionName: fio}"
	besideExpand   = "resizeSpec: {actionName: fio, increaseBy: SIZE}"
)

// LeastDisturbed is the least size of a volume, in bytes, beside whose operations I/O is measured: fio's file is 5 % of
// what is free in it, in whole MiB.
const LeastDisturbed = 32 << 20

// canaryInterval is the time between two I/Os of the canary.
const canaryInterval = 5 * time.Millisecond

// besideFio is fio at a low rate with a canary of writes: the interval, the class, its volume's size, the seconds.
const besideFio = `name: fio, createObjSpec: {workload: fio, canary: {interval: %v, read: false}, vars: ` +
	`{storageClass: %q, volumeSize: %s, fillPercent: "5", rw: randwrite, iodepth: "1", rateIops: "100", runtime: "%.0f"}}`

// beside is fio, and from a third of the time on operations, one each second.
func beside(operation, of string) func(Class, Options) string {
	return func(c Class, o Options) string {
		of := strings.NewReplacer("VOLUME", volume(c, o, ", attach: true"), "SIZE", o.Size, "SNAPSHOTS", c.snapshots()).Replace(of)
		text := "  actions:\n" + action(o, besideFio, canaryInterval, c.Name, o.Size, o.Disturb.Seconds()) +
			action(o, "name: %s, rateName: each, %s", operation, of)
		if strings.Contains(of, "remove") {
			text += action(o, "name: remove, deleteSpec: {actionName: %s}", operation)
		}
		return text + fmt.Sprintf("  runtime: %v\n  rates:\n    - {name: each, startAfter: %v, limit: %d, "+
			"maxInFlight: 1, constantRateSpec: {interval: 1s}}\n", o.Disturb+time.Second,
			(o.Disturb/3).Round(time.Millisecond), max(1, int(o.Disturb.Seconds()*2/3)-1))
	}
}
