package plan

import (
	"maps"

	"github.com/cnsbench/cnsbench/internal/op"
)

// drainAction has no target and no request function: the loop chooses the node and
// builds the request.
var drainAction = descriptor{
	kind: op.Drain, field: "drainSpec", resolve: resolveDrain, plural: "drains",
	milestones: append([]string{op.Cordoned, op.Evicted, op.Gone, op.Detached}, podMilestones...),
	each:       func(*node, int64) trigger { return trigger{map[string]int64{"drains": 1}, 1, nil} },
	rights: func(d *demands, a *Action) {
		d.want(Right{Resource: "nodes", ClusterScoped: true}, "to find and cordon a node, and to uncordon it, for",
			a.Name,
			"get", "list", "patch")
		d.want(Right{Resource: "pods", Subresource: "eviction"}, "to evict the run's pods for", a.Name, "create")
		d.pods(a.Name, "to make again the pods of")
	},
}

func resolveDrain(g *graph, n *node) {
	s := n.spec.DrainSpec
	n.out.Drain = &DrainSpec{Node: s.NodeName, Labels: maps.Clone(s.NodeLabels)}
}
