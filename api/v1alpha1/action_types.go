package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// Action is an operation that the run starts once or at a rate.
//
// +kubebuilder:validation:ExactlyOneOf=createObjSpec;snapshotSpec;restoreSpec;cloneSpec;resizeSpec;reattachSpec;rolloutSpec;drainSpec;scaleSpec;killSpec;modifySpec;checkSpec;deleteSpec
// +kubebuilder:validation:AtMostOneOf=rateName;startAfter;startAfterAction
type Action struct {
	// name of the action. The names of the objects that the action creates contain it.
	// +required
	Name ActionName `json:"name"`
	// rateName is the rate that triggers the action. Without a rate the action runs once: it creates workloads and
	// volumes at the start of the run, all at once; all other actions run when the barrier opens, one after
	// another.
	// +optional
	RateName Name `json:"rateName,omitempty"`
	// startAfter runs the action once, this long after the barrier opens.
	// +optional
	StartAfter *Duration `json:"startAfter,omitempty"`
	// startAfterAction runs the action once, when the first operation of the named action ends.
	// +optional
	StartAfterAction ActionName `json:"startAfterAction,omitempty"`
	// timeout is the deadline of each operation.
	// +optional
	// +kubebuilder:default="10m"
	Timeout *Duration `json:"timeout,omitempty"`
	// then lists actions that follow each operation of this action, in this order. Together they are one episode.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Then []ActionName `json:"then,omitempty"`
	// outputs names the output that receives the results of the action.
	// +optional
	Outputs *ActionOutputs `json:"outputs,omitempty"`

	// createObjSpec creates workloads, volumes or other objects.
	// +optional
	CreateObjSpec *CreateObjSpec `json:"createObjSpec,omitempty"`
	// snapshotSpec takes snapshots of volumes.
	// +optional
	SnapshotSpec *SnapshotSpec `json:"snapshotSpec,omitempty"`
	// restoreSpec creates volumes from snapshots.
	// +optional
	RestoreSpec *RestoreSpec `json:"restoreSpec,omitempty"`
	// cloneSpec creates volumes from volumes.
	// +optional
	CloneSpec *CloneSpec `json:"cloneSpec,omitempty"`
	// resizeSpec expands volumes.
	// +optional
	ResizeSpec *ResizeSpec `json:"resizeSpec,omitempty"`
	// reattachSpec detaches and attaches volumes.
	// +optional
	ReattachSpec *ReattachSpec `json:"reattachSpec,omitempty"`
	// rolloutSpec replaces the pods of workloads one after another.
	// +optional
	RolloutSpec *RolloutSpec `json:"rolloutSpec,omitempty"`
	// drainSpec drains a node.
	// +optional
	DrainSpec *DrainSpec `json:"drainSpec,omitempty"`
	// scaleSpec changes the number of replicas of an object.
	// +optional
	ScaleSpec *ScaleSpec `json:"scaleSpec,omitempty"`
	// killSpec kills workloads.
	// +optional
	KillSpec *KillSpec `json:"killSpec,omitempty"`
	// modifySpec changes the mutable parameters of volumes.
	// +optional
	ModifySpec *ModifySpec `json:"modifySpec,omitempty"`
	// checkSpec checks the data of volumes.
	// +optional
	CheckSpec *CheckSpec `json:"checkSpec,omitempty"`
	// deleteSpec deletes objects.
	// +optional
	DeleteSpec *DeleteSpec `json:"deleteSpec,omitempty"`
}

// ActionOutputs names the output that receives the results of an action.
type ActionOutputs struct {
	// outputName is the name of an entry of spec.outputs.
	// +required
	OutputName Name `json:"outputName"`
}

// CreateObjSpec creates workloads, volumes or other objects.
//
// +kubebuilder:validation:ExactlyOneOf=workload;volume;manifest
// +kubebuilder:validation:XValidation:rule="!has(self.vars) || has(self.workload) || has(self.manifest)",message="vars are for a workload or a manifest"
// +kubebuilder:validation:XValidation:rule="!has(self.varsList) && !has(self.matrix) || has(self.workload)",message="varsList and matrix are for a workload"
// +kubebuilder:validation:XValidation:rule="!has(self.syncGroup) || has(self.workload)",message="syncGroup is for a workload"
// +kubebuilder:validation:XValidation:rule="has(self.objectSpec) == (has(self.workload) && self.workload == 'object')",message="objectSpec and workload: object belong together"
// +kubebuilder:validation:XValidation:rule="!has(self.canary) || has(self.workload)",message="canary is for a workload"
// +kubebuilder:validation:XValidation:rule="!has(self.phases) || has(self.workload)",message="phases are for a workload"
type CreateObjSpec struct {
	// workload is the name of a library entry, or object for an object storage workload.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Workload string `json:"workload,omitempty"`
	// objectSpec describes the object storage workload. It requires workload: object.
	// +optional
	ObjectSpec *ObjectSpec `json:"objectSpec,omitempty"`
	// volume is a volume that is created without a workload.
	// +optional
	Volume *VolumeSpec `json:"volume,omitempty"`
	// manifest is any Kubernetes object.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Manifest *runtime.RawExtension `json:"manifest,omitempty"`

	// podTemplate is merged into the pods of the instances, after that of the Benchmark.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`

	// count is the number of instances that one trigger creates. With varsList or matrix it is the number for each
	// set of values.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=1
	Count int32 `json:"count,omitempty"`
	// vars are the values of the template's variables.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Vars map[string]Var `json:"vars,omitempty"`
	// varsList has sets of values in addition to vars. The action creates count instances for each set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	VarsList []map[string]Var `json:"varsList,omitempty"`
	// matrix has lists of values in addition to vars. The action creates count instances for each combination, and
	// for each set in varsList if there is one.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Matrix map[string][]Var `json:"matrix,omitempty"`
	// syncGroup is the name of the barrier at which the workload waits for the other workloads of the group.
	// Workloads without a syncGroup share one barrier.
	// +optional
	SyncGroup Name `json:"syncGroup,omitempty"`
	// labels are added to the created objects.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
	// canary starts a small I/O stream beside each instance of the workload to measure the latency of its volumes.
	// +optional
	Canary *Canary `json:"canary,omitempty"`
	// phases change variables of the workload during the run. The values of vars apply before the first phase.
	// Each phase runs as a separate container on the same volumes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Phases []Phase `json:"phases,omitempty"`
}

// Phase sets new values of variables from a point in time on.
type Phase struct {
	// startAfter is the start of the phase, counted from the barrier. The previous phase ends at that time.
	// +required
	StartAfter Duration `json:"startAfter"`
	// vars are the values from the start of the phase on. Later phases keep them unless they set others.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Vars map[string]Var `json:"vars"`
}

// Canary is a small direct I/O on each volume of a workload at a fixed interval. It shows stalls that the workload
// itself may hide.
//
// +kubebuilder:validation:XValidation:rule="self.read || self.write",message="a canary reads, writes, or both"
type Canary struct {
	// interval between two I/Os of the same direction.
	// +optional
	// +kubebuilder:default="100ms"
	Interval *Duration `json:"interval,omitempty"`
	// size of one I/O; a multiple of 4Ki.
	// +optional
	// +kubebuilder:default="4Ki"
	Size *resource.Quantity `json:"size,omitempty"`
	// read enables reads.
	// +optional
	// +kubebuilder:default=true
	Read *bool `json:"read,omitempty"`
	// write enables writes, to an unnamed file of the canary's own.
	// +optional
	// +kubebuilder:default=true
	Write *bool `json:"write,omitempty"`
}

// VolumeSpec is a volume that is created without a workload. It is provisioned dynamically unless staticSpec or
// genericEphemeralSpec is set.
//
// +kubebuilder:validation:AtMostOneOf=staticSpec;genericEphemeralSpec
type VolumeSpec struct {
	// size is the requested capacity.
	// +optional
	// +kubebuilder:default="1Gi"
	Size *resource.Quantity `json:"size,omitempty"`
	// storageClass is the StorageClass of the volume. Without it the platform's default class is used.
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
	// volumeAttributesClass is the initial VolumeAttributesClass of the volume.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	VolumeAttributesClass string `json:"volumeAttributesClass,omitempty"`
	// attach also attaches, stages and publishes the volume, and performs a first write.
	// +optional
	Attach bool `json:"attach,omitempty"`
	// staticSpec uses an existing volume.
	// +optional
	StaticSpec *StaticVolumeSpec `json:"staticSpec,omitempty"`
	// genericEphemeralSpec ties the lifetime of the volume to a pod.
	// +optional
	GenericEphemeralSpec *GenericEphemeralSpec `json:"genericEphemeralSpec,omitempty"`
}

// AccessMode is an access mode of a volume.
//
// +kubebuilder:validation:Enum=ReadWriteOnce;ReadOnlyMany;ReadWriteMany;ReadWriteOncePod
type AccessMode string

// StaticVolumeSpec identifies an existing volume.
type StaticVolumeSpec struct {
	// driver is the name of the CSI driver of the volume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver"`
	// handle is the driver's ID of the volume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Handle string `json:"handle"`
	// attributes are the driver's volume context.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Attributes map[string]string `json:"attributes,omitempty"`
}

// GenericEphemeralSpec ties the lifetime of a volume to a pod.
type GenericEphemeralSpec struct{}

// SnapshotSpec takes snapshots of volumes.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
type SnapshotSpec struct {
	Target `json:",inline"`
	// select chooses the volumes of one trigger.
	// +optional
	// +kubebuilder:default=all
	Select Select `json:"select,omitempty"`
	// snapshotClass is the VolumeSnapshotClass. Without it the class of the volume's driver is used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SnapshotClass string `json:"snapshotClass,omitempty"`
	// group takes the snapshots of all selected volumes at one instant, as a group snapshot.
	// +optional
	Group bool `json:"group,omitempty"`
}

// RestoreSpec creates volumes from snapshots. actionName names an action that takes snapshots, volumeName the
// source volume of the snapshots, and labels match the labels of that volume.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
type RestoreSpec struct {
	Target `json:",inline"`
	// select chooses the snapshots of one trigger.
	// +optional
	// +kubebuilder:default=newest
	Select    Select `json:"select,omitempty"`
	NewVolume `json:",inline"`
}

// CloneSpec creates volumes from volumes.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
type CloneSpec struct {
	Target `json:",inline"`
	// select chooses the volumes of one trigger.
	// +optional
	// +kubebuilder:default=roundRobin
	Select    Select `json:"select,omitempty"`
	NewVolume `json:",inline"`
}

// NewVolume describes a restored or cloned volume.
type NewVolume struct {
	// storageClass of the new volume. Without it the class of the source is used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClass string `json:"storageClass,omitempty"`
	// size of the new volume. Without it the size of the source is used.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// accessModes of the new volume, such as ReadOnlyMany for one that is backed by its snapshot. Without them the
	// access modes of the source are used.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	AccessModes []AccessMode `json:"accessModes,omitempty"`
	// volumeMode of the new volume: Filesystem or Block. Without it the mode of the source is used.
	// +optional
	// +kubebuilder:validation:Enum=Filesystem;Block
	VolumeMode string `json:"volumeMode,omitempty"`
	// attach also attaches, stages and publishes the volume, and performs a first read.
	// +optional
	Attach bool `json:"attach,omitempty"`
}

// ResizeSpec expands volumes.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
// +kubebuilder:validation:ExactlyOneOf=size;increaseBy;factor
type ResizeSpec struct {
	Target `json:",inline"`
	// select chooses the volumes of one trigger.
	// +optional
	// +kubebuilder:default=all
	Select Select `json:"select,omitempty"`
	// size is the new size.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// increaseBy is the amount that is added to the size.
	// +optional
	IncreaseBy *resource.Quantity `json:"increaseBy,omitempty"`
	// factor multiplies the size; it must be more than 1.
	// +optional
	Factor *Number `json:"factor,omitempty"`
}

// ReattachSpec detaches volumes and attaches them again.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
type ReattachSpec struct {
	Target `json:",inline"`
	// select chooses the volumes of one trigger.
	// +optional
	// +kubebuilder:default=roundRobin
	Select Select `json:"select,omitempty"`
	// node to attach to: the same node, another node, or any node.
	// +optional
	// +kubebuilder:validation:Enum=same;other;any
	// +kubebuilder:default=any
	Node string `json:"node,omitempty"`
}

// RolloutSpec replaces the pods of a workload one after another.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;labels
type RolloutSpec struct {
	// actionName is the action that created the workloads, or objects with a pod template.
	// +optional
	ActionName ActionName `json:"actionName,omitempty"`
	// labels select the workloads that have all of these labels.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
	// select chooses the workloads of one trigger.
	// +optional
	// +kubebuilder:default=roundRobin
	Select Select `json:"select,omitempty"`
	// undo returns to the state before the last rollout.
	// +optional
	Undo bool `json:"undo,omitempty"`
}

// DrainSpec drains a node of the run's pods.
//
// +kubebuilder:validation:ExactlyOneOf=nodeName;nodeLabels
type DrainSpec struct {
	// nodeName is the node to drain.
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
	// actionName is the action that created the object.
	// +optional
	ActionName ActionName `json:"actionName,omitempty"`
	// object is an object that the run did not create.
	// +optional
	Object *ObjectRef `json:"object,omitempty"`
	// replicas are the numbers of replicas to scale to. Each trigger uses the next number, and starts over after
	// the last.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	Replicas []int32 `json:"replicas"`
	// scriptConfigMap is a ConfigMap beside the Benchmark whose key scale.sh, or whose only key, is a script that
	// scales the object. Its arguments are the object and the number of replicas. Without it the object's scale
	// subresource is updated.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ScriptConfigMap string `json:"scriptConfigMap,omitempty"`
	// serviceAccountName is the ServiceAccount of the script. Without it the ServiceAccount of the run is used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// image that the script runs in. Without it the image with the programs of the built-in library is used.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`
}

// ObjectRef identifies an object that the run did not create.
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
	// namespace of the object. Without it a namespaced object is looked up in the namespace of the run.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// KillSpec sends a signal to the processes of workloads, or deletes their pods. Killed workloads are created again
// as they were.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;labels
// +kubebuilder:validation:XValidation:rule="!has(self.deletePodSpec) || self.signal == 'SIGKILL'",message="signal and deletePodSpec exclude each other"
// +kubebuilder:validation:XValidation:rule="has(self.stopFor) == (self.signal == 'SIGSTOP')",message="stopFor goes with signal: SIGSTOP, and says when the processes go on"
type KillSpec struct {
	// actionName is the action that created the workloads.
	// +optional
	ActionName ActionName `json:"actionName,omitempty"`
	// labels select the workloads that have all of these labels.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
	// select chooses the workloads of one trigger.
	// +optional
	// +kubebuilder:default=random
	Select Select `json:"select,omitempty"`
	// signal to send. SIGSTOP suspends the processes for stopFor.
	// +optional
	// +kubebuilder:validation:Enum=SIGKILL;SIGTERM;SIGINT;SIGSTOP
	// +kubebuilder:default=SIGKILL
	Signal string `json:"signal,omitempty"`
	// stopFor is the time between SIGSTOP and SIGCONT.
	// +optional
	StopFor *Duration `json:"stopFor,omitempty"`
	// deletePodSpec deletes the pods instead of sending a signal.
	// +optional
	DeletePodSpec *DeletePodSpec `json:"deletePodSpec,omitempty"`
}

// DeletePodSpec deletes pods.
type DeletePodSpec struct {
	// gracePeriod is the time between SIGTERM and SIGKILL; with 0s the pod is killed at once.
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
	// select chooses the volumes of one trigger.
	// +optional
	// +kubebuilder:default=all
	Select Select `json:"select,omitempty"`
	// volumeAttributesClass is the new VolumeAttributesClass of the volumes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	VolumeAttributesClass string `json:"volumeAttributesClass,omitempty"`
	// parameters are the new mutable parameters of the volumes. On a cluster the run creates a VolumeAttributesClass for
	// them.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	Parameters map[string]string `json:"parameters,omitempty"`
}

// CheckSpec reads all blocks that the workload integrity wrote to the source of a volume, and judges whether the volume
// is crash-consistent. The volume is attached for the check unless it is attached already.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels
type CheckSpec struct {
	Target `json:",inline"`
	// select chooses the volumes of one trigger.
	// +optional
	// +kubebuilder:default=newest
	Select Select `json:"select,omitempty"`
}

// DeleteSpec deletes objects that the run created, with their dependent objects. With object and notOurs it
// deletes an object that the run did not create.
//
// +kubebuilder:validation:ExactlyOneOf=actionName;volumeName;labels;object
// +kubebuilder:validation:XValidation:rule="has(self.labels) || !has(self.objectKind)",message="objectKind goes with labels; the others say it already"
// +kubebuilder:validation:XValidation:rule="has(self.object) == (has(self.notOurs) && self.notOurs)",message="the run did not make the object: notOurs: true deletes it all the same, and goes with object"
type DeleteSpec struct {
	Target `json:",inline"`
	// object is an object that the run did not create.
	// +optional
	Object *ObjectRef `json:"object,omitempty"`
	// notOurs confirms that object is to be deleted although the run did not create it and cannot restore it.
	// +optional
	NotOurs bool `json:"notOurs,omitempty"`
	// select chooses the objects of one trigger.
	// +optional
	// +kubebuilder:default=oldest
	Select Select `json:"select,omitempty"`
	// objectKind is the kind of the objects that labels select; volume when absent. A snapshot has the labels of
	// its source volumes.
	// +optional
	// +kubebuilder:validation:Enum=volume;snapshot;groupSnapshot;workload;object
	ObjectKind string `json:"objectKind,omitempty"`
}
