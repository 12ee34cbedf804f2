package attribution

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

func milestones(list ...any) []op.Milestone {
	var m []op.Milestone
	for i := 0; i < len(list); i += 2 {
		m = append(m, op.Milestone{Name: list[i].(string), At: op.Time(list[i+1].(int))})
	}
	return m
}

func TestPath(t *testing.T) {
	tests := []struct {
		name string
		op   op.Op
		want map[string]int64
	}{
		{"a snapshot in a trace that waited for its volume",
			op.Op{Intended: 0, Started: 45, Ended: 100,
				Milestones: milestones("unblocked", 40, "CreateSnapshot.start", 50, "CreateSnapshot.end", 95, "taken",
					95, "ready", 95)},
			map[string]int64{Dependency: 40, Runner: 5, Snapshotter: 5, Driver: 45, EndDetection: 5}},
		{"one that has no other milestone",
			op.Op{Intended: 0, Started: 45, Ended: 100, Milestones: milestones("unblocked", 40)},
			map[string]int64{Dependency: 40, Runner: 5, Unknown: 55}},
		{"a volume, driver calls not observed",
			op.Op{Intended: 0, Started: 5, Ended: 110,
				Milestones: milestones("acked", 10, "provisioned", 90, "bound", 100, "ready", 100)},
			map[string]int64{Runner: 5, API: 5, ProvisionerOrDriver: 80, Binder: 10, EndDetection: 10}},
		{"a snapshot, driver calls not observed",
			op.Op{Ended: 100, Milestones: milestones("acked", 5, "content", 10, "taken", 95, "ready", 100)},
			map[string]int64{API: 5, Snapshotter: 5, SnapshotterOrDriver: 85 + 5}},
		{"a pod with an existing volume, node calls not observed",
			op.Op{Kind: op.Create, Ended: 100,
				Milestones: milestones("acked", 5, "scheduled", 10, "sandboxed", 70, "running", 90, "firstWrite", 100)},
			map[string]int64{API: 5, Scheduler: 5, KubeletOrDriver: 60, Kubelet: 20, Volume: 10}},
		{"a pod without volumes has no driver",
			op.Op{Kind: op.Create, Ended: 100, Milestones: milestones("acked", 5, "scheduled", 10, "running", 100)},
			map[string]int64{API: 5, Scheduler: 5, Kubelet: 90}},
		{"the same with a proxy: the sidecar's queue and the driver apart",
			op.Op{Started: 0, Ended: 100, Milestones: milestones("acked", 10, "CreateVolume.start", 60,
				"CreateVolume.end", 80, "provisioned", 90, "bound", 100)},
			map[string]int64{API: 10, Provisioner: 60, Driver: 20, Binder: 10}},
		{"the slower of two branches counts",
			op.Op{Started: 0, Ended: 200, Milestones: milestones("acked", 10, "scheduled", 20, "bound", 50,
				"provisioned", 45, "attached", 120, "initialized", 180, "firstWrite", 200)},
			map[string]int64{API: 10, ProvisionerOrDriver: 25, Scheduler: 10, Binder: 5,
				AttacherOrDriver: 70, WorkloadOrDriver: 60, Volume: 20}},
		{"a call that was tried twice",
			op.Op{Started: 0, Ended: 100, Milestones: milestones("acked", 10, "CreateSnapshot.start", 20, "CreateSnapshot.end", 40, "CreateSnapshot.start", 70, "CreateSnapshot.end", 80, "taken", 90, "ready", 100)},
			map[string]int64{API: 10, Snapshotter: 10 + 30 + 10 + 10, Driver: 20 + 10}},
		{"a snapshot that was not ready when it was taken: the driver is asked again",
			op.Op{Ended: 100, Milestones: milestones("acked", 10, "CreateSnapshot.start", 20, "CreateSnapshot.end", 40,
				"taken", 45, "CreateSnapshot.start", 70, "CreateSnapshot.end", 80, "ready", 100)},
			map[string]int64{API: 10, Snapshotter: 10 + 5, Driver: 20 + 55}},
		{"a deletion whose volume is detached when it is gone",
			op.Op{Kind: op.Delete, Ended: 100, Milestones: milestones("acked", 10, "podGone", 30, "detached", 100, "gone", 100)},
			map[string]int64{API: 10, WorkloadOrDriver: 20, AttacherOrDriver: 70}},
		{"the same, seen in the other order",
			op.Op{Kind: op.Delete, Ended: 100, Milestones: milestones("acked", 10, "podGone", 30, "gone", 100, "detached", 100)},
			map[string]int64{API: 10, WorkloadOrDriver: 20, AttacherOrDriver: 70}},
		{"a deletion whose volume is detached after its object is gone",
			op.Op{Kind: op.Delete, Ended: 100, Milestones: milestones("acked", 10, "podGone", 30, "gone", 40, "detached", 100)},
			map[string]int64{API: 10 + 10, WorkloadOrDriver: 20, AttacherOrDriver: 60}},
		{"a pod into which an init container copies the agent",
			op.Op{Kind: op.Create, Ended: 100, Milestones: milestones("acked", 5, "scheduled", 10, "sandboxed", 30,
				"delivered", 70, "initialized", 75, "running", 90, "ready", 100)},
			map[string]int64{API: 5, Scheduler: 5, Kubelet: 20 + 15, Harness: 40, Workload: 5, EndDetection: 10}},
		{"two volumes: the last one decides",
			op.Op{Started: 0, Ended: 100, Milestones: milestones("acked", 10, "provisioned/a", 20, "bound/a", 25,
				"provisioned/b", 80, "bound/b", 100, "bound", 100)},
			map[string]int64{API: 10, ProvisionerOrDriver: 70, Binder: 20}},
		{"a kill: its processes end, and are made again",
			op.Op{Kind: op.Kill, Ended: 100, Milestones: milestones("signalled", 10, "gone", 30, "agents", 40,
				"running", 70, "replaced", 75, "firstWrite", 95)},
			map[string]int64{API: 10, Workload: 20 + 10, Kubelet: 30 + 5, Volume: 20 + 5}},
		{"a hang: the pause is a component of its own",
			op.Op{Kind: op.Kill, Ended: 100, Milestones: milestones("signalled", 10, "resumed", 90, "firstWrite", 100)},
			map[string]int64{API: 10, Pause: 80, Volume: 10}},
		{"a reattachment: from the pod's end to the first write",
			op.Op{Kind: op.Reattach, Ended: 100, Milestones: milestones("acked", 5, "gone", 20, "detached", 30,
				"scheduled", 35, "attached", 60, "running", 80, "replaced", 80, "firstWrite", 100)},
			map[string]int64{API: 5, WorkloadOrDriver: 15, AttacherOrDriver: 10 + 25, Scheduler: 5, KubeletOrDriver: 20,
				Volume: 20}},
		{"the same with a proxy: the end of the pod, its unmounting, and the kubelet apart",
			op.Op{Kind: op.Reattach, Ended: 100, Milestones: milestones("acked", 5, "NodeUnpublishVolume.start", 12,
				"NodeUnpublishVolume.end", 18, "gone", 20, "NodeUnstageVolume.start", 21, "NodeUnstageVolume.end", 25,
				"ControllerUnpublishVolume.start", 26, "ControllerUnpublishVolume.end", 29, "detached", 30,
				"scheduled", 35, "attached", 60, "NodePublishVolume.start", 62, "NodePublishVolume.end", 70,
				"running", 80, "replaced", 80, "firstWrite", 100)},
			map[string]int64{API: 5, Workload: 7, Driver: 6 + 4 + 3 + 8, Kubelet: 2 + 1 + 2 + 10, Attacher: 1 + 1,
				AttacherOrDriver: 25, Scheduler: 5, Volume: 20}},
		{"the same with a proxy before the controllers alone",
			op.Op{Kind: op.Reattach, Ended: 30, Milestones: milestones("acked", 5, "gone", 20,
				"ControllerUnpublishVolume.start", 26, "ControllerUnpublishVolume.end", 29, "detached", 30)},
			map[string]int64{API: 5, WorkloadOrDriver: 15, AttacherOrDriver: 6, Driver: 3, Attacher: 1}},
		{"a workload is deleted, node calls not observed",
			op.Op{Kind: op.Delete, Ended: 100, Milestones: milestones("acked", 10, "podGone", 60, "claimGone", 70,
				"volumeGone", 90, "gone", 90)},
			map[string]int64{API: 10 + 10, WorkloadOrDriver: 50, Binder: 10, ProvisionerOrDriver: 20}},
		{"a workload without volumes is deleted",
			op.Op{Kind: op.Delete, Ended: 60, Milestones: milestones("acked", 10, "podGone", 60, "gone", 60)},
			map[string]int64{API: 10, Workload: 50}},
		{"a kill by deletion: its volumes are unmounted, and mounted again",
			op.Op{Kind: op.Kill, Ended: 100, Milestones: milestones("signalled", 10, "gone", 30, "scheduled", 35,
				"running", 70, "replaced", 70, "firstWrite", 100)},
			map[string]int64{API: 10, WorkloadOrDriver: 20, Scheduler: 5, KubeletOrDriver: 35, Volume: 30}},
		{"a pod with init containers, of which nothing was seen before",
			op.Op{Kind: op.Create, Ended: 100, Milestones: milestones("acked", 5, "scheduled", 10, "initialized", 70,
				"running", 90, "firstWrite", 100)},
			map[string]int64{API: 5, Scheduler: 5, WorkloadOrDriver: 60, Kubelet: 20, Volume: 10}},
		{"an earlier mount was observed",
			op.Op{Kind: op.Create, Ended: 100, Milestones: milestones("acked", 5, "scheduled", 10, "sandboxed", 30,
				"initialized", 70, "running", 90, "firstWrite", 100)},
			map[string]int64{API: 5, Scheduler: 5, KubeletOrDriver: 20, Workload: 40, Kubelet: 20, Volume: 10}},
		{"an object is deleted with the claims of its pods",
			op.Op{Kind: op.Delete, Ended: 100, Milestones: milestones("acked", 10, "claimGone", 50, "objectGone", 55,
				"volumeGone", 100, "gone", 100)},
			map[string]int64{API: 10, ControllersOrDriver: 40, ProvisionerOrDriver: 50}},
		{"a scale by a script: its pods come and go",
			op.Op{Kind: op.Scale, Ended: 100, Milestones: milestones("acked", 10, "scripted", 30, "objectReady", 95,
				"ready", 95)},
			map[string]int64{API: 10, Workload: 20, Controllers: 65, EndDetection: 5}},
		{"an object is deleted with what depends on it",
			op.Op{Kind: op.Delete, Ended: 100, Milestones: milestones("acked", 10, "objectGone", 100, "gone", 100)},
			map[string]int64{API: 10, Controllers: 90}},
		{"a volume is formatted",
			op.Op{Ended: 100, Milestones: milestones("NodeStageVolume.start", 5, "mkfs.start", 10, "mkfs.end", 80,
				"NodeStageVolume.end", 90, "staged", 90, "NodePublishVolume.start", 95, "NodePublishVolume.end", 100)},
			map[string]int64{Kubelet: 5 + 5, Driver: 5 + 10 + 5, Formatting: 70}},
		{"a file system is frozen from the begin of the call, and a call before had mkfs",
			op.Op{Ended: 100, Milestones: milestones("acked", 10, "CreateSnapshot.start", 20, "freeze.start", 20,
				"freeze.end", 80, "CreateSnapshot.end", 90, "taken", 90, "ready", 100)},
			map[string]int64{API: 10, Snapshotter: 10 + 10, Frozen: 60, Driver: 10}},
		{"a resize of a driver that has nothing to do at the node", op.Op{Kind: op.Resize, Ended: 100,
			Milestones: milestones("ControllerExpandVolume.start", 1, "ControllerExpandVolume.end", 91, "controller", 91,
				"ready", 95)},
			map[string]int64{Resizer: 1, Driver: 90, EndDetection: 9}},
		{"a resize of a volume that no pod mounts", op.Op{Kind: op.Resize, Ended: 95,
			Milestones: milestones("acked", 5, "controller", 90, "nodePending", 95, "ready", 95)},
			map[string]int64{API: 5, ResizerOrDriver: 90}},
		{"a modification", op.Op{Kind: op.Modify, Ended: 90,
			Milestones: milestones("acked", 5, "ControllerModifyVolume.start", 10, "ControllerModifyVolume.end", 80,
				"modified", 90, "ready", 90)},
			map[string]int64{API: 5, Resizer: 5 + 10, Driver: 70}},
		{"a snapshot that is ready later than taken, polled on one machine", op.Op{Kind: op.Snapshot, Ended: 101,
			Milestones: append(milestones("CreateSnapshot.start", 1, "CreateSnapshot.end", 11, "taken", 11),
				op.Milestone{Name: op.Ready, At: 100, Err: 5, Source: "csi"})},
			map[string]int64{Snapshotter: 1, Driver: 10 + 89, EndDetection: 1}},
		{"a call that is repeated after a wait", op.Op{Kind: op.Clone, Ended: 100,
			Milestones: milestones("CreateVolume.start", 1, "CreateVolume.end", 11, "backoff.start", 12, "backoff.end", 62,
				"CreateVolume.start", 63, "CreateVolume.end", 93, "provisioned", 93, "ready", 93)},
			map[string]int64{Provisioner: 1 + 1, Driver: 10 + 30, Engine: 1, Backoff: 50, EndDetection: 7}},
		{"nothing was seen", op.Op{Started: 10, Intended: 10, Ended: 60}, map[string]int64{Unknown: 50}},
		{"a milestone that this version does not know", op.Op{Ended: 60, Milestones: milestones("later", 50)},
			map[string]int64{Unknown: 60}},
	}
	for _, tt := range tests {
		got := componentsOf(&tt.op)
		for k, v := range got {
			if v == 0 {
				delete(got, k)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
		var sum int64
		for _, v := range got {
			sum += v
		}
		if sum != int64(tt.op.Ended-tt.op.Intended) {
			t.Errorf("%s: the parts add up to %d of %d", tt.name, sum, tt.op.Ended-tt.op.Intended)
		}
	}
}

func TestShares(t *testing.T) {
	var tally Tally
	tally.Add(&op.Op{Outcome: op.OK, Ended: 100, Milestones: milestones("acked", 20, "provisioned", 100)})
	tally.Add(&op.Op{Outcome: op.OK, Ended: 100, Milestones: milestones("acked", 40, "provisioned", 100)})
	tally.Add(&op.Op{Outcome: op.Error, Ended: 1000, Milestones: milestones("acked", 1000)})
	want := []Share{{ProvisionerOrDriver, 0.7, 70}, {API, 0.3, 30}}
	if diff := cmp.Diff(want, tally.Shares()); diff != "" {
		t.Error(diff)
	}
}

// On one machine the engine makes the calls itself: nothing is unseen of its driver.
func TestSharesOnOneMachine(t *testing.T) {
	tally := Tally{OneMachine: true}
	tally.Add(&op.Op{Kind: op.Reattach, Outcome: op.OK, Ended: 100,
		Milestones: milestones("gone", 40, "replaced", 70, "firstWrite", 100)})
	want := []Share{{Workload, 0.4, 40}, {Processes, 0.3, 30}, {Volume, 0.3, 30}}
	if diff := cmp.Diff(want, tally.Shares()); diff != "" {
		t.Error(diff)
	}
	for known, or := range orDriver {
		if !DriverUnseen(or) || DriverUnseen(known) {
			t.Errorf("%s and %s have the same component", known, or)
		}
	}
}

// componentsOf is the time from an op's intended instant to its end by component, in ns.
func componentsOf(o *op.Op) map[string]int64 {
	path := map[string]int64{}
	for _, i := range Intervals(o) {
		path[i.Component] += i.Ns()
	}
	return path
}

// TestReadyFollowsAll checks that the time before the last milestone of an op is never that of noticing its end.
func TestReadyFollowsAll(t *testing.T) {
	before := map[string]bool{"objectGone": true, "podGone": true, "claimGone": true, "volumeGone": true,
		"contentGone": true, op.Gone: true, op.Detached: true, op.Unpublished: true, op.Unstaged: true, op.Cordoned: true,
		op.Evicted: true, op.Signalled: true, op.Resumed: true, op.Acked: true, op.Scheduled: true, op.Attached: true,
		op.Staged: true, op.Sandboxed: true, op.Delivered: true, op.Initialized: true, "agents": true, "scripted": true, op.Checked: true,
		op.Replaced: true, "podReady": true} // of ops without op.Ready, or with a later milestone before it
	for name := range steps {
		if before[name] || name == op.Ready {
			continue
		}
		o := op.Op{Ended: 100, Milestones: milestones(name, 90, op.Ready, 100)}
		if got := componentsOf(&o)[EndDetection]; got > 10 {
			t.Errorf("%s: %d of 100 for noticing the end", name, got)
		}
	}
}

// TestOneInstant: milestones that precede each other, and are at one instant, do not end in a circle.
func TestOneInstant(t *testing.T) {
	o := &op.Op{Kind: op.Delete, Outcome: op.OK, Ended: 30, Milestones: []op.Milestone{{Name: op.Detached, At: 20},
		{Name: op.Gone, At: 20}}}
	sum := int64(0)
	for _, x := range Intervals(o) {
		sum += x.Ns()
	}
	if sum != 30 {
		t.Errorf("the path covers %d ns of 30", sum)
	}
}
