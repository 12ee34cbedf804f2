package plan

import (
	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

var rolloutAction = descriptor{
	kind: op.Rollout, field: "rolloutSpec", resolve: resolveRollout, plural: "rollouts",
	milestones: append([]string{op.Signalled, op.Gone}, podMilestones...),
	rights: func(d *demands, a *Action) {
		if a.Target.Kind == engine.WorkloadObject {
			d.pods(a.Name, "to make again the pods of")
			return
		}
		d.onManifests(a, "to roll out the objects of", "", "get", "patch")
	},
	request: func(a *Action, q *engine.Request, _ func() int64) {
		q.Rollout = &engine.Rollout{Undo: a.Undo}
	},
}

func resolveRollout(g *graph, n *node) {
	s, path := n.spec.RolloutSpec, n.path+".rolloutSpec"
	if n.out.Undo = s.Undo; s.Undo {
		g.need(path+".undo", "undo")
	}
	target := v1alpha1.Target{ActionName: s.ActionName, Labels: s.Labels}
	resolveTarget(g, n, path, target, s.Select, withPods(g, s.ActionName))
}

// withPods returns the kind of object with pods that an action creates: a manifest or a
// workload.
func withPods(g *graph, action v1alpha1.ActionName) engine.ObjectKind {
	if of, ok := g.nodes[string(action)]; ok && of.made() == engine.ManifestObject {
		return engine.ManifestObject
	}
	return engine.WorkloadObject
}
