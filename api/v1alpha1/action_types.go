package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// Action is what is done, once or at a rate.
//
// +kubebuilder:validation:ExactlyOneOf=createObjSpec;snapshotSpec;restoreSpec;cloneSpec;resizeSpec;reattachSpec;rolloutSpec;drainSpec;scaleSpec;killSpec;modifySpec;deleteSpec
// +kubebuilder:validation:AtMostOneOf=rateName;startAfter;startAfterAction
type Action struct {
	// name of the action; objects it makes carry it.
	// +required
	Name ActionName `json:"name"`
	// rateName is the rate that triggers the action. Without it the action is
	// done once: creation of workloads and volumes at the start of the run, all
	// at once; everything else when the barrier opens, one after another.
	// +optional
	RateName Name `json:"rateName,omitempty"`
	// startAfter does the action once, this long after the barrier opened.
	// +optional
	StartAfter *Duration `json:"startAfter,omitempty"`
	// startAfterAction does the action once, when the first operation of that
	// action has ended.
	// +optional
	StartAfterAction ActionName `json:"startAfterAction,omitempty"`
	// timeout is the deadline of each operation.
	// +optional
	// +kubebuilder:default="10m"
	Timeout *Duration `json:"timeout,omitempty"`
	// then are actions that follow each operation of this one, in this order,
	// as one episode.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Then []ActionName `json:"then,omitempty"`
	// outputs say where results of the action are sent.
	// +optional
	Outputs *ActionOutputs `json:"outputs,omitempty"`

	// createObjSpec makes workloads, volumes or any objects.
	// +optional
	CreateObjSpec *CreateObjSpec `json:"createObjSpec,omitempty"`
	// snapshotSpec takes snapshots of volumes.
	// +optional
	SnapshotSpec *SnapshotSpec `json:"snapshotSpec,omitempty"`
	// restoreSpec makes volumes from snapshots.
	// +optional
	RestoreSpec *RestoreSpec `json:"restoreSpec,omitempty"`
	// cloneSpec makes volumes from volumes.
	// +optional
	CloneSpec *CloneSpec `json:"cloneSpec,omitempty"`
	// resizeSpec grows volumes.
	// +optional
	ResizeSpec *ResizeSpec `json:"resizeSpec,omitempty"`
	// reattachSpec detaches and attaches volumes.
	// +optional
	ReattachSpec *ReattachSpec `json:"reattachSpec,omitempty"`
	// rolloutSpec restarts workloads one after another.
	// +optional
	RolloutSpec *RolloutSpec `json:"rolloutSpec,omitempty"`
	// drainSpec drains a node.
	// +optional
	DrainSpec *DrainSpec `json:"drainSpec,omitempty"`
	// scaleSpec changes the number of replicas.
	// +optional
	ScaleSpec *ScaleSpec `json:"scaleSpec,omitempty"`
	// killSpec kills workloads.
	// +optional
	KillSpec *KillSpec `json:"killSpec,omitempty"`
	// modifySpec changes the mutable parameters of volumes.
	// +optional
	ModifySpec *ModifySpec `json:"modifySpec,omitempty"`
	// deleteSpec removes objects.
	// +optional
	DeleteSpec *DeleteSpec `json:"deleteSpec,omitempty"`
}

// ActionOutputs says where the results of an action are sent.
type ActionOutputs struct {
	// outputName is one of spec.outputs.
	// +required
	OutputName Name `json:"outputName"`
}

// CreateObjSpec makes workloads, volumes or any objects.
//
// +kubebuilder:validation:ExactlyOneOf=workload;volume;manifest
// +kubebuilder:validation:XValidation:rule="!has(self.vars) || has(self.workload) || has(self.manifest)",message="vars are for a workload or a manifest"
// +kubebuilder:validation:XValidation:rule="!has(self.varsList) && !has(self.matrix) || has(self.workload)",message="varsList and matrix are for a workload"
// +kubebuilder:validation:XValidation:rule="!has(self.syncGroup) || has(self.workload)",message="syncGroup is for a workload"
// +kubebuilder:validation:XValidation:rule="has(self.objectSpec) == (has(self.workload) && self.workload == 'object')",message="objectSpec and workload: object belong together"
// +kubebuilder:validation:XValidation:rule="!has(self.canary) || has(self.workload)",message="canary is for a workload"
// +kubebuilder:validation:XValidation:rule="!has(self.phases) || has(self.workload)",message="phases are for a workload"
type CreateObjSpec struct {
	// workload is the name of a library entry.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Workload string `json:"workload,omitempty"`
	// objectSpec is what workload: object does.
	// +optional
	ObjectSpec *ObjectSpec `json:"objectSpec,omitempty"`
	// volume is made without a workload.
	// +optional
	Volume *VolumeSpec `json:"volume,omitempty"`
	// manifest is any object.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Manifest *runtime.RawExtension `json:"manifest,omitempty"`

	// count is how many one trigger makes; with varsList or matrix, of each kind.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=1
	Count int32 `json:"count,omitempty"`
	// vars are values for the variables of the template.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Vars map[string]Var `json:"vars,omitempty"`
	// varsList has sets of values beside vars: count instances are made with each
	// set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	VarsList []map[string]Var `json:"varsList,omitempty"`
	// matrix has lists of values beside vars: count instances are made with every
	// combination, of each set in varsList if there are any.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Matrix map[string][]Var `json:"matrix,omitempty"`
	// syncGroup names the barrier at which the workload waits for the others
	// of the group. Workloads without one share one barrier.
	// +optional
	SyncGroup Name `json:"syncGroup,omitempty"`
	// labels are added to what is made.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
	// canary puts a small I/O of our own beside each instance of the workload.
	// +optional
	Canary *Canary `json:"canary,omitempty"`
	// phases change variables of the workload in the course of the run. Before
	// the first one the values of vars hold; each runs as a container of its own
	// on the same volumes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Phases []Phase `json:"phases,omitempty"`
}

// Phase gives variables other values from some time on.
type Phase struct {
	// startAfter is when the phase begins, counted from the barrier, and the one
	// before it is ended.
	// +required
	StartAfter Duration `json:"startAfter"`
	// vars are the values from then on, also in later phases that do not give
	// others.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Vars map[string]Var `json:"vars"`
}

// Canary is a small direct I/O on each volume of a workload, at a fixed
// schedule, so that stalls are seen that the workload itself may hide.
//
// +kubebuilder:validation:XValidation:rule="self.read || self.write",message="a canary reads, writes, or both"
type Canary struct {
	// interval between two I/Os of a kind.
	// +optional
	// +kubebuilder:default="100ms"
	Interval *Duration `json:"interval,omitempty"`
	// size of an I/O; a multiple of 4Ki.
	// +optional
	// +kubebuilder:default="4Ki"
	Size *resource.Quantity `json:"size,omitempty"`
	// read says that it reads.
	// +optional
	// +kubebuilder:default=true
	Read *bool `json:"read,omitempty"`
	// write says that it writes (into a file of its own without a name).
	// +optional
	// +kubebuilder:default=true
	Write *bool `json:"write,omitempty"`
}

// VolumeSpec is a volume made without a workload. It is provisioned
// dynamically unless another source is given.
//
// +kubebuilder:validation:AtMostOneOf=staticSpec;genericEphemeralSpec
type VolumeSpec struct {
	// size that is requested.
	// +optional
	// +kubebuilder:default="1Gi"
	Size *resource.Quantity `json:"size,omitempty"`
	// storageClass that provisions it; without it, the platform's default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClass string `json:"storageClass,omitempty"`
	// accessModes of the volume.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:default={"ReadWriteOnce"}
	AccessModes []AccessMode `json:"accessModes,omitempty"`
	// volumeMode is Filesystem or Block.
	// +optional
	// +kubebuilder:validation:Enum=Filesystem;Block
	// +kubebuilder:default=Filesystem
	VolumeMode string `json:"volumeMode,omitempty"`
	// volumeAttributesClass of the volume at first.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	VolumeAttributesClass string `json:"volumeAttributesClass,omitempty"`
	// attach also attaches, stages and publishes it, and makes a first write.
	// +optional
	Attach bool `json:"attach,omitempty"`
	// staticSpec takes a volume that exists already.
	// +optional
	StaticSpec *StaticVolumeSpec `json:"staticSpec,omitempty"`
	// genericEphemeralSpec makes the volume live and die with a pod.
	// +optional
	GenericEphemeralSpec *GenericEphemeralSpec `json:"genericEphemeralSpec,omitempty"`
}

// AccessMode of a volume.
//
// +kubebuilder:validation:Enum=ReadWriteOnce;ReadOnlyMany;ReadWriteMany;ReadWriteOncePod
type AccessMode string

// StaticVolumeSpec is a volume that exists already.
type StaticVolumeSpec struct {
	// driver that the volume belongs to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver"`
	// handle is what the driver calls it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Handle string `json:"handle"`
	// attributes are the driver's volume context.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Attributes map[string]string `json:"attributes,omitempty"`
}

// GenericEphemeralSpec makes a volume live and die with a pod.
type GenericEphemeralSpec struct{}

// SnapshotSpec takes snapshots of volumes.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
type SnapshotSpec struct {
	Target `json:",inline"`
	// select says which of the volumes one trigger takes.
	// +optional
	// +kubebuilder:default=all
	Select Select `json:"select,omitempty"`
	// snapshotClass is the VolumeSnapshotClass; without it, the one of the
	// volume's driver.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SnapshotClass string `json:"snapshotClass,omitempty"`
	// group takes all of them at one instant.
	// +optional
	Group bool `json:"group,omitempty"`
}

// RestoreSpec makes volumes from snapshots: actionName is an action that takes
// snapshots, volumeName the volume they are of, labels those of that volume.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
type RestoreSpec struct {
	Target `json:",inline"`
	// select says which of the snapshots one trigger takes.
	// +optional
	// +kubebuilder:default=newest
	Select    Select `json:"select,omitempty"`
	NewVolume `json:",inline"`
}

// CloneSpec makes volumes from volumes.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
type CloneSpec struct {
	Target `json:",inline"`
	// select says which of the volumes one trigger takes.
	// +optional
	// +kubebuilder:default=roundRobin
	Select    Select `json:"select,omitempty"`
	NewVolume `json:",inline"`
}

// NewVolume is what a restored or cloned volume is like.
type NewVolume struct {
	// storageClass of the new volume; without it, the source's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClass string `json:"storageClass,omitempty"`
	// size of the new volume; without it, the source's.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// attach also attaches, stages and publishes it, and makes a first read.
	// +optional
	Attach bool `json:"attach,omitempty"`
}

// ResizeSpec grows volumes.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
// +kubebuilder:validation:ExactlyOneOf=size;increaseBy;factor
type ResizeSpec struct {
	Target `json:",inline"`
	// select says which of the volumes one trigger takes.
	// +optional
	// +kubebuilder:default=all
	Select Select `json:"select,omitempty"`
	// size to grow to.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// increaseBy is how much to grow by.
	// +optional
	IncreaseBy *resource.Quantity `json:"increaseBy,omitempty"`
	// factor by which to multiply the size; more than 1.
	// +optional
	Factor *Number `json:"factor,omitempty"`
}

// ReattachSpec detaches volumes and attaches them again.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
type ReattachSpec struct {
	Target `json:",inline"`
	// select says which of the volumes one trigger takes.
	// +optional
	// +kubebuilder:default=roundRobin
	Select Select `json:"select,omitempty"`
	// node to attach to: the same, another, or any.
	// +optional
	// +kubebuilder:validation:Enum=same;other;any
	// +kubebuilder:default=any
	Node string `json:"node,omitempty"`
}

// RolloutSpec replaces the pods of a workload one after another.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;labels
type RolloutSpec struct {
	// actionName is the action that made the workloads, or objects with a pod
	// template.
	// +optional
	ActionName ActionName `json:"actionName,omitempty"`
	// labels of the workloads.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
	// select says which of the workloads one trigger takes.
	// +optional
	// +kubebuilder:default=roundRobin
	Select Select `json:"select,omitempty"`
	// undo goes back to what was before the last rollout.
	// +optional
	Undo bool `json:"undo,omitempty"`
}

// DrainSpec drains a node of the run's pods.
//
// +kubebuilder:validation:ExactlyOneOf=nodeName;nodeLabels
type DrainSpec struct {
	// nodeName is the node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`
	// nodeLabels of the nodes, of which one is taken at random.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
}

// ScaleSpec changes the number of replicas of an object.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;object
// +kubebuilder:validation:XValidation:rule="has(self.scriptConfigMap) || !has(self.serviceAccountName) && !has(self.image)",message="serviceAccountName and image are for a scriptConfigMap"
type ScaleSpec struct {
	// actionName is the action that made the object.
	// +optional
	ActionName ActionName `json:"actionName,omitempty"`
	// object is one that the run did not make.
	// +optional
	Object *ObjectRef `json:"object,omitempty"`
	// replicas to scale to, one after another at each trigger, then again from
	// the first.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	Replicas []int32 `json:"replicas"`
	// scriptConfigMap is a ConfigMap beside the Benchmark whose key scale.sh, or
	// only key, is a script that does it: it is called with the object and the
	// number. Without it the object's scale subresource is changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ScriptConfigMap string `json:"scriptConfigMap,omitempty"`
	// serviceAccountName whose rights the script has; without it, the run's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// image that the script runs in; without it, that of the library's programs.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`
}

// ObjectRef names an object that the run did not make.
type ObjectRef struct {
	// apiVersion of the object, such as apps/v1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// namespace of the object; without it, the run's, if it has one at all.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// KillSpec sends a signal to the processes of workloads, or deletes their pods.
// What is killed is made again as it was.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;labels
// +kubebuilder:validation:XValidation:rule="!has(self.deletePodSpec) || self.signal == 'SIGKILL'",message="signal and deletePodSpec exclude each other"
// +kubebuilder:validation:XValidation:rule="has(self.stopFor) == (self.signal == 'SIGSTOP')",message="stopFor goes with signal: SIGSTOP, and says when the processes go on"
type KillSpec struct {
	// actionName is the action that made the workloads.
	// +optional
	ActionName ActionName `json:"actionName,omitempty"`
	// labels of the workloads.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
	// select says which of the workloads one trigger takes.
	// +optional
	// +kubebuilder:default=random
	Select Select `json:"select,omitempty"`
	// signal that is sent; SIGSTOP is a hang.
	// +optional
	// +kubebuilder:validation:Enum=SIGKILL;SIGTERM;SIGINT;SIGSTOP
	// +kubebuilder:default=SIGKILL
	Signal string `json:"signal,omitempty"`
	// stopFor is how long processes hang after SIGSTOP, until SIGCONT.
	// +optional
	StopFor *Duration `json:"stopFor,omitempty"`
	// deletePodSpec deletes the pods instead of sending a signal.
	// +optional
	DeletePodSpec *DeletePodSpec `json:"deletePodSpec,omitempty"`
}

// DeletePodSpec deletes pods.
type DeletePodSpec struct {
	// gracePeriod between SIGTERM and SIGKILL; 0s: at once.
	// +optional
	// +kubebuilder:default="30s"
	GracePeriod *Duration `json:"gracePeriod,omitempty"`
}

// ModifySpec changes the mutable parameters of volumes.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
// +kubebuilder:validation:ExactlyOneOf=volumeAttributesClass;parameters
type ModifySpec struct {
	Target `json:",inline"`
	// select says which of the volumes one trigger takes.
	// +optional
	// +kubebuilder:default=all
	Select Select `json:"select,omitempty"`
	// volumeAttributesClass that the volumes get.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	VolumeAttributesClass string `json:"volumeAttributesClass,omitempty"`
	// parameters that the volumes get (engine local).
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]string `json:"parameters,omitempty"`
}

// DeleteSpec removes objects that the run made, with all that belongs to them,
// or one that it did not make, if that is said.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels;object
// +kubebuilder:validation:XValidation:rule="has(self.labels) || !has(self.objectKind)",message="objectKind goes with labels; the others say it already"
// +kubebuilder:validation:XValidation:rule="has(self.object) == (has(self.notOurs) && self.notOurs)",message="the run did not make the object: notOurs: true deletes it all the same, and goes with object"
type DeleteSpec struct {
	Target `json:",inline"`
	// object is one that the run did not make.
	// +optional
	Object *ObjectRef `json:"object,omitempty"`
	// notOurs says that it is meant: the object is lost when it is deleted.
	// +optional
	NotOurs bool `json:"notOurs,omitempty"`
	// select says which of the objects one trigger takes.
	// +optional
	// +kubebuilder:default=oldest
	Select Select `json:"select,omitempty"`
	// objectKind that labels are looked for on; volume when absent. A snapshot
	// has the labels of the volumes that it is of.
	// +optional
	// +kubebuilder:validation:Enum=volume;snapshot;groupSnapshot;workload;object
	ObjectKind string `json:"objectKind,omitempty"`
}
