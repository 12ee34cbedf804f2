package attribution

import (
	"cmp"
	"maps"
	"slices"
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
	ObjectStore  = "object store (first PUT)"
	Binder       = "PersistentVolume controller"
	Workload     = "workload (init containers, ending)"
	Harness      = "harness (init container of the agent)"
	Unknown      = "not observed"
	Engine       = "engine between calls"
	Processes    = "start of processes"
	Checking     = "check of the data"
	Pause        = "pause that was asked for"
	Controllers  = "controllers of objects, with their pods"
	Dependency   = "ops that it waited for"
	Backoff      = "waits before calls are repeated"

	ProvisionerOrDriver = "csi-provisioner or the driver"
	AttacherOrDriver    = "attach controller, csi-attacher or the driver"
	SnapshotterOrDriver = "snapshot-controller, csi-snapshotter or the driver"
	ResizerOrDriver     = "csi-resizer or the driver"
	KubeletOrDriver     = "kubelet, container runtime or the driver"
	HarnessOrDriver     = "harness (init container of the agent) or the driver"
	WorkloadOrDriver    = "workload (init containers, ending) or the driver"
	ControllersOrDriver = "controllers of objects, with their pods, or the driver"
)

// orDriver has the component of a step in which the driver is called, where none of
// its calls was observed.
var orDriver = map[string]string{
	Provisioner: ProvisionerOrDriver, Attacher: AttacherOrDriver, Snapshotter: SnapshotterOrDriver,
	Resizer: ResizerOrDriver, Kubelet: KubeletOrDriver, Workload: WorkloadOrDriver, Harness: HarnessOrDriver,
	Controllers: ControllersOrDriver,
}

// DriverUnseen reports whether the time of a component may be the driver's.
func DriverUnseen(component string) bool {
	return slices.Contains(slices.Collect(maps.Values(orDriver)), component)
}

// substitutes has the components that do the work of others on one machine.
var substitutes = map[string]string{
	API: Engine, Provisioner: Engine, Attacher: Engine, Snapshotter: Engine, Resizer: Engine, Binder: Engine,
	Scheduler: Engine,
	Kubelet:   Processes,
}

// withoutDriver has the components of orDriver by those that are in their place.
var withoutDriver = func() map[string]string {
	m := map[string]string{}
	for known, or := range orDriver {
		m[or] = known
	}
	return m
}()

// onOneMachine returns the component that does the work of another on one machine.
func onOneMachine(by string) string {
	by = cmp.Or(withoutDriver[by], by)
	return cmp.Or(substitutes[by], by)
}
