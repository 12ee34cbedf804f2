package enginetest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// MixOptions configure a mix.
type MixOptions struct {
	StorageClass, SnapshotClass string
	Size                        string
	// Without names kinds of action that the driver or the machine does not support; also "group" and
	// "workload".
	Without map[string]bool
	// Cluster adds actions of clusters: objects of any kind, their replicas, nodes.
	Cluster bool
	// EveryMs is the interval of the fastest rate, RuntimeMs the runtime, both in milliseconds; rates of
	// actions that end processes are ten times slower.
	EveryMs, RuntimeMs int
}

// mixAction is an action of a mix: its spec, with SC for the StorageClass, VSC for the VolumeSnapshotClass
// and SIZE for the size.
type mixAction struct {
	name, spec string
	kind       string
	needs      string // an action whose objects it acts on
	slow       bool   // ends processes
}

var mixActions = []mixAction{
	{"more", "createObjSpec: {volume: {storageClass: SC, size: SIZE}}", "create", "", false},
	{"mounted", "createObjSpec: {count: 2, volume: {storageClass: SC, size: SIZE, attach: true}}", "create", "", false},
	{"snap", "snapshotSpec: {actionName: base, snapshotClass: VSC, select: random}", "snapshot", "", false},
	{"snap-of-more", "snapshotSpec: {actionName: more, snapshotClass: VSC, select: newest}", "snapshot", "more", false},
	{"group", "snapshotSpec: {labels: {tier: base}, snapshotClass: VSC, group: true}", "group", "", false},
	{"back", "restoreSpec: {actionName: snap}", "restore", "snap", false},
	{"back-by-label", "restoreSpec: {labels: {tier: base}, select: random, attach: true}", "restore", "snap", false},
	{"copy", "cloneSpec: {actionName: base, select: random}", "clone", "", false},
	{"copy-of-copy", "cloneSpec: {actionName: copy, select: newest, attach: true}", "clone", "copy", false},
	{"grow", "resizeSpec: {actionName: base, increaseBy: 16Mi, select: random}", "resize", "", false},
	{"tune", "modifySpec: {actionName: base, parameters: {iops: \"7\"}, select: random}", "modify", "", false},
	{"move", "reattachSpec: {actionName: mounted}", "reattach", "mounted", false},
	{"move-base", "reattachSpec: {actionName: base, select: random}", "reattach", "", false},
	{"un-base", "deleteSpec: {actionName: base, select: random}", "delete", "", false},
	{"un-more", "deleteSpec: {actionName: more}", "delete", "more", false},
	{"un-mounted", "deleteSpec: {actionName: mounted, select: random}", "delete", "mounted", false},
	{"un-snap", "deleteSpec: {actionName: snap, select: random}", "delete", "snap", false},
	{"un-group", "deleteSpec: {actionName: group}", "group", "group", false},
	{"un-back", "deleteSpec: {actionName: back, select: newest}", "delete", "back", false},
	{"un-copy", "deleteSpec: {actionName: copy}", "delete", "copy", false},
	{"churn", "createObjSpec: {workload: holder, vars: {storageClass: SC, size: SIZE}}", "workload", "", true},
	{"crash", "killSpec: {actionName: hold}", "workload", "", true},
	{"hang", "killSpec: {actionName: hold, signal: SIGSTOP, stopFor: 20ms}", "workload", "", true},
	{"evict", "killSpec: {actionName: hold, deletePodSpec: {gracePeriod: 1s}}", "workload", "", true},
	{"renew", "rolloutSpec: {actionName: hold}", "workload", "", true},
	{"remount", "reattachSpec: {actionName: hold}", "workload", "", true},
	{"snap-held", "snapshotSpec: {actionName: hold, snapshotClass: VSC, select: random}", "workload", "", false},
	{"un-hold", "deleteSpec: {actionName: hold, select: random}", "workload", "", true},
	{"un-churn", "deleteSpec: {actionName: churn}", "workload", "churn", true},
	{"claim", "createObjSpec: {manifest: {apiVersion: v1, kind: PersistentVolumeClaim, spec: " +
		"{accessModes: [ReadWriteOnce], storageClassName: SC, resources: {requests: {storage: SIZE}}}}}",
		"cluster", "", false},
	{"un-claim", "deleteSpec: {actionName: claim}", "cluster", "claim", false},
	{"web", "createObjSpec: {manifest: " + web + "}", "cluster", "", true},
	{"scale", "scaleSpec: {actionName: web, replicas: [3, 0, 1]}", "cluster", "web", true},
	{"renew-web", "rolloutSpec: {actionName: web}", "cluster", "web", true},
	{"un-web", "deleteSpec: {actionName: web}", "cluster", "web", true},
	{"empty", "drainSpec: {nodeLabels: {kubernetes.io/os: linux}}", "cluster", "", true},
}

// web is an object with pods of its own.
const web = `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1, ` +
	`selector: {matchLabels: {instance: "{{ACTION_NAME}}-{{INSTANCE_NUM}}"}}, ` +
	`template: {metadata: {labels: {instance: "{{ACTION_NAME}}-{{INSTANCE_NUM}}"}}, ` +
	`spec: {terminationGracePeriodSeconds: 1, ` +
	`containers: [{name: sleep, image: "{{TOOLS_IMAGE}}", command: [sleep, infinity]}]}}}}`

// Holder is a library entry whose pod uses a volume until it is ended.
const Holder = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: holder, labels: {type: workload}}
data:
  claim.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec:
      {accessModes: [ReadWriteOnce], storageClassName: "{{storageClass}}", resources: {requests: {storage: "{{size}}"}}}
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: hold, annotations: {role: server}}
    spec:
      containers:
        - {name: hold, image: "{{TOOLS_IMAGE}}", volumeMounts: [{name: data, mountPath: /data}],
           command: [/bin/sh, -c, "trap 'exit 0' TERM; while :; do sleep 0.05; done"]}
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

// Mix returns a random Benchmark, drawn from r, that acts concurrently on the same objects: base volumes at
// the start, optional workloads, and any of the actions, each at its own rate.
func Mix(r *rand.Rand, o MixOptions) string {
	var actions, rates strings.Builder
	fill := strings.NewReplacer("VSC", o.SnapshotClass, "SC", o.StorageClass, "SIZE", o.Size)
	action := func(name, spec string) {
		fmt.Fprintf(&actions, "    - {name: %s, timeout: 5s, %s}\n", name, fill.Replace(spec))
	}
	first := "startAfter: 1ms, " // not in the set-up, where a failure ends the run
	if r.IntN(4) == 0 {
		first = ""
	}
	action("base", first+fmt.Sprintf("createObjSpec: {count: %d, labels: {tier: base}, "+
		"volume: {storageClass: SC, size: SIZE, attach: true}}", 2+r.IntN(4)))
	there := map[string]bool{"": true}
	workloads := !o.Without["workload"] && r.IntN(2) == 0
	if workloads {
		action("hold", first+"createObjSpec: {workload: holder, count: 2, vars: {storageClass: SC, size: SIZE}}")
	}
	for _, m := range mixActions {
		if o.Without[m.kind] || m.kind == "cluster" && !o.Cluster || m.kind == "workload" && !workloads ||
			!there[m.needs] || r.IntN(2) == 0 {
			continue
		}
		there[m.name] = true
		every := o.EveryMs * (1 + r.IntN(8))
		if m.slow {
			every *= 10
		}
		action(m.name, "rateName: r-"+m.name+", "+m.spec)
		fmt.Fprintf(&rates, "    - {name: r-%s, startAfter: %dms, maxInFlight: %d, %s}\n", m.name,
			r.IntN(1+o.RuntimeMs/3), 1+r.IntN(8), mixedRate(r, every))
	}
	text := fmt.Sprintf("apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: mix}\nspec:\n"+
		"  runtime: %dms\n  gracePeriod: %dms\n  seed: %d\n  actions:\n%s",
		o.RuntimeMs, r.IntN(1+o.RuntimeMs), r.Int64N(1<<40), actions.String())
	if rates.Len() > 0 {
		text += "  rates:\n" + rates.String()
	}
	return text + Holder
}

func mixedRate(r *rand.Rand, everyMs int) string {
	switch r.IntN(3) {
	case 0:
		return fmt.Sprintf("constantRateSpec: {interval: %dms}", everyMs)
	case 1:
		return fmt.Sprintf("burstRateSpec: {size: %d, interval: %dms}", 1+r.IntN(3), 2*everyMs)
	}
	return fmt.Sprintf("poissonRateSpec: {perSecond: %d}", max(1, 1000/everyMs))
}

// Accounts lists the objects that ops made, by name: those that exist (created and not deleted), and those
// that may exist because their creation or deletion did not succeed.
type Accounts struct {
	Volumes, Snapshots, Groups                map[string]bool
	MaybeVolumes, MaybeSnapshots, MaybeGroups map[string]bool
	Members                                   map[string][]string // volumes of a group
}

// Account evaluates ops in the order of their ids. claim names the volume of a workload; makes returns what
// an action makes: "volume", "workload", "snapshot" or "group".
func Account(ops []op.Op, makes func(action string) string, claim func(workload string) string) *Accounts {
	a := &Accounts{Volumes: map[string]bool{}, Snapshots: map[string]bool{}, MaybeVolumes: map[string]bool{},
		MaybeSnapshots: map[string]bool{},
		Groups:         map[string]bool{}, MaybeGroups: map[string]bool{}, Members: map[string][]string{}}
	put := func(sure, maybe map[string]bool, name string, ok bool) {
		if ok {
			sure[name] = true
		} else {
			maybe[name] = true
		}
	}
	take := func(sure, maybe map[string]bool, name string, ok bool) {
		if !ok && (sure[name] || maybe[name]) {
			maybe[name] = true
		} else {
			delete(maybe, name)
		}
		delete(sure, name)
	}
	each := func(o op.Op, do func(sure, maybe map[string]bool, name string, ok bool), thing, name string) {
		ok := o.Outcome == op.OK
		switch thing {
		case "volume":
			do(a.Volumes, a.MaybeVolumes, name, ok)
		case "workload":
			do(a.Volumes, a.MaybeVolumes, claim(name), ok)
		case "snapshot":
			do(a.Snapshots, a.MaybeSnapshots, name, ok)
		case "group":
			do(a.Groups, a.MaybeGroups, name, ok)
		}
	}
	for _, o := range ops {
		if o.Outcome == op.Dropped || o.Kind == op.Delete {
			continue
		}
		switch o.Kind {
		case op.Create, op.Restore, op.Clone, op.Snapshot:
			name := fmt.Sprintf("%s-%d", o.Action, o.Instance)
			if makes(o.Action) == "group" {
				a.Members[name] = strings.Split(o.Target, ",")
			}
			each(o, put, makes(o.Action), name)
		}
	}
	for _, o := range ops {
		if o.Kind == op.Delete && o.Outcome != op.Dropped {
			maker := o.Target[:strings.LastIndexByte(o.Target, '-')]
			each(o, take, makes(maker), o.Target)
		}
	}
	return a
}
