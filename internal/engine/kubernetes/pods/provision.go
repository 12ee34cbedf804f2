package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// lateMilestoneWait is how long a finished op waits for milestones whose watch lags. The wait is not part of the
// op, which ends at the last event that it needed.
const lateMilestoneWait = 2 * time.Second

// Provision follows the claims and pods of one op until they are usable.
type Provision struct {
	tracker.Observation
	state   *State
	claims  map[string]*ClaimState // by name in the cluster
	volumes map[string]*ClaimState // by PersistentVolume
	pods    map[string]*podState
	// preexisting has the attachments and claims from before the op; false: deleted. A recreated object has the
	// name of the old one.
	preexisting map[types.UID]bool
}

// ClaimState is the progress of a claim.
type ClaimState struct {
	object      string // its name in the run
	mounted     bool   // by a pod of the op
	volume      string // PersistentVolume
	requestName string // name in the request to the driver
	Handle      string // of the driver
	driver      string
	Bytes       int64
	Bound       bool
	waitReason  string // from an event
	// existing: it was there before the op. keepsAttachment: it stays attached.
	existing, keepsAttachment bool
}

// podState is the progress of a pod.
type podState struct {
	object string
	uid    types.UID // empty: any pod of the name
	// pendingAgents counts the agents that have not reached their barrier or started.
	pendingAgents int
	hasInit       bool
	delivers      bool // an init container copies the agent
	// existing: the pod was there before the op, which restarts its containers; it is not scheduled again.
	// wasUnready: the kubelet has reported it not ready since.
	existing, wasUnready bool
	unwrapped            bool // no agent: the API says when it runs
	usable               bool
	rechecking           bool // a start failure is being waited out
	// running and ready are those of its last agent.
	running, ready op.Milestone
	last           *corev1.Pod
}

// NewProvision begins to follow an op without objects.
func (e *State) NewProvision() *Provision {
	pr := &Provision{
		state: e, claims: map[string]*ClaimState{}, volumes: map[string]*ClaimState{}, pods: map[string]*podState{},
	}
	pr.Observation = e.Observe(tracker.ProvisionCalls, pr.pending)
	return pr
}

// pending lists the objects that are not usable yet.
func (pr *Provision) pending() (list []tracker.Pending) {
	for name, p := range pr.pods {
		if !p.usable {
			list = append(list, tracker.Pending{Object: p.object, Names: []string{name}})
		}
	}
	for name, c := range pr.claims {
		if !c.Bound {
			list = append(list, tracker.Pending{Object: c.object, Names: []string{name}})
		}
	}
	return list
}

// AddClaim follows a claim of the op.
func (pr *Provision) AddClaim(object string, mounted bool) *ClaimState {
	return pr.AddClaimNamed(object, pr.state.Name(object), mounted)
}

// AddClaimNamed is AddClaim with the claim's name in the cluster.
func (pr *Provision) AddClaimNamed(object, name string, mounted bool) *ClaimState {
	c := &ClaimState{object: object, mounted: mounted}
	pr.claims[name] = c
	pr.Feed.Add(tracker.Claim.Key(name))
	pr.Feed.Add(tracker.VolumeOfClaim.Key(name))
	pr.Feed.Add(tracker.EventsOf.Key(name))
	return c
}

// AddPod follows a pod of the op; sessions is its number of wrapped containers.
func (pr *Provision) AddPod(object string, sessions int, inits []corev1.Container) *podState {
	name := pr.state.Name(object)
	p := &podState{object: object, pendingAgents: sessions, unwrapped: sessions == 0, hasInit: len(inits) > 0,
		delivers: slices.ContainsFunc(inits, func(c corev1.Container) bool { return c.Name == podspec.AgentInit })}
	pr.pods[name] = p
	pr.Feed.Add(tracker.Pod.Key(name))
	pr.Feed.Add(tracker.EventsOf.Key(name))
	return p
}

// addExistingPod follows a pod whose containers are restarted.
func (pr *Provision) addExistingPod(m *Pod, inc *Incarnation) {
	p := pr.AddPod(m.Object, len(inc.Sessions), nil)
	p.uid, p.existing = inc.UID, true
}

// Wait returns when claims are bound and pods ready. The milestones are in the trace in any case.
func (pr *Provision) Wait(ctx context.Context, tr *op.Trace) error {
	defer pr.Feed.Close()
	defer func() {
		pr.Milestones.Fill(tr, pr.objectsOf())
		pr.Calls.Fill(tr, len(pr.claims) > 1)
	}()
	if err := pr.waitUsable(ctx, tr); err != nil {
		return err
	}
	tr.EndedAt(pr.Milestones.Last(op.Bound, op.Ready))
	pr.waitLateMilestones(ctx)
	return nil
}

// waitUsable is wait without late milestones.
func (pr *Provision) waitUsable(ctx context.Context, tr *op.Trace) error {
	err := pr.consume(ctx, pr.allUsable)
	pr.Waits.Done()
	pr.recordFailures(tr)
	if err != nil {
		return pr.describeError(ctx, err)
	}
	return nil
}

// recordFailures counts failed attempts, and records volumes whose creation has an unknown outcome.
func (pr *Provision) recordFailures(tr *op.Trace) {
	var objects []string
	for name, c := range pr.claims {
		objects = append(objects, c.object)
		if c.Handle == "" && c.requestName != "" {
			message, times := pr.Warnings.FailedAttempts(name)
			pr.state.Attempts.CreationFailed(c.requestName, tracker.Creation{RPC: "CreateVolume", Driver: c.driver,
				Object: c.object, Times: times, Message: message})
		}
	}
	for _, p := range pr.pods {
		objects = append(objects, p.object)
	}
	slices.Sort(objects)
	pr.state.Attempts.Count(tr, strings.Join(objects, ", "), pr.Warnings, pr.Calls)
}

// waitLateMilestones waits a little for the remaining milestones. Failures in that time are not the op's.
func (pr *Provision) waitLateMilestones(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lateMilestoneWait)
	defer cancel()
	_ = pr.consume(ctx, pr.allMilestonesSeen)
}

func (pr *Provision) consume(ctx context.Context, done func() bool) error {
	for !done() {
		v, err := pr.Feed.Next(ctx)
		if err != nil {
			return err
		}
		if err := pr.handle(v); err != nil {
			return err
		}
		pr.Waits.Saw(v)
	}
	return nil
}

// allUsable says whether claims are bound and pods ready.
func (pr *Provision) allUsable() bool {
	for _, c := range pr.claims {
		if !c.Bound {
			return false
		}
	}
	for _, p := range pr.pods {
		if !p.usable {
			return false
		}
	}
	return true
}

// allMilestonesSeen says whether all milestones that must occur were seen.
func (pr *Provision) allMilestonesSeen() bool {
	ids := pr.objectsOf()
	for name, of := range ids {
		if optionalMilestones[name] || name == op.Attached && !pr.needsAttachments() {
			continue
		}
		if (name == op.Staged || name == op.Published) && !pr.state.Tracker.SeesNodeCalls() {
			continue // there may be proxies for controllers only
		}
		if name == op.Staged && len(pr.Milestones[op.Published]) >= len(of) {
			continue // staging is optional for a driver
		}
		if len(pr.Milestones[name]) < len(of) {
			return false
		}
	}
	return true
}

// optionalMilestones do not occur in every cluster or for every pod. A pod's sandbox is in its own status: where it is
// reported at all, that is before the pod is ready.
var optionalMilestones = map[string]bool{status.PodReady: true, op.FirstWrite: true, op.FirstRead: true,
	op.Sandboxed: true}

// needsAttachments says whether all mounted claims get VolumeAttachments.
func (pr *Provision) needsAttachments() bool {
	for _, c := range pr.claims {
		if c.mounted && !pr.state.AttachRequired(c.driver) {
			return false
		}
	}
	return true
}

// objectsOf lists the objects that reach each milestone.
func (pr *Provision) objectsOf() map[string][]string {
	var all, mounted, attached, running, placed, delivered, initialized []string
	for _, c := range pr.claims {
		if !c.existing {
			all = append(all, c.object)
		}
		if c.mounted {
			mounted = append(mounted, c.object)
		}
		if c.mounted && !c.keepsAttachment {
			attached = append(attached, c.object)
		}
	}
	for _, p := range pr.pods {
		running = append(running, p.object)
		if !p.existing {
			placed = append(placed, p.object)
		}
		if p.delivers {
			delivered = append(delivered, p.object)
		}
		if p.hasInit {
			initialized = append(initialized, p.object)
		}
	}
	ids := map[string][]string{
		op.Provisioned: all, op.Bound: all, op.Attached: attached, op.FirstWrite: mounted, op.FirstRead: mounted,
		op.Staged: mounted, op.Published: mounted, op.Scheduled: placed, op.Sandboxed: placed,
		op.Delivered: delivered, op.Initialized: initialized, op.Running: running, status.PodReady: running, op.Ready: running,
	}
	if len(running) == 0 {
		ids[op.Ready] = all
	}
	maps.DeleteFunc(ids, func(_ string, of []string) bool { return len(of) == 0 })
	return ids
}

// describeError adds to an error what the cluster has reported about the objects.
func (pr *Provision) describeError(ctx context.Context, err error) error {
	var coded *engine.Error
	if ctx.Err() == nil || errors.As(err, &coded) {
		if said := pr.Warnings.String(); said != "" && coded != nil && !strings.Contains(coded.Message, said) {
			return engine.Errorf(coded.Code, "%s", coded.Message+" ("+said+")").Wrap(coded)
		}
		return err
	}
	var waits []string
	for _, name := range slices.Sorted(maps.Keys(pr.claims)) {
		if c := pr.claims[name]; !c.Bound {
			waits = append(waits, fmt.Sprintf("claim %s is not bound%s", name, c.waitReason))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pr.pods)) {
		p := pr.pods[name]
		switch {
		case p.usable:
		case p.last == nil:
			waits = append(waits, fmt.Sprintf("pod %s was not seen", name))
		default:
			waits = append(waits, fmt.Sprintf("pod %s: %s", name, status.PodPending(p.last)))
		}
	}
	return engine.Errorf("Waiting", "%s", pr.Observation.Explain(strings.Join(waits, "; "))).Wrap(err)
}

// addExistingVolume follows a volume from before the op.
func (pr *Provision) addExistingVolume(v *Volume, pv *corev1.PersistentVolume, stays bool) {
	c := &ClaimState{object: v.Object.Name, mounted: true, Bound: true, existing: true, keepsAttachment: stays,
		volume: pv.Name, Bytes: v.Object.Bytes}
	pr.claims[v.Name], pr.volumes[pv.Name] = c, c
	for uid := range pr.state.Tracker.PastAttachments(pv.Name) {
		pr.preexisting[uid] = false
	}
	for _, va := range pr.state.Tracker.Attachments(pv.Name) {
		pr.preexisting[va.UID] = true
	}
	pr.Feed.Add(tracker.AttachmentOfVolume.Key(pv.Name))
	if pv.Spec.CSI != nil {
		c.driver, c.Handle = pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle
		pr.Calls.Follow(pr.Feed, c.Handle, c.object)
	}
}
