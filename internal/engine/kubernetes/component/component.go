// Package component recognises the programs of a cluster that serve storage, or control operations at all, in the
// containers of its pods: CSI sidecars, the snapshot controller, and the control plane.
package component

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Component is a program. The zero value is none that is known.
type Component struct {
	Name string
	// Sidecar: it runs in a pod of a CSI driver.
	Sidecar bool
	// Operates: it takes part in control operations, so that its log, metrics and flags say what it did of them.
	Operates bool
	// parts of an image or command by which it is recognised; none: its name.
	parts []string
}

// The names of components that are treated apart.
const (
	Registrar = "node-driver-registrar" // registers a driver with a kubelet: its pods are the driver's on the nodes
	Prober    = "livenessprobe"         // answers liveness probes: its log says nothing of operations
)

// all components; the images of some distributions are named after their repositories (external-provisioner).
var all = []Component{
	{Name: "csi-provisioner", Sidecar: true, Operates: true, parts: []string{"csi-provisioner", "external-provisioner"}},
	{Name: "csi-attacher", Sidecar: true, Operates: true, parts: []string{"csi-attacher", "external-attacher"}},
	{Name: "csi-snapshotter", Sidecar: true, Operates: true},
	{Name: "csi-resizer", Sidecar: true, Operates: true, parts: []string{"csi-resizer", "external-resizer"}},
	{Name: Registrar, Sidecar: true},
	{Name: Prober, Sidecar: true},
	{Name: "external-health-monitor", Sidecar: true},
	{Name: "snapshot-controller", Operates: true},
	{Name: "kube-controller-manager", Operates: true},
	{Name: "kube-scheduler", Operates: true},
	{Name: "kube-apiserver"},
	{Name: "etcd"},
}

// Of returns which component a container is, by its image and command.
func Of(c *corev1.Container) Component {
	text := c.Image + " " + strings.Join(c.Command, " ")
	for _, known := range all {
		parts := known.parts
		if parts == nil {
			parts = []string{known.Name}
		}
		if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) }) {
			return known
		}
	}
	return Component{}
}

// In reports whether a container of a pod is a component that is wanted.
func In(p *corev1.Pod, wanted func(Component) bool) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return wanted(Of(&c)) })
}
