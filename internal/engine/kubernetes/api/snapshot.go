package api

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types below are the parts of the external snapshotter's that we use,
// one for all versions in which the cluster may serve them: what is not here is
// not decoded. They are for creating and reading, not for updating: an update
// would drop what they lack (patch instead).

// VolumeSnapshot asks for, and describes, a snapshot of one claim.
type VolumeSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VolumeSnapshotSpec `json:"spec"`
	Status            *SnapshotStatus    `json:"status,omitempty"`
}

// VolumeSnapshotSpec says what is snapshotted, and how.
type VolumeSnapshotSpec struct {
	Source                  VolumeSnapshotSource `json:"source"`
	VolumeSnapshotClassName *string              `json:"volumeSnapshotClassName,omitempty"`
}

// VolumeSnapshotSource has exactly one field set.
type VolumeSnapshotSource struct {
	PersistentVolumeClaimName *string `json:"persistentVolumeClaimName,omitempty"`
	VolumeSnapshotContentName *string `json:"volumeSnapshotContentName,omitempty"`
}

// SnapshotStatus is how far the snapshotter has got.
type SnapshotStatus struct {
	BoundVolumeSnapshotContentName *string            `json:"boundVolumeSnapshotContentName,omitempty"`
	CreationTime                   *metav1.Time       `json:"creationTime,omitempty"` // whole seconds, of the driver's clock
	ReadyToUse                     *bool              `json:"readyToUse,omitempty"`
	RestoreSize                    *resource.Quantity `json:"restoreSize,omitempty"`
	Error                          *SnapshotError     `json:"error,omitempty"`
	VolumeGroupSnapshotName        *string            `json:"volumeGroupSnapshotName,omitempty"`
}

// SnapshotError is the last failure, cleared by a success.
type SnapshotError struct {
	Time    *metav1.Time `json:"time,omitempty"`
	Message *string      `json:"message,omitempty"`
}

// VolumeSnapshotContent is the snapshot on the storage, as a PersistentVolume
// is the volume.
type VolumeSnapshotContent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VolumeSnapshotContentSpec `json:"spec"`
	Status            *SnapshotContentStatus    `json:"status,omitempty"`
}

// VolumeSnapshotContentSpec binds a content to its snapshot and its driver.
type VolumeSnapshotContentSpec struct {
	VolumeSnapshotRef       ObjectRef             `json:"volumeSnapshotRef"`
	DeletionPolicy          string                `json:"deletionPolicy"` // "Delete" or "Retain"
	Driver                  string                `json:"driver"`
	VolumeSnapshotClassName *string               `json:"volumeSnapshotClassName,omitempty"`
	Source                  SnapshotContentSource `json:"source"`
	SourceVolumeMode        *string               `json:"sourceVolumeMode,omitempty"`
}

// SnapshotContentSource has exactly one field set.
type SnapshotContentSource struct {
	VolumeHandle   *string `json:"volumeHandle,omitempty"`
	SnapshotHandle *string `json:"snapshotHandle,omitempty"`
}

// ObjectRef names an object, as corev1.ObjectReference does.
type ObjectRef struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	UID        string `json:"uid,omitempty"`
}

// SnapshotContentStatus is what the driver said.
type SnapshotContentStatus struct {
	SnapshotHandle            *string        `json:"snapshotHandle,omitempty"`
	CreationTime              *int64         `json:"creationTime,omitempty"` // ns since 1970, of the driver's clock
	RestoreSize               *int64         `json:"restoreSize,omitempty"`
	ReadyToUse                *bool          `json:"readyToUse,omitempty"`
	Error                     *SnapshotError `json:"error,omitempty"`
	VolumeGroupSnapshotHandle *string        `json:"volumeGroupSnapshotHandle,omitempty"`
}

// VolumeSnapshotClass is also the shape of a VolumeGroupSnapshotClass.
type VolumeSnapshotClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Driver            string            `json:"driver"`
	Parameters        map[string]string `json:"parameters,omitempty"`
	DeletionPolicy    string            `json:"deletionPolicy"`
}

// VolumeGroupSnapshot asks for, and describes, snapshots of several claims at
// one instant.
type VolumeGroupSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VolumeGroupSnapshotSpec `json:"spec"`
	Status            *GroupSnapshotStatus    `json:"status,omitempty"`
}

// VolumeGroupSnapshotSpec says what is snapshotted, and how.
type VolumeGroupSnapshotSpec struct {
	Source                       VolumeGroupSnapshotSource `json:"source"`
	VolumeGroupSnapshotClassName *string                   `json:"volumeGroupSnapshotClassName,omitempty"`
}

// VolumeGroupSnapshotSource has exactly one field set.
type VolumeGroupSnapshotSource struct {
	Selector                       *metav1.LabelSelector `json:"selector,omitempty"`
	VolumeGroupSnapshotContentName *string               `json:"volumeGroupSnapshotContentName,omitempty"`
}

// GroupSnapshotStatus is how far the snapshotter has got.
type GroupSnapshotStatus struct {
	BoundVolumeGroupSnapshotContentName *string        `json:"boundVolumeGroupSnapshotContentName,omitempty"`
	CreationTime                        *metav1.Time   `json:"creationTime,omitempty"`
	ReadyToUse                          *bool          `json:"readyToUse,omitempty"`
	Error                               *SnapshotError `json:"error,omitempty"`
}
