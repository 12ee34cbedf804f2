package inventory

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/component"
)

// placeLabels are the labels of nodes that say what kind of machine they are, and where.
var placeLabels = []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// nodes describes the nodes in order of their names.
func (r *reader) nodes() {
	list, ok := r.list("nodes", api.Nodes)
	if !ok {
		return
	}
	nodes := make([]any, 0, len(list))
	for _, o := range list {
		nodes = append(nodes, node(o.(*corev1.Node)))
	}
	r.found["nodes"] = nodes
}

func node(n *corev1.Node) map[string]any {
	i, a := &n.Status.NodeInfo, n.Status.Allocatable
	fields := map[string]any{
		"name": n.Name, "kubelet": i.KubeletVersion, "kernel": i.KernelVersion, "os": i.OSImage,
		"runtime": i.ContainerRuntimeVersion, "architecture": i.Architecture,
		"cpu": a.Cpu().String(), "memory": a.Memory().String(), "pods": a.Pods().String(),
		"ephemeralStorage": a.StorageEphemeral().String(), "conditions": conditions(n),
		"unschedulable": n.Spec.Unschedulable,
	}
	for _, label := range placeLabels {
		if v := n.Labels[label]; v != "" {
			fields[label] = v
		}
	}
	var taints []string
	for _, t := range n.Spec.Taints {
		taints = append(taints, t.Key+"="+t.Value+":"+string(t.Effect))
	}
	if len(taints) > 0 {
		slices.Sort(taints)
		fields["taints"] = taints
	}
	return fields
}

// conditions has the status of each condition; their times change all the time.
func conditions(n *corev1.Node) map[string]any {
	all := map[string]any{}
	for _, c := range n.Status.Conditions {
		all[string(c.Type)] = string(c.Status)
	}
	return all
}

// maxPods bounds the pods that are described.
const maxPods = 500

// pods describes the containers of the pods that run the drivers, their sidecars and the control plane: images with
// digests, flags and limits. Pods have the name of their controller, because their own names differ each time.
func (r *reader) pods(drivers []string) {
	list, ok := r.list("driverPods", api.Pods)
	if !ok {
		return
	}
	var of []*corev1.Pod
	for _, o := range list {
		if p := o.(*corev1.Pod); ofStorage(p, drivers) {
			of = append(of, p)
		}
	}
	if len(of) > maxPods {
		r.unread["driverPods"] = "more pods than are recorded: the others are left out"
		of = of[:maxPods]
	}
	r.found["driverPods"] = describe(of)
}

// describe has the containers of pods by the name of their controller, once if they are equal. Else each pod has an
// entry, with its node, or its own name where a node has several.
func describe(pods []*corev1.Pod) map[string]any {
	groups := map[string][]*corev1.Pod{}
	for _, p := range pods {
		groups[controllerName(p)] = append(groups[controllerName(p)], p)
	}
	all := map[string]any{}
	for name, group := range groups {
		first := containers(group[0])
		if !slices.ContainsFunc(group, func(p *corev1.Pod) bool { return !reflect.DeepEqual(containers(p), first) }) {
			all[name] = first
			continue
		}
		for _, p := range group {
			key := name + "@" + p.Spec.NodeName
			if _, again := all[key]; again {
				key = p.Namespace + "/" + p.Name
			}
			all[key] = containers(p)
		}
	}
	return all
}

// controllerName is the namespace and name of a pod's controller, without the hash of a Deployment's version; of a pod
// of a node itself, or of none, its own.
func controllerName(p *corev1.Pod) string {
	name := p.Name
	for _, o := range p.OwnerReferences {
		if o.Controller != nil && *o.Controller && o.Kind != "Node" {
			name = o.Name
			if hash := p.Labels["pod-template-hash"]; hash != "" {
				name = strings.TrimSuffix(name, "-"+hash)
			}
		}
	}
	return p.Namespace + "/" + name
}

// ofStorage reports whether a pod runs one of the drivers, a sidecar, or a part of the control plane. A driver is found
// by its name in flags, variables or paths.
func ofStorage(p *corev1.Pod, drivers []string) bool {
	if component.In(p, func(c component.Component) bool { return c.Name != "" }) {
		return true
	}
	for _, c := range p.Spec.Containers {
		text := c.Image + " " + strings.Join(c.Command, " ") + " " + strings.Join(c.Args, " ")
		for _, e := range c.Env {
			text += " " + e.Value
		}
		if slices.ContainsFunc(drivers, func(driver string) bool { return strings.Contains(text, driver) }) {
			return true
		}
	}
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.HostPath != nil && slices.ContainsFunc(drivers, func(d string) bool {
			return strings.HasSuffix(strings.TrimRight(v.HostPath.Path, "/"), "/kubelet/plugins/"+d)
		})
	})
}
