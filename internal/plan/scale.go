package plan

import (
	"cmp"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/op"
)

var scaleAction = descriptor{
	kind: op.Scale, field: "scaleSpec", resolve: resolveScale, plural: "scalings",
	milestones: []string{op.Acked, op.Ready, op.Gone},
	rights:     scaleRights,
	request: func(a *Action, q *engine.Request, turn func() int64) {
		replicas := a.Scale.Replicas[int(turn())%len(a.Scale.Replicas)]
		q.Scale = &engine.Scale{Replicas: replicas, Script: a.Scale.Script}
	},
}

// scriptKey is the ConfigMap key of the script of a scaleSpec.
const scriptKey = "scale.sh"

func resolveScale(g *graph, n *node) {
	s, path := n.spec.ScaleSpec, n.path+".scaleSpec"
	n.out.Scale = &ScaleSpec{Replicas: s.Replicas, Script: resolveScript(g, path, s)}
	if s.Object != nil {
		resolveForeign(g, n, path+".object", s.Object)
		return
	}
	resolveTarget(g, n, path, v1alpha1.Target{ActionName: s.ActionName}, v1alpha1.SelectAll, engine.ManifestObject)
}

// resolveScript returns the script of a scaleSpec from a ConfigMap in the files. It returns
// nil if the scaleSpec names none, or if it reported a problem.
func resolveScript(g *graph, path string, s *v1alpha1.ScaleSpec) *engine.Script {
	if s.ScriptConfigMap == "" {
		return nil
	}
	path += ".scriptConfigMap"
	cm, ok := g.configs[s.ScriptConfigMap]
	if !ok {
		g.Fail(path, hints.Or(hints.Suggest(s.ScriptConfigMap, sortedKeys(g.configs)), "put it beside the Benchmark"),
			"ConfigMap %q not found here", s.ScriptConfigMap)
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
		g.Fail(path, "", "ConfigMap %q has no key %s", s.ScriptConfigMap, scriptKey)
	case !strings.HasPrefix(text, "#!"):
		g.Fail(path, "such as #!/bin/sh", "the script of ConfigMap %q does not begin with #! and its interpreter",
			s.ScriptConfigMap)
	}
	return &engine.Script{Text: text, Image: cmp.Or(s.Image, g.in.ToolsImage), ServiceAccount: s.ServiceAccountName}
}

func scaleRights(d *demands, a *Action) {
	d.onManifests(a, "to see the replicas of", "scale", "get")
	if o := a.Target.Object; o != nil && o.Namespace != "" {
		d.want(Right{Resource: "pods", Namespace: o.Namespace}, "to see the replicas of", a.Name, "list")
	}
	if a.Scale.Script == nil {
		d.onManifests(a, "to scale the objects of", "scale", "patch")
		return
	}
	const why = "to run the script of"
	d.want(Right{Resource: "pods"}, why, a.Name, "create", "delete")
	d.want(Right{Resource: "configmaps"}, why, a.Name, "create", "delete", "list")
}
