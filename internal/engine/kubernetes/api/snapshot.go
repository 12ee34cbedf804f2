package api

import (
	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
)

// The types below are the external snapshotter's. They decode all served versions as far as the engine reads them, and
// must not be used for updates, which would drop fields of other versions: patch instead.

type (
	// VolumeSnapshot is a snapshot of a claim.
	VolumeSnapshot = snapshotv1.VolumeSnapshot
	// VolumeSnapshotSpec is the desired snapshot.
	VolumeSnapshotSpec = snapshotv1.VolumeSnapshotSpec
	// VolumeSnapshotSource has one field set.
	VolumeSnapshotSource = snapshotv1.VolumeSnapshotSource
	// SnapshotStatus is the state of a snapshot.
	SnapshotStatus = snapshotv1.VolumeSnapshotStatus
	// SnapshotError is the last failure. A success clears it.
	SnapshotError = snapshotv1.VolumeSnapshotError
	// VolumeSnapshotContent is the snapshot on the storage, as a PersistentVolume is a volume.
	VolumeSnapshotContent = snapshotv1.VolumeSnapshotContent
	// VolumeSnapshotContentSpec binds a content to its snapshot and its driver.
	VolumeSnapshotContentSpec = snapshotv1.VolumeSnapshotContentSpec
	// SnapshotContentSource has one field set.
	SnapshotContentSource = snapshotv1.VolumeSnapshotContentSource
	// SnapshotContentStatus is the state that the driver reported.
	SnapshotContentStatus = snapshotv1.VolumeSnapshotContentStatus
	// VolumeSnapshotClass also decodes a VolumeGroupSnapshotClass.
	VolumeSnapshotClass = snapshotv1.VolumeSnapshotClass
	// VolumeGroupSnapshot is a set of snapshots of several claims at one instant.
	VolumeGroupSnapshot = groupsnapshotv1.VolumeGroupSnapshot
	// VolumeGroupSnapshotSpec is the desired group snapshot.
	VolumeGroupSnapshotSpec = groupsnapshotv1.VolumeGroupSnapshotSpec
	// VolumeGroupSnapshotSource has one field set.
	VolumeGroupSnapshotSource = groupsnapshotv1.VolumeGroupSnapshotSource
	// GroupSnapshotStatus is the state of a group snapshot.
	GroupSnapshotStatus = groupsnapshotv1.VolumeGroupSnapshotStatus
)
