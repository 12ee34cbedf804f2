package plan

import (
	"maps"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

var modifyAction = descriptor{
	kind: op.Modify, field: "modifySpec", resolve: resolveModify, plural: "modifications",
	milestones: []string{op.Acked, op.Modified, op.Ready},
	rights:     modifyRights,
	request: func(a *Action, q *engine.Request, _ func() int64) {
		q.Modify = &engine.Modify{Class: a.ModifyClass, Parameters: a.Modify}
	},
}

func resolveModify(g *graph, n *node) {
	s, path := n.spec.ModifySpec, n.path+".modifySpec"
	n.out.Modify = maps.Clone(s.Parameters)
	ok := resolveTarget(g, n, path, s.Target, s.Select, engine.VolumeObject)
	claims := n.sources()
	if s.VolumeAttributesClass != "" {
		n.out.Modify, n.out.ModifyClass = g.classes.attributes(path+".volumeAttributesClass", s.VolumeAttributesClass,
			g.drivers(claims))
	}
	if ok {
		g.lacking(path, claims, canModify)
	}
}

func modifyRights(d *demands, a *Action) {
	d.want(Right{Resource: "persistentvolumeclaims"}, "to give another class to the volumes of", a.Name, "patch")
	if a.ModifyClass != "" {
		d.want(attributesClasses, "to check the class of", a.Name, "list")
		return
	}
	d.want(attributesClasses, "to make a class of the parameters of", a.Name, "create", "delete", "list")
}
