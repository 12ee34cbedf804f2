package kubernetes

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

// settle is how long an op that is done waits for milestones that must have
// happened but whose watch is behind. It is no part of the op: its end is the
// instant at which the last thing that it waited for was seen to happen.
const lateMilestoneWait = 2 * time.Second

// bringing follows the claims and pods of one op until they are of use.
type provision struct {
	tracker.Observation
	engine  *Engine
	claims  map[string]*claimState // by name in the cluster
	volumes map[string]*claimState // by PersistentVolume
	pods    map[string]*podState
	// before are the attachments and claims that were there before the op, or
	// (false) gone. What is made again has the name of what it replaces.
	preexisting map[types.UID]bool
}

// claimState is one claim on its way.
type claimState struct {
	object      string // the loop's name
	mounted     bool   // some pod of the op uses it
	volume      string // PersistentVolume
	requestName string // what the driver is asked for
	handle      string // what the driver calls it
	driver      string
	bytes       int64
	bound       bool
	waitReason  string // for what, in the cluster's words
	// stands says that it was there before the op, and stays that its attachment
	// need not change.
	existing, keepsAttachment bool
}

// podState is one pod on its way.
type podState struct {
	object string
	uid    types.UID // others of its name are those before it
	// waiting counts the sessions that have not come to their barrier or begun.
	pendingAgents int
	// initializes says that it has init containers.
	hasInit bool
	// stands says that the pod was there before the op, which has its containers
	// started again: it is not scheduled or given its network anew. unready is set
	// once the kubelet has called it not ready since.
	existing, wasUnready bool
	unwrapped            bool // no container is wrapped: the API alone says when it runs
	usable               bool
	rechecking           bool // a failure to start it is being waited out
	// running and ready are the last of its agents'.
	running, ready op.Milestone
	last           *corev1.Pod
}

// arrived is put into a feed when an agent stands at its barrier, or has begun.
type agentReady struct {
	pod     string
	started op.Milestone // its process
	ready   op.Milestone
	firstIO []firstIO
	failure error
}

type firstIO struct {
	claim string // name in the cluster
	at    op.Time
	err   int64
	write bool
	// failure says why the volume could not be used; empty if it could.
	failure string
}

func (e *Engine) newProvision() *provision {
	pr := &provision{
		engine: e, claims: map[string]*claimState{}, volumes: map[string]*claimState{}, pods: map[string]*podState{},
	}
	pr.Observation = e.observe(tracker.ProvisionCalls, pr.pending)
	return pr
}

// pending lists the objects that are not of use yet.
func (pr *provision) pending() (list []tracker.Pending) {
	for name, p := range pr.pods {
		if !p.usable {
			list = append(list, tracker.Pending{Object: p.object, Names: []string{name}})
		}
	}
	for name, c := range pr.claims {
		if !c.bound {
			list = append(list, tracker.Pending{Object: c.object, Names: []string{name}})
		}
	}
	return list
}

// claim follows a claim of the op.
func (pr *provision) addClaim(object string, mounted bool) *claimState {
	return pr.addClaimNamed(object, pr.engine.Name(object), mounted)
}

func (pr *provision) addClaimNamed(object, name string, mounted bool) *claimState {
	c := &claimState{object: object, mounted: mounted}
	pr.claims[name] = c
	pr.Feed.Add(tracker.Claim.Key(name))
	pr.Feed.Add(tracker.VolumeOfClaim.Key(name))
	pr.Feed.Add(tracker.EventsOf.Key(name))
	return c
}

// pod follows a pod of the op with so many wrapped containers.
func (pr *provision) addPod(object string, sessions int, initializes bool) *podState {
	name := pr.engine.Name(object)
	p := &podState{object: object, pendingAgents: sessions, unwrapped: sessions == 0, hasInit: initializes}
	pr.pods[name] = p
	pr.Feed.Add(tracker.Pod.Key(name))
	pr.Feed.Add(tracker.EventsOf.Key(name))
	return p
}

// standingPod follows the pod of a member whose containers are started again.
func (pr *provision) addExistingPod(m *managedPod, inc *incarnation) {
	p := pr.addPod(m.object, len(inc.sessions), false)
	p.uid, p.existing = inc.uid, true
}

// await returns when all is of use: claims bound, pods ready. The milestones
// seen so far are in the trace in any case.
func (pr *provision) wait(ctx context.Context, tr *op.Trace) error {
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

// reach returns when all is of use.
func (pr *provision) waitUsable(ctx context.Context, tr *op.Trace) error {
	err := pr.consume(ctx, pr.allUsable)
	pr.Waits.Done()
	pr.recordFailures(tr)
	if err != nil {
		return pr.waitError(ctx, err)
	}
	return nil
}

// account counts what was tried in vain, and notes the volumes of which nobody
// knows whether the driver has made them.
func (pr *provision) recordFailures(tr *op.Trace) {
	var objects []string
	for name, c := range pr.claims {
		objects = append(objects, c.object)
		if c.handle == "" && c.requestName != "" {
			message, times := pr.Warnings.FailedAttempts(name)
			pr.engine.attempts.CreationFailed(c.requestName, tracker.Creation{RPC: "CreateVolume", Driver: c.driver, Object: c.object, Times: times, Message: message})
		}
	}
	for _, p := range pr.pods {
		objects = append(objects, p.object)
	}
	slices.Sort(objects)
	pr.engine.attempts.Count(tr, strings.Join(objects, ", "), pr.Warnings, pr.Calls)
}

// linger waits a little for the milestones that must have happened. The op is
// done: what happens now is not its failure.
func (pr *provision) waitLateMilestones(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lateMilestoneWait)
	defer cancel()
	_ = pr.consume(ctx, pr.allMilestonesSeen)
}

func (pr *provision) consume(ctx context.Context, done func() bool) error {
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

// usable says whether claims are bound and pods ready.
func (pr *provision) allUsable() bool {
	for _, c := range pr.claims {
		if !c.bound {
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

// complete says whether the milestones that must have happened were seen.
func (pr *provision) allMilestonesSeen() bool {
	ids := pr.objectsOf()
	for name, of := range ids {
		if optionalMilestones[name] || name == op.Attached && !pr.needsAttachments() {
			continue
		}
		if (name == op.Staged || name == op.Published) && !pr.engine.tracker.SeesNodeCalls() {
			continue // a proxy may stand before the controllers alone
		}
		if name == op.Staged && len(pr.Milestones[op.Published]) >= len(of) {
			continue // a driver need not stage
		}
		if len(pr.Milestones[name]) < len(of) {
			return false
		}
	}
	return true
}

// optional milestones need not be seen in every cluster or for every pod.
var optionalMilestones = map[string]bool{status.PodReady: true, op.FirstWrite: true, op.FirstRead: true}

// attaches says whether all drivers of mounted claims have attachments.
func (pr *provision) needsAttachments() bool {
	for _, c := range pr.claims {
		if c.mounted && !pr.engine.AttachRequired(c.driver) {
			return false
		}
	}
	return true
}

// ids lists what each milestone can be seen of, so that one of a single object
// goes by its plain name.
func (pr *provision) objectsOf() map[string][]string {
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

// see takes one thing from the feed.
func (pr *provision) handle(v any) error {
	switch v := v.(type) {
	case agentReady:
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

// concerns says whether an Event is about an object of the op, and not of what
// had its name before or happened to it then.
func (pr *provision) concerns(ev watch.Event, o *corev1.ObjectReference) bool {
	if ev.At < pr.Calls.Since {
		return false
	}
	if _, old := pr.preexisting[o.UID]; old {
		return false
	}
	p := pr.pods[o.Name]
	return p == nil || p.uid == "" || o.UID == "" || o.UID == p.uid
}

// refusal says why a claim of the op will never be bound, if an Event says so.
func (pr *provision) provisioningError(e *corev1.Event) error {
	if c := pr.claims[e.InvolvedObject.Name]; c != nil && !c.bound && c.handle == "" {
		if err := tracker.ProvisioningError(e.InvolvedObject.Name, e.Reason, e.Message); err != nil {
			return err
		}
	}
	return nil
}

// waiting keeps what an unbound claim is said to wait for, which is no warning.
func (pr *provision) noteWaitReason(e *corev1.Event) {
	if c := pr.claims[e.InvolvedObject.Name]; c != nil && (e.Reason == "ExternalProvisioning" || e.Reason == "WaitForFirstConsumer" || e.Reason == "WaitForPodScheduled") {
		c.waitReason = ": " + strings.TrimSpace(e.Message)
	}
}

// called takes a call of the driver: the end of staging and of publishing are
// milestones that nobody else sees.
func (pr *provision) handleCall(c *csiproxy.Call) {
	object, ours := pr.Calls.See(c)
	if !ours || c.Code != "OK" {
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

func (pr *provision) handleEvent(ev watch.Event) error {
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
			return &engine.Error{Code: "Deleted", Message: fmt.Sprintf("claim %s was deleted by somebody else", o.Name)}
		case o.Status.Phase == corev1.ClaimLost:
			return &engine.Error{Code: "ClaimLost", Message: fmt.Sprintf("claim %s has lost its volume %s", o.Name, o.Spec.VolumeName)}
		case o.Status.Phase == corev1.ClaimBound:
			pr.Milestones.Add(op.Bound, c.object, ev)
			if len(pr.pods) == 0 {
				pr.Milestones.Add(op.Ready, c.object, ev)
			}
			c.bound = true
			size := o.Status.Capacity[corev1.ResourceStorage]
			c.bytes = size.Value()
			pr.followVolume(c, o.Spec.VolumeName)
		}
	case *corev1.PersistentVolume:
		c := pr.claims[o.Spec.ClaimRef.Name]
		if _, old := pr.preexisting[o.Spec.ClaimRef.UID]; !gone && !old {
			pr.Milestones.Add(op.Provisioned, c.object, ev)
			if o.Spec.CSI != nil {
				c.driver, c.handle = o.Spec.CSI.Driver, o.Spec.CSI.VolumeHandle
				pr.Calls.Follow(pr.Feed, c.handle, c.object)
			}
			pr.followVolume(c, o.Name)
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

// knows follows the attachments of a volume whose name has become known.
func (pr *provision) followVolume(c *claimState, volume string) {
	if c.volume != "" || volume == "" {
		return
	}
	c.volume = volume
	pr.volumes[volume] = c
	pr.Feed.Add(tracker.AttachmentOfVolume.Key(volume))
}

func (pr *provision) handlePod(ev watch.Event, p *corev1.Pod, gone bool) error {
	state := pr.pods[p.Name]
	if state == nil || state.uid != "" && p.UID != state.uid {
		return nil // one before it
	}
	state.last = p
	if gone {
		return &engine.Error{Code: "Deleted", Message: fmt.Sprintf("pod %s was deleted before it was ready", p.Name)}
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

// standingEvent takes an event of a pod that was there before the op: of its
// status only its readiness can be reached again.
func (pr *provision) handleExistingPod(ev watch.Event, p *corev1.Pod, state *podState) error {
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

// startable says why the containers of a pod that is not ready yet will not start.
func (pr *provision) startError(p *corev1.Pod, state *podState) error {
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

// patienceWithKubelet is how long the kubelet may go on failing to start a
// container before the op does.
const startRetryTimeout = 30 * time.Second

// doubt is put into a feed when a pod that could not be started is to be looked
// at once more.
type recheck struct{ pod string }

// again looks at a pod that could not be started.
func (pr *provision) recheckPod(name string) error {
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

// agent takes an agent's arrival.
func (pr *provision) handleAgent(a agentReady) error {
	p := pr.pods[a.pod]
	if a.failure != nil {
		if p.last != nil { // the kubelet may know better why
			if err := status.PodError(p.last); err != nil {
				return err
			}
		}
		return a.failure
	}
	for _, t := range a.firstIO {
		name := op.FirstRead
		if t.write {
			name = op.FirstWrite
		}
		if t.failure != "" {
			return &engine.Error{Code: "IO", Message: fmt.Sprintf("%s on %s: %s", name, t.claim, t.failure)}
		}
		if c := pr.claims[t.claim]; c != nil {
			pr.Milestones.Set(name, c.object, op.Milestone{At: t.at, Err: t.err, Source: "agent"})
		}
	}
	if p.running.At < a.started.At || p.running.Source == "" {
		p.running = a.started
	}
	if p.ready.At < a.ready.At || p.ready.Source == "" {
		p.ready = a.ready
	}
	if p.pendingAgents--; p.pendingAgents == 0 {
		p.usable = true
		pr.Milestones.Set(op.Running, p.object, p.running)
		pr.Milestones.Set(op.Ready, p.object, p.ready)
	}
	return nil
}

// explain adds to an error what the cluster has said of the objects.
func (pr *provision) waitError(ctx context.Context, err error) error {
	var coded *engine.Error
	if ctx.Err() == nil || errors.As(err, &coded) {
		if said := pr.Warnings.String(); said != "" && coded != nil && !strings.Contains(coded.Message, said) {
			return &engine.Error{Code: coded.Code, Message: coded.Message + " (" + said + ")", Err: coded}
		}
		return err
	}
	var waits []string
	for _, name := range slices.Sorted(maps.Keys(pr.claims)) {
		if c := pr.claims[name]; !c.bound {
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
	return &engine.Error{Code: "Waiting", Message: pr.Observation.Explain(strings.Join(waits, "; ")), Err: err}
}
