package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/podtemplate"
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

// podTemplate reads what is merged into pods; nil: nothing.
func podTemplate(g *graph, path string, given *runtime.RawExtension) *podtemplate.Template {
	if given == nil {
		return nil
	}
	t, err := podtemplate.Parse(given.Raw)
	switch {
	case err != nil:
		g.Fail(path, "fields of a core/v1 PodTemplateSpec", "%v", err)
	case !g.in.Capabilities.Cluster:
		g.Warn(path, "", "it is not used: engine %s has no pods of a cluster", g.in.Capabilities.Engine)
	}
	return t
}

func resolveCreate(g *graph, n *node) {
	c := n.spec.CreateObjSpec
	path := n.path + ".createObjSpec"
	n.out.Count = int(max(c.Count, 1))
	n.out.PodTemplate = podTemplate(g, path+".podTemplate", c.PodTemplate)
	switch {
	case c.Workload != "":
		resolveWorkload(g, n, path, c)
	case c.Volume != nil:
		resolveVolume(g, n, path+".volume", c)
	case c.Manifest != nil:
		resolveManifest(g, n, path, c)
	}
}
