// Package plan turns a Benchmark file into a resolved plan: schema, defaults
// and CEL rules applied offline by the apiserver's own libraries, templates
// rendered, names resolved, targets checked, the budget added up, and every
// problem reported at once with its place.
//
// It is pure: files in, a Plan or a list of Problems out. Nothing is created.
package plan

import (
	"encoding/json"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// Plan is a Benchmark with nothing left to decide but what depends on time
// and on the platform. It is immutable after Load.
type Plan struct {
	Name      string
	Benchmark *v1alpha1.Benchmark // with defaults
	Seed      uint64
	// Runtime is the hard stop, counted from the barrier; 0: the run ends when
	// its workloads do.
	Runtime time.Duration
	// Grace is how long ops in flight may still take after the stop, before
	// they are censored: the second deadline.
	Grace time.Duration
	// MaxOutput bounds what is kept of the output of workloads.
	MaxOutput MaxOutput
	Actions   []Action
	Rates     []Rate
	SLOs      []SLO

	// Those that the plan uses, with substitutes for their drivers.
	StorageClasses  map[string]storagev1.StorageClass
	SnapshotClasses map[string]engine.SnapshotClass

	Needs    engine.Needs
	Budget   Budget
	Warnings []Problem

	// Cluster: the names of classes are those of a cluster, not of the files.
	Cluster bool
	// Given are the ConfigMaps and VolumeAttributesClasses of the files.
	Given []any `json:",omitempty"`
}

// Action is one entry of spec.actions, resolved.
type Action struct {
	Name string
	Kind op.Kind
	Rate string // name of its rate; empty: once, at the start
	// Count is how many instances one trigger makes (create), else 1.
	Count   int
	Timeout time.Duration // deadline of each op
	Then    []string      // actions that follow each op of this one, in order
	// Chained actions are only reached by another's Then.
	Chained bool

	Target   *Target   // what everything but create and drain acts on
	Workload *Workload // create: a workload
	Manifest *Manifest // create: any object
	Volume   *Volume   // create: a volume; restore, clone: what the new one is like
	Snapshot *SnapshotSpec
	Resize   *ResizeSpec
	Modify   map[string]string // parameters, as far as they are known
	// ModifyClass is the cluster's VolumeAttributesClass; empty: of Modify alone.
	ModifyClass string
	Node        string // reattach: engine.NodeSame, NodeOther or NodeAny
	Undo        bool   // rollout
	Kill        *KillSpec
	Drain       *DrainSpec
	Scale       *ScaleSpec
}

// Workload makes the instances of a library workload.
type Workload struct {
	Entry     string // name in the library
	Origin    string // of the entry, for people
	SHA256    string // of the entry, as workload.Entry has it
	SyncGroup string
	// Metrics names the parser by container output: how outputs become numbers.
	Outputs []Output
	Canary  *engine.Canary
	// Template and Params are what instances are rendered from: instance i by the
	// Params at i modulo their number.
	Template *workload.Entry
	Params   []workload.Params
	Vars     map[string]string // as resolved, for the record: those that all have
	// Own are the variables that set instance i apart, indexed as Params.
	Own    []map[string]string
	Labels map[string]string // that the file gives it, by which actions find it
}

// Output is a file that a workload writes and the parser that reads it.
type Output struct {
	Container string
	File      string // glob inside the container
	Parser    string // "fio", "" = kept raw
	// Script is the text of a parser that the library entry brings, which is
	// called with the file's name; empty: Parser is one of ours. Image is where
	// it runs in a container of its own.
	Script, Image string
	Phase         int // of the workload, in which it is written; from 0
}

// Volume makes a volume.
type Volume struct {
	Action   string        // its name, from which volumes are named
	Template engine.Volume // each volume, but for its name and its labels of the run
}

// Manifest makes any object.
type Manifest struct {
	Template *workload.Object
	Params   workload.Params
	Labels   map[string]string // of each object, beside those that name its run
}

// KillSpec says how workloads are killed.
type KillSpec struct {
	Signal  string        // empty: the pods are deleted
	Grace   time.Duration // of the deletion
	StopFor time.Duration // SIGSTOP: until SIGCONT
}

// DrainSpec says which node is drained: that of the name, or one of those with
// the labels.
type DrainSpec struct {
	Node   string
	Labels map[string]string
}

// ScaleSpec says how many replicas there are to be: one of the numbers after
// another, and again from the first.
type ScaleSpec struct {
	Replicas []int32
	Script   *engine.Script // nil: by the scale subresource
}

// SnapshotSpec says how to snapshot the targets.
type SnapshotSpec struct {
	Class string
	Group bool
}

// ResizeSpec says how much to grow: to Bytes, or by ByBytes, or by Factor.
type ResizeSpec struct {
	Bytes, ByBytes int64
	Factor         float64
}

// Target selects objects of the run.
type Target struct {
	Kind   engine.ObjectKind
	Action string            // made by this action (volumes: also those of its workloads)
	Volume string            // made by the action of this name (names of claims become Labels)
	Labels map[string]string // all must match; of snapshots: those of their volumes
	Select Select
	// Makers are the actions whose objects these may be. In an episode that has
	// one of them it is the episode's own objects that are meant.
	Makers []string
	// Object is one that the run did not make; nil: of the run.
	Object *engine.ObjectRef
}

// Select says which of the matching objects one trigger takes.
type Select string

// The selections.
const (
	SelectAll        Select = "all"
	SelectOldest     Select = "oldest"
	SelectNewest     Select = "newest"
	SelectRandom     Select = "random"
	SelectRoundRobin Select = "roundRobin"
)

// Rate is one entry of spec.rates, resolved.
type Rate struct {
	Name string
	// Schedule is nil for a closed loop and for lifetimes.
	Schedule schedule.Schedule
	// Parallelism of a closed loop; UntilEnded: a slot is free again when the
	// workload instance has ended, not already when it runs.
	Parallelism int
	UntilEnded  bool

	// Steps are what a trace's triggers do, one each; nil: all actions of the
	// rate. Before are those for what was there when the trace began: they are
	// done before the barrier.
	Steps, Before []Step
	// Trace is the file that they are from; nil: another rate.
	Trace *TraceFile
	// Lifetime of a rate that triggers once for each object; nil: another rate.
	Lifetime *schedule.Lifetime

	StartAfter  time.Duration // after the barrier
	StartAction string        // or after this action's first op has ended
	Duration    time.Duration // 0: to the end
	Limit       int64         // triggers; 0: no limit
	MaxInFlight int           // ops; 0: no limit
	Queue       bool          // onSaturation: queue; else drop
}

// TraceFile says which file it was that a rate replays.
type TraceFile struct {
	Name    string // as the Benchmark has it
	SHA256  string // of the file as it is, compressed or not, in hex
	Records int
}

// SLO is a named expression, known to compile.
type SLO struct{ Name, Expr string }

// Budget is what the plan makes if nothing fails, nothing is dropped and
// nothing deleted: of Poisson rates the mean. It is all there is if Open is
// empty, and else the least: what rates without an end add is only in Open.
type Budget struct {
	Volumes, Snapshots, Pods int64
	Bytes                    int64 // of volumes, as requested
	Ops                      int64
	// Classes are the volumes and their bytes by StorageClass; "" has those of
	// none, or of a cluster's default.
	Classes map[string]ClassBudget `json:",omitempty"`
	// Open says of each rate without an end what it adds, such as
	// "each5s: 0.6 snapshots per second until the workloads end".
	Open []string
	// Objects are what object workloads ask of their stores.
	Objects []ObjectBudget `json:",omitempty"`
}

// ClassBudget is what the volumes of one StorageClass come to.
type ClassBudget struct{ Volumes, Bytes int64 }

// ObjectBudget is what an object workload asks of its store each time that it is
// carried out, by all its instances together.
type ObjectBudget struct {
	Action string
	Times  int64
	Open   bool // it goes on at a rate without an end
	Works  []workload.StoreBudget
	// Makes are the containers that it makes, by store, as the workload encodes them.
	Makes []json.RawMessage
}

// Problem is something wrong (or doubtful) in a file, with its place.
type Problem struct {
	File         string
	Line, Column int    // 1-based; 0: unknown
	Path         string // spec.actions[0].createObjSpec.workload
	Message      string // what is wrong
	Hint         string // what to do; may be empty
}
