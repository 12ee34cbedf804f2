package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

var resizeAction = descriptor{
	kind: op.Resize, field: "resizeSpec", resolve: (*loader).resize, plural: "resizes",
	milestones: []string{op.Acked, op.Controller, op.Node, op.Ready},
	rights: func(d *demands, a *Action) {
		d.want(Right{Resource: "persistentvolumeclaims"}, "to grow the volumes of", a.Name, "patch")
	},
	request: func(a *Action, q *engine.Request, _ func() int64) {
		q.Resize = &engine.Resize{Bytes: a.Resize.grown(q.Target.Bytes)}
	},
}

func (l *loader) resize(n *info) {
	s, path := n.spec.ResizeSpec, n.path+".resizeSpec"
	out := &ResizeSpec{Bytes: l.size(path+".size", s.Size), ByBytes: l.size(path+".increaseBy", s.IncreaseBy)}
	if s.Factor != nil {
		out.Factor = s.Factor.Value
		if out.Factor <= 1 || out.Factor > 1024 {
			l.fail(path+".factor", "such as 1.5", "must be more than 1 and at most 1024")
		}
	}
	n.out.Resize = out
	if !l.target(n, path, s.Target, s.Select, engine.VolumeObject) {
		return
	}
	for _, of := range n.aims {
		for _, c := range of.claims {
			if have := c.Spec.Resources.Requests.Storage(); s.Size != nil && s.Size.Cmp(*have) <= 0 {
				l.fail(path+".size", "volumes can only grow", "%s is not more than the %s that the volumes of %q have",
					s.Size, have, of.out.Name)
				return
			}
			if !l.canGrow(path, &c) {
				return
			}
		}
	}
}

// grown returns the new size, in bytes, of a volume with the given size.
func (s *ResizeSpec) grown(bytes int64) int64 {
	switch {
	case s.Factor > 0:
		return int64(float64(bytes) * s.Factor)
	case s.ByBytes > 0:
		return bytes + s.ByBytes
	default:
		return s.Bytes
	}
}

// canGrow reports whether a volume can be expanded. If not, it reports a problem.
func (l *loader) canGrow(path string, c *corev1.PersistentVolumeClaim) bool {
	sc, ok := l.classOf(c)
	switch _, static := l.static[c.Name]; {
	case static:
		l.fail(path, "", "a volume without a StorageClass cannot grow")
		return false
	case !l.classes.cluster || !ok || sc.AllowVolumeExpansion != nil && *sc.AllowVolumeExpansion:
		return true
	}
	l.fail(path, "allowVolumeExpansion: true in the class", "StorageClass %q does not let its volumes grow", sc.Name)
	return false
}
