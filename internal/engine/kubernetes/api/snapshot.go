package api

import (
	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
)

// VolumeSnapshot and the others are types of the external snapshotter. They decode all served versions as far as the
// engine reads them, and must not be used for updates, which would drop fields of other versions: patch instead.
type (
	VolumeSnapshot            = snapshotv1.VolumeSnapshot
	VolumeSnapshotSpec        = snapshotv1.VolumeSnapshotSpec
	VolumeSnapshotSource      = snapshotv1.VolumeSnapshotSource
	SnapshotStatus            = snapshotv1.VolumeSnapshotStatus
	SnapshotError             = snapshotv1.VolumeSnapshotError
	VolumeSnapshotContent     = snapshotv1.VolumeSnapshotContent
	VolumeSnapshotContentSpec = snapshotv1.VolumeSnapshotContentSpec
	SnapshotContentSource     = snapshotv1.VolumeSnapshotContentSource
	SnapshotContentStatus     = snapshotv1.VolumeSnapshotContentStatus
	VolumeSnapshotClass       = snapshotv1.VolumeSnapshotClass // decodes a VolumeGroupSnapshotClass too
	VolumeGroupSnapshot       = groupsnapshotv1.VolumeGroupSnapshot
	VolumeGroupSnapshotSpec   = groupsnapshotv1.VolumeGroupSnapshotSpec
	VolumeGroupSnapshotSource = groupsnapshotv1.VolumeGroupSnapshotSource
	GroupSnapshotStatus       = groupsnapshotv1.VolumeGroupSnapshotStatus
)
