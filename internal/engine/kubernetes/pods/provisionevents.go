package pods

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

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
			c.driver = pr.state.Classes[*o.Spec.StorageClassName].Provisioner
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
