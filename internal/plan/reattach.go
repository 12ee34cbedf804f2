package plan

import (
	"cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

var reattachAction = descriptor{
	kind: op.Reattach, field: "reattachSpec", resolve: resolveReattach, plural: "reattachments",
	milestones: append([]string{op.Gone, op.Unpublished, op.Unstaged, op.Detached}, podMilestones...),
	rights: func(d *demands, a *Action) {
		d.pods(a.Name, "to make again the pods of")
		if a.Node == engine.NodeOther {
			d.want(Right{Resource: "nodes", ClusterScoped: true}, "to see which other node there is, for", a.Name,
				"list")
		}
	},
	request: func(a *Action, q *engine.Request, _ func() int64) {
		q.Reattach = &engine.Reattach{Node: a.Node}
	},
}

// reattach, rollout, drain, scale and kill are the actions that disrupt running
// workloads.

func resolveReattach(g *graph, n *node) {
	s, path := n.spec.ReattachSpec, n.path+".reattachSpec"
	n.out.Node = cmp.Or(s.Node, engine.NodeAny)
	if n.out.Node == engine.NodeOther {
		g.need(path+".node", "node: other")
	}
	if !resolveTarget(g, n, path, s.Target, s.Select, engine.VolumeObject) {
		return
	}
	for _, of := range n.aims {
		if v := of.spec.CreateObjSpec; v != nil && v.Volume != nil && v.Volume.GenericEphemeralSpec != nil {
			g.Fail(path, "a volume that outlives its pod",
				"the volumes of %q live and die with their pods, so that they cannot be attached again", of.out.Name)
		}
		if of.out.Volume != nil && !of.out.Volume.Template.Attach {
			g.Fail(path, "attach: true", "the volumes of %q are never attached, so that they cannot be again",
				of.out.Name)
		}
	}
}
