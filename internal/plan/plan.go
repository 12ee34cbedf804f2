// Package plan resolves a Benchmark file to a Plan, in stages, each a function of the
// result of the one before (see stages in load.go):
//
//   - parse: package parse reads documents with the place of each value and applies
//     --set; documents.go and library.go take the classes, ConfigMaps and entries.
//   - default and validate: package validate applies the schema, defaults and CEL rules
//     offline, with the libraries of the Kubernetes API server.
//   - resolve: resolve.go resolves names, renders templates and checks targets. A graph
//     holds the actions meanwhile; each kind of action has a file of its own name, and
//     actions.go lists them.
//   - derive: derive.go adds up the budget; rights.go lists the rights of a plan.
//
// All problems are reported at once, each with its place in the file. The package is
// pure: its input is files, its output is a Plan or a list of Problems. It creates no
// objects.
package plan

import (
	"encoding/json"
	"strconv"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/podtemplate"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// Plan is a fully resolved Benchmark. Only what depends on time and on the platform
// is left open. It is immutable after Load.
type Plan struct {
	Name      string
	Benchmark *v1alpha1.Benchmark // with defaults applied
	Seed      uint64
	// Runtime is the time from the barrier to the hard stop; 0: the run ends when its
	// workloads end.
	Runtime time.Duration
	// Grace is the time that ops in flight have after the stop before they are
	// censored: the second deadline.
	Grace time.Duration
	// MaxOutput limits how much output of workloads is kept.
	MaxOutput MaxOutput
	Actions   []Action
	Rates     []Rate
	SLOs      []SLO
	Tenants   []Tenant
	Metrics   Metrics
	// Names are those that expressions about the run may have.
	Names expr.Env `json:"-"`

	// StorageClasses and SnapshotClasses are the classes that the plan uses, by name.
	// Drivers are replaced by their substitutes.
	StorageClasses  map[string]storagev1.StorageClass
	SnapshotClasses map[string]engine.SnapshotClass
	// Endpoints are the sockets of CSI drivers by provisioner, of the Benchmark and of Input.Endpoints.
	Endpoints map[string]string `json:",omitempty"`
	// Secrets are those in the files, for CSI drivers. SecretFiles are the files that have them, by their names.
	Secrets     engine.Secrets `json:"-"`
	SecretFiles []string       `json:"-"`
	// Queue says what the run does while another run uses one of its drivers.
	Queue engine.Queue `json:"-"`
	// PodTemplate is merged into all pods; nil: none.
	PodTemplate *podtemplate.Template `json:"-"`

	Needs    engine.Needs
	Budget   Budget
	Warnings []Problem
	// Restarts are those for which the run may never end.
	Restarts []Restart `json:"-"`

	// Cluster means that names of classes refer to a cluster, not to the files.
	Cluster bool
	// Given holds the ConfigMaps and VolumeAttributesClasses in the files.
	Given []any `json:",omitempty"`
}

// MaxOutput is the maximum output of workloads that is kept, in bytes; 0: no limit.
type MaxOutput struct{ PerInstance, PerRun int64 }

// Action is a resolved entry of spec.actions.
type Action struct {
	Name string
	Kind op.Kind
	Rate string // name of its rate; empty: triggered once, at the start
	// Count is the number of instances that one trigger creates; 1 for kinds other than
	// create.
	Count   int
	Timeout time.Duration // deadline of each op
	Then    []string      // actions that follow each op of this action, in order
	// Chained means that only the Then of another action triggers this action.
	Chained bool

	// PodTemplate is merged into the pods of a create, after the plan's; nil: none.
	PodTemplate *podtemplate.Template `json:"-"`

	Target   *Target   // what the op acts on; nil for create and drain
	Workload *Workload // create: a workload
	Manifest *Manifest // create: any object
	Volume   *Volume   // create: a volume; restore, clone: the new volume
	Snapshot *SnapshotSpec
	Resize   *ResizeSpec
	Modify   map[string]string // modify: parameters, as far as they are known
	// ModifyClass is the name of the cluster's VolumeAttributesClass; empty: the engine
	// uses only Modify.
	ModifyClass string
	Node        string // reattach: engine.NodeSame, NodeOther or NodeAny
	Undo        bool   // rollout
	Kill        *KillSpec
	Drain       *DrainSpec
	Scale       *ScaleSpec
}

// Measured returns how long the part of the run after the barrier lasts: Runtime, else the longest variable "runtime",
// in seconds, of its workloads; 0: it is not known.
func (p *Plan) Measured() time.Duration {
	if p.Runtime > 0 {
		return p.Runtime
	}
	longest := time.Duration(0)
	for i := range p.Actions {
		if w := p.Actions[i].Workload; w != nil {
			longest = max(longest, w.runtime())
		}
	}
	return longest
}

// runtime is the longest variable "runtime", in seconds, of the variants; 0: there is none.
func (w *Workload) runtime() time.Duration {
	longest := 0.0
	for _, params := range w.Params {
		if seconds, err := strconv.ParseFloat(params.Vars["runtime"], 64); err == nil {
			longest = max(longest, seconds)
		}
	}
	return time.Duration(longest * float64(time.Second))
}

// Workload creates the instances of a library workload.
type Workload struct {
	Entry     string // name in the library
	Origin    string // of the entry, for display
	SHA256    string // of the entry; see workload.Entry
	SyncGroup string
	// Outputs are the output files of the containers, with their parsers.
	Outputs []Output
	Canary  *engine.Canary
	// Template and Params are the input for rendering: instance i uses
	// Params[i%len(Params)].
	Template *workload.Entry
	Params   []workload.Params
	Vars     map[string]string // resolved variables with the same value in all Params
	// Own holds the variables that distinguish the variants, indexed as Params.
	Own    []map[string]string
	Labels map[string]string // from createObjSpec, for the targets of other actions
	// Limit is that of its tenant, if a control group enforces it; nil: none.
	Limit *engine.IOLimit
}

// Output is an output file of a workload, and its parser.
type Output struct {
	Container string
	File      string // glob pattern inside the container
	Parser    string // such as "fio"; empty: the output is kept raw
	// Script is the text of a parser script in the library entry. It is called with
	// the name of the file. Empty: Parser is a built-in parser. Image is the image of
	// the container in which the script runs.
	Script, Image string
	Phase         int // 0-based phase of the workload that writes the file
}

// Volume creates volumes.
type Volume struct {
	Action   string        // name of the action: the prefix of the volumes' names
	Template engine.Volume // a volume without its name and the labels of the run
}

// Manifest creates objects of any kind.
type Manifest struct {
	Template *workload.Object
	Params   workload.Params
	Labels   map[string]string // of each object, in addition to the labels of the run
}

// KillSpec describes how to kill workloads.
type KillSpec struct {
	Signal  string        // empty: delete the pods
	Grace   time.Duration // grace period of the deletion
	StopFor time.Duration // SIGSTOP: time until SIGCONT
}

// DrainSpec selects the node to drain: by name, or one of the nodes with the labels.
type DrainSpec struct {
	Node   string
	Labels map[string]string
}

// ScaleSpec describes how to scale. Successive ops set the numbers in Replicas in
// order, and start again at the first.
type ScaleSpec struct {
	Replicas []int32
	Script   *engine.Script // nil: use the scale subresource
}

// SnapshotSpec describes how to take snapshots of the targets.
type SnapshotSpec struct {
	Class string
	Group bool
}

// ResizeSpec describes how to grow a volume: to Bytes, by ByBytes, or by Factor.
type ResizeSpec struct {
	Bytes, ByBytes int64
	Factor         float64
}

// Target selects objects of the run.
type Target struct {
	Kind   engine.ObjectKind
	Action string            // created by this action, or volumes of its workloads
	Volume string            // created by this volume action; claim names become Labels instead
	Labels map[string]string // all must match; snapshots have the labels of their volumes
	Select Select
	// Makers are the actions that may create the targets. If one of them is part of
	// the same episode, the target is an object of that episode.
	Makers []string
	// Object is an object that the run did not create; nil: objects of the run.
	Object *engine.ObjectRef
}

// Select is the choice among the matching objects at each trigger.
type Select string

// Values of Select.
const (
	SelectAll        Select = "all"
	SelectOldest     Select = "oldest"
	SelectNewest     Select = "newest"
	SelectRandom     Select = "random"
	SelectRoundRobin Select = "roundRobin"
)

// Rate is a resolved entry of spec.rates, or the rate of one action's startAfter.
type Rate struct {
	Name string
	// Schedule is nil for a closed loop, for lifetimes and for a condition.
	Schedule schedule.Schedule
	// Parallelism is the number of ops in a closed loop. UntilEnded means that a slot
	// becomes free when the workload instance ends, not when it runs.
	Parallelism int
	UntilEnded  bool

	// Steps holds one step for each trigger of a trace; nil: each trigger runs all
	// actions of the rate. Before holds the steps that create the objects that existed
	// when the trace began. They run before the barrier.
	Steps, Before []Step
	// Trace is the trace file; nil: the rate replays no trace.
	Trace *TraceFile
	// Lifetime is set for a rate that triggers once for each object; nil: another kind
	// of rate.
	Lifetime *schedule.Lifetime
	// Condition is set for a rate that triggers when an expression becomes true; nil: another kind of rate.
	Condition *Condition `json:",omitempty"`

	StartAfter  time.Duration // start, from the barrier
	StartAction string        // or start after the first op of this action has ended
	Duration    time.Duration // 0: until the end of the run
	Limit       int64         // maximum number of triggers; 0: no limit
	MaxInFlight int           // maximum number of ops; 0: no limit
	Queue       bool          // true: onSaturation is queue; false: drop
}

// TraceFile identifies the file that a rate replays.
type TraceFile struct {
	Name    string // as given in the Benchmark
	SHA256  string // of all bytes of the file, without decompression; hexadecimal
	Records int
}

// Tenant is a resolved entry of spec.tenants, in the form in which a bundle records it.
type Tenant struct {
	Name      string         `json:"name"`
	Actions   []string       `json:"actions"`
	Aggressor bool           `json:"aggressor,omitempty"`
	Targets   []TenantTarget `json:"targets,omitempty"`
	Limit     *TenantLimit   `json:"limit,omitempty"`
	// Pools are where its volumes are: drivers, each with the pool that its StorageClass names. Empty: unknown.
	Pools []string `json:"pools,omitempty"`
	// StepsNs are the starts of the load steps of an aggressor, in ns after the barrier, in order.
	StepsNs []int64 `json:"stepsNs,omitempty"`
}

// TenantTarget is what an instance is to get of one kind of I/O in each second; 0: no such target.
type TenantTarget struct {
	Metric    string `json:"metric"`
	P99Ns     int64  `json:"p99Ns,omitempty"`
	IOPSFloor int64  `json:"iopsFloor,omitempty"`
}

// TenantLimit is the limit of each instance, over all its volumes; 0: none.
type TenantLimit struct {
	ReadIOPS   int64  `json:"readIOPS,omitempty"`
	WriteIOPS  int64  `json:"writeIOPS,omitempty"`
	ReadBps    int64  `json:"readBps,omitempty"`
	WriteBps   int64  `json:"writeBps,omitempty"`
	EnforcedBy string `json:"enforcedBy"`
}

// SLO is a named expression that compiles.
type SLO struct{ Name, Expr string }

// Budget counts what the plan creates if no op fails, is dropped or deletes an
// object. Poisson rates count with their mean. If Open is empty, the numbers are the
// total. Otherwise they are a lower bound: the contributions of rates without an end
// are only in Open.
type Budget struct {
	Volumes, Snapshots int64
	Pods               int64 // those that hold volumes on a cluster included, the runner's not
	Bytes              int64 // requested size of all volumes
	Ops                int64
	// Classes holds the volumes and their bytes by StorageClass. The key "" stands for
	// no class and for the cluster's default class.
	Classes map[string]ClassBudget `json:",omitempty"`
	// Open describes what each rate without an end adds, such as
	// "each5s: 0.6 snapshots per second until the workloads end".
	Open []string
	// Objects holds the load of object workloads on their stores.
	Objects []ObjectBudget `json:",omitempty"`
}

// ClassBudget is the number and the total bytes of the volumes of one StorageClass.
type ClassBudget struct{ Volumes, Bytes int64 }

// ObjectBudget is the load of an object workload on its store for each trigger of the
// action, summed over its instances.
type ObjectBudget struct {
	Action string
	Times  int64
	Open   bool // triggered by a rate without an end
	Works  []workload.StoreBudget
	// Makes holds the containers that it creates, by store, as the workload encodes them.
	Makes []json.RawMessage
}

// Step is what one trigger of a trace does: an action, and the objects of the trace
// that it involves.
type Step struct {
	Action int // index in Plan.Actions
	// Makes is the object that the op creates, On the object that it acts on; empty:
	// none.
	Makes, On string
}
