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

// descriptor is all that the program knows of one kind of action, apart from how
// an engine carries it out. A new kind is a descriptor and a line in actions.
type descriptor struct {
	kind  op.Kind
	field string // of an action of a Benchmark, such as snapshotSpec
	// resolve turns the field into the Action, and reports what is wrong with it.
	resolve func(*loader, *info)
	// makes is the kind of object that the ops make; nil: none.
	makes func(*v1alpha1.Action) engine.ObjectKind
	// milestones that the ops may have, beside those of CSI calls.
	milestones []string
	// plural names the ops in a budget. each is what one trigger with so many
	// targets does; nil: one op for each target.
	plural string
	each   func(n *info, targets int64) trigger
	// rights are what the runner needs for it on a cluster; nil: no more than for
	// the objects that it makes.
	rights func(*demands, *Action)
	// request completes what an op on a target asks of the engine; nil: the target
	// is all. turn counts the ops of the action on this target, from 0.
	request func(a *Action, q *engine.Request, turn func() int64)
	// fits says whether the action can carry out a record of a trace whose operation
	// has the name of the kind; nil: any.
	fits func(*info, *trace.Record) bool
}

// actions has a descriptor for each kind, in the order in which they are
// documented.
var actions = []*descriptor{
	&createAction, &snapshotAction, &restoreAction, &cloneAction, &resizeAction, &reattachAction,
	&rolloutAction, &drainAction, &scaleAction, &killAction, &modifyAction, &deleteAction,
}

// describe returns the descriptor of a kind; nil: there is none.
func describe(kind op.Kind) *descriptor {
	for _, d := range actions {
		if d.kind == kind {
			return d
		}
	}
	return nil
}

// descriptorOf returns the descriptor of the field that an action sets; nil: it
// sets none, which the schema has reported.
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

// made is the kind of object that the ops of an action make; empty: none.
func (n *info) made() engine.ObjectKind {
	if n.does == nil || n.does.makes == nil {
		return ""
	}
	return n.does.makes(n.spec)
}

// Makes is the kind of object that the ops of the action make; empty: none.
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

// Complete fills in what an op on q.Target asks of the engine. turn counts the
// ops of the action on this target, from 0; it is called at most once.
func (a *Action) Complete(q *engine.Request, turn func() int64) {
	if d := describe(a.Kind); d != nil && d.request != nil {
		d.request(a, q, turn)
	}
}

// Way is the direction in which a rate that counts objects must go to trigger
// the action.
func (a *Action) Way() schedule.Way {
	switch a.Kind.Effect() {
	case op.Makes:
		return schedule.Up
	case op.Removes:
		return schedule.Down
	}
	return schedule.NoWay
}

// volumeMilestones are those of a volume that comes into use.
var volumeMilestones = []string{op.Acked, op.Provisioned, op.Bound, op.Attached, op.Staged, op.Published,
	op.FirstWrite, op.FirstRead, op.Ready}

// podMilestones are those of pods that are made again, with their volumes.
var podMilestones = append([]string{op.Scheduled, op.Replaced, op.Initialized, op.Running}, volumeMilestones...)

// rpcs are the CSI calls whose start and end are milestones of any op.
var rpcs = []string{
	"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume",
	"CreateSnapshot", "DeleteSnapshot", "ControllerExpandVolume", "ControllerModifyVolume",
	"CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot", "GetVolumeGroupSnapshot", "ListSnapshots", "GetSnapshot",
	"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeExpandVolume",
}

// metrics are the names of the milestones that ops may have.
func (d *descriptor) metrics() []string {
	metrics := slices.Clone(d.milestones)
	for _, rpc := range rpcs {
		metrics = append(metrics, rpc+".start", rpc+".end")
	}
	return metrics
}
