package plan

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

var checkAction = descriptor{
	kind: op.Check, field: "checkSpec", resolve: resolveCheck, plural: "checks",
	milestones: []string{op.Acked, op.Scheduled, op.Attached, op.Staged, op.Published, op.Running, op.Checked,
		op.Unpublished, op.Unstaged, op.Detached},
	rights: func(d *demands, a *Action) {
		d.pods(a.Name, "to read the volumes of")
		d.want(Right{Resource: "pods"}, "to see when the pods are gone that read the volumes of", a.Name, "get")
	},
}

func resolveCheck(g *graph, n *node) {
	s, path := n.spec.CheckSpec, n.path+".checkSpec"
	for _, d := range parser.Declared(parser.IntegrityName) {
		n.values = append(n.values, d.Name)
	}
	if !resolveTarget(g, n, path, s.Target, s.Select, engine.VolumeObject) {
		return
	}
	for _, of := range n.aims {
		if of.out.Workload != nil {
			g.Fail(path, "the volumes of a restoreSpec or a cloneSpec",
				"the volumes of %q are in use by its workload: a check would read what changes meanwhile", of.out.Name)
			return
		}
	}
	written := func(of *node) bool {
		return of.unresolved() || of.out.Workload != nil && slices.ContainsFunc(of.out.Workload.Outputs,
			func(o Output) bool { return o.Parser == parser.IntegrityName })
	}
	if !slices.ContainsFunc(g.origins(n), written) {
		g.Fail(path, "a workload: integrity, whose volumes are the sources",
			"no workload writes blocks that can be checked to the sources of these volumes")
	}
}

// origins returns the actions that made the volumes that n acts on, or the sources of these, directly or not.
func (g *graph) origins(n *node) (list []*node) {
	for next := n.aims; len(next) > 0; {
		of := next[0]
		if next = next[1:]; !slices.Contains(list, of) {
			list, next = append(list, of), append(next, of.aims...)
		}
	}
	return list
}
