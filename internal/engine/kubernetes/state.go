package kubernetes

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
)

// State is the state of a run's pods and volumes.
type State struct {
	*core.Run
	tracker  *tracker.Tracker
	agents   *agent.Server
	attempts *tracker.Attempts
	closed   chan struct{} // by Close

	mu        sync.Mutex
	volumes   map[string]*volume
	workloads map[string]*workload
}

// newState returns the state of a run without pods.
func newState(run *core.Run) *State {
	return &State{Run: run, attempts: tracker.NewAttempts(), closed: make(chan struct{}),
		volumes: map[string]*volume{}, workloads: map[string]*workload{}}
}

// volume is the state of one claim.
type volume struct {
	object   engine.Object
	name     string // of the claim in the cluster
	block    bool
	readOnly bool
	holder   *managedPod // mounts an attached volume without a workload
	// template is the claim of a generic ephemeral volume, which the cluster creates for the
	// holder.
	template *corev1.PersistentVolumeClaim
	static   string // the PersistentVolume created for a static volume
}

func (e *State) volume(name string) *volume {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.volumes[name]
}

func (e *State) storeVolume(v *volume) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.volumes[v.object.Name] = v
}

// volumesOf lists the run's volumes that pods mount.
func (e *State) volumesOf(pods []*managedPod) []*volume {
	var list []*volume
	for _, m := range pods {
		for _, name := range claimNames(m.template) {
			if x := e.volumeOfClaim(name); x != nil && !slices.Contains(list, x) {
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

// volumeOfClaim finds a volume by the name of its claim in the cluster.
func (e *State) volumeOfClaim(claim string) *volume {
	if v := e.volume(strings.TrimPrefix(claim, names.Prefix(e.Session.RunID))); v != nil && v.name == claim {
		return v
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.volumes {
		if v.name == claim {
			return v
		}
	}
	return nil
}

// podsUsing lists the pods that mount a volume.
func (e *State) podsUsing(x *volume) []*managedPod {
	var candidates, users []*managedPod
	if x.holder != nil {
		candidates = append(candidates, x.holder)
	}
	if w := e.workload(x.object.Owner); w != nil {
		candidates = append(candidates, w.pods...)
	}
	for _, m := range candidates {
		if m.template != nil && slices.Contains(claimNames(m.template), x.name) {
			users = append(users, m)
		}
	}
	return users
}

// ephemeralOwner returns the pod that owns a generic ephemeral volume; nil for other volumes.
func (e *State) ephemeralOwner(x *volume) *managedPod {
	for _, m := range e.podsUsing(x) {
		for _, v := range m.template.Spec.Volumes {
			if v.Ephemeral != nil && m.name()+"-"+v.Name == x.name {
				return m
			}
		}
	}
	return nil
}

// observe begins the observation of an op.
func (e *State) observe(calls map[string]bool, pending func() []tracker.Pending) tracker.Observation {
	return e.tracker.Observe(e.Session.Sink, e.Session.Clock.Now(), calls, pending)
}
