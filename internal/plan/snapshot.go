package plan

import (
	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/trace"
)

var snapshotAction = descriptor{
	kind: op.Snapshot, field: "snapshotSpec", resolve: resolveSnapshot,
	makes: func(a *v1alpha1.Action) engine.ObjectKind {
		if a.SnapshotSpec.Group {
			return engine.GroupSnapshotObject
		}
		return engine.SnapshotObject
	},
	milestones: []string{op.Acked, "content", op.Taken, op.Ready},
	each: func(n *node, targets int64) trigger {
		ops := targets
		if n.out.Snapshot != nil && n.out.Snapshot.Group {
			ops = min(targets, 1)
		}
		return trigger{map[string]int64{snapshots: targets}, ops, nil}
	},
	rights: snapshotRights,
	request: func(a *Action, q *engine.Request, _ func() int64) {
		q.Snapshot = &engine.Snapshot{Sources: []engine.Object{q.Target}, Class: a.Snapshot.Class}
	},
	fits: func(n *node, _ *trace.Record) bool { return n.out.Snapshot != nil && !n.out.Snapshot.Group },
}

func resolveSnapshot(g *graph, n *node) {
	s, path := n.spec.SnapshotSpec, n.path+".snapshotSpec"
	if !resolveTarget(g, n, path, s.Target, s.Select, engine.VolumeObject) {
		return
	}
	n.claims = n.sources()
	if s.Group {
		g.need(path+".group", "groupSnapshot")
		g.lacking(path+".group", n.claims, canGroup)
	}
	if len(n.claims) == 0 && s.SnapshotClass == "" {
		return // the problem of the target is reported already
	}
	class, _ := g.classes.snapshots(g.OrParent(path, "snapshotClass"), s.SnapshotClass, g.drivers(n.claims),
		s.Group)
	n.out.Snapshot = &SnapshotSpec{Class: class, Group: s.Group}
}

func snapshotRights(d *demands, a *Action) {
	const see = "to see when the snapshots are taken of"
	class := ""
	if a.Snapshot != nil {
		class = a.Snapshot.Class
	}
	d.want(Right{Group: snapshotGroup, Resource: "volumesnapshots"}, see, a.Name, "list", "watch")
	d.want(Right{Group: snapshotGroup, Resource: "volumesnapshots"}, "to remove the snapshots of", a.Name, "delete")
	d.want(Right{Group: snapshotGroup, Resource: "volumesnapshotcontents", ClusterScoped: true}, see, a.Name, "list",
		"watch")
	if d.plan.SnapshotClasses[class].Retain {
		d.want(Right{Group: snapshotGroup, Resource: "volumesnapshotcontents", ClusterScoped: true},
			"to remove the snapshots of", a.Name, "patch", "delete")
	}
	if a.Snapshot == nil || !a.Snapshot.Group {
		d.want(Right{Group: snapshotGroup, Resource: "volumesnapshots"}, "to take the snapshots of", a.Name, "create")
		d.want(Right{Group: snapshotGroup, Resource: "volumesnapshotclasses", ClusterScoped: true},
			"to check the class of", a.Name, "list")
		return
	}
	d.want(Right{Group: groupSnapshotGroup, Resource: "volumegroupsnapshots"}, "to take the group snapshots of", a.Name,
		"create", "delete", "list", "watch")
	d.want(Right{Group: groupSnapshotGroup, Resource: "volumegroupsnapshotclasses", ClusterScoped: true},
		"to check the class of", a.Name, "list")
	d.want(Right{Resource: "persistentvolumeclaims"}, "to label the volumes of one group for", a.Name, "patch")
}
