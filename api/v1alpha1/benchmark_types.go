package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Benchmark is one measurement: its actions, the rates at which they run, the outputs of its results and the
// objectives that the results are judged by.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bench,categories=cnsbench
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].reason`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.status.runID`
// +kubebuilder:printcolumn:name="Ops",type=integer,JSONPath=`.status.ops.total`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.ops.failed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Started",type=date,priority=1,JSONPath=`.status.startTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`
type Benchmark struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the measurement. It is immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Benchmark cannot be changed; create another one"
	Spec BenchmarkSpec `json:"spec"`

	// status is the observed state of the run.
	// +optional
	Status BenchmarkStatus `json:"status,omitempty"`
}

// BenchmarkList is a list of Benchmarks.
//
// +kubebuilder:object:root=true
type BenchmarkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Benchmark `json:"items"`
}

// BenchmarkSpec describes a measurement.
type BenchmarkSpec struct {
	// runtime is the maximum length of the run, counted from the opening of the barrier. Without it the run ends
	// when its workloads end.
	// +optional
	Runtime *Duration `json:"runtime,omitempty"`

	// gracePeriod is the time that operations in flight have after the stop. Operations that have not ended by
	// then are recorded as censored.
	// +optional
	// +kubebuilder:default="30s"
	GracePeriod *Duration `json:"gracePeriod,omitempty"`

	// seed of all random choices. If absent, it is drawn at the start and recorded.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Seed *int64 `json:"seed,omitempty"`

	// serviceAccountName is the ServiceAccount that the run acts as (engine kubernetes). Without it the ServiceAccount
	// default of the namespace is used.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// podTemplate is merged into every pod of the run, as kubectl patch merges (engine kubernetes): labels and
	// annotations, nodeSelector, tolerations, affinity, priorityClassName, runtimeClassName, imagePullSecrets,
	// securityContext and, by the names of containers, their resources, securityContext and imagePullPolicy. The
	// container * stands for all containers of a pod.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`

	// queue says what the run does while another run uses one of its drivers (engine kubernetes): Wait until it is its
	// turn, Fail at once, or Share the driver, which the bundles of both runs say.
	// +optional
	// +kubebuilder:default=Wait
	Queue QueuePolicy `json:"queue,omitempty"`

	// queueLimit is how long the run waits before it fails.
	// +optional
	// +kubebuilder:default="1h"
	QueueLimit *Duration `json:"queueLimit,omitempty"`

	// csiEndpoints are the sockets of CSI drivers on this machine, by provisioner (engine local). Volumes of their
	// StorageClasses are made by them; other provisioners must be built-in drivers. The flag --csi-endpoint adds to
	// them, and overrides those of the same provisioner.
	// +optional
	// +listType=map
	// +listMapKey=provisioner
	// +kubebuilder:validation:MaxItems=16
	CSIEndpoints []CSIEndpoint `json:"csiEndpoints,omitempty"`

	// maxOutput limits how much of the workloads' output is kept. Output beyond the limit is discarded at its
	// source, and the validity flag outputCut reports it.
	// +optional
	// +kubebuilder:default={}
	MaxOutput *MaxOutput `json:"maxOutput,omitempty"`

	// metrics says what is measured at an interval, besides what the workloads report themselves.
	// +optional
	// +kubebuilder:default={}
	Metrics *Metrics `json:"metrics,omitempty"`

	// library lists additional sources of workloads. They are searched in order, before the built-in library; the
	// first match is used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Library []LibrarySource `json:"library,omitempty"`

	// actions are the operations of the run.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Actions []Action `json:"actions"`

	// rates are the schedules that actions refer to.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Rates []Rate `json:"rates,omitempty"`

	// outputs are destinations of the results in addition to the bundle.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Outputs []Output `json:"outputs,omitempty"`

	// slos are the objectives that the results are judged by at the end of the run.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	SLOs []SLO `json:"slos,omitempty"`

	// tenants group the workloads by whom they stand for: who is to be protected, by which targets, and who disturbs,
	// under which limit.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Tenants []Tenant `json:"tenants,omitempty"`
}

// QueuePolicy says what a run does while another run uses one of its drivers.
//
// +kubebuilder:validation:Enum=Wait;Fail;Share
type QueuePolicy string

// The policies of a queue.
const (
	QueueWait  QueuePolicy = "Wait"
	QueueFail  QueuePolicy = "Fail"
	QueueShare QueuePolicy = "Share"
)

// CSIEndpoint is the socket of a CSI driver with controller and node service.
type CSIEndpoint struct {
	// provisioner is the name of the driver, as its GetPluginInfo returns it and StorageClasses name it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Provisioner string `json:"provisioner"`
	// socket is the path of a unix socket, or unix:///PATH.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Socket string `json:"socket"`
}

// MaxOutput limits the output of workloads that is kept. stdout and stderr may each use a quarter of a limit, so
// at least half is left for output files.
type MaxOutput struct {
	// perInstance is the limit for one instance: all files of all its containers.
	// +optional
	// +kubebuilder:default="256Mi"
	PerInstance *resource.Quantity `json:"perInstance,omitempty"`
	// perRun is the limit for all instances together.
	// +optional
	// +kubebuilder:default="1Gi"
	PerRun *resource.Quantity `json:"perRun,omitempty"`
}

// LibrarySource is a source of workloads.
//
// +kubebuilder:validation:ExactlyOneOf=configMapSpec;folderSpec
type LibrarySource struct {
	// configMapSpec reads the ConfigMaps with the label type: workload of a namespace (engine kubernetes).
	// +optional
	ConfigMapSpec *ConfigMapLibrary `json:"configMapSpec,omitempty"`
	// folderSpec reads a folder that has one subfolder for each workload.
	// +optional
	FolderSpec *FolderLibrary `json:"folderSpec,omitempty"`
}

// ConfigMapLibrary is a namespace with library ConfigMaps.
type ConfigMapLibrary struct {
	// namespace of the ConfigMaps.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
}

// FolderLibrary is a folder with workloads.
type FolderLibrary struct {
	// path of the folder, relative to the Benchmark's file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
}

// SLO is an objective: an expression that must be true.
type SLO struct {
	// name of the objective in reports.
	// +required
	Name Name `json:"name"`
	// expr is a CEL expression over operations and workload metrics, for example p99(snapshots.ready) <
	// duration("10s").
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expr string `json:"expr"`
	// fewValues accepts a quantile of too few values as it is. Without it an objective that is met only by such an
	// estimate gets the verdict weak and is not met: p50 needs 6 values, p90 29, p95 59, p99 299, p999 2995.
	// +optional
	FewValues bool `json:"fewValues,omitempty"`
	// description explains the objective to readers of the report.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
}

// The condition types of a Benchmark.
const (
	// ConditionReady is true while the runner is up; while it is not, the reason
	// and the message name the object that is in the way.
	ConditionReady = "Ready"
	// ConditionInitialized is true once everything that stands before the
	// barrier is made.
	ConditionInitialized = "Initialized"
	// ConditionQueued is true while the run waits for a driver that another run uses; its message has the place in the
	// queue. It is absent if the run never waited.
	ConditionQueued = "Queued"
	// ConditionRunning is true while the run goes on.
	ConditionRunning = "Running"
	// ConditionComplete is true when the run has ended as it should. Its reason
	// is at all times the one word for where the Benchmark stands.
	ConditionComplete = "Complete"
	// ConditionFailed is true when the run has ended in another way, or could not
	// begin; its reason and message say why.
	ConditionFailed = "Failed"
	// ConditionClean is true when nothing is left of what the run made. It is
	// absent until the run has ended.
	ConditionClean = "Clean"
)

// BenchmarkStatus is the observed state of a Benchmark.
type BenchmarkStatus struct {
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// runID identifies the run and its bundle.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RunID string `json:"runID,omitempty"`
	// seed that the run used.
	// +optional
	Seed *int64 `json:"seed,omitempty"`
	// startTime of the run.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime of the run.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// ops counts the ended operations by outcome.
	// +optional
	Ops *OpCounts `json:"ops,omitempty"`
	// actions counts the ended operations of each action.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Actions []ActionStatus `json:"actions,omitempty"`
	// bundle is the location of the bundle.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Bundle string `json:"bundle,omitempty"`
	// verdicts of the objectives.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// conditions of the Benchmark: Ready, Queued, Initialized, Running,
	// Complete, Failed, Clean.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OpCounts counts operations by outcome.
type OpCounts struct {
	// total is the sum of all outcomes.
	Total int64 `json:"total"`
	// failed is the sum of error and timeout.
	Failed int64 `json:"failed"`
	// ok operations succeeded.
	OK int64 `json:"ok"`
	// error operations were rejected or failed.
	// +optional
	Error int64 `json:"error,omitempty"`
	// timeout operations did not end before their deadline.
	// +optional
	Timeout int64 `json:"timeout,omitempty"`
	// censored operations had not ended when the run ended.
	// +optional
	Censored int64 `json:"censored,omitempty"`
	// dropped operations were never started.
	// +optional
	Dropped int64 `json:"dropped,omitempty"`
}

// ActionStatus counts the operations of one action.
type ActionStatus struct {
	// name of the action.
	// +required
	Name ActionName `json:"name"`
	// ops counts the operations of the action.
	// +required
	Ops OpCounts `json:"ops"`
}

// Verdict is the result of one objective.
type Verdict struct {
	// name of the objective.
	// +required
	Name Name `json:"name"`
	// verdict of the objective. noData, weak and error do not count as met.
	// +required
	// +kubebuilder:validation:Enum=pass;fail;noData;weak;error
	Verdict string `json:"verdict"`
	// message explains the verdict.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}
