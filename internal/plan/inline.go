package plan

import (
	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// inlineSpec resolves the objectSpec of a workload with Input.ObjectSpec. It returns nil
// if it reported a problem.
func inlineSpec(g *graph, path string, c *v1alpha1.CreateObjSpec) *workload.ResolvedSpec {
	if g.in.ObjectSpec == nil {
		g.Fail(path+".objectSpec", "", "object workloads are not supported here")
		return nil
	}
	return g.in.ObjectSpec(workload.SpecRequest{Path: path, Create: c, Engine: g.in.Capabilities.Engine,
		Cluster: g.in.Capabilities.Cluster, Seed: g.seed, File: g.Report})
}
