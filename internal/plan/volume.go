package plan

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// resolveVolume resolves a createObjSpec that creates volumes without a workload.
func resolveVolume(g *graph, n *node, path string, c *v1alpha1.CreateObjSpec) {
	v := c.Volume
	made := engine.Volume{Attach: v.Attach, Claim: newClaim("", *v.Size)}
	claim := &made.Claim
	claim.Name = workload.InstanceName(n.out.Name, 0)
	claim.Spec.AccessModes = accessModes(v.AccessModes)
	mode := corev1.PersistentVolumeMode(v.VolumeMode)
	claim.Spec.VolumeMode = &mode
	maps.Copy(claim.Labels, c.Labels)
	bytesOf(g.Report, path+".size", v.Size)
	switch {
	case v.StaticSpec != nil:
		if !g.need(path+".staticSpec", "static") || !staticVolume(g, n, path, v, &made) {
			return
		}
	default:
		if v.GenericEphemeralSpec != nil {
			if !g.need(path+".genericEphemeralSpec", "genericEphemeral") {
				return
			}
			made.Ephemeral, made.Attach = true, true // a generic ephemeral volume exists only with its pod
		}
		sc, ok := g.classes.volumes(g.OrParent(path, "storageClass"), v.StorageClass)
		if !ok {
			return
		}
		claim.Spec.StorageClassName = named(sc.Name)
	}
	claimFeatures(g, path, claim)
	if v.VolumeAttributesClass != "" && g.need(path+".volumeAttributesClass", "volumeAttributesClass") {
		initialAttributes(g, path+".volumeAttributesClass", v.VolumeAttributesClass, claim)
	}
	makesVolume(g, n, path, made)
}

func accessModes(modes []v1alpha1.AccessMode) (list []corev1.PersistentVolumeAccessMode) {
	for _, m := range modes {
		list = append(list, corev1.PersistentVolumeAccessMode(m))
	}
	return list
}

// staticVolume resolves a volume that exists already. The action must create exactly
// one instance. It returns false if it reported a problem.
func staticVolume(g *graph, n *node, path string, v *v1alpha1.VolumeSpec, made *engine.Volume) bool {
	if v.StorageClass != "" {
		g.Fail(path+".storageClass", "leave it out",
			"a volume that exists already is not provisioned by a StorageClass")
		return false
	}
	once := n.out.Rate == "" && !n.out.Chained || n.spec.StartAfter != nil || n.spec.StartAfterAction != ""
	if r, ok := g.rates[n.out.Rate]; ok && r.Limit != nil && *r.Limit == 1 {
		once = true
	}
	if n.out.Count > 1 || !once {
		g.Fail(path+".staticSpec", "an action for each volume",
			"one volume that exists already cannot be made into several")
		return false
	}
	none := ""
	made.Claim.Spec.StorageClassName = &none
	made.Static = &engine.StaticVolume{Driver: v.StaticSpec.Driver, Handle: v.StaticSpec.Handle,
		Attributes: maps.Clone(v.StaticSpec.Attributes)}
	g.static[workload.InstanceName(n.out.Name, 0)] = made.Static.Driver
	g.needs.Drivers = append(g.needs.Drivers, made.Static.Driver)
	return true
}

// initialAttributes sets the VolumeAttributesClass of a new volume. The class must
// exist in the cluster.
func initialAttributes(g *graph, path, name string, claim *corev1.PersistentVolumeClaim) {
	claim.Spec.VolumeAttributesClassName = named(name)
	if g.classes.any[attributesKind] {
		return
	}
	if _, ok := g.in.Classes.Attributes[name]; !ok {
		g.classes.missing(path, attributesKind, name, sortedKeys(g.in.Classes.Attributes))
		return
	}
	g.classes.attributes(path, name, g.drivers([]corev1.PersistentVolumeClaim{*claim}))
}

// makesVolume completes an action each of whose ops creates one volume.
func makesVolume(g *graph, n *node, path string, made engine.Volume) {
	claim := made.Claim
	claim.Labels[workload.LabelAction] = n.out.Name
	claim.Labels[workload.LabelVolume] = n.out.Name
	claim.Name = workload.InstanceName(n.out.Name, 0)
	n.claims = []corev1.PersistentVolumeClaim{claim}
	consumer(g, path, &claim, made.Attach)
	made.Claim = claim
	n.out.Volume = &Volume{Action: n.out.Name, Template: made}
}

// consumer reports a volume that would never be provisioned: its StorageClass has
// volumeBindingMode WaitForFirstConsumer and no pod uses the volume.
func consumer(g *graph, path string, claim *corev1.PersistentVolumeClaim, attach bool) {
	sc, ok := g.classes.of(claim)
	if !ok || !g.classes.cluster || attach || sc.VolumeBindingMode == nil ||
		*sc.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
		return
	}
	g.Fail(g.OrParent(path, "storageClass"), "attach: true, or a class with volumeBindingMode: Immediate",
		"StorageClass %q has volumeBindingMode WaitForFirstConsumer: a volume that no pod uses would never be "+
			"provisioned", sc.Name)
}
