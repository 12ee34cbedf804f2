package plan

import (
	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// inlineSpec resolves the objectSpec of a workload with Input.ObjectSpec. It returns nil
// if it reported a problem.
func (l *loader) inlineSpec(path string, c *v1alpha1.CreateObjSpec) *workload.ResolvedSpec {
	if l.in.ObjectSpec == nil {
		l.fail(path+".objectSpec", "", "object workloads are not supported here")
		return nil
	}
	return l.in.ObjectSpec(workload.SpecRequest{Path: path, Create: c, Engine: l.in.Capabilities.Engine,
		Cluster: l.in.Capabilities.Cluster, Seed: l.plan.Seed, File: specFile{l}})
}

// specFile gives a workload.SpecResolver access to the file of the Benchmark.
type specFile struct{ *loader }

func (f specFile) Has(path string) bool {
	_, ok := f.doc.places[normal(path)]
	return ok
}

func (f specFile) Fail(path, hint, format string, args ...any) { f.fail(path, hint, format, args...) }

func (f specFile) Warn(path, hint, format string, args ...any) { f.warn(path, hint, format, args...) }
