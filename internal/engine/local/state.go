package local

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Engine is the local engine of one run. It implements engine.Engine.
type Engine struct {
	Options
	session engine.Session
	own     owned.Identity
	node    string
	ctx     context.Context // of the run, not cancelled
	agents  *agent.Server
	host    *pod.Host
	pods    *podSink
	program string      // this program's binary
	silent  atomic.Bool // a removal got no answer from a built-in driver
	tired   atomic.Bool // a removal at an external driver was repeated in vain until its deadline

	sampleLevel atomic.Pointer[op.SampleLevel]
	stopStats   func()         // ends the readings of volumes; nil: there are none
	following   sync.WaitGroup // their goroutines

	mu        sync.Mutex
	drivers   map[string]*driver // by provisioner
	volumes   map[string]*volume
	snapshots map[string]*snapshot
	workloads map[string]*workload
	ids       map[objectID]string // the names of these volumes and snapshots
	silences  map[string]int      // by socket: removals in turn that its driver did not answer

	entries sync.Map // of the ledger, of objects of external drivers: entryKey → op.LedgerEntry
}

func (e *Engine) workload(name string) *workload {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.workloads[name]
}

// objectID is the ID of a volume, a snapshot or a group at its driver.
type objectID struct {
	driver *driver
	kind   engine.ObjectKind
	id     string
}

// driver is a connection to one CSI driver and, for a built-in one, its process.
type driver struct {
	engine  *Engine
	name    string // provisioner
	backend string // of a built-in driver; empty: external
	socket  string
	baseDir string

	conn           *grpc.ClientConn
	identity       csi.IdentityClient
	controller     csi.ControllerClient
	nodeClient     csi.NodeClient
	groups         csi.GroupControllerClient
	info           *csi.GetPluginInfoResponse
	nodeID         string
	topology       *csi.TopologyRequirement // this machine's; nil: the driver has none
	controllerCaps map[csi.ControllerServiceCapability_RPC_Type]bool
	nodeCaps       map[csi.NodeServiceCapability_RPC_Type]bool
	grouping       bool

	process     *os.Process
	exited      chan struct{}
	exitErr     error
	stderr      tail
	closing     sync.Once
	stopped     chan struct{}             // closed when the driver is asked to end, after which its exit is no failure
	listening   atomic.Bool               // it has started; an earlier exit is a failed start
	unreachable atomic.Pointer[time.Time] // since when no call reached it; nil: the last one did
	unavailable atomic.Bool               // a call returned Unavailable: Lost probes again
	statsNanos  int64                     // CPU time of the readings of volumes; only their goroutine uses it
}

// title names the driver in messages, as it names itself: behind --csi-endpoint the provisioner of a StorageClass may
// be another.
func (d *driver) title() string { return "driver " + cmp.Or(d.info.GetName(), d.name, "at "+d.socket) }

// secrets are the references to the Secrets of an object's calls, by kind. Their values are looked up for each call, so
// that no state has them.
type secrets map[sidecar.Secret]sidecar.Reference

// volume is the engine's state of one volume. An op owns it while it works on it; the loop does not direct
// two ops that change it at the same volume.
type volume struct {
	object     engine.Object // Bytes is guarded by the engine's mutex: clones read it during a resize
	growing    int64         // requested size of a resize in progress; guarded likewise
	driver     *driver
	request    *csi.CreateVolumeRequest
	secrets    secrets
	id         string
	context    map[string]string // from CreateVolume
	publish    map[string]string // from ControllerPublishVolume
	capability *csi.VolumeCapability
	readOnly   bool

	stagePath, targetPath       string
	attached, staged, published bool // guarded by state: a resize may read them during a reattach
	used                        bool // it has been published; guarded likewise
	state                       sync.Mutex
	ops                         opGuard
	stats                       opGuard // of a reading of its statistics; closed unless attach has ended
}

// is reads one of the state flags.
func (v *volume) is(flag *bool) bool {
	v.state.Lock()
	defer v.state.Unlock()
	return *flag
}

func (v *volume) set(flag *bool, value bool) {
	v.state.Lock()
	defer v.state.Unlock()
	*flag = value
}

func (v *volume) block() bool { return v.capability.GetBlock() != nil }

// driverName is the name of an object at the driver: unique among runs and constant.
func (e *Engine) driverName(name string) string { return "cnsbench-" + e.own.RunID + "-" + name }

// volumeDir is where a volume is mounted.
func (e *Engine) volumeDir(name string) string { return filepath.Join(e.own.Scratch, "volumes", name) }

func (e *Engine) findVolume(name string) *volume {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.volumes[name]
}

// snapshot is a snapshot, or a group of them.
type snapshot struct {
	object  engine.Object
	driver  *driver
	id      string
	request *csi.CreateSnapshotRequest // of a single snapshot
	secrets secrets
	members []string // snapshot ids of a group
	retain  bool     // deletionPolicy: Retain

	deleting atomic.Bool // a request to delete a single snapshot has begun
}

func (e *Engine) addSnapshot(s *snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.snapshots[s.object.Name] = s
}

func (e *Engine) findSnapshot(name string) *snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.snapshots[name]
}

// workload is one instance: its volumes and its pods.
type workload struct {
	engine  *Engine
	name    string
	request *engine.Workload

	mu          sync.Mutex
	volumes     []string
	members     []*podSlot
	barrier     op.Time // when it opened; Never: not yet
	pending     int     // pods whose end is the instance's end
	end         op.InstanceEnd
	endReported bool                 // the end was reported
	samples     map[string]op.Sample // last sample of each pod, ended ones included
	ops         opGuard
}

// podSlot is one pod of an instance, across its replacements.
type podSlot struct {
	workload *workload
	manifest *engine.Pod
	name     string // instance name of its first pod
	service  bool

	// pod and the fields below are guarded by the workload's mutex.
	pod       *pod.Pod // the present one
	n         int      // number of replacements
	live      bool
	replacing bool // an op ends this pod to replace it
	counted   bool // its end counts in the instance's
	released  bool // from its barrier
}

func (w *workload) all() []*podSlot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.members)
}

// eachPod calls f for every pod concurrently.
func eachPod(members []*podSlot, f func(*pod.Pod) error) error {
	failed := make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		m.workload.mu.Lock()
		p := m.pod
		m.workload.mu.Unlock()
		if p != nil {
			wg.Go(func() { failed[i] = f(p) })
		}
	}
	wg.Wait()
	return errors.Join(failed...)
}

// podSink reports for pods under the name of their workload instance, which ends with its last pod that is
// not a server. A pod that an op ends to replace it does not count.
type podSink struct {
	engine.Sink
	mu     sync.Mutex
	owners map[string]incarnation // by the pod's instance name
}

// incarnation is one of the consecutive pods of a podSlot.
type incarnation struct {
	*podSlot
	n int
}

// Options are the command line's settings of this machine.
type Options struct {
	// Endpoints are the unix sockets of external drivers by provisioner, as paths or in the form unix:///path of
	// CSI_ENDPOINT. The provisioner "" is that of the driver's own name. For other provisioners, which must be
	// <backend>.csi.cnsbench.dev, a built-in driver is started.
	Endpoints map[string]string
	// RetryStart is the first wait before a call is repeated, as --retry-interval-start of the sidecars; 0: their
	// default.
	RetryStart time.Duration
	// RemoveTimeout bounds the removal of one object at an external driver; 0: a default.
	RemoveTimeout time.Duration
	// Secrets are those for the clean-up of a dead run.
	Secrets engine.Secrets
	// DriverCommand starts a built-in driver: a program and its first arguments, to which flags are appended.
	DriverCommand []string
	// StorageDir is the existing directory for the volumes of built-in drivers.
	StorageDir string
	// AgentPath is the agent's binary.
	AgentPath string
	// Program is this program's binary, for workloads that run it; empty: the running file.
	Program string
	// Inject is passed to built-in drivers: a file of delays, stalls and errors.
	Inject string
	Seed   uint64
	// Identity is a dead run's, for Teardown of an engine that is not open: objects without it are left
	// alone.
	Identity owned.Identity
}
