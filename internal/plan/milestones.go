package plan

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/op"
)

// volumeMilestones are the milestones of a volume until it is in use.
var volumeMilestones = []string{op.Acked, op.Provisioned, op.Bound, op.Attached, op.Staged, op.Published,
	op.FirstWrite, op.FirstRead, op.Ready}

// podMilestones are the milestones of pods that are recreated, and of their volumes.
var podMilestones = append([]string{op.Scheduled, op.Replaced, op.Delivered, op.Initialized, op.Running}, volumeMilestones...)

// rpcs are the CSI calls whose start and end are milestones of any op.
var rpcs = []string{
	"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume",
	"CreateSnapshot", "DeleteSnapshot", "ControllerExpandVolume", "ControllerModifyVolume",
	"CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot", "GetVolumeGroupSnapshot", "ListSnapshots", "GetSnapshot",
	"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeExpandVolume",
	op.Backoff,
}

// withCalls returns milestones with those of all CSI calls.
func withCalls(milestones []string) []string {
	all := slices.Clone(milestones)
	for _, rpc := range rpcs {
		all = append(all, rpc+".start", rpc+".end")
	}
	return all
}
