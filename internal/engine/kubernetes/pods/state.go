// Package pods has the pods and volumes of a run. It follows them until they are usable (Provision) or gone
// (Removal), and replaces pods (Replacement).
package pods

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/podtemplate"
)

// State is the state of a run's pods and volumes.
type State struct {
	*core.Run
	Tracker  *tracker.Tracker
	Agents   *agent.Server
	Attempts *tracker.Attempts
	Closed   chan struct{} // by Close

	Mu        sync.Mutex
	Volumes   map[string]*Volume
	Workloads map[string]*Workload
}

// New returns the state of a run without pods.
func New(run *core.Run) *State {
	return &State{Run: run, Attempts: tracker.NewAttempts(), Closed: make(chan struct{}),
		Volumes: map[string]*Volume{}, Workloads: map[string]*Workload{}}
}

// Volume is the state of one claim.
type Volume struct {
	Object   engine.Object
	Name     string // of the claim in the cluster
	Block    bool
	ReadOnly bool
	Holder   *Pod // mounts an attached volume without a workload
	// template is the claim of a generic ephemeral volume, which the cluster creates for the holder.
	Template *corev1.PersistentVolumeClaim
	Static   string // the PersistentVolume created for a static volume
}

// Volume returns a volume by its name in the run; nil if there is none.
func (e *State) Volume(name string) *Volume {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Volumes[name]
}

// StoreVolume registers a volume.
func (e *State) StoreVolume(v *Volume) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.Volumes[v.Object.Name] = v
}

// VolumesOf lists the run's volumes that pods mount.
func (e *State) VolumesOf(pods []*Pod) []*Volume {
	var list []*Volume
	for _, m := range pods {
		for _, name := range claimNames(m.Template) {
			if x := e.VolumeOfClaim(name); x != nil && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	return list
}

// claimNames lists the claims of a pod by their names in the cluster.
func claimNames(p *corev1.Pod) []string {
	var list []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			list = append(list, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			list = append(list, p.Name+"-"+v.Name)
		}
	}
	return list
}

// VolumeOfClaim finds a volume by the name of its claim in the cluster.
func (e *State) VolumeOfClaim(claim string) *Volume {
	if v := e.Volume(strings.TrimPrefix(claim, names.Prefix(e.Session.RunID))); v != nil && v.Name == claim {
		return v
	}
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for _, v := range e.Volumes {
		if v.Name == claim {
			return v
		}
	}
	return nil
}

// PodsUsing lists the pods that mount a volume.
func (e *State) PodsUsing(x *Volume) []*Pod {
	var candidates, users []*Pod
	if x.Holder != nil {
		candidates = append(candidates, x.Holder)
	}
	if w := e.Workload(x.Object.Owner); w != nil {
		candidates = append(candidates, w.Pods...)
	}
	for _, m := range candidates {
		if m.Template != nil && slices.Contains(claimNames(m.Template), x.Name) {
			users = append(users, m)
		}
	}
	return users
}

// EphemeralOwner returns the pod that owns a generic ephemeral volume; nil for other volumes.
func (e *State) EphemeralOwner(x *Volume) *Pod {
	for _, m := range e.PodsUsing(x) {
		for _, v := range m.Template.Spec.Volumes {
			if v.Ephemeral != nil && m.Name()+"-"+v.Name == x.Name {
				return m
			}
		}
	}
	return nil
}

// Observe begins the observation of an op.
func (e *State) Observe(calls map[string]bool, pending func() []tracker.Pending) tracker.Observation {
	return e.Tracker.Observe(e.Session.Sink, e.Session.Clock.Now(), calls, pending)
}

// Pod is a pod of the run with its agents, over all its incarnations.
type Pod struct {
	State           *State
	Object          string // its name in the run
	Instance        string // its agents' instance
	ContainerPrefix string // of container names, if the instance has several pods
	Service         bool   // does not end by itself
	Holder          bool   // its agents report nothing to the record
	MainContainers  []string
	Phases          []engine.Phase
	Extra           *podtemplate.Template // merged into the pod, after that of the session
	Template        *corev1.Pod           // as first created
	waits           map[string]bool       // containers that wait at the barrier

	createMu sync.Mutex // held while the pod is created, or its creation forbidden
	mu       sync.Mutex
	Latest   *Incarnation
	// released: the barrier was opened, at barrier. Later incarnations do not wait.
	released bool
	barrier  op.Time
	stopping bool
	removed  bool
	// replacing: an op is replacing the pod, up to its end: the new pod may not be usable yet.
	replacing bool
}

// Name returns the pod's name in the cluster.
func (m *Pod) Name() string { return m.State.Name(m.Object) }

// Incarnation is one pod of a Pod, or one start of its containers. All have the same name, as in a StatefulSet; the
// UIDs differ.
type Incarnation struct {
	restarts int // earlier incarnations
	UID      types.UID
	Sessions map[string]*agent.Session // by container
	// successor is set, under the pod's lock, when an op begins to replace the incarnation.
	successor *successor
}

// successor is the outcome of a replacement.
type successor struct {
	known    chan struct{} // closed when the outcome is known
	next     *Incarnation  // nil: none
	canceled bool          // the incarnation goes on
	err      error         // why there is no next
}

// Workload is one instance: its claims, its pods and what they refer to.
type Workload struct {
	State   *State
	Name    string
	Volumes []string
	Pods    []*Pod
	Objects []NamedObject
	// rollouts counts the rollouts; revision is the current one, revisions are the earlier ones for undo.
	rollouts, revision int
	revisions          []int
}

// NamedObject is a further object of an instance.
type NamedObject struct {
	Kind api.Kind
	Name string // in the cluster
}

// AgentReady is put into a feed when an agent has reached its barrier or started its command.
type AgentReady struct {
	Pod     string
	Started op.Milestone // the process
	Ready   op.Milestone
	firstIO []firstIO
	Failure error
}

// Workload returns an instance by its name; nil if there is none.
func (e *State) Workload(name string) *Workload {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Workloads[name]
}

type firstIO struct {
	claim string // name in the cluster
	at    op.Time
	err   int64
	write bool
	// failure is why the volume was not usable, if it was not.
	failure string
}
