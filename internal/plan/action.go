package plan

import (
	"reflect"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// descriptor describes a kind of action, apart from its execution by an engine. A new
// kind needs a descriptor and an entry in actions.
type descriptor struct {
	kind  op.Kind
	field string // JSON name of the field in v1alpha1.Action, such as snapshotSpec
	// resolve resolves the field to the Action and reports problems.
	resolve func(*loader, *info)
	// makes returns the kind of object that the ops create; nil: none.
	makes func(*v1alpha1.Action) engine.ObjectKind
	// milestones are the possible milestones of the ops, in addition to CSI calls.
	milestones []string
	// plural is the name of the ops in a budget. each returns the effect of one trigger
	// with a number of targets; nil: one op for each target.
	plural string
	each   func(n *info, targets int64) trigger
	// rights adds the rights that the runner needs on a cluster; nil: only the rights
	// for the objects that the ops create.
	rights func(*demands, *Action)
	// request completes the request of an op to the engine; nil: the request needs only
	// the target. turn counts the ops of the action on this target, from 0.
	request func(a *Action, q *engine.Request, turn func() int64)
	// fits reports whether the action can execute a trace record whose operation has
	// the name of the kind; nil: it can execute all of them.
	fits func(*info, *trace.Record) bool
}

// actions has a descriptor for each kind, in the order of the documentation.
var actions = []*descriptor{
	&createAction, &snapshotAction, &restoreAction, &cloneAction, &resizeAction, &reattachAction,
	&rolloutAction, &drainAction, &scaleAction, &killAction, &modifyAction, &deleteAction,
}

// describe returns the descriptor of a kind, or nil if there is none.
func describe(kind op.Kind) *descriptor {
	for _, d := range actions {
		if d.kind == kind {
			return d
		}
	}
	return nil
}

// descriptorOf returns the descriptor of the field that an action sets, or nil if it
// sets none. The schema check reports that case.
func descriptorOf(a *v1alpha1.Action) *descriptor {
	fields := reflect.ValueOf(a).Elem()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		for _, d := range actions {
			if d.field == name && !fields.Field(i).IsNil() {
				return d
			}
		}
	}
	return nil
}

// made returns the kind of object that the ops of an action create; empty: none.
func (n *info) made() engine.ObjectKind {
	if n.does == nil || n.does.makes == nil {
		return ""
	}
	return n.does.makes(n.spec)
}

// Makes returns the kind of object that the ops of the action create; empty: none.
func (a *Action) Makes() engine.ObjectKind {
	switch {
	case a.Workload != nil:
		return engine.WorkloadObject
	case a.Manifest != nil:
		return engine.ManifestObject
	case a.Volume != nil:
		return engine.VolumeObject
	case a.Snapshot != nil && a.Snapshot.Group:
		return engine.GroupSnapshotObject
	case a.Snapshot != nil:
		return engine.SnapshotObject
	}
	return ""
}

// Complete completes the request q of an op on q.Target. turn returns the number of
// earlier ops of the action on this target; it is called at most once.
func (a *Action) Complete(q *engine.Request, turn func() int64) {
	if d := describe(a.Kind); d != nil && d.request != nil {
		d.request(a, q, turn)
	}
}

// Way returns the direction in which a rate that counts objects must change to
// trigger the action.
func (a *Action) Way() schedule.Way {
	switch a.Kind.Effect() {
	case op.Makes:
		return schedule.Up
	case op.Removes:
		return schedule.Down
	}
	return schedule.NoWay
}

// volumeMilestones are the milestones of a volume until it is in use.
var volumeMilestones = []string{op.Acked, op.Provisioned, op.Bound, op.Attached, op.Staged, op.Published,
	op.FirstWrite, op.FirstRead, op.Ready}

// podMilestones are the milestones of pods that are recreated, and of their volumes.
var podMilestones = append([]string{op.Scheduled, op.Replaced, op.Initialized, op.Running}, volumeMilestones...)

// rpcs are the CSI calls whose start and end are milestones of any op.
var rpcs = []string{
	"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume",
	"CreateSnapshot", "DeleteSnapshot", "ControllerExpandVolume", "ControllerModifyVolume",
	"CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot", "GetVolumeGroupSnapshot", "ListSnapshots", "GetSnapshot",
	"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeExpandVolume",
}

// metrics returns the names of the milestones that the ops may have.
func (d *descriptor) metrics() []string {
	metrics := slices.Clone(d.milestones)
	for _, rpc := range rpcs {
		metrics = append(metrics, rpc+".start", rpc+".end")
	}
	return metrics
}
