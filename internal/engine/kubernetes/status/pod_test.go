package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
)

func waitingPod(reason, message string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "nowhere/img:1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	return p
}

func TestPodError(t *testing.T) {
	failed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	failed.Status.Phase = corev1.PodFailed
	failed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}
	initFailed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	initFailed.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "i", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "no luck"}}}}
	tests := []struct {
		name string
		pod  *corev1.Pod
		code string
	}{
		{"starting", waitingPod("ContainerCreating", ""), ""},
		{"first pull failed, it tries again", waitingPod("ErrImagePull", "not found"), ""},
		{"pull given up", waitingPod("ImagePullBackOff", "not found"), "ImagePull"},
		{"secret missing", waitingPod("CreateContainerConfigError", `secret "s" not found`),
			"CreateContainerConfigError"},
		{"secret not read yet", waitingPod("CreateContainerConfigError",
			"failed to sync secret cache: timed out waiting for the condition"), ""},
		{"out of memory", failed, "PodFailed"},
		{"init container", initFailed, "InitFailed"},
	}
	for _, tt := range tests {
		err := PodError(tt.pod)
		switch {
		case tt.code == "" && err != nil:
			t.Errorf("%s: %v, want none", tt.name, err)
		case tt.code != "" && (err == nil || err.Code != tt.code):
			t.Errorf("%s: %v, want code %s", tt.name, err, tt.code)
		}
	}
}

func TestTerminationReason(t *testing.T) {
	target := func(is corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "Fine"},
			{Type: corev1.DisruptionTarget, Status: is, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"}}
	}
	for want, s := range map[string]corev1.PodStatus{
		"": {Conditions: target(corev1.ConditionFalse)},
		"Evicted: The node was low on disk": {Reason: "Evicted", Message: "The node was low on disk",
			Conditions: target(corev1.ConditionTrue)},
		"EvictionByEvictionAPI: Eviction API: evicting": {Conditions: target(corev1.ConditionTrue)},
		"NodeShutdown": {Reason: "NodeShutdown"},
	} {
		if got := TerminationReason(&corev1.Pod{Status: s}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPodMilestones(t *testing.T) {
	p := &corev1.Pod{}
	p.Spec.Containers, p.Spec.InitContainers = []corev1.Container{{Name: "a"},
		{Name: "b"}}, []corev1.Container{{Name: "i"}}
	if got := PodMilestones(p); len(got) != 0 {
		t.Errorf("a new pod has reached %v", got)
	}
	p.Spec.NodeName = "n"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, {Name: "b"}}
	if diff := cmp.Diff([]string{op.Scheduled, op.Initialized}, PodMilestones(p)); diff != "" {
		t.Errorf("one of two containers runs:\n%s", diff)
	}
	p.Status.ContainerStatuses[1].State.Terminated = &corev1.ContainerStateTerminated{}
	if diff := cmp.Diff([]string{op.Scheduled, op.Initialized, op.Running}, PodMilestones(p)); diff != "" {
		t.Errorf("both have started:\n%s", diff)
	}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: podspec.AgentInit,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	if diff := cmp.Diff([]string{op.Scheduled, op.Initialized, op.Delivered, op.Running}, PodMilestones(p)); diff != "" {
		t.Errorf("the agent was copied:\n%s", diff)
	}
}
