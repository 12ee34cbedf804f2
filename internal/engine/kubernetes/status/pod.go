// Package status reads the status of pods and other objects: which milestones it shows, whether the object is
// ready, and why it will not become ready.
package status

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
)

// PodMilestones lists the milestones that a pod's status shows.
func PodMilestones(p *corev1.Pod) []string {
	var names []string
	if p.Spec.NodeName != "" {
		names = append(names, op.Scheduled)
	}
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case corev1.PodReadyToStartContainers:
			names = append(names, op.Sandboxed)
		case corev1.PodInitialized:
			if p.Spec.NodeName != "" && len(p.Spec.InitContainers) > 0 {
				names = append(names, op.Initialized)
			}
		case corev1.PodReady:
			names = append(names, PodReady)
		}
	}
	if agentDelivered(p) {
		names = append(names, op.Delivered)
	}
	if allStarted(p) {
		names = append(names, op.Running)
	}
	return names
}

// agentDelivered says whether the init container of the agent has ended, if there is one.
func agentDelivered(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == podspec.AgentInit && c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
	})
}

// PodReady is the milestone of the kubelet's condition Ready. The op's milestone op.Ready comes from the agent if
// there is one.
const PodReady = "podReady"

// allStarted says whether every main container runs or has run.
func allStarted(p *corev1.Pod) bool {
	if len(p.Status.ContainerStatuses) < len(p.Spec.Containers) || len(p.Spec.Containers) == 0 {
		return false
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil && c.State.Terminated == nil && c.LastTerminationState.Terminated == nil {
			return false
		}
	}
	return true
}

// PodError returns why a pod will not become ready without help, or nil. Conditions that Kubernetes retries, such
// as scheduling, are left to the op's deadline.
func PodError(p *corev1.Pod) *engine.Error {
	statuses := append(append([]corev1.ContainerStatus(nil), p.Status.InitContainerStatuses...),
		p.Status.ContainerStatuses...)
	for _, c := range statuses {
		if w := c.State.Waiting; w != nil {
			switch w.Reason {
			case "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError":
				return engine.Errorf("ImagePull", "pod %s, container %s: image %s cannot be pulled (%s): %s", p.Name,
					c.Name, c.Image, w.Reason, w.Message)
			case "CreateContainerConfigError":
				if !cacheNotSynced(w) {
					return engine.Errorf(w.Reason, "pod %s, container %s: %s", p.Name, c.Name, w.Message)
				}
			}
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		return engine.Errorf(failureCode(p), "%s", describeFailure(p))
	}
	for _, c := range p.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return engine.Errorf("InitFailed", "pod %s: init container %s %s", p.Name, c.Name, describeExit(t))
		}
		if t := c.LastTerminationState.Terminated; t != nil && t.ExitCode != 0 && c.State.Waiting != nil {
			return engine.Errorf("InitFailed", "pod %s: init container %s %s", p.Name, c.Name, describeExit(t))
		}
	}
	return nil
}

// StartError returns why the kubelet failed to start a container, if that may pass by itself; else nil.
func StartError(p *corev1.Pod) *engine.Error {
	for _, c := range append(append([]corev1.ContainerStatus(nil), p.Status.InitContainerStatuses...),
		p.Status.ContainerStatuses...) {
		if w := c.State.Waiting; w != nil && (w.Reason == "CreateContainerError" || w.Reason == "RunContainerError" ||
			cacheNotSynced(w)) {
			return engine.Errorf(w.Reason, "pod %s, container %s: %s", p.Name, c.Name, w.Message)
		}
	}
	return nil
}

// cacheNotSynced says whether the kubelet has not yet read a Secret or ConfigMap of a container. It waits for one
// second, reports CreateContainerConfigError, and tries again; a Secret that does not exist has another message.
func cacheNotSynced(w *corev1.ContainerStateWaiting) bool {
	return w.Reason == "CreateContainerConfigError" && strings.HasPrefix(w.Message, "failed to sync ")
}

// TerminationReason returns why the cluster ends a pod: its kubelet evicts it, a drain or the scheduler does; empty if
// it does not say.
func TerminationReason(p *corev1.Pod) string {
	if p.Status.Reason != "" {
		return strings.TrimSuffix(p.Status.Reason+": "+p.Status.Message, ": ")
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
		}
	}
	return ""
}

func failureCode(p *corev1.Pod) string {
	if p.Status.Reason != "" {
		return p.Status.Reason // Evicted, NodeLost, …
	}
	return "PodFailed"
}

// describeFailure describes the causes of a failed pod.
func describeFailure(p *corev1.Pod) string {
	var parts []string
	if p.Status.Reason != "" || p.Status.Message != "" {
		parts = append(parts, strings.TrimSpace(p.Status.Reason+" "+p.Status.Message))
	}
	for _, c := range append(append([]corev1.ContainerStatus(nil), p.Status.InitContainerStatuses...),
		p.Status.ContainerStatuses...) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			parts = append(parts, fmt.Sprintf("container %s %s", c.Name, describeExit(t)))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no reason given"}
	}
	return fmt.Sprintf("pod %s failed: %s", p.Name, strings.Join(parts, "; "))
}

func describeExit(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exited with %d", t.ExitCode)
	switch {
	case t.Reason == "OOMKilled":
		text = "ran out of memory (OOMKilled)"
	case t.Signal != 0:
		text = fmt.Sprintf("was killed by signal %d", t.Signal)
	}
	if m := strings.TrimSpace(t.Message); m != "" {
		text += ": " + m
	}
	return text
}

// PodPending says what a pod waits for.
func PodPending(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("it is not scheduled: %s", c.Message)
		}
	}
	for _, c := range append(append([]corev1.ContainerStatus(nil), p.Status.InitContainerStatuses...),
		p.Status.ContainerStatuses...) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
			return strings.TrimSpace(fmt.Sprintf("container %s waits: %s %s", c.Name, w.Reason, w.Message))
		}
	}
	return "its phase is " + string(p.Status.Phase)
}

// ContainerEnds returns the ends of a pod's containers.
func ContainerEnds(p *corev1.Pod) []op.ContainerEnd {
	var list []op.ContainerEnd
	read := func(statuses []corev1.ContainerStatus, init bool) {
		for _, c := range statuses {
			t := c.State.Terminated
			if t == nil {
				continue
			}
			end := op.ContainerEnd{Name: c.Name, Init: init, ExitCode: int(t.ExitCode), OOM: t.Reason == "OOMKilled",
				Message: strings.TrimSpace(t.Message)}
			if t.Signal != 0 {
				end.Signal = fmt.Sprintf("signal %d", t.Signal)
			}
			list = append(list, end)
		}
	}
	read(p.Status.InitContainerStatuses, true)
	read(p.Status.ContainerStatuses, false)
	return list
}

// ControllerKind returns the kind of a pod's controller, if any.
func ControllerKind(p *corev1.Pod) string {
	if c := metav1.GetControllerOf(p); c != nil {
		return c.Kind
	}
	return ""
}
