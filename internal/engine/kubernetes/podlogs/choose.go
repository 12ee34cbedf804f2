// Package podlogs reads the logs of the pods that serve storage: sidecars and drivers, storage controllers, and
// servers of workloads that have no agent.
package podlogs

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/component"
)

// maxContainers bounds how many containers are read.
const maxContainers = 40

// container is a container whose log is read.
type container struct {
	namespace, pod, name string
	rank                 int // controllers first, then nodes, then servers
	status               *corev1.ContainerStatus
}

func (c *container) source() string { return c.namespace + "/" + c.pod + "/" + c.name }

// The ranks.
const (
	rankController = iota // sidecars and controllers
	rankNode              // pods that only register a driver with a kubelet
	rankServer
)

// choose returns the containers that serve the drivers in use, or ops at all, and notes about what it leaves out. A
// pod with sidecars belongs to a driver if its spec names the driver, or if it is in a namespace with such a pod and
// names no other driver. If no pod names a driver in use, all pods with sidecars are read.
func choose(pods []*corev1.Pod, drivers, others []string, mine func(*corev1.Pod) bool) (list []container,
	notes []string) {
	var storage []*corev1.Pod
	home := map[string]bool{} // namespaces of the drivers in use
	for _, p := range pods {
		if !hasSidecar(p) {
			continue
		}
		storage = append(storage, p)
		if namesAny(p, drivers) {
			home[p.Namespace] = true
		}
	}
	if len(storage) > 0 && len(home) == 0 {
		notes = append(notes, fmt.Sprintf("no pod names %s in its spec: the logs of all pods with CSI sidecars are read",
			strings.Join(drivers, " or ")))
	}
	for _, p := range pods {
		rank, serves := rankController, isController(p)
		switch {
		case slices.Contains(storage, p):
			serves = len(home) == 0 || namesAny(p, drivers) || home[p.Namespace] && !namesAny(p, others)
			if !isController(p) {
				rank = rankNode
			}
		case mine(p):
			rank, serves = rankServer, true
		}
		if serves {
			list = append(list, containersOf(p, rank, mine(p))...)
		}
	}
	slices.SortStableFunc(list, func(a, b container) int { return a.rank - b.rank })
	if len(list) > maxContainers {
		notes = append(notes, fmt.Sprintf("the logs of %d more containers are not read: want at most %d, controllers first",
			len(list)-maxContainers, maxContainers))
		list = list[:maxContainers]
	}
	return list, notes
}

// containersOf returns the containers of a pod that have started. The output of containers with an agent is in the
// run's log already.
func containersOf(p *corev1.Pod, rank int, mine bool) (list []container) {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if mine && hasAgent(c) || component.Of(c).Name == component.Prober {
			continue
		}
		for j := range p.Status.ContainerStatuses {
			if s := &p.Status.ContainerStatuses[j]; s.Name == c.Name && s.ContainerID != "" {
				list = append(list, container{p.Namespace, p.Name, c.Name, rank, s})
			}
		}
	}
	return list
}

func hasAgent(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == protocol.EnvRunner })
}

// hasSidecar reports whether a container of a pod is a CSI sidecar.
func hasSidecar(p *corev1.Pod) bool {
	return component.In(p, func(c component.Component) bool { return c.Sidecar })
}

// isController reports whether a pod is a controller of the cluster that takes part in ops.
func isController(p *corev1.Pod) bool {
	return component.In(p, func(c component.Component) bool { return c.Operates })
}

// namesAny reports whether a pod's flags, variables or host paths contain the name of a driver.
func namesAny(p *corev1.Pod, drivers []string) bool {
	var texts []string
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		texts = append(append(texts, c.Command...), c.Args...)
		for _, e := range c.Env {
			texts = append(texts, e.Value)
		}
	}
	for _, v := range p.Spec.Volumes {
		if v.HostPath != nil {
			texts = append(texts, v.HostPath.Path)
		}
	}
	return slices.ContainsFunc(drivers, func(driver string) bool {
		return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, driver) })
	})
}
