package plan

import (
	"cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/trace"
)

var deleteAction = descriptor{
	kind: op.Delete, field: "deleteSpec", resolve: resolveDelete, plural: "deletions",
	milestones: []string{op.Acked, op.Unpublished, op.Unstaged, op.Detached, op.Gone},
	rights: func(d *demands, a *Action) {
		if o := a.Target.Object; o != nil {
			d.want(object(o.APIVersion, o.Kind, o.Namespace), "to delete "+o.Name+", which the run did not make, for",
				a.Name,
				"get", "list", "watch", "delete")
		}
	},
	fits: func(n *node, r *trace.Record) bool {
		return n.out.Target != nil && n.out.Target.Kind == objectKinds[r.Kind]
	},
}

func resolveDelete(g *graph, n *node) {
	s, path := n.spec.DeleteSpec, n.path+".deleteSpec"
	if s.Object != nil {
		resolveForeign(g, n, path+".object", s.Object)
		return
	}
	kind := engine.VolumeObject
	if of, ok := g.nodes[string(s.ActionName)]; ok {
		kind = cmp.Or(of.made(), kind)
	}
	if s.ObjectKind != "" {
		kind = engine.ObjectKind(s.ObjectKind)
	}
	resolveTarget(g, n, path, s.Target, s.Select, kind)
}

// objectKinds maps the kinds of object in a trace to those of the engine.
var objectKinds = map[trace.Kind]engine.ObjectKind{
	trace.Volume: engine.VolumeObject, trace.Snapshots: engine.SnapshotObject, trace.Workload: engine.WorkloadObject,
}
