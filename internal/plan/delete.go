package plan

import (
	"cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/trace"
)

var deleteAction = descriptor{
	kind: op.Delete, field: "deleteSpec", resolve: (*loader).delete, plural: "deletions",
	milestones: []string{op.Acked, op.Unpublished, op.Unstaged, op.Detached, op.Gone},
	rights: func(d *demands, a *Action) {
		if o := a.Target.Object; o != nil {
			d.want(object(o.APIVersion, o.Kind, o.Namespace), "to delete "+o.Name+", which the run did not make, for",
				a.Name,
				"get", "list", "watch", "delete")
		}
	},
	fits: func(n *info, r *trace.Record) bool {
		return n.out.Target != nil && n.out.Target.Kind == objectKinds[r.Kind]
	},
}

func (l *loader) delete(n *info) {
	s, path := n.spec.DeleteSpec, n.path+".deleteSpec"
	if s.Object != nil {
		l.foreign(n, path+".object", s.Object)
		return
	}
	kind := engine.VolumeObject
	if of, ok := l.infos[string(s.ActionName)]; ok {
		kind = cmp.Or(of.made(), kind)
	}
	if s.ObjectKind != "" {
		kind = engine.ObjectKind(s.ObjectKind)
	}
	l.target(n, path, s.Target, s.Select, kind)
}
