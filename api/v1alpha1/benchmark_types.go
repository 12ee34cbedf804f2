package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Benchmark is one measurement: actions, the rates at which they are done,
// where results go, and the objectives that they are judged by.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bench,categories=cnsbench
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].reason`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.status.runID`
// +kubebuilder:printcolumn:name="Ops",type=integer,JSONPath=`.status.ops.total`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.ops.failed`
// +kubebuilder:printcolumn:name="Started",type=date,priority=1,JSONPath=`.status.startTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Benchmark struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to do. It cannot be changed: a changed benchmark is
	// another one.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Benchmark cannot be changed; create another one"
	Spec BenchmarkSpec `json:"spec"`

	// status says what became of it.
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

// BenchmarkSpec says what to do.
type BenchmarkSpec struct {
	// runtime is the hard stop, counted from the moment at which the barrier
	// opens. Without it the run ends when its workloads do.
	// +optional
	Runtime *Duration `json:"runtime,omitempty"`

	// gracePeriod is how long operations in flight may still take after the
	// stop before they are recorded as censored.
	// +optional
	// +kubebuilder:default="30s"
	GracePeriod *Duration `json:"gracePeriod,omitempty"`

	// seed of every random choice. It is drawn and recorded when absent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Seed *int64 `json:"seed,omitempty"`

	// serviceAccountName is whose rights the run has (engine kubernetes).
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// maxOutput bounds what is kept of what workloads print and write to their
	// output files. What is more is discarded at its source, and the validity flag
	// outputCut says so.
	// +optional
	// +kubebuilder:default={}
	MaxOutput *MaxOutput `json:"maxOutput,omitempty"`

	// library lists further places where workloads are looked up, before the
	// built-in library; the first that has the name wins.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Library []LibrarySource `json:"library,omitempty"`

	// actions are what is done.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Actions []Action `json:"actions"`

	// rates are when it is done.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Rates []Rate `json:"rates,omitempty"`

	// outputs are where results are sent besides the bundle.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Outputs []Output `json:"outputs,omitempty"`

	// slos are the objectives that the run is judged by at its end.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	SLOs []SLO `json:"slos,omitempty"`
}

// MaxOutput bounds the output of workloads. Of each bound stdout may take a quarter
// and stderr another, so that files of measurements have at least half.
type MaxOutput struct {
	// perInstance is the bound of the output of one instance: all its containers,
	// all their files.
	// +optional
	// +kubebuilder:default="256Mi"
	PerInstance *resource.Quantity `json:"perInstance,omitempty"`
	// perRun is the bound of the output of all instances together.
	// +optional
	// +kubebuilder:default="1Gi"
	PerRun *resource.Quantity `json:"perRun,omitempty"`
}

// LibrarySource is a place with workloads.
//
// +kubebuilder:validation:ExactlyOneOf=configMapSpec;folderSpec
type LibrarySource struct {
	// configMapSpec looks among the ConfigMaps (label type: workload) of a
	// namespace (engine kubernetes).
	// +optional
	ConfigMapSpec *ConfigMapLibrary `json:"configMapSpec,omitempty"`
	// folderSpec looks in a folder that has one folder for each workload.
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

// Output is where results are sent besides the bundle.
//
// +kubebuilder:validation:ExactlyOneOf=httpPostSpec;fileSpec
type Output struct {
	// name by which actions refer to it.
	// +required
	Name Name `json:"name"`
	// httpPostSpec sends results to a server.
	// +optional
	HTTPPostSpec *HTTPPostSpec `json:"httpPostSpec,omitempty"`
	// fileSpec writes results to a file.
	// +optional
	FileSpec *FileSpec `json:"fileSpec,omitempty"`
}

// HTTPPostSpec sends results to a server, as JSON in the body of a POST.
type HTTPPostSpec struct {
	// url to post to, http or https.
	// +required
	// +kubebuilder:validation:Pattern=`^https?://.+`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
}

// FileSpec writes results to a file.
type FileSpec struct {
	// path of the file, relative to the bundle.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
	// format of the file.
	// +optional
	// +kubebuilder:validation:Enum=jsonl;csv
	// +kubebuilder:default=jsonl
	Format string `json:"format,omitempty"`
}

// SLO is an objective: an expression that is true when it is met.
type SLO struct {
	// name of the objective in reports.
	// +required
	Name Name `json:"name"`
	// expr is a CEL expression over operations and workload metrics, e.g.
	// p99(snapshots.ready) < duration("10s").
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expr string `json:"expr"`
	// fewValues takes a quantile of too few values for what it is. Without it an
	// objective that is met only by such an estimate is weak, and not met: p50
	// needs 6 values, p90 29, p95 59, p99 299, p999 2995.
	// +optional
	FewValues bool `json:"fewValues,omitempty"`
	// description says for people why it matters.
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

// BenchmarkStatus says what became of a Benchmark.
type BenchmarkStatus struct {
	// observedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// runID names the run and its bundle.
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
	// ops counts the operations that have ended, by outcome.
	// +optional
	Ops *OpCounts `json:"ops,omitempty"`
	// actions counts them for each action.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Actions []ActionStatus `json:"actions,omitempty"`
	// bundle says where the bundle lies.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Bundle string `json:"bundle,omitempty"`
	// verdicts of the objectives.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// conditions of the Benchmark: Ready, Initialized, Running, Complete,
	// Failed, Clean.
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
	// ok are those that did what they should.
	OK int64 `json:"ok"`
	// error are those that the platform refused or failed.
	// +optional
	Error int64 `json:"error,omitempty"`
	// timeout are those that their deadline ended.
	// +optional
	Timeout int64 `json:"timeout,omitempty"`
	// censored are those that the end of the run cut off.
	// +optional
	Censored int64 `json:"censored,omitempty"`
	// dropped are those that were never started.
	// +optional
	Dropped int64 `json:"dropped,omitempty"`
}

// ActionStatus counts the operations of one action.
type ActionStatus struct {
	// name of the action.
	// +required
	Name ActionName `json:"name"`
	// ops of the action.
	// +required
	Ops OpCounts `json:"ops"`
}

// Verdict is how an objective was judged.
type Verdict struct {
	// name of the objective.
	// +required
	Name Name `json:"name"`
	// verdict; noData and error never count as met.
	// +required
	// +kubebuilder:validation:Enum=pass;fail;noData;weak;error
	Verdict string `json:"verdict"`
	// message says why.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}
