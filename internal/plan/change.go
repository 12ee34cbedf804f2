package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload"
)

func (l *loader) snapshot(n *info) {
	s, path := n.spec.SnapshotSpec, n.path+".snapshotSpec"
	if !l.target(n, path, s.Target, s.Select, engine.VolumeObject) {
		return
	}
	for _, of := range n.aims {
		n.claims = append(n.claims, of.claims...)
	}
	if s.Group {
		l.need(path+".group", "groupSnapshot")
		l.lacking(path+".group", n.claims, canGroup)
	}
	if len(n.claims) == 0 && s.SnapshotClass == "" {
		return // what it aims at has problems of its own
	}
	class, _ := l.classes.snapshots(orParent(l.doc, path, "snapshotClass"), s.SnapshotClass, l.drivers(n.claims), s.Group)
	n.out.Snapshot = &SnapshotSpec{Class: class, Group: s.Group}
}

func (l *loader) restore(n *info) {
	s, path := n.spec.RestoreSpec, n.path+".restoreSpec"
	if l.target(n, path, s.Target, s.Select, engine.SnapshotObject) {
		l.copyOf(n, path, s.NewVolume)
	}
}

func (l *loader) clone(n *info) {
	s, path := n.spec.CloneSpec, n.path+".cloneSpec"
	if l.target(n, path, s.Target, s.Select, engine.VolumeObject) {
		l.copyOf(n, path, s.NewVolume)
	}
}

// copyOf resolves the volume that a restore or a clone makes; what it does
// not say is as the source's.
func (l *loader) copyOf(n *info, path string, v v1alpha1.NewVolume) {
	var sources []corev1.PersistentVolumeClaim
	for _, of := range n.aims {
		sources = append(sources, of.claims...)
	}
	if len(sources) == 0 {
		return // its target has problems of its own
	}
	like, class := sources[0], v.StorageClass
	for _, c := range sources {
		if class == "" && className(&c) != className(&like) {
			l.fail(path, "storageClass", "the sources are of several StorageClasses, so that the new volume's must be given")
			return
		}
		if _, static := l.static[c.Name]; static && class == "" {
			l.fail(path, "storageClass", "the source is of no StorageClass, so that the new volume's must be given")
			return
		}
		if c.Spec.Resources.Requests.Storage().Cmp(*like.Spec.Resources.Requests.Storage()) < 0 {
			like = c // the least: engines raise it to the source's
		}
	}
	if class == "" {
		class = className(&like)
	}
	size := like.Spec.Resources.Requests[corev1.ResourceStorage]
	if v.Size != nil {
		size = *v.Size
		l.size(path+".size", v.Size)
	}
	at := orParent(l.doc, path, "storageClass")
	sc, ok := l.classes.volumes(at, class)
	if !ok {
		return
	}
	if of := l.drivers(sources); l.classes.cluster && sc.Provisioner != "" && len(of) > 0 && !of[sc.Provisioner] {
		l.fail(at, "a copy is made by the driver that has the source", "StorageClass %q is of driver %s, the source is of %s",
			sc.Name, sc.Provisioner, strings.Join(sortedKeys(of), " and "))
		return
	}
	claim := newClaim(sc.Name, size)
	claim.Spec.AccessModes, claim.Spec.VolumeMode = like.Spec.AccessModes, like.Spec.VolumeMode
	l.makesVolume(n, path, engine.Volume{Claim: claim, Attach: v.Attach})
}

func (l *loader) resize(n *info) {
	s, path := n.spec.ResizeSpec, n.path+".resizeSpec"
	out := &ResizeSpec{Bytes: l.size(path+".size", s.Size), ByBytes: l.size(path+".increaseBy", s.IncreaseBy)}
	if s.Factor != nil {
		out.Factor = s.Factor.Value
		if out.Factor <= 1 || out.Factor > 1024 {
			l.fail(path+".factor", "such as 1.5", "must be more than 1 and at most 1024")
		}
	}
	n.out.Resize = out
	if !l.target(n, path, s.Target, s.Select, engine.VolumeObject) {
		return
	}
	for _, of := range n.aims {
		for _, c := range of.claims {
			if have := c.Spec.Resources.Requests.Storage(); s.Size != nil && s.Size.Cmp(*have) <= 0 {
				l.fail(path+".size", "volumes can only grow", "%s is not more than the %s that the volumes of %q have", s.Size, have, of.out.Name)
				return
			}
			if !l.canGrow(path, &c) {
				return
			}
		}
	}
}

// canGrow says whether a cluster lets a volume grow at all.
func (l *loader) canGrow(path string, c *corev1.PersistentVolumeClaim) bool {
	sc, ok := l.classOf(c)
	switch _, static := l.static[c.Name]; {
	case static:
		l.fail(path, "", "a volume without a StorageClass cannot grow")
		return false
	case !l.classes.cluster || !ok || sc.AllowVolumeExpansion != nil && *sc.AllowVolumeExpansion:
		return true
	}
	l.fail(path, "allowVolumeExpansion: true in the class", "StorageClass %q does not let its volumes grow", sc.Name)
	return false
}

func (l *loader) modify(n *info) {
	s, path := n.spec.ModifySpec, n.path+".modifySpec"
	n.out.Modify = maps.Clone(s.Parameters)
	ok := l.target(n, path, s.Target, s.Select, engine.VolumeObject)
	var claims []corev1.PersistentVolumeClaim
	for _, of := range n.aims {
		claims = append(claims, of.claims...)
	}
	if s.VolumeAttributesClass != "" {
		n.out.Modify, n.out.ModifyClass = l.classes.attributes(path+".volumeAttributesClass", s.VolumeAttributesClass, l.drivers(claims))
	}
	if !ok {
		return
	}
	for _, of := range n.aims {
		if l.lacking(path, of.claims, canModify) {
			return
		}
	}
}

func (l *loader) delete(n *info) {
	s, path := n.spec.DeleteSpec, n.path+".deleteSpec"
	if s.Object != nil {
		l.foreign(n, path+".object", s.Object)
		return
	}
	kind := engine.VolumeObject
	if of, ok := l.infos[string(s.ActionName)]; ok {
		switch {
		case of.kind == op.Snapshot && of.spec.SnapshotSpec.Group:
			kind = engine.GroupSnapshotObject
		case of.kind == op.Snapshot:
			kind = engine.SnapshotObject
		case of.kind == op.Create && of.spec.CreateObjSpec.Workload != "":
			kind = engine.WorkloadObject
		case of.kind == op.Create && of.spec.CreateObjSpec.Manifest != nil:
			kind = engine.ManifestObject
		}
	}
	if s.ObjectKind != "" {
		kind = engine.ObjectKind(s.ObjectKind)
	}
	l.target(n, path, s.Target, s.Select, kind)
}

// target resolves which objects an action is done to; false if it has
// reported that there can never be any.
func (l *loader) target(n *info, path string, t v1alpha1.Target, s v1alpha1.Select, kind engine.ObjectKind) bool {
	out := &Target{Kind: kind, Select: Select(s), Action: string(t.ActionName), Labels: maps.Clone(t.Labels)}
	n.out.Target = out
	switch {
	case t.ActionName != "":
		return l.byAction(n, path+".actionName", string(t.ActionName), kind)
	case t.VolumeName != "":
		return l.byVolume(n, path+".volumeName", t.VolumeName, kind)
	case len(t.Labels) > 0:
		return l.byLabels(n, path+".labels", t.Labels, kind, fmt.Sprintf("no %s that this run makes has these labels", kind), labelHint(kind))
	}
	return false // the schema has said it
}

func (l *loader) byAction(n *info, path, name string, kind engine.ObjectKind) bool {
	of, ok := l.infos[name]
	if !ok {
		l.fail(path, suggest(name, sortedKeys(l.infos)), "there is no action %q", name)
		return false
	}
	if of.state == resolving {
		l.fail(path, "", "%q acts on what comes of %q itself, so that there is never a first object", n.out.Name, name)
		return false
	}
	l.action(of)
	if of.kind == "" || !l.in.Capabilities.Actions[of.kind] {
		return false // has a problem of its own
	}
	if !gives(of, kind) {
		l.fail(path, "it can be: "+orNone(l.givers(kind)), "%q makes no %ss, so that there is never one to %s", name, kind, n.kind)
		return false
	}
	n.aims = []*info{of}
	return true
}

// gives says whether an action makes objects of a kind.
func gives(of *info, kind engine.ObjectKind) bool {
	switch kind {
	case engine.WorkloadObject:
		return of.kind == op.Create && of.spec.CreateObjSpec.Workload != ""
	case engine.ManifestObject:
		return of.kind == op.Create && of.spec.CreateObjSpec.Manifest != nil
	case engine.VolumeObject:
		unknown := of.kind == op.Create && of.out.Workload == nil && of.spec.CreateObjSpec.Workload != ""
		return of.kind == op.Restore || of.kind == op.Clone || of.kind == op.Create && (len(of.claims) > 0 || unknown || of.spec.CreateObjSpec.Volume != nil)
	default:
		return of.kind == op.Snapshot
	}
}

func (l *loader) givers(kind engine.ObjectKind) []string {
	var names []string
	for name, of := range l.infos {
		if name != "" && of.state == resolved && gives(of, kind) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// byVolume aims at an action that makes volumes, or at the claims of that name
// in the templates of workloads; or at the snapshots of either.
func (l *loader) byVolume(n *info, path, name string, kind engine.ObjectKind) bool {
	if of, ok := l.infos[name]; ok && of != n && kind == engine.VolumeObject {
		if of.state == untouched {
			l.action(of)
		}
		if of.state == resolved && of.out.Volume != nil {
			n.out.Target.Volume = name
			n.aims = []*info{of}
			return true
		}
	}
	n.out.Target.Labels = map[string]string{workload.LabelVolume: name}
	message, hint := "no volume of this run is called "+name, "the name of a claim in a workload's template"
	if kind == engine.SnapshotObject {
		message, hint = "no snapshot is taken of a volume called "+name, "the name of an action that makes volumes, or of a claim in a workload's template"
	}
	return l.byLabels(n, path, n.out.Target.Labels, kind, message, hint)
}

// byLabels aims at the objects of a kind that have the labels.
func (l *loader) byLabels(n *info, path string, labels map[string]string, kind engine.ObjectKind, message, hint string) bool {
	for _, name := range sortedKeys(l.infos) {
		if of := l.infos[name]; of != n && l.labelled(n, of, kind, labels) {
			n.aims = append(n.aims, of)
		}
	}
	if len(n.aims) == 0 {
		l.fail(path, hint, "%s", message)
		return false
	}
	return true
}

// labelled says whether an action makes objects of a kind with these labels.
// Snapshots have those of the volumes that they are of; one of volumes that n
// itself makes is passed over, for it cannot be what n begins with.
func (l *loader) labelled(n, of *info, kind engine.ObjectKind, labels map[string]string) bool {
	snapshots := kind == engine.SnapshotObject || kind == engine.GroupSnapshotObject
	switch {
	case snapshots && (of.kind != op.Snapshot || string(of.spec.SnapshotSpec.ActionName) == n.out.Name),
		kind == engine.GroupSnapshotObject && !of.spec.SnapshotSpec.Group,
		!snapshots && of.kind != op.Create:
		return false
	}
	l.action(of)
	switch kind {
	case engine.WorkloadObject:
		return of.out.Workload != nil && hasAll(of.out.Workload.Labels, labels)
	case engine.ManifestObject:
		return of.out.Manifest != nil && hasAll(of.out.Manifest.Labels, labels)
	}
	return slices.ContainsFunc(of.claims, func(c corev1.PersistentVolumeClaim) bool { return hasAll(c.Labels, labels) })
}

func labelHint(kind engine.ObjectKind) string {
	switch kind {
	case engine.WorkloadObject:
		return "the labels of its createObjSpec"
	case engine.ManifestObject:
		return "those of its createObjSpec or of its manifest"
	case engine.SnapshotObject, engine.GroupSnapshotObject:
		return "a snapshot has the labels of the volumes that it is of"
	}
	return "labels of a createObjSpec are put on its volumes"
}

func hasAll(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// drivers are those of the claims' StorageClasses, as far as they are known.
func (l *loader) drivers(claims []corev1.PersistentVolumeClaim) map[string]bool {
	drivers := map[string]bool{}
	for i := range claims {
		if sc, ok := l.classOf(&claims[i]); ok {
			drivers[sc.Provisioner] = true
		}
		drivers[l.static[claims[i].Name]] = true
	}
	delete(drivers, "")
	return drivers
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no action of this file"
	}
	return strings.Join(names, ", ")
}
