package kubernetes

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
)

// chooseDelivery sets how the agent gets into pods, where the user leaves that to the engine: as an image volume if the
// API server admits pods with one and all nodes can mount it, else by an init container, which makes the start of each
// pod longer.
func (e *Engine) chooseDelivery(ctx context.Context) {
	if e.Delivery != podspec.DeliverAuto {
		return
	}
	e.Delivery = podspec.DeliverImage
	if why := e.noImageVolumes(ctx); why != "" {
		e.Delivery = podspec.DeliverInit
		e.Session.Sink.Log("engine", "an init container copies the agent into each pod, which makes its start longer: "+why+
			"; if nodes can mount images as volumes, use --agent image")
	}
}

// noImageVolumes says why pods cannot mount the product's image as a volume; empty: they can.
func (e *Engine) noImageVolumes(ctx context.Context) string {
	pod := &corev1.Pod{ObjectMeta: e.Meta(metav1.ObjectMeta{}, "", "delivery")}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", SecurityContext: podspec.Restricted(),
		Resources: podspec.Resources()}}
	podspec.DeliverImage.Deliver(&pod.Spec, e.Image, []string{"main"})
	if err := e.Session.PodTemplate.Apply(pod); err != nil {
		return err.Error()
	}
	var admitted corev1.Pod
	switch err := e.Client.Admit(ctx, api.Pods, e.Namespace, pod, &admitted); {
	case err != nil:
		return fmt.Sprintf("a pod with an image volume is not admitted: %v", err)
	case len(admitted.Spec.Volumes) == 0 || admitted.Spec.Volumes[0].Image == nil:
		return "the API server has no image volumes (feature ImageVolume)"
	}
	nodes, _, err := e.Client.List(ctx, api.Nodes, "", metav1.ListOptions{})
	if err != nil {
		return fmt.Sprintf("it is not known whether nodes can mount image volumes: %v", err)
	}
	for _, o := range nodes {
		if info := &o.(*corev1.Node).Status.NodeInfo; !mountsImages(info) {
			return fmt.Sprintf("node %s does not mount image volumes (kubelet %s, %s)", o.GetName(), info.KubeletVersion,
				info.ContainerRuntimeVersion)
		}
	}
	return ""
}

var nodeVersion = regexp.MustCompile(`^(?:([a-z-]+)://)?v?(\d+)\.(\d+)`)

// mountsImages says whether a node mounts image volumes, with its default features: kubelets do from 1.35 on, containerd
// from 2.1, CRI-O from 1.31.
// https://kubernetes.io/docs/tasks/configure-pod-container/image-volumes/
func mountsImages(n *corev1.NodeSystemInfo) bool {
	least := map[string][2]int{"": {1, 35}, "containerd": {2, 1}, "cri-o": {1, 31}}
	for _, version := range []string{n.KubeletVersion, n.ContainerRuntimeVersion} {
		m := nodeVersion.FindStringSubmatch(version)
		if m == nil {
			return false
		}
		want, known := least[m[1]]
		major, _ := strconv.Atoi(m[2])
		minor, _ := strconv.Atoi(m[3])
		if !known || major < want[0] || major == want[0] && minor < want[1] {
			return false
		}
	}
	return true
}
