package api

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types below have the fields of the external snapshotter's types that the engine uses, for all served
// versions. They must not be used for updates, which would drop other fields: patch instead.

// VolumeSnapshot is a snapshot of a claim.
type VolumeSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VolumeSnapshotSpec `json:"spec"`
	Status            *SnapshotStatus    `json:"status,omitempty"`
}

// VolumeSnapshotSpec is the desired snapshot.
type VolumeSnapshotSpec struct {
	Source                  VolumeSnapshotSource `json:"source"`
	VolumeSnapshotClassName *string              `json:"volumeSnapshotClassName,omitempty"`
}

// VolumeSnapshotSource has one field set.
type VolumeSnapshotSource struct {
	PersistentVolumeClaimName *string `json:"persistentVolumeClaimName,omitempty"`
	VolumeSnapshotContentName *string `json:"volumeSnapshotContentName,omitempty"`
}

// SnapshotStatus is the state of a snapshot.
type SnapshotStatus struct {
	BoundVolumeSnapshotContentName *string            `json:"boundVolumeSnapshotContentName,omitempty"`
	CreationTime                   *metav1.Time       `json:"creationTime,omitempty"` // whole seconds, driver's clock
	ReadyToUse                     *bool              `json:"readyToUse,omitempty"`
	RestoreSize                    *resource.Quantity `json:"restoreSize,omitempty"`
	Error                          *SnapshotError     `json:"error,omitempty"`
	VolumeGroupSnapshotName        *string            `json:"volumeGroupSnapshotName,omitempty"`
}

// SnapshotError is the last failure. A success clears it.
type SnapshotError struct {
	Time    *metav1.Time `json:"time,omitempty"`
	Message *string      `json:"message,omitempty"`
}

// VolumeSnapshotContent is the snapshot on the storage, as a PersistentVolume is a volume.
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

// SnapshotContentSource has one field set.
type SnapshotContentSource struct {
	VolumeHandle   *string `json:"volumeHandle,omitempty"`
	SnapshotHandle *string `json:"snapshotHandle,omitempty"`
}

// ObjectRef refers to an object, like corev1.ObjectReference.
type ObjectRef struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	UID        string `json:"uid,omitempty"`
}

// SnapshotContentStatus is the state that the driver reported.
type SnapshotContentStatus struct {
	SnapshotHandle            *string        `json:"snapshotHandle,omitempty"`
	CreationTime              *int64         `json:"creationTime,omitempty"` // Unix time in ns, by the driver's clock
	RestoreSize               *int64         `json:"restoreSize,omitempty"`
	ReadyToUse                *bool          `json:"readyToUse,omitempty"`
	Error                     *SnapshotError `json:"error,omitempty"`
	VolumeGroupSnapshotHandle *string        `json:"volumeGroupSnapshotHandle,omitempty"`
}

// VolumeSnapshotClass also decodes a VolumeGroupSnapshotClass.
type VolumeSnapshotClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Driver            string            `json:"driver"`
	Parameters        map[string]string `json:"parameters,omitempty"`
	DeletionPolicy    string            `json:"deletionPolicy"`
}

// VolumeGroupSnapshot is a set of snapshots of several claims at one instant.
type VolumeGroupSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VolumeGroupSnapshotSpec `json:"spec"`
	Status            *GroupSnapshotStatus    `json:"status,omitempty"`
}

// VolumeGroupSnapshotSpec is the desired group snapshot.
type VolumeGroupSnapshotSpec struct {
	Source                       VolumeGroupSnapshotSource `json:"source"`
	VolumeGroupSnapshotClassName *string                   `json:"volumeGroupSnapshotClassName,omitempty"`
}

// VolumeGroupSnapshotSource has one field set.
type VolumeGroupSnapshotSource struct {
	Selector                       *metav1.LabelSelector `json:"selector,omitempty"`
	VolumeGroupSnapshotContentName *string               `json:"volumeGroupSnapshotContentName,omitempty"`
}

// GroupSnapshotStatus is the state of a group snapshot.
type GroupSnapshotStatus struct {
	BoundVolumeGroupSnapshotContentName *string        `json:"boundVolumeGroupSnapshotContentName,omitempty"`
	CreationTime                        *metav1.Time   `json:"creationTime,omitempty"`
	ReadyToUse                          *bool          `json:"readyToUse,omitempty"`
	Error                               *SnapshotError `json:"error,omitempty"`
}
