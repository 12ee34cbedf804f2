// Package engine is the seam between the loop, which decides what happens
// when, and the platforms that make it happen. The loop sees this interface,
// never agents, pods or sockets; an engine never sees rates or schedules.
//
// Package enginetest is the conformance suite that every engine passes.
package engine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Engine carries operations out on one platform. One value serves one run.
type Engine interface {
	// Capabilities says what the engine can do at all; callable before Open.
	Capabilities() Capabilities

	// Open makes the platform ready: starts drivers, listens for agents,
	// checks that the driver offers what s.Needs asks for. What it makes is in
	// s.Ledger before it exists. ctx bounds Open only.
	Open(ctx context.Context, s Session) error

	// Do carries out one request and returns when it is done, has failed, or
	// ctx has ended; the objects it made (also those made before a failure)
	// are returned in every case. It adds milestones to tr, never retries and
	// never queues without saying so in tr. Safe for concurrent use. Errors
	// are of type *Error or wrap ctx.Err().
	Do(ctx context.Context, r Request, tr *op.Trace) ([]Object, error)

	// Release opens the barrier of a sync group for the given instances: all
	// their containers that wait begin at the instant at. It returns when all
	// have acknowledged the time. The skew of each is reported to Sink.Started.
	Release(ctx context.Context, group string, instances []string, at op.Time) error

	// Stop asks the named instances to end (SIGTERM, then SIGKILL after
	// grace) and returns when they have ended and their outputs are complete.
	Stop(ctx context.Context, instances []string, grace time.Duration) error

	// Teardown removes everything this run made, dependants first, and
	// reports what it could not remove. It is idempotent. An engine that was
	// not opened can tear down what the ledger of a dead run lists.
	Teardown(ctx context.Context, ledger Ledger) error

	// Environment describes the platform under test for environment.json:
	// driver name and version, its parameters, its process. Called after Open.
	Environment(ctx context.Context) (map[string]any, error)

	// Close stops what Open started. The engine is of no use afterwards.
	Close() error
}

// Preparer is implemented by engines that have something durable to note before
// a request: the loop calls Prepare before the op starts, so that the wait for
// our own disk is lateness of the harness and no latency of the platform.
type Preparer interface {
	Prepare(r Request) error
}

// Prober is implemented by engines whose platform may be lost without their
// noticing at once. Lost is called once, when no op is in flight any more, and
// returns why the platform does not serve, or nil; ctx bounds it.
type Prober interface {
	Lost(ctx context.Context) error
}

// ProcessLister is implemented by engines on whose machine processes take part in
// the run that the runner did not start: a driver that was there before.
type ProcessLister interface {
	// Processes are their PIDs. It is called after Open.
	Processes() []int
}

// Reporter is implemented by engines that report on a run as a whole, beside its
// ops. Report is called once, after Teardown and before Close, in every run whose
// Open was called; ctx bounds it.
type Reporter interface {
	Report(ctx context.Context) RunReport
}

// RunReport is an engine's report on a whole run.
type RunReport struct {
	Findings      []Finding
	Distributions []op.Distribution
}

// Finding weakens, or explains, what was measured. Severity is one of the
// record's: "info", "warning", "invalid".
type Finding struct{ Name, Severity, Evidence string }

// Capabilities of an engine. A kind that is not in Actions is not supported.
type Capabilities struct {
	Engine string // its name, for people and for records
	// Cluster: pods and classes are those of a Kubernetes cluster. Templates go
	// to it as they are; else only what an engine can stand in for is taken.
	Cluster bool
	// BuiltInDrivers: the engine starts the drivers in the box, whose classes need
	// no manifest.
	BuiltInDrivers bool
	// Actions lists the supported kinds of action.
	Actions map[op.Kind]bool
	// Features are the finer points, by their name in the file:
	// "groupSnapshot", "block", "genericEphemeral", "static", "rwx", "manifest",
	// "volumeAttributesClass" (of a new volume), "node: other" (of a reattach),
	// "undo" (of a rollout), "object" (one that the run did not make).
	Features map[string]bool
}

// Session is what an engine is given for one run.
type Session struct {
	RunID string
	// Identity marks what the engine makes as this run's; zero: the engine draws
	// one, and nothing can be cleaned up by another process.
	Identity owned.Identity
	Clock    op.Clock
	Ledger   Ledger
	Sink     Sink
	// Dir is a scratch directory of the run (sockets, emptyDirs, logs);
	// absolute, exists, removed by the caller after Close.
	Dir string
	// Hurry ends when the user wants the run to end at once: what can be
	// removed in one step then is not taken apart first. nil: never.
	Hurry context.Context
	// MaxOutput is how many bytes of output are kept of one instance, and so how many
	// each of its containers need send at most; 0: no bound.
	MaxOutput int64
	// Needs are the powers that the plan will use, so that a driver that
	// lacks one is named before anything is created.
	Needs Needs
	// StorageClasses and SnapshotClasses by name.
	StorageClasses  map[string]storagev1.StorageClass
	SnapshotClasses map[string]SnapshotClass
}

// Needs lists the kinds of action and the features that a plan uses.
type Needs struct {
	Kinds    map[op.Kind]bool
	Features map[string]bool
	// Drivers are those of volumes that exist already; others have their class.
	Drivers []string
}

// SnapshotClass is what an engine must know of a VolumeSnapshotClass.
type SnapshotClass struct {
	Name       string
	Driver     string
	Parameters map[string]string
	Retain     bool // deletionPolicy: Retain
	Default    bool // the cluster says that it is its driver's default
}

// Request is one op to carry out: exactly one of the pointers is set.
type Request struct {
	ID       int64
	Action   string
	Instance int    // index of the op within its action
	Name     string // name of the object to make: a function of (run, action, index)
	Kind     op.Kind
	Target   Object // what the op acts on; zero: nothing, or several

	Workload *Workload
	Volume   *Volume
	Snapshot *Snapshot
	Resize   *Resize
	Modify   *Modify
	Reattach *Reattach
	Rollout  *Rollout
	Drain    *Drain
	Scale    *Scale
	Kill     *Kill
	Manifest *Manifest
	Delete   *Delete
}

// Workload asks for one instance of a workload: its claims, its config maps
// and its pods, all named. The op is done when its pods are ready: init
// containers done, `sync` containers waiting at their barrier, others started.
//
// An engine that gives objects other names on its platform changes the
// references to them in the pods likewise: names in volumes, envFrom and
// valueFrom, spec.subdomain (of a Service), and the values of the variables
// SERVICE_… that are a Service's name. A name that is none of these objects' is
// of something that exists already and stays as it is.
type Workload struct {
	Claims     []corev1.PersistentVolumeClaim
	ConfigMaps []corev1.ConfigMap
	// Services and Secrets are asked of engine kubernetes only.
	Services  []corev1.Service
	Secrets   []corev1.Secret
	Pods      []Pod
	SyncGroup string // barrier that its `sync` containers wait at; empty: none
	Canary    *Canary
}

// Pod is a pod template with what the file says of it beside its manifest.
// Containers that give no command are not wrapped (engine kubernetes only).
type Pod struct {
	corev1.Pod
	// Sync names the containers that wait at the barrier.
	Sync []string
	// Rendezvous: the containers in Sync are started at once and stand at the barrier
	// themselves, when they have prepared what they need; they may meet those of
	// other instances on the way. See package rendezvous.
	Rendezvous bool
	// Environment names variables of the runner's own environment that the
	// containers have too (engine local): credentials, which stand in no manifest.
	Environment []string
	// Outputs are the files to stream out as they grow, glob patterns as seen
	// inside the container.
	Outputs []string
	// Phases say when containers that wait at the barrier do their work, in
	// order of From; those that are not listed from its opening on.
	Phases []Phase
	// Service pods (role: server) do not end by themselves: the run does not
	// wait for them.
	Service bool
}

// Program is the path of this very program in a container: of its image, and on
// engine local of the file that runs.
const Program = "/cnsbench"

// Phase is the part of a run in which one container's command runs. Times
// count from the opening of the barrier that the instance waits at, also for a
// pod that was made again: it joins in where the phases are by then. A command
// that still runs at Until is ended, which is no failure; one that fails before
// ends its instance.
type Phase struct {
	Container string
	Number    int           // from 0
	From      time.Duration // 0: the barrier
	Until     time.Duration // 0: as long as it likes
	Grace     time.Duration // from SIGTERM, at Until, to SIGKILL
}

// Phase is that of a container; false: it has none.
func (p *Pod) Phase(container string) (Phase, bool) {
	for _, x := range p.Phases {
		if x.Container == container {
			return x, true
		}
	}
	return Phase{}, false
}

// Canary is a small open-loop I/O beside a workload, on each of its volumes:
// one O_DIRECT write and one read of Size bytes each Interval.
type Canary struct {
	Interval time.Duration
	Size     int
	Read     bool
	Write    bool
}

// Volume asks for one volume: empty, from a snapshot, or from a volume. With
// Attach it is also attached, staged and published, and (filesystems) a first
// write or (sources) a first read is made, invisible afterwards.
type Volume struct {
	Claim        corev1.PersistentVolumeClaim
	FromSnapshot *Object
	FromVolume   *Object
	Attach       bool
	// Static takes a volume that the driver has already; the claim has no
	// StorageClass then. nil: provisioned dynamically.
	Static *StaticVolume
	// Ephemeral makes the claim by a pod's template for a generic ephemeral
	// volume, so that it lives and dies with that pod. Attach is set too.
	Ephemeral bool
}

// StaticVolume is a volume that exists before the run, and is kept after it.
type StaticVolume struct {
	Driver     string
	Handle     string
	Attributes map[string]string // the driver's volume context
}

// Snapshot asks for a snapshot of one volume, or of several at one instant.
type Snapshot struct {
	Sources []Object // one, or with Group at least one
	Class   string
	Group   bool
}

// Resize asks for a volume to be grown to Bytes, controller then node.
type Resize struct {
	Target Object
	Bytes  int64
}

// Modify asks for new mutable parameters (VolumeAttributesClass).
type Modify struct {
	Target     Object
	Class      string            // name of the VolumeAttributesClass; empty: Parameters alone
	Parameters map[string]string // as far as they are known
}

// Reattach asks for a volume that is in use to be detached from its node and
// attached again: the pods that have it are deleted and, once it is detached,
// made again as they were. The op is done at their first write (or read).
// What restarted is released from its barrier at once, by the engine.
type Reattach struct {
	Target Object // a volume made with Attach, or of a workload
	// Node says where to: NodeSame, NodeOther or NodeAny.
	Node string
}

// Where a reattached volume goes.
const (
	NodeAny   = "any"
	NodeSame  = "same"
	NodeOther = "other"
)

// Rollout asks for the pods of a workload to be replaced one after another,
// each when the one before is ready again; of an object with a pod template
// (Deployment, StatefulSet, DaemonSet), for its own controller to do so. Undo
// goes back to the template before the last rollout.
type Rollout struct {
	Target Object // a WorkloadObject or a ManifestObject
	Undo   bool
}

// Drain asks for a node to be cordoned and emptied of the run's own pods, by
// eviction; they are made again on other nodes where nothing else does so. The
// op is done when the last is usable again; then the node is uncordoned.
type Drain struct {
	Node   string            // its name; or
	Labels map[string]string // one of those with these labels,
	Pick   uint64            // by this number modulo their count, in order of name
}

// Scale asks for an object to have so many replicas: by its scale subresource,
// or by a script that is called with the object and the number. The op is done
// when that many are ready and those that were too many are gone.
type Scale struct {
	Target   Object // a ManifestObject
	Replicas int32
	Script   *Script // nil: the scale subresource
}

// Script is a program that a file brings.
type Script struct {
	Text           string // begins with #!
	Image          string // kubernetes: where it runs
	ServiceAccount string // kubernetes: whose rights it has
}

// Kill asks for a workload's processes to be sent a signal, or for its pods to
// be deleted with Grace. The op is done when they are gone, have been replaced
// and made their first write. The engine makes the pods again as they were,
// whoever else might, and releases them from their barrier at once; the end of
// those that it replaced is not Ended's, and their containers' starts, ends and
// outputs have names of their own: Restarted. What can no longer be replaced has
// ended, not OK.
//
// SIGSTOP is a hang: after StopFor the processes get SIGCONT, and the op is done
// when they have resumed and made their first write; nothing is gone.
type Kill struct {
	Target  Object // a WorkloadObject
	Signal  string // "SIGKILL", …; empty: the pods are deleted
	Grace   time.Duration
	StopFor time.Duration
}

// Restarted is the name under which the n-th restart of a container reports its
// start, its end and its outputs; of the first start (0) it is the container's
// own. What each incarnation writes begins at offset 0.
func Restarted(container string, n int) string {
	if n == 0 {
		return container
	}
	return fmt.Sprintf("%s~%d", container, n)
}

// Manifest asks for any object (engine kubernetes), named as the request is.
type Manifest struct {
	Object unstructured.Unstructured
}

// Delete asks for an object to be removed with all that belongs to it.
type Delete struct{ Target Object }

// ObjectKind tells objects apart.
type ObjectKind string

// The kinds of object that ops make and are done to.
const (
	VolumeObject        ObjectKind = "volume"
	SnapshotObject      ObjectKind = "snapshot"
	GroupSnapshotObject ObjectKind = "groupSnapshot"
	WorkloadObject      ObjectKind = "workload"
	ManifestObject      ObjectKind = "object" // made of a manifest
)

// Object is something that exists on the platform because of this run. It is
// a value; engines find what they know of it by Kind and Name.
type Object struct {
	Kind   ObjectKind
	Name   string            // unique in the run within its kind
	Handle string            // what the driver or platform calls it
	Action string            // the action that made it
	Owner  string            // a volume's workload instance, a snapshot's group; or empty
	Source string            // a snapshot's or clone's volume, a restored volume's snapshot
	Class  string            // its StorageClass or VolumeSnapshotClass
	Bytes  int64             // size as the platform granted it
	Labels map[string]string // of its manifest
	// Ref is where an object is that the run did not make (a ManifestObject, as
	// the target of a scale or a delete); nil: of this run.
	Ref *ObjectRef
}

// ObjectRef names an object of the platform.
type ObjectRef struct {
	APIVersion, Kind string
	Namespace        string // empty: the run's, if its kind has one
	Name             string
}

// Ledger remembers what must be removed, beyond the life of the process. Add
// returns after the entry is durable and is called before the thing exists;
// Done is called after it is gone. Safe for concurrent use.
type Ledger interface {
	Add(e op.LedgerEntry) error
	Done(kind, name string) error
	// Open lists entries not done, oldest first.
	Open() []op.LedgerEntry
}

// DriverOutput is the instance under which Sink.Output gets what a driver in the box
// wrote. It is no workload's: it grows with the ops, and is kept whole.
const DriverOutput = "driver"

// Sink takes what happens outside ops. Calls may come from any goroutine and
// must not block for long.
type Sink interface {
	// Started reports that a container left its barrier, or began without one.
	Started(s op.InstanceStart)
	// Ended reports that an instance has ended, with the exit of each container.
	Ended(e op.InstanceEnd)
	// Sample is one reading of an instance's I/O.
	Sample(s op.Sample)
	// Machine is one reading of a machine that runs workloads and not the runner.
	Machine(m op.Machine)
	// Canary delivers canary I/Os in order of their intended time.
	Canary(instance, volume string, ios []op.CanaryIO)
	// Output delivers bytes of an output file, in order, from offset 0, and returns
	// how many of them are kept. Once that is fewer, no more of the file is.
	Output(instance, container, file string, data []byte) (kept int)
	// Cut reports how many bytes of an output file were discarded at their source so
	// far, beyond those that Output was given; final: in all.
	Cut(instance, container, file string, discarded int64, final bool)
	// Log is a line for people: where ("driver", "fio-0/fio"), and what.
	Log(source, line string)
	// Failed reports that the platform itself is lost (the driver died): the
	// run cannot go on.
	Failed(err error)
}

// Error is a failure of an op with a code that the record keeps.
type Error struct {
	Code    string // "ResourceExhausted", "ProcessFailed", …
	Message string
	Err     error
}

// Errorf returns an Error with a formatted message.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap sets the cause of e and returns e.
func (e *Error) Wrap(err error) *Error {
	e.Err = err
	return e
}

// Error names the code and what happened.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
