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
const settle = 2 * time.Second

// bringing follows the claims and pods of one op until they are of use.
type bringing struct {
	tracker.Observation
	engine  *Engine
	claims  map[string]*claimState // by name in the cluster
	volumes map[string]*claimState // by PersistentVolume
	pods    map[string]*podState
	// before are the attachments and claims that were there before the op, or
	// (false) gone. What is made again has the name of what it replaces.
	before map[types.UID]bool
}

// claimState is one claim on its way.
type claimState struct {
	object  string // the loop's name
	mounted bool   // some pod of the op uses it
	volume  string // PersistentVolume
	asked   string // what the driver is asked for
	handle  string // what the driver calls it
	driver  string
	bytes   int64
	bound   bool
	waits   string // for what, in the cluster's words
	// stands says that it was there before the op, and stays that its attachment
	// need not change.
	stands, stays bool
}

// podState is one pod on its way.
type podState struct {
	object string
	uid    types.UID // others of its name are those before it
	// waiting counts the sessions that have not come to their barrier or begun.
	waiting int
	// initializes says that it has init containers.
	initializes bool
	// stands says that the pod was there before the op, which has its containers
	// started again: it is not scheduled or given its network anew. unready is set
	// once the kubelet has called it not ready since.
	stands, unready bool
	plain           bool // no container is wrapped: the API alone says when it runs
	done            bool
	doubted         bool // a failure to start it is being waited out
	// running and ready are the last of its agents'.
	running, ready op.Milestone
	last           *corev1.Pod
}

// arrived is put into a feed when an agent stands at its barrier, or has begun.
type arrived struct {
	pod     string
	began   op.Milestone // its process
	ready   op.Milestone
	touches []touch
	failure error
}

type touch struct {
	claim string // name in the cluster
	at    op.Time
	err   int64
	write bool
	// failure says why the volume could not be used; empty if it could.
	failure string
}

func (e *Engine) bring() *bringing {
	b := &bringing{
		engine: e, claims: map[string]*claimState{}, volumes: map[string]*claimState{}, pods: map[string]*podState{},
	}
	b.Observation = e.observe(tracker.ProvisionCalls, b.pending)
	return b
}

// pending lists the objects that are not of use yet.
func (b *bringing) pending() (list []tracker.Pending) {
	for name, p := range b.pods {
		if !p.done {
			list = append(list, tracker.Pending{Object: p.object, Names: []string{name}})
		}
	}
	for name, c := range b.claims {
		if !c.bound {
			list = append(list, tracker.Pending{Object: c.object, Names: []string{name}})
		}
	}
	return list
}

// claim follows a claim of the op.
func (b *bringing) claim(object string, mounted bool) *claimState {
	return b.claimNamed(object, b.engine.name(object), mounted)
}

func (b *bringing) claimNamed(object, name string, mounted bool) *claimState {
	c := &claimState{object: object, mounted: mounted}
	b.claims[name] = c
	b.Feed.Add(tracker.Claim.Key(name))
	b.Feed.Add(tracker.VolumeOfClaim.Key(name))
	b.Feed.Add(tracker.EventsOf.Key(name))
	return c
}

// pod follows a pod of the op with so many wrapped containers.
func (b *bringing) pod(object string, sessions int, initializes bool) *podState {
	name := b.engine.name(object)
	p := &podState{object: object, waiting: sessions, plain: sessions == 0, initializes: initializes}
	b.pods[name] = p
	b.Feed.Add(tracker.Pod.Key(name))
	b.Feed.Add(tracker.EventsOf.Key(name))
	return p
}

// standingPod follows the pod of a member whose containers are started again.
func (b *bringing) standingPod(m *member, l *life) {
	p := b.pod(m.object, len(l.sessions), false)
	p.uid, p.stands = l.uid, true
}

// await returns when all is of use: claims bound, pods ready. The milestones
// seen so far are in the trace in any case.
func (b *bringing) await(ctx context.Context, tr *op.Trace) error {
	defer b.Feed.Close()
	defer func() {
		b.Milestones.Fill(tr, b.ids())
		b.Calls.Fill(tr, len(b.claims) > 1)
	}()
	if err := b.reach(ctx, tr); err != nil {
		return err
	}
	tr.EndedAt(b.Milestones.Last(op.Bound, op.Ready))
	b.linger(ctx)
	return nil
}

// reach returns when all is of use.
func (b *bringing) reach(ctx context.Context, tr *op.Trace) error {
	err := b.until(ctx, b.usable)
	b.Waits.Done()
	b.account(tr)
	if err != nil {
		return b.explain(ctx, err)
	}
	return nil
}

// account counts what was tried in vain, and notes the volumes of which nobody
// knows whether the driver has made them.
func (b *bringing) account(tr *op.Trace) {
	var objects []string
	for name, c := range b.claims {
		objects = append(objects, c.object)
		if c.handle == "" && c.asked != "" {
			message, times := b.Warnings.FailedAttempts(name)
			b.engine.attempts.CreationFailed(c.asked, tracker.Creation{RPC: "CreateVolume", Driver: c.driver, Object: c.object, Times: times, Message: message})
		}
	}
	for _, p := range b.pods {
		objects = append(objects, p.object)
	}
	slices.Sort(objects)
	b.engine.attempts.Count(tr, strings.Join(objects, ", "), b.Warnings, b.Calls)
}

// linger waits a little for the milestones that must have happened. The op is
// done: what happens now is not its failure.
func (b *bringing) linger(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	_ = b.until(ctx, b.complete)
}

func (b *bringing) until(ctx context.Context, done func() bool) error {
	for !done() {
		v, err := b.Feed.Next(ctx)
		if err != nil {
			return err
		}
		if err := b.see(v); err != nil {
			return err
		}
		b.Waits.Saw(v)
	}
	return nil
}

// usable says whether claims are bound and pods ready.
func (b *bringing) usable() bool {
	for _, c := range b.claims {
		if !c.bound {
			return false
		}
	}
	for _, p := range b.pods {
		if !p.done {
			return false
		}
	}
	return true
}

// complete says whether the milestones that must have happened were seen.
func (b *bringing) complete() bool {
	ids := b.ids()
	for name, of := range ids {
		if optional[name] || name == op.Attached && !b.attaches() {
			continue
		}
		if (name == op.Staged || name == op.Published) && !b.engine.tracker.SeesNodeCalls() {
			continue // a proxy may stand before the controllers alone
		}
		if name == op.Staged && len(b.Milestones[op.Published]) >= len(of) {
			continue // a driver need not stage
		}
		if len(b.Milestones[name]) < len(of) {
			return false
		}
	}
	return true
}

// optional milestones need not be seen in every cluster or for every pod.
var optional = map[string]bool{status.PodReady: true, op.FirstWrite: true, op.FirstRead: true}

// attaches says whether all drivers of mounted claims have attachments.
func (b *bringing) attaches() bool {
	for _, c := range b.claims {
		if c.mounted && !b.engine.attachRequired(c.driver) {
			return false
		}
	}
	return true
}

// ids lists what each milestone can be seen of, so that one of a single object
// goes by its plain name.
func (b *bringing) ids() map[string][]string {
	var all, mounted, attached, running, placed, initialized []string
	for _, c := range b.claims {
		if !c.stands {
			all = append(all, c.object)
		}
		if c.mounted {
			mounted = append(mounted, c.object)
		}
		if c.mounted && !c.stays {
			attached = append(attached, c.object)
		}
	}
	for _, p := range b.pods {
		running = append(running, p.object)
		if !p.stands {
			placed = append(placed, p.object)
		}
		if p.initializes {
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
func (b *bringing) see(v any) error {
	switch v := v.(type) {
	case arrived:
		return b.agent(v)
	case doubt:
		return b.again(v.pod)
	case *csiproxy.Call:
		b.called(v)
	case watch.Event:
		if e, ok := v.Object.(*corev1.Event); ok {
			if b.concerns(v, &e.InvolvedObject) {
				b.waiting(e)
				b.Warnings.See(e)
				return b.refusal(e)
			}
			return nil
		}
		return b.event(v)
	}
	return nil
}

// concerns says whether an Event is about an object of the op, and not of what
// had its name before or happened to it then.
func (b *bringing) concerns(ev watch.Event, o *corev1.ObjectReference) bool {
	if ev.At < b.Calls.Since {
		return false
	}
	if _, old := b.before[o.UID]; old {
		return false
	}
	p := b.pods[o.Name]
	return p == nil || p.uid == "" || o.UID == "" || o.UID == p.uid
}

// refusal says why a claim of the op will never be bound, if an Event says so.
func (b *bringing) refusal(e *corev1.Event) error {
	if c := b.claims[e.InvolvedObject.Name]; c != nil && !c.bound && c.handle == "" {
		if err := tracker.ProvisioningError(e.InvolvedObject.Name, e.Reason, e.Message); err != nil {
			return err
		}
	}
	return nil
}

// waiting keeps what an unbound claim is said to wait for, which is no warning.
func (b *bringing) waiting(e *corev1.Event) {
	if c := b.claims[e.InvolvedObject.Name]; c != nil && (e.Reason == "ExternalProvisioning" || e.Reason == "WaitForFirstConsumer" || e.Reason == "WaitForPodScheduled") {
		c.waits = ": " + strings.TrimSpace(e.Message)
	}
}

// called takes a call of the driver: the end of staging and of publishing are
// milestones that nobody else sees.
func (b *bringing) called(c *csiproxy.Call) {
	object, ours := b.Calls.See(c)
	if !ours || c.Code != "OK" {
		return
	}
	m := op.Milestone{At: c.End, Err: c.Err, Source: "csi"}
	switch c.RPC {
	case "NodeStageVolume":
		b.Milestones.Set(op.Staged, object, m)
	case "NodePublishVolume":
		b.Milestones.Set(op.Published, object, m)
	}
}

func (b *bringing) event(ev watch.Event) error {
	gone := ev.Type == watch.Deleted
	switch o := ev.Object.(type) {
	case *corev1.PersistentVolumeClaim:
		if _, old := b.before[o.UID]; old {
			return nil
		}
		c := b.claims[o.Name]
		c.asked = tracker.VolumeRequestName(string(o.UID))
		b.Calls.Follow(b.Feed, c.asked, c.object)
		if c.driver == "" && o.Spec.StorageClassName != nil {
			c.driver = b.engine.classes[*o.Spec.StorageClassName].Provisioner
		}
		switch {
		case gone:
			return &engine.Error{Code: "Deleted", Message: fmt.Sprintf("claim %s was deleted by somebody else", o.Name)}
		case o.Status.Phase == corev1.ClaimLost:
			return &engine.Error{Code: "ClaimLost", Message: fmt.Sprintf("claim %s has lost its volume %s", o.Name, o.Spec.VolumeName)}
		case o.Status.Phase == corev1.ClaimBound:
			b.Milestones.Add(op.Bound, c.object, ev)
			if len(b.pods) == 0 {
				b.Milestones.Add(op.Ready, c.object, ev)
			}
			c.bound = true
			size := o.Status.Capacity[corev1.ResourceStorage]
			c.bytes = size.Value()
			b.knows(c, o.Spec.VolumeName)
		}
	case *corev1.PersistentVolume:
		c := b.claims[o.Spec.ClaimRef.Name]
		if _, old := b.before[o.Spec.ClaimRef.UID]; !gone && !old {
			b.Milestones.Add(op.Provisioned, c.object, ev)
			if o.Spec.CSI != nil {
				c.driver, c.handle = o.Spec.CSI.Driver, o.Spec.CSI.VolumeHandle
				b.Calls.Follow(b.Feed, c.handle, c.object)
			}
			b.knows(c, o.Name)
		}
	case *storagev1.VolumeAttachment:
		c := b.volumes[*o.Spec.Source.PersistentVolumeName]
		if there, known := b.before[o.UID]; known {
			if there && gone {
				b.Milestones.Add(op.Detached, c.object, ev)
			}
			return nil
		}
		if o.Status.Attached {
			b.Milestones.Add(op.Attached, c.object, ev)
			b.Warnings.Attached(c.volume)
		}
		if e := o.Status.AttachError; e != nil {
			b.Warnings.Note(c.object, "FailedAttach", e.Message, &e.Time)
		}
	case *corev1.Pod:
		return b.podEvent(ev, o, gone)
	}
	return nil
}

// knows follows the attachments of a volume whose name has become known.
func (b *bringing) knows(c *claimState, volume string) {
	if c.volume != "" || volume == "" {
		return
	}
	c.volume = volume
	b.volumes[volume] = c
	b.Feed.Add(tracker.AttachmentOfVolume.Key(volume))
}

func (b *bringing) podEvent(ev watch.Event, p *corev1.Pod, gone bool) error {
	state := b.pods[p.Name]
	if state == nil || state.uid != "" && p.UID != state.uid {
		return nil // one before it
	}
	state.last = p
	if gone {
		return &engine.Error{Code: "Deleted", Message: fmt.Sprintf("pod %s was deleted before it was ready", p.Name)}
	}
	if state.stands {
		return b.standingEvent(ev, p, state)
	}
	for _, name := range status.PodMilestones(p) {
		b.Milestones.Add(name, state.object, ev)
		if name == op.Scheduled {
			b.Warnings.Scheduled(p.Name)
		}
		if name == op.Running && state.plain {
			state.done = true
			b.Milestones.Add(op.Ready, state.object, ev)
		}
	}
	return b.startable(p, state)
}

// standingEvent takes an event of a pod that was there before the op: of its
// status only its readiness can be reached again.
func (b *bringing) standingEvent(ev watch.Event, p *corev1.Pod, state *podState) error {
	if ev.At < b.Calls.Since {
		return nil
	}
	ready := slices.Contains(status.PodMilestones(p), status.PodReady)
	if ready && state.unready {
		b.Milestones.Add(status.PodReady, state.object, ev)
	}
	state.unready = state.unready || !ready
	return b.startable(p, state)
}

// startable says why the containers of a pod that is not ready yet will not start.
func (b *bringing) startable(p *corev1.Pod, state *podState) error {
	if state.done {
		return nil
	}
	if err := status.PodError(p); err != nil {
		return err
	}
	if status.StartError(p) != nil && !state.doubted {
		state.doubted = true
		time.AfterFunc(patienceWithKubelet, func() { b.Feed.Put(doubt{p.Name}) })
	}
	return nil
}

// patienceWithKubelet is how long the kubelet may go on failing to start a
// container before the op does.
const patienceWithKubelet = 30 * time.Second

// doubt is put into a feed when a pod that could not be started is to be looked
// at once more.
type doubt struct{ pod string }

// again looks at a pod that could not be started.
func (b *bringing) again(name string) error {
	p := b.pods[name]
	if p.done || p.last == nil {
		return nil
	}
	p.doubted = false
	if err := status.StartError(p.last); err != nil {
		return err
	}
	return nil
}

// agent takes an agent's arrival.
func (b *bringing) agent(a arrived) error {
	p := b.pods[a.pod]
	if a.failure != nil {
		if p.last != nil { // the kubelet may know better why
			if err := status.PodError(p.last); err != nil {
				return err
			}
		}
		return a.failure
	}
	for _, t := range a.touches {
		name := op.FirstRead
		if t.write {
			name = op.FirstWrite
		}
		if t.failure != "" {
			return &engine.Error{Code: "IO", Message: fmt.Sprintf("%s on %s: %s", name, t.claim, t.failure)}
		}
		if c := b.claims[t.claim]; c != nil {
			b.Milestones.Set(name, c.object, op.Milestone{At: t.at, Err: t.err, Source: "agent"})
		}
	}
	if p.running.At < a.began.At || p.running.Source == "" {
		p.running = a.began
	}
	if p.ready.At < a.ready.At || p.ready.Source == "" {
		p.ready = a.ready
	}
	if p.waiting--; p.waiting == 0 {
		p.done = true
		b.Milestones.Set(op.Running, p.object, p.running)
		b.Milestones.Set(op.Ready, p.object, p.ready)
	}
	return nil
}

// explain adds to an error what the cluster has said of the objects.
func (b *bringing) explain(ctx context.Context, err error) error {
	var coded *engine.Error
	if ctx.Err() == nil || errors.As(err, &coded) {
		if said := b.Warnings.String(); said != "" && coded != nil && !strings.Contains(coded.Message, said) {
			return &engine.Error{Code: coded.Code, Message: coded.Message + " (" + said + ")", Err: coded}
		}
		return err
	}
	var waits []string
	for _, name := range slices.Sorted(maps.Keys(b.claims)) {
		if c := b.claims[name]; !c.bound {
			waits = append(waits, fmt.Sprintf("claim %s is not bound%s", name, c.waits))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.pods)) {
		p := b.pods[name]
		switch {
		case p.done:
		case p.last == nil:
			waits = append(waits, fmt.Sprintf("pod %s was not seen", name))
		default:
			waits = append(waits, fmt.Sprintf("pod %s: %s", name, status.PodPending(p.last)))
		}
	}
	return &engine.Error{Code: "Waiting", Message: b.Observation.Explain(strings.Join(waits, "; ")), Err: err}
}
