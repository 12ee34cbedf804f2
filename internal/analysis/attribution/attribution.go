// Package attribution computes which component took the time of an op. It walks
// the op's critical path back from its end, milestone by milestone, and gives each
// interval to the component that produces the milestone at its end. The intervals
// cover the op from its intended instant to its end: the shares add up to one.
//
// The predecessor of a milestone on the path is the latest of its declared
// dependencies.
package attribution

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Components. Where a call of the driver was observed, by the engine or by a proxy,
// its time is the driver's and the time around it the sidecar's. Where none was, the
// time goes to one of the …OrDriver components.
const (
	Runner       = "runner (late start)"
	API          = "API server"
	Driver       = "CSI driver"
	Formatting   = "CSI driver (mkfs)"
	Frozen       = "CSI driver (file system frozen)"
	Provisioner  = "csi-provisioner"
	Attacher     = "attach controller and csi-attacher"
	Snapshotter  = "snapshot-controller and csi-snapshotter"
	Resizer      = "csi-resizer"
	Scheduler    = "scheduler"
	Kubelet      = "kubelet and container runtime"
	EndDetection = "runner (noticing the end)"
	Volume       = "volume (first I/O)"
	Binder       = "PersistentVolume controller"
	Workload     = "workload (init containers, ending)"
	Unknown      = "not observed"
	Engine       = "engine between calls"
	Processes    = "start of processes"
	Pause        = "pause that was asked for"
	Controllers  = "controllers of objects, with their pods"
	Dependency   = "ops that it waited for"

	ProvisionerOrDriver = "csi-provisioner or the driver"
	AttacherOrDriver    = "attach controller, csi-attacher or the driver"
	SnapshotterOrDriver = "snapshot-controller, csi-snapshotter or the driver"
	ResizerOrDriver     = "csi-resizer or the driver"
	KubeletOrDriver     = "kubelet, container runtime or the driver"
	WorkloadOrDriver    = "workload (init containers, ending) or the driver"
	ControllersOrDriver = "controllers of objects, with their pods, or the driver"
)

// orDriver has the component of a step in which the driver is called, where none of
// its calls was observed.
var orDriver = map[string]string{
	Provisioner: ProvisionerOrDriver, Attacher: AttacherOrDriver, Snapshotter: SnapshotterOrDriver,
	Resizer: ResizerOrDriver, Kubelet: KubeletOrDriver, Workload: WorkloadOrDriver, Controllers: ControllersOrDriver,
}

// DriverUnseen reports whether the time of a component may be the driver's.
func DriverUnseen(component string) bool {
	return slices.Contains(slices.Collect(maps.Values(orDriver)), component)
}

// Share is the time of one component.
type Share struct {
	Component string `json:"component"`
	// Share of the time of all ops together, 0 to 1.
	Share float64 `json:"share"`
	// MeanNs is the component's mean time per op.
	MeanNs float64 `json:"meanNs"`
}

// Tally sums ops. The zero value is ready to use; it is not safe for concurrent use.
type Tally struct {
	// OneMachine gives the time of Kubernetes' components to the engine, which
	// does their work where all runs on one machine.
	OneMachine bool

	n     int64
	total int64
	by    map[string]int64
}

// Add adds an op. Ops that did not succeed are ignored: they have no path to an end.
func (t *Tally) Add(o *op.Op) {
	if o.Outcome != op.OK || !o.Ended.Known() || !o.Intended.Known() {
		return
	}
	if t.by == nil {
		t.by = map[string]int64{}
	}
	t.n++
	for by, ns := range Path(o) {
		if t.OneMachine {
			by = onOneMachine(by)
		}
		t.by[by] += ns
		t.total += ns
	}
}

// substitutes has the components that do the work of others on one machine.
var substitutes = map[string]string{
	API: Engine, Provisioner: Engine, Attacher: Engine, Snapshotter: Engine, Resizer: Engine, Binder: Engine,
	Scheduler: Engine,
	Kubelet:   Processes,
}

// onOneMachine returns the component that does the work of another on one machine.
func onOneMachine(by string) string {
	for known, or := range orDriver {
		if by == or {
			by = known
		}
	}
	return cmp.Or(substitutes[by], by)
}

// Shares returns the components, largest share first; none without ops.
func (t *Tally) Shares() []Share {
	var list []Share
	for by, ns := range t.by {
		if ns > 0 {
			list = append(list, Share{by, float64(ns) / float64(t.total), float64(ns) / float64(t.n)})
		}
	}
	slices.SortFunc(list, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Component, b.Component))
	})
	return list
}

// driverSteps are the milestones before which the driver is called, with the
// calls. Where none of those was seen, its time is not known. Calls of the node may be
// unobserved where those of the controller are not.
var driverSteps = map[string][]string{
	op.Provisioned: {"CreateVolume"},
	op.Attached:    {"ControllerPublishVolume"},
	op.Staged:      {"NodeStageVolume", "NodePublishVolume"},
	op.Published:   {"NodeStageVolume", "NodePublishVolume"},
	op.Sandboxed:   {"NodeStageVolume", "NodePublishVolume"},
	op.Initialized: {"NodeStageVolume", "NodePublishVolume"},
	op.Running:     {"NodeStageVolume", "NodePublishVolume"},
	op.Replaced:    {"NodeStageVolume", "NodePublishVolume"},
	"podGone":      {"NodeUnpublishVolume", "NodeUnstageVolume"},
	op.Gone:        {"NodeUnpublishVolume", "NodeUnstageVolume"}, // of pods
	"objectGone":   {"NodeUnpublishVolume", "NodeUnstageVolume"},
	"claimGone":    {"NodeUnpublishVolume", "NodeUnstageVolume"}, // of an object
	op.Taken:       {"CreateSnapshot", "CreateVolumeGroupSnapshot"},
	op.Controller:  {"ControllerExpandVolume"},
	op.Node:        {"NodeExpandVolume"},
	"nodePending":  {"ControllerExpandVolume"},
	op.Modified:    {"ControllerModifyVolume"},
	op.Detached:    {"ControllerUnpublishVolume"},
	"volumeGone":   {"DeleteVolume"},
	"contentGone":  {"DeleteSnapshot", "DeleteVolumeGroupSnapshot"},
	op.Unpublished: {"NodeUnpublishVolume"},
	op.Unstaged:    {"NodeUnstageVolume"},

	"ControllerUnpublishVolume.start": {"NodeUnpublishVolume", "NodeUnstageVolume"},
}

// Calls returns the calls of the CSI driver that are made before a milestone, by its base
// name, as a part of the step that ends there; none: the driver is not called in it.
func Calls(milestone string) []string { return driverSteps[milestone] }

// component returns the component that took the time from one milestone to the next:
// the step's own, or its …OrDriver where an expected call of the driver was not observed.
func (s step) component(o *op.Op, name, from string) string {
	by := s.by
	if other := takenAfter[name][from]; other != "" {
		by = other
	}
	calls := driverSteps[name]
	if len(calls) == 0 || orDriver[by] == "" || mounting(calls) && !mayMount(o, name) {
		return by
	}
	for _, m := range o.Milestones {
		for _, call := range calls {
			if strings.HasPrefix(m.Name, call+".") {
				return by
			}
		}
	}
	return orDriver[by]
}

// mounting reports whether calls mount or unmount volumes.
func mounting(calls []string) bool {
	return calls[0] == "NodeStageVolume" || calls[0] == "NodeUnpublishVolume"
}

// mounted has the milestones that show that volumes are mounted, by the later milestone
// whose time includes the mount where none of them was observed.
var mounted = map[string][]string{
	op.Sandboxed:   {op.Published},
	op.Initialized: {op.Published, op.Sandboxed},
	op.Running:     {op.Published, op.Sandboxed, op.Initialized, "agents"},
	op.Replaced:    {op.Published, op.Sandboxed, op.Initialized, "agents", op.Running},
}

// volumeMilestones are those of ops with volumes only.
var volumeMilestones = []string{op.Attached, op.Bound, op.Provisioned, op.Detached, op.Staged, op.Published,
	op.FirstWrite,
	op.FirstRead, op.Unpublished, op.Unstaged, "claimGone", "volumeGone"}

// mayMount reports whether volumes may have been mounted or unmounted in the time up to
// a milestone: the op's pods have volumes, and no earlier mount was observed. A kill
// restarts processes on mounted volumes, unless their pods are recreated.
func mayMount(o *op.Op, name string) bool {
	if o.Kind == op.Kill && !has(o, op.Scheduled) || has(o, mounted[name]...) {
		return false
	}
	return has(o, volumeMilestones...)
}

// has reports whether an op has one of the milestones.
func has(o *op.Op, names ...string) bool {
	return slices.ContainsFunc(o.Milestones, func(m op.Milestone) bool { return slices.Contains(names, base(m.Name)) })
}
