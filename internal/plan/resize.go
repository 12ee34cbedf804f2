package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

var resizeAction = descriptor{
	kind: op.Resize, field: "resizeSpec", resolve: resolveResize, plural: "resizes",
	milestones: []string{op.Acked, op.Controller, op.Node, op.Ready},
	rights: func(d *demands, a *Action) {
		d.want(Right{Resource: "persistentvolumeclaims"}, "to grow the volumes of", a.Name, "patch")
	},
	request: func(a *Action, q *engine.Request, _ func() int64) {
		q.Resize = &engine.Resize{Bytes: a.Resize.grown(q.Target.Bytes)}
	},
}

func resolveResize(g *graph, n *node) {
	s, path := n.spec.ResizeSpec, n.path+".resizeSpec"
	out := &ResizeSpec{Bytes: bytesOf(g.Report, path+".size", s.Size),
		ByBytes: bytesOf(g.Report, path+".increaseBy", s.IncreaseBy)}
	if s.Factor != nil {
		out.Factor = s.Factor.Value
		if out.Factor <= 1 || out.Factor > 1024 {
			g.Fail(path+".factor", "such as 1.5", "must be more than 1 and at most 1024")
		}
	}
	n.out.Resize = out
	if !resolveTarget(g, n, path, s.Target, s.Select, engine.VolumeObject) {
		return
	}
	for _, of := range n.aims {
		for _, c := range of.claims {
			if have := c.Spec.Resources.Requests.Storage(); s.Size != nil && s.Size.Cmp(*have) <= 0 {
				g.Fail(path+".size", "volumes can only grow", "%s is not more than the %s that the volumes of %q have",
					s.Size, have, of.out.Name)
				return
			}
			if !canGrow(g, path, &c) {
				return
			}
			if v := of.out.Volume; v == nil || v.Template.Attach {
				warnMounted(g, path, &c)
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

// warnMounted warns of a mounted volume that cannot grow on this machine.
func warnMounted(g *graph, path string, c *corev1.PersistentVolumeClaim) {
	sc, ok := g.classes.of(c)
	if g.in.CannotGrow == nil || !ok {
		return
	}
	if why := g.in.CannotGrow(sc.Provisioner, sc.Parameters[fsTypeKey]); why != "" {
		g.Warn(path, "", "resizes of StorageClass %q will fail: %s", sc.Name, why)
	}
}

// canGrow reports whether a volume can be expanded. If not, it reports a problem.
func canGrow(g *graph, path string, c *corev1.PersistentVolumeClaim) bool {
	sc, ok := g.classes.of(c)
	switch _, static := g.static[c.Name]; {
	case static:
		g.Fail(path, "", "a volume without a StorageClass cannot grow")
		return false
	case !g.classes.cluster || !ok || sc.AllowVolumeExpansion != nil && *sc.AllowVolumeExpansion:
		return true
	}
	g.Fail(path, "allowVolumeExpansion: true in the class", "StorageClass %q %s", sc.Name, cannotGrow)
	return false
}
