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
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
)

// lateMilestoneWait is how long a finished op waits for milestones whose watch lags. The wait is not part of the
// op, which ends at the last event that it needed.
const lateMilestoneWait = 2 * time.Second

// Provision follows the claims and pods of one op until they are usable.
type Provision struct {
	tracker.Observation
	engine  *State
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

// AgentReady is put into a feed when an agent has reached its barrier or started its command.
type AgentReady struct {
	Pod     string
	Started op.Milestone // the process
	Ready   op.Milestone
	firstIO []firstIO
	Failure error
}

type firstIO struct {
	claim string // name in the cluster
	at    op.Time
	err   int64
	write bool
	// failure is why the volume was not usable, if it was not.
	failure string
}

func (e *State) NewProvision() *Provision {
	pr := &Provision{
		engine: e, claims: map[string]*ClaimState{}, volumes: map[string]*ClaimState{}, pods: map[string]*podState{},
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
	return pr.AddClaimNamed(object, pr.engine.Name(object), mounted)
}

func (pr *Provision) AddClaimNamed(object, name string, mounted bool) *ClaimState {
	c := &ClaimState{object: object, mounted: mounted}
	pr.claims[name] = c
	pr.Feed.Add(tracker.Claim.Key(name))
	pr.Feed.Add(tracker.VolumeOfClaim.Key(name))
	pr.Feed.Add(tracker.EventsOf.Key(name))
	return c
}

// AddPod follows a pod of the op; sessions is its number of wrapped containers.
func (pr *Provision) AddPod(object string, sessions int, initializes bool) *podState {
	name := pr.engine.Name(object)
	p := &podState{object: object, pendingAgents: sessions, unwrapped: sessions == 0, hasInit: initializes}
	pr.pods[name] = p
	pr.Feed.Add(tracker.Pod.Key(name))
	pr.Feed.Add(tracker.EventsOf.Key(name))
	return p
}

// addExistingPod follows a pod whose containers are restarted.
func (pr *Provision) addExistingPod(m *Pod, inc *Incarnation) {
	p := pr.AddPod(m.Object, len(inc.Sessions), false)
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
			pr.engine.Attempts.CreationFailed(c.requestName, tracker.Creation{RPC: "CreateVolume", Driver: c.driver,
				Object: c.object, Times: times, Message: message})
		}
	}
	for _, p := range pr.pods {
		objects = append(objects, p.object)
	}
	slices.Sort(objects)
	pr.engine.Attempts.Count(tr, strings.Join(objects, ", "), pr.Warnings, pr.Calls)
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
		if (name == op.Staged || name == op.Published) && !pr.engine.Tracker.SeesNodeCalls() {
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

// optionalMilestones do not occur in every cluster or for every pod.
var optionalMilestones = map[string]bool{status.PodReady: true, op.FirstWrite: true, op.FirstRead: true}

// needsAttachments says whether all mounted claims get VolumeAttachments.
func (pr *Provision) needsAttachments() bool {
	for _, c := range pr.claims {
		if c.mounted && !pr.engine.AttachRequired(c.driver) {
			return false
		}
	}
	return true
}

// objectsOf lists the objects that reach each milestone.
func (pr *Provision) objectsOf() map[string][]string {
	var all, mounted, attached, running, placed, initialized []string
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
		if p.hasInit {
			initialized = append(initialized, p.object)
		}
	}
	ids := map[string][]string{
		op.Provisioned: all, op.Bound: all, op.Attached: attached, op.FirstWrite: mounted, op.FirstRead: mounted,
		op.Staged: mounted, op.Published: mounted, op.Scheduled: placed, op.Sandboxed: placed,
		op.Initialized: initialized, op.Running: running, status.PodReady: running, op.Ready: running,
	}
	if len(running) == 0 {
		ids[op.Ready] = all
	}
	maps.DeleteFunc(ids, func(_ string, of []string) bool { return len(of) == 0 })
	return ids
}

// handle handles an item of the feed.
func (pr *Provision) handle(v any) error {
	switch v := v.(type) {
	case AgentReady:
		return pr.handleAgent(v)
	case recheck:
		return pr.recheckPod(v.pod)
	case *csiproxy.Call:
		pr.handleCall(v)
	case watch.Event:
		if e, ok := v.Object.(*corev1.Event); ok {
			if pr.concerns(v, &e.InvolvedObject) {
				pr.noteWaitReason(e)
				pr.Warnings.See(e)
				return pr.provisioningError(e)
			}
			return nil
		}
		return pr.handleEvent(v)
	}
	return nil
}

// concerns says whether an event is about an object of the op and from its time.
func (pr *Provision) concerns(ev watch.Event, o *corev1.ObjectReference) bool {
	if ev.At < pr.Calls.Since {
		return false
	}
	if _, old := pr.preexisting[o.UID]; old {
		return false
	}
	p := pr.pods[o.Name]
	return p == nil || p.uid == "" || o.UID == "" || o.UID == p.uid
}

// provisioningError returns why a claim of the op will never be bound, if an event says so.
func (pr *Provision) provisioningError(e *corev1.Event) error {
	if c := pr.claims[e.InvolvedObject.Name]; c != nil && !c.Bound && c.Handle == "" {
		if err := tracker.ProvisioningError(e.InvolvedObject.Name, e.Reason, e.Message); err != nil {
			return err
		}
	}
	return nil
}

// noteWaitReason keeps what an unbound claim waits for by a normal event.
func (pr *Provision) noteWaitReason(e *corev1.Event) {
	if c := pr.claims[e.InvolvedObject.Name]; c != nil && (e.Reason == "ExternalProvisioning" ||
		e.Reason == "WaitForFirstConsumer" || e.Reason == "WaitForPodScheduled") {
		c.waitReason = ": " + strings.TrimSpace(e.Message)
	}
}

// handleCall takes the milestones of staging and publishing from calls of the driver.
func (pr *Provision) handleCall(c *csiproxy.Call) {
	object, own := pr.Calls.See(c)
	if !own || c.Code != "OK" {
		return
	}
	m := op.Milestone{At: c.End, Err: c.Err, Source: "csi"}
	switch c.RPC {
	case "NodeStageVolume":
		pr.Milestones.Set(op.Staged, object, m)
	case "NodePublishVolume":
		pr.Milestones.Set(op.Published, object, m)
	}
}

func (pr *Provision) handleEvent(ev watch.Event) error {
	gone := ev.Type == watch.Deleted
	switch o := ev.Object.(type) {
	case *corev1.PersistentVolumeClaim:
		if _, old := pr.preexisting[o.UID]; old {
			return nil
		}
		c := pr.claims[o.Name]
		c.requestName = tracker.VolumeRequestName(string(o.UID))
		pr.Calls.Follow(pr.Feed, c.requestName, c.object)
		if c.driver == "" && o.Spec.StorageClassName != nil {
			c.driver = pr.engine.Classes[*o.Spec.StorageClassName].Provisioner
		}
		switch {
		case gone:
			return engine.Errorf("Deleted", "claim %s was deleted by another client", o.Name)
		case o.Status.Phase == corev1.ClaimLost:
			return engine.Errorf("ClaimLost", "claim %s has lost its volume %s", o.Name, o.Spec.VolumeName)
		case o.Status.Phase == corev1.ClaimBound:
			pr.Milestones.Add(op.Bound, c.object, ev)
			if len(pr.pods) == 0 {
				pr.Milestones.Add(op.Ready, c.object, ev)
			}
			c.Bound = true
			size := o.Status.Capacity[corev1.ResourceStorage]
			c.Bytes = size.Value()
			pr.FollowVolume(c, o.Spec.VolumeName)
		}
	case *corev1.PersistentVolume:
		c := pr.claims[o.Spec.ClaimRef.Name]
		if _, old := pr.preexisting[o.Spec.ClaimRef.UID]; !gone && !old {
			pr.Milestones.Add(op.Provisioned, c.object, ev)
			if o.Spec.CSI != nil {
				c.driver, c.Handle = o.Spec.CSI.Driver, o.Spec.CSI.VolumeHandle
				pr.Calls.Follow(pr.Feed, c.Handle, c.object)
			}
			pr.FollowVolume(c, o.Name)
		}
	case *storagev1.VolumeAttachment:
		c := pr.volumes[*o.Spec.Source.PersistentVolumeName]
		if there, known := pr.preexisting[o.UID]; known {
			if there && gone {
				pr.Milestones.Add(op.Detached, c.object, ev)
			}
			return nil
		}
		if o.Status.Attached {
			pr.Milestones.Add(op.Attached, c.object, ev)
			pr.Warnings.Attached(c.volume)
		}
		if e := o.Status.AttachError; e != nil {
			pr.Warnings.Note(c.object, "FailedAttach", e.Message, &e.Time)
		}
	case *corev1.Pod:
		return pr.handlePod(ev, o, gone)
	}
	return nil
}

// FollowVolume follows the attachments of a claim's volume.
func (pr *Provision) FollowVolume(c *ClaimState, volume string) {
	if c.volume != "" || volume == "" {
		return
	}
	c.volume = volume
	pr.volumes[volume] = c
	pr.Feed.Add(tracker.AttachmentOfVolume.Key(volume))
}

func (pr *Provision) handlePod(ev watch.Event, p *corev1.Pod, gone bool) error {
	state := pr.pods[p.Name]
	if state == nil || state.uid != "" && p.UID != state.uid {
		return nil // an earlier pod of the name
	}
	state.last = p
	if gone {
		return engine.Errorf("Deleted", "pod %s was deleted before it was ready", p.Name)
	}
	if state.existing {
		return pr.handleExistingPod(ev, p, state)
	}
	for _, name := range status.PodMilestones(p) {
		pr.Milestones.Add(name, state.object, ev)
		if name == op.Scheduled {
			pr.Warnings.Scheduled(p.Name)
		}
		if name == op.Running && state.unwrapped {
			state.usable = true
			pr.Milestones.Add(op.Ready, state.object, ev)
		}
	}
	return pr.startError(p, state)
}

// handleExistingPod handles an event of an existing pod, which reaches only its readiness again.
func (pr *Provision) handleExistingPod(ev watch.Event, p *corev1.Pod, state *podState) error {
	if ev.At < pr.Calls.Since {
		return nil
	}
	ready := slices.Contains(status.PodMilestones(p), status.PodReady)
	if ready && state.wasUnready {
		pr.Milestones.Add(status.PodReady, state.object, ev)
	}
	state.wasUnready = state.wasUnready || !ready
	return pr.startError(p, state)
}

// startError returns why the containers of a pod will not start.
func (pr *Provision) startError(p *corev1.Pod, state *podState) error {
	if state.usable {
		return nil
	}
	if err := status.PodError(p); err != nil {
		return err
	}
	if status.StartError(p) != nil && !state.rechecking {
		state.rechecking = true
		time.AfterFunc(startRetryTimeout, func() { pr.Feed.Put(recheck{p.Name}) })
	}
	return nil
}

// startRetryTimeout is how long the kubelet may fail to start a container before the op fails.
const startRetryTimeout = 30 * time.Second

// recheck is put into a feed when a pod with a start failure is to be checked again.
type recheck struct{ pod string }

// recheckPod fails if the start failure persists.
func (pr *Provision) recheckPod(name string) error {
	p := pr.pods[name]
	if p.usable || p.last == nil {
		return nil
	}
	p.rechecking = false
	if err := status.StartError(p.last); err != nil {
		return err
	}
	return nil
}

// handleAgent handles the arrival of an agent.
func (pr *Provision) handleAgent(a AgentReady) error {
	p := pr.pods[a.Pod]
	if a.Failure != nil {
		if p.last != nil { // the kubelet's status may have the cause
			if err := status.PodError(p.last); err != nil {
				return err
			}
		}
		return a.Failure
	}
	for _, t := range a.firstIO {
		name := op.FirstRead
		if t.write {
			name = op.FirstWrite
		}
		if t.failure != "" {
			return engine.Errorf("IO", "%s on %s: %s", name, t.claim, t.failure)
		}
		if c := pr.claims[t.claim]; c != nil {
			pr.Milestones.Set(name, c.object, op.Milestone{At: t.at, Err: t.err, Source: "agent"})
		}
	}
	if p.running.At < a.Started.At || p.running.Source == "" {
		p.running = a.Started
	}
	if p.ready.At < a.Ready.At || p.ready.Source == "" {
		p.ready = a.Ready
	}
	if p.pendingAgents--; p.pendingAgents == 0 {
		p.usable = true
		pr.Milestones.Set(op.Running, p.object, p.running)
		pr.Milestones.Set(op.Ready, p.object, p.ready)
	}
	return nil
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
	for uid := range pr.engine.Tracker.PastAttachments(pv.Name) {
		pr.preexisting[uid] = false
	}
	for _, va := range pr.engine.Tracker.Attachments(pv.Name) {
		pr.preexisting[va.UID] = true
	}
	pr.Feed.Add(tracker.AttachmentOfVolume.Key(pv.Name))
	if pv.Spec.CSI != nil {
		c.driver, c.Handle = pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle
		pr.Calls.Follow(pr.Feed, c.Handle, c.object)
	}
}
