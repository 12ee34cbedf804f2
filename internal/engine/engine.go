// Package engine is the interface between the loop, which decides what happens when, and the platforms that
// execute it. The loop never sees agents, pods or sockets; an engine never sees rates or schedules.
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

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/podtemplate"
)

// Engine executes operations on one platform. One value serves one run.
type Engine interface {
	// Capabilities returns what the engine supports; callable before Open.
	Capabilities() Capabilities

	// Open prepares the platform: it starts drivers, listens for agents, and checks that the driver supports
	// s.Needs. Everything it makes is in s.Ledger before it exists. ctx bounds Open only.
	Open(ctx context.Context, s Session) error

	// Do executes one request and returns when it is done, has failed, or ctx has ended; it always returns
	// the objects it made, also after a failure. It adds milestones to tr, never retries and never queues
	// without recording that in tr. Safe for concurrent use. Errors are of type *Error or wrap ctx.Err().
	Do(ctx context.Context, r Request, tr *op.Trace) ([]Object, error)

	// Release opens the barrier of a sync group for the given instances: their waiting containers start at
	// the instant at. It returns when all have acknowledged the instant. Sink.Started reports the skew of
	// each.
	Release(ctx context.Context, group string, instances []string, at op.Time) error

	// Stop asks the named instances to end (SIGTERM, then SIGKILL after grace) and returns when they have
	// ended and their outputs are complete.
	Stop(ctx context.Context, instances []string, grace time.Duration) error

	// Teardown removes everything this run made, dependants first, and reports what it could not remove. It
	// is idempotent. An engine that is not open can tear down what the ledger of a dead run lists.
	Teardown(ctx context.Context, ledger Ledger) error

	// Environment describes the platform under test for environment.json: driver name and version, its
	// parameters, its process. Called after Open.
	Environment(ctx context.Context) (map[string]any, error)

	// Close stops what Open started. The engine cannot be used afterwards.
	Close() error
}

// Preparer is implemented by engines that record something durably before a request: the loop calls Prepare
// before the op starts, so that the wait for the runner's disk counts as lateness of the harness and not as
// latency of the platform.
type Preparer interface {
	Prepare(r Request) error
}

// Prober is implemented by engines that may not notice the loss of their platform at once. Lost is called
// once, when no op is in flight any more, and returns why the platform does not respond, or nil; ctx bounds
// it.
type Prober interface {
	Lost(ctx context.Context) error
}

// ProcessLister is implemented by engines with processes on this machine that take part in the run but were
// not started by the runner: an external driver.
type ProcessLister interface {
	// Processes returns their PIDs. It is called after Open.
	Processes() []int
}

// Reporter is implemented by engines that report on a run as a whole, beside its
// ops. Report is called once, after Teardown and before Close, in every run whose
// Open was called; ctx bounds it.
type Reporter interface {
	Report(ctx context.Context) RunReport
}

// LogReader is implemented by engines that can read the logs of what served the ops: drivers, sidecars, controllers.
type LogReader interface {
	// ReadLogs passes the lines of the windows to keep, those of one source in order of time, and returns which
	// logs could not be read, and why, each once. Lines outside of the windows may be among them. It is called once,
	// after Stop and before Teardown: never while ops are measured. What it reads is bounded; ctx bounds its time.
	// keep is safe for concurrent use.
	ReadLogs(ctx context.Context, windows []LogWindow, keep func(at op.Time, source, line string)) (notes []string)
}

// LogWindow is a part of a run, both ends included. Windows are disjoint and in order of time.
type LogWindow struct{ From, To op.Time }

// RunReport is an engine's report on a whole run.
type RunReport struct {
	Findings      []Finding
	Distributions []op.Distribution
}

// Finding weakens or explains a measurement. Severity is "info", "warning" or "invalid", as in the bundle.
type Finding struct{ Name, Severity, Evidence string }

// Capabilities of an engine. Kinds missing in Actions are not supported.
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
	// Features by their name in the file: "groupSnapshot", "block", "genericEphemeral", "static", "rwx",
	// "manifest", "volumeAttributesClass" (of a new volume), "node: other" (of a reattach), "undo" (of a
	// rollout), "object" (one that the run did not make), "ioLimit" (of a workload's containers).
	Features map[string]bool
}

// Session is the input of an engine for one run.
type Session struct {
	RunID string
	// Identity marks what the engine makes as this run's; zero: the engine draws one, and no other process
	// can clean up.
	Identity owned.Identity
	Clock    op.Clock
	Ledger   Ledger
	Sink     Sink
	// Dir is a scratch directory of the run (sockets, emptyDirs, logs); absolute, existing, removed by the
	// caller after Close.
	Dir string
	// Hurry ends when the user wants the run to end at once: the teardown then skips steps that are implied
	// by later ones. nil: never.
	Hurry context.Context
	// MaxOutput is how many bytes of output are kept per instance, which bounds what each of its containers
	// sends; 0: no bound.
	MaxOutput int64
	// Sampling says what is read of workloads' processes, and how often.
	Sampling op.Sampling
	// Live is how soon samples and I/Os of canaries must reach Sink; 0: as the engine does.
	Live time.Duration
	// Needs are the capabilities that the plan uses, so that a driver that lacks one is named before anything
	// is created.
	Needs Needs
	// StorageClasses and SnapshotClasses by name.
	StorageClasses  map[string]storagev1.StorageClass
	SnapshotClasses map[string]SnapshotClass
	// Secrets are those that the classes name, for the calls of CSI drivers.
	Secrets Secrets
	// PodTemplate is merged into every pod (engine kubernetes); nil: none.
	PodTemplate *podtemplate.Template
	// Queue says what to do while another run uses a driver (engine kubernetes).
	Queue Queue
}

// Namespace is that of claims and snapshots on an engine without namespaces.
const Namespace = "default"

// Secrets are Secrets for CSI drivers, by reference. One without a namespace is in every namespace. They are in no
// record.
type Secrets map[sidecar.Reference]map[string]string

// Of returns the values of a Secret; false: it is not here.
func (s Secrets) Of(r sidecar.Reference) (map[string]string, bool) {
	values, ok := s[r]
	if !ok {
		values, ok = s[sidecar.Reference{Name: r.Name}]
	}
	return values, ok
}

// Needs lists the kinds of action and the features of a plan.
type Needs struct {
	Kinds    map[op.Kind]bool
	Features map[string]bool
	// Drivers of existing volumes; other volumes have a class.
	Drivers []string
	// Containers is how many run at the same time once the instances of the set-up are ready.
	Containers int
}

// SnapshotClass has the used fields of a VolumeSnapshotClass.
type SnapshotClass struct {
	Name       string
	Driver     string
	Parameters map[string]string
	Retain     bool // deletionPolicy: Retain
	// Metadata: the driver receives the names of the snapshot's objects; see sidecar.ExtraMetadata.
	Metadata bool
	Default  bool // the cluster's default for its driver
}

// Request is one op: exactly one of the pointers is set.
type Request struct {
	ID       int64
	Action   string
	Instance int    // index of the op within its action
	Name     string // name of the object to create: a function of (run, action, index)
	Kind     op.Kind
	Target   Object // what the op acts on; zero: nothing, or several

	// PodTemplate is merged into the pods of the request, after that of the session; nil: none.
	PodTemplate *podtemplate.Template

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
}

// Workload asks for one instance of a workload: its claims, config maps and pods, all named. The op is done
// when its pods are ready: init containers done, `sync` containers waiting at their barrier, others started.
//
// An engine that renames objects on its platform changes the references in the pods too: names in volumes,
// envFrom and valueFrom, spec.subdomain (of a Service), and the values of the variables SERVICE_… that are
// a Service's name. A name of none of these objects refers to an existing one and stays unchanged.
type Workload struct {
	Claims     []corev1.PersistentVolumeClaim
	ConfigMaps []corev1.ConfigMap
	// Services and Secrets are used with engine kubernetes only.
	Services  []corev1.Service
	Secrets   []corev1.Secret
	Pods      []Pod
	SyncGroup string // barrier of its `sync` containers; empty: none
	Canary    *Canary
	// Limit bounds the I/O of the containers on the devices of the claims, from their start on; init containers
	// have none. nil: no limit. Only for engines with the feature "ioLimit".
	Limit *IOLimit
}

// IOLimit is the most I/O that an instance may do on each device of its volumes; 0: no limit.
type IOLimit struct {
	ReadIOPS, WriteIOPS int64 // per second
	ReadBps, WriteBps   int64 // bytes per second
}

// Pod is a pod template with additional settings. Containers without a command are not wrapped (engine
// kubernetes only).
type Pod struct {
	corev1.Pod
	// Sync names the containers that wait at the barrier.
	Sync []string
	// Rendezvous: the containers in Sync start at once and wait at the barrier themselves, after their
	// preparation; they may also wait for those of other instances. See package rendezvous.
	Rendezvous bool
	// CountSyncs: the ends of the main containers have their calls for durability (op.Syncs).
	CountSyncs bool
	// Environment names variables of the runner's own environment that the containers receive (engine local):
	// credentials, which are in no manifest.
	Environment []string
	// Outputs are glob patterns of files to stream, in the container's file system.
	Outputs []string
	// Phases are when the containers that wait at the barrier do their work, in order of From; unlisted
	// containers work from its opening on.
	Phases []Phase
	// Service pods (role: server) do not end by themselves: the run does not wait for them.
	Service bool
}

// Program is the path of the cnsbench program in a container: the image's, or on engine local the running
// file.
const Program = "/cnsbench"

// Phase is the part of a run in which one container's command runs. Times count from the opening of the
// instance's barrier, also for a replaced pod, which continues with the current phase. A command that still
// runs at Until is ended, which is no failure; one that fails before ends its instance.
type Phase struct {
	Container string
	Number    int           // from 0
	From      time.Duration // 0: the barrier
	Until     time.Duration // 0: until it exits
	Grace     time.Duration // from SIGTERM, at Until, to SIGKILL
}

// Phase returns the phase of a container; false: it has none.
func (p *Pod) Phase(container string) (Phase, bool) {
	for _, x := range p.Phases {
		if x.Container == container {
			return x, true
		}
	}
	return Phase{}, false
}

// Canary is a small open-loop I/O beside a workload, on each of its volumes: one O_DIRECT write and one read
// of Size bytes each Interval.
type Canary struct {
	Interval time.Duration
	Size     int
	Read     bool
	Write    bool
}

// Volume asks for one volume: empty, from a snapshot, or from a volume. With Attach it is also attached,
// staged and published, and a first write (empty file systems) or first read (with a source) is made, which
// leaves nothing on the volume.
type Volume struct {
	Claim        corev1.PersistentVolumeClaim
	FromSnapshot *Object
	FromVolume   *Object
	Attach       bool
	// Static uses an existing volume of the driver; the claim has no StorageClass then. nil: provision
	// dynamically.
	Static *StaticVolume
	// Ephemeral creates the claim by a pod's template for a generic ephemeral volume, so that it is deleted
	// with that pod. Attach is set too.
	Ephemeral bool
}

// StaticVolume is a volume that exists before the run and is kept after it.
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
	Bytes int64
}

// Modify asks for new mutable parameters (VolumeAttributesClass).
type Modify struct {
	Class      string            // name of the VolumeAttributesClass; empty: Parameters alone
	Parameters map[string]string // as far as known
}

// Reattach asks for a volume in use to be detached from its node and attached again: the pods that use it are
// deleted and, once it is detached, replaced by equal ones. The op is done at their first write (or read).
// The engine releases replaced pods from their barrier at once.
type Reattach struct {
	// Node is the destination: NodeSame, NodeOther or NodeAny.
	Node string
}

// Destinations of a reattached volume.
const (
	NodeAny   = "any"
	NodeSame  = "same"
	NodeOther = "other"
)

// Rollout asks for the pods of a workload to be replaced one after another, each when the previous one is
// ready again; of an object with a pod template (Deployment, StatefulSet, DaemonSet), by its own controller.
// Undo returns to the template before the last rollout.
type Rollout struct {
	Undo bool
}

// Drain asks for a node to be cordoned and the run's own pods evicted; they are replaced on other nodes where
// no controller does so. The op is done when the last is usable again; then the node is uncordoned.
type Drain struct {
	Node   string            // name, or
	Labels map[string]string // one of the nodes with these labels,
	Pick   uint64            // by this number modulo their count, in order of name
}

// Scale asks for an object to have a number of replicas: by its scale subresource, or by a script that is
// called with the object and the number. The op is done when that many are ready and the surplus ones are
// gone.
type Scale struct {
	Replicas int32
	Script   *Script // nil: the scale subresource
}

// Script is a program in the Benchmark file.
type Script struct {
	Text           string // begins with #!
	Image          string // kubernetes: where it runs
	ServiceAccount string // kubernetes: its service account
}

// Kill asks for a workload's processes to receive a signal, or for its pods to be deleted with Grace. The op
// is done when they are gone, have been replaced and made their first write. The engine replaces the pods by
// equal ones and releases them from their barrier at once; the end of a replaced pod is not reported by
// Ended, and the replacement's containers report under names of their own: Restarted. A pod that cannot be
// replaced has ended, not OK.
//
// SIGSTOP is a hang: after StopFor the processes receive SIGCONT, and the op is done when they have resumed
// and made their first write; nothing is gone.
type Kill struct {
	Signal  string // "SIGKILL", …; empty: the pods are deleted
	Grace   time.Duration
	StopFor time.Duration
}

// Restarted is the name under which the n-th restart of a container reports its start, its end and its
// outputs; for the first start (0) it is the container's own. Each restart's output begins at offset 0.
func Restarted(container string, n int) string {
	if n == 0 {
		return container
	}
	return fmt.Sprintf("%s~%d", container, n)
}

// Manifest asks for any object (engine kubernetes), named like the request.
type Manifest struct {
	Object unstructured.Unstructured
}

// ObjectKind is the kind of an object.
type ObjectKind string

// The kinds of objects that ops create and act on.
const (
	VolumeObject        ObjectKind = "volume"
	SnapshotObject      ObjectKind = "snapshot"
	GroupSnapshotObject ObjectKind = "groupSnapshot"
	WorkloadObject      ObjectKind = "workload"
	ManifestObject      ObjectKind = "object" // made of a manifest
)

// Object is an object of this run on the platform. It is a value; engines find their state by Kind and Name.
type Object struct {
	Kind   ObjectKind
	Name   string            // unique in the run within its kind
	Handle string            // id at the driver or platform
	Action string            // the action that created it
	Owner  string            // a volume's workload instance, a snapshot's group; or empty
	Source string            // a snapshot's or clone's volume, a restored volume's snapshot
	Class  string            // its StorageClass or VolumeSnapshotClass
	Bytes  int64             // size granted by the platform
	Labels map[string]string // of its manifest
	// Ref locates an object that the run did not make (a ManifestObject, as the target of a scale or a
	// delete); nil: of this run.
	Ref *ObjectRef
}

// ObjectRef names an object of the platform.
type ObjectRef struct {
	APIVersion, Kind string
	Namespace        string // empty: the run's, if its kind has one
	Name             string
}

// Ledger records what must be removed, beyond the life of the process. Add returns when the entry is durable
// and is called before the object exists; Note does not wait, and is for objects that a clean-up finds without an
// entry; Done is called after the object is gone. Safe for concurrent use.
type Ledger interface {
	Add(e op.LedgerEntry) error
	Note(e op.LedgerEntry) error
	Done(kind, name string) error
	// Open lists entries not done, oldest first.
	Open() []op.LedgerEntry
}

// DriverOutput is the instance of Sink.Output for files of a built-in driver. It belongs to no workload: it
// grows with the ops, and is kept whole.
const DriverOutput = "driver"

// A check reports on a volume in this file of this container; the instance is the name of its request.
const (
	CheckOutput = "check"
	CheckFile   = "image.json"
)

// Sink receives reports outside of ops. Calls may come from any goroutine and must not block for long.
type Sink interface {
	// Started reports that a container passed its barrier, or started without one.
	Started(s op.InstanceStart)
	// Ended reports that an instance has ended, with the exit of each container.
	Ended(e op.InstanceEnd)
	// Sample is one reading of an instance's I/O.
	Sample(s op.Sample)
	// Machine is one reading of a machine that runs workloads but not the runner.
	Machine(m op.Machine)
	// Volume is what a driver reported of a volume.
	Volume(r op.VolumeReading)
	// Canary delivers canary I/Os in order of their intended time.
	Canary(instance, volume string, ios []op.CanaryIO)
	// Output delivers bytes of an output file, in order, from offset 0, and returns how many are kept. Once
	// that is less, no further bytes of the file are.
	Output(instance, container, file string, data []byte) (kept int)
	// Cut reports how many bytes of an output file were discarded at their source so far, beyond those passed
	// to Output; final: in all.
	Cut(instance, container, file string, discarded int64, final bool)
	// Log is a log line with its source ("driver", "fio-0/fio").
	Log(source, line string)
	// Failed reports that the platform is lost (the driver died): the run must end.
	Failed(err error)
}

// LiveSink is implemented by sinks that judge a run in progress.
type LiveSink interface {
	// CanaryOpen reports, if Session.Live is set, the I/Os that were due at an instant and that a later call of
	// Sink.Canary delivers: those without an end, and those behind them in order.
	CanaryOpen(instance, volume string, open []op.CanaryIO, at op.Time)
}

// Error is a failure of an op with a code that is stored in the bundle.
type Error struct {
	Code    string // "ResourceExhausted", "ProcessFailed", …
	Message string
	Err     error
}

// Errorf returns an Error with a formatted message, which is cut as that of another program.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: bounded.Message(fmt.Sprintf(format, args...))}
}

// Wrap sets the cause of e and returns e.
func (e *Error) Wrap(err error) *Error {
	e.Err = err
	return e
}

// Error returns the code and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// SampleLeveler is implemented by engines that can read less of workloads from now on, and more again.
type SampleLeveler interface {
	// SetSampleLevel changes what is read of all workloads. It does not block.
	SetSampleLevel(level op.SampleLevel)
}
