package plan

import (
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/trace"
)

var createAction = descriptor{
	kind: op.Create, field: "createObjSpec", resolve: resolveCreate,
	makes: func(a *v1alpha1.Action) engine.ObjectKind {
		switch c := a.CreateObjSpec; {
		case c.Workload != "":
			return engine.WorkloadObject
		case c.Manifest != nil:
			return engine.ManifestObject
		}
		return engine.VolumeObject
	},
	milestones: slices.Concat([]string{op.Scheduled, op.Delivered, op.Initialized, op.Running}, volumeMilestones,
		[]string{op.ObjectReady, op.FirstPut}),
	each: func(n *node, _ int64) trigger {
		ops := int64(n.out.Count)
		count := ops / int64(max(n.variants, 1)) // instances of each variant
		things := map[string]int64{pods: mul(count, int64(n.pods)), volumes: mul(count, int64(len(n.claims)))}
		if n.out.Manifest != nil {
			things[objects] = ops
		}
		return trigger{things, ops, n.sizes(count)}
	},
	fits: func(n *node, r *trace.Record) bool {
		return r.Kind == trace.Volume && n.out.Volume != nil || r.Kind == trace.Workload && n.out.Workload != nil
	},
}

func resolveCreate(g *graph, n *node) {
	c := n.spec.CreateObjSpec
	path := n.path + ".createObjSpec"
	n.out.Count = int(max(c.Count, 1))
	switch {
	case c.Workload != "":
		resolveWorkload(g, n, path, c)
	case c.Volume != nil:
		resolveVolume(g, n, path+".volume", c)
	case c.Manifest != nil:
		resolveManifest(g, n, path, c)
	}
}
