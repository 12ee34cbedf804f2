package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// resolveTarget resolves the target of an action. It returns false if it reported that no
// object can ever match.
func resolveTarget(g *graph, n *node, path string, t v1alpha1.Target, s v1alpha1.Select, kind engine.ObjectKind) bool {
	out := &Target{Kind: kind, Select: Select(s), Action: string(t.ActionName), Labels: maps.Clone(t.Labels)}
	n.out.Target = out
	switch {
	case t.ActionName != "":
		return byAction(g, n, path+".actionName", string(t.ActionName), kind)
	case t.VolumeName != "":
		return byVolume(g, n, path+".volumeName", t.VolumeName, kind)
	case len(t.Labels) > 0:
		return byLabels(g, n, path+".labels", t.Labels, kind,
			fmt.Sprintf("no %s that this run makes has these labels", kind), labelHint(kind))
	}
	return false // reported by the schema check
}

func byAction(g *graph, n *node, path, name string, kind engine.ObjectKind) bool {
	of, ok := g.nodes[name]
	if !ok {
		g.Fail(path, hints.Suggest(name, sortedKeys(g.nodes)), "action %q not found", name)
		return false
	}
	if of.state == resolving {
		g.Fail(path, "", "%q acts on what comes of %q itself, so that there is never a first object", n.out.Name, name)
		return false
	}
	g.visit(of)
	if of.does == nil || !g.in.Capabilities.Actions[of.kind] {
		return false // the other action has a problem of its own
	}
	if !gives(of, kind) {
		g.Fail(path, "it can be: "+orNone(givers(g, kind)), "%q makes no %ss, so that there is never one to %s", name,
			kind, n.kind)
		return false
	}
	n.aims = []*node{of}
	return true
}

// gives reports whether an action creates objects of a kind.
func gives(of *node, kind engine.ObjectKind) bool {
	made := of.made()
	switch kind {
	case engine.SnapshotObject, engine.GroupSnapshotObject:
		return made == engine.SnapshotObject || made == engine.GroupSnapshotObject
	case engine.VolumeObject: // a workload that could not be resolved may have volumes
		return made == kind || made == engine.WorkloadObject && (len(of.claims) > 0 || of.unresolved())
	}
	return made == kind
}

func givers(g *graph, kind engine.ObjectKind) []string {
	var names []string
	for name, of := range g.nodes {
		if name != "" && of.state == resolved && gives(of, kind) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// byVolume resolves a target that is given by volumeName: the volumes of the action
// with that name, the claims with that name in the templates of workloads, or the
// snapshots of either.
func byVolume(g *graph, n *node, path, name string, kind engine.ObjectKind) bool {
	if of, ok := g.nodes[name]; ok && of != n && kind == engine.VolumeObject {
		if of.state == untouched {
			g.visit(of)
		}
		if of.state == resolved && of.out.Volume != nil {
			n.out.Target.Volume = name
			n.aims = []*node{of}
			return true
		}
	}
	n.out.Target.Labels = map[string]string{workload.LabelVolume: name}
	message, hint := "no volume of this run is called "+name, "the name of a claim in a workload's template"
	if kind == engine.SnapshotObject {
		message = "no snapshot is taken of a volume called " + name
		hint = "the name of an action that makes volumes, or of a claim in a workload's template"
	}
	return byLabels(g, n, path, n.out.Target.Labels, kind, message, hint)
}

// byLabels resolves a target that is given by labels: all objects of a kind with the
// labels.
func byLabels(g *graph, n *node, path string, labels map[string]string, kind engine.ObjectKind, message,
	hint string) bool {
	for _, name := range sortedKeys(g.nodes) {
		if of := g.nodes[name]; of != n && labelled(g, n, of, kind, labels) {
			n.aims = append(n.aims, of)
		}
	}
	if len(n.aims) == 0 {
		if !slices.ContainsFunc(g.order, (*node).unresolved) {
			g.Fail(path, hint, "%s", message)
		}
		return false
	}
	return true
}

// labelled reports whether an action creates objects of a kind with the labels.
// Snapshots have the labels of their volumes. Snapshots of volumes that n itself
// creates are ignored, because the first op of n cannot act on them.
func labelled(g *graph, n, of *node, kind engine.ObjectKind, labels map[string]string) bool {
	s := of.spec.SnapshotSpec
	switch kind {
	case engine.SnapshotObject, engine.GroupSnapshotObject:
		if s == nil || string(s.ActionName) == n.out.Name || kind == engine.GroupSnapshotObject && !s.Group {
			return false
		}
	default:
		if of.spec.CreateObjSpec == nil {
			return false
		}
	}
	g.visit(of)
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

func orNone(names []string) string {
	if len(names) == 0 {
		return "no action of this file"
	}
	return strings.Join(names, ", ")
}

// resolveForeign resolves a target that the run did not create.
func resolveForeign(g *graph, n *node, path string, o *v1alpha1.ObjectRef) {
	if !g.need(path, "object") {
		return
	}
	if _, err := schema.ParseGroupVersion(o.APIVersion); err != nil {
		g.Fail(path+".apiVersion", "such as apps/v1", "%v", err)
	}
	n.out.Target = &Target{Kind: engine.ManifestObject, Select: SelectAll,
		Object: &engine.ObjectRef{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}
}
