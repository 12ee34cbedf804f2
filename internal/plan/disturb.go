package plan

import (
	"cmp"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The actions that disturb what runs: volumes detached under their pods, pods
// replaced, nodes emptied, replicas more and fewer, processes killed.

func (l *loader) reattach(n *info) {
	s, path := n.spec.ReattachSpec, n.path+".reattachSpec"
	n.out.Node = cmp.Or(s.Node, engine.NodeAny)
	if n.out.Node == engine.NodeOther {
		l.need(path+".node", "node: other")
	}
	if !l.target(n, path, s.Target, s.Select, engine.VolumeObject) {
		return
	}
	for _, of := range n.aims {
		if v := of.spec.CreateObjSpec; v != nil && v.Volume != nil && v.Volume.GenericEphemeralSpec != nil {
			l.fail(path, "a volume that outlives its pod", "the volumes of %q live and die with their pods, so that they cannot be attached again", of.out.Name)
		}
		if of.out.Volume != nil && !of.out.Volume.Template.Attach {
			l.fail(path, "attach: true", "the volumes of %q are never attached, so that they cannot be again", of.out.Name)
		}
	}
}

func (l *loader) rollout(n *info) {
	s, path := n.spec.RolloutSpec, n.path+".rolloutSpec"
	if n.out.Undo = s.Undo; s.Undo {
		l.need(path+".undo", "undo")
	}
	l.target(n, path, v1alpha1.Target{ActionName: s.ActionName, Labels: s.Labels}, s.Select, l.withPods(s.ActionName))
}

// withPods is the kind of object that an action makes which has pods.
func (l *loader) withPods(action v1alpha1.ActionName) engine.ObjectKind {
	if of, ok := l.infos[string(action)]; ok && of.kind == op.Create && of.spec.CreateObjSpec.Manifest != nil {
		return engine.ManifestObject
	}
	return engine.WorkloadObject
}

func (l *loader) kill(n *info) {
	s, path := n.spec.KillSpec, n.path+".killSpec"
	n.out.Kill = &KillSpec{Signal: s.Signal, StopFor: l.positive(path+".stopFor", s.StopFor)}
	if s.DeletePodSpec != nil {
		n.out.Kill = &KillSpec{Grace: s.DeletePodSpec.GracePeriod.Duration.Duration}
	}
	kind := l.withPods(s.ActionName)
	if kind == engine.ManifestObject && s.DeletePodSpec == nil {
		l.fail(path+".signal", "deletePodSpec deletes them", "nobody of ours is in the pods of %q who could send them a signal", s.ActionName)
	}
	l.target(n, path, v1alpha1.Target{ActionName: s.ActionName, Labels: s.Labels}, s.Select, kind)
}

func (l *loader) drain(n *info) {
	s := n.spec.DrainSpec
	n.out.Drain = &DrainSpec{Node: s.NodeName, Labels: maps.Clone(s.NodeLabels)}
}

// scriptKey is the key of a ConfigMap that has the script of a scale.
const scriptKey = "scale.sh"

func (l *loader) scale(n *info) {
	s, path := n.spec.ScaleSpec, n.path+".scaleSpec"
	n.out.Scale = &ScaleSpec{Replicas: s.Replicas, Script: l.script(path, s)}
	if s.Object != nil {
		l.foreign(n, path+".object", s.Object)
		return
	}
	l.target(n, path, v1alpha1.Target{ActionName: s.ActionName}, v1alpha1.SelectAll, engine.ManifestObject)
}

// script takes the script of a scale from the ConfigMap beside the Benchmark.
func (l *loader) script(path string, s *v1alpha1.ScaleSpec) *engine.Script {
	if s.ScriptConfigMap == "" {
		return nil
	}
	path += ".scriptConfigMap"
	cm, ok := l.configs[s.ScriptConfigMap]
	if !ok {
		l.fail(path, or(suggest(s.ScriptConfigMap, sortedKeys(l.configs)), "put it beside the Benchmark"), "there is no ConfigMap %q here", s.ScriptConfigMap)
		return nil
	}
	text, ok := cm.Data[scriptKey]
	if !ok && len(cm.Data) == 1 {
		for _, text = range cm.Data {
			ok = true
		}
	}
	switch {
	case !ok:
		l.fail(path, "", "ConfigMap %q has no key %s", s.ScriptConfigMap, scriptKey)
	case !strings.HasPrefix(text, "#!"):
		l.fail(path, "such as #!/bin/sh", "the script of ConfigMap %q does not begin with #! and its interpreter", s.ScriptConfigMap)
	}
	return &engine.Script{Text: text, Image: cmp.Or(s.Image, l.in.ToolsImage), ServiceAccount: s.ServiceAccountName}
}

// foreign aims at an object that the run did not make.
func (l *loader) foreign(n *info, path string, o *v1alpha1.ObjectRef) {
	if !l.need(path, "object") {
		return
	}
	if _, err := schema.ParseGroupVersion(o.APIVersion); err != nil {
		l.fail(path+".apiVersion", "such as apps/v1", "%v", err)
	}
	n.out.Target = &Target{Kind: engine.ManifestObject, Select: SelectAll,
		Object: &engine.ObjectRef{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}
}
