package plan

import (
	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

var killAction = descriptor{
	kind: op.Kill, field: "killSpec", resolve: resolveKill, plural: "kills",
	milestones: append([]string{op.Signalled, op.Resumed, op.Gone}, podMilestones...),
	rights: func(d *demands, a *Action) {
		if a.Target.Kind == engine.WorkloadObject {
			d.pods(a.Name, "to make again the pods of")
			return
		}
		d.want(Right{Resource: "pods"}, "to kill the pods of", a.Name, "delete")
	},
	request: func(a *Action, q *engine.Request, _ func() int64) {
		q.Kill = &engine.Kill{Signal: a.Kill.Signal, Grace: a.Kill.Grace, StopFor: a.Kill.StopFor}
	},
}

func resolveKill(g *graph, n *node) {
	s, path := n.spec.KillSpec, n.path+".killSpec"
	n.out.Kill = &KillSpec{Signal: s.Signal, StopFor: positive(g.Report, path+".stopFor", s.StopFor)}
	if s.DeletePodSpec != nil {
		n.out.Kill = &KillSpec{Grace: s.DeletePodSpec.GracePeriod.Duration.Duration}
	}
	kind := withPods(g, s.ActionName)
	if kind == engine.ManifestObject && s.DeletePodSpec == nil {
		g.Fail(path+".signal", "deletePodSpec deletes them",
			"the pods of %q have no agent to send a signal", s.ActionName)
	}
	resolveTarget(g, n, path, v1alpha1.Target{ActionName: s.ActionName, Labels: s.Labels}, s.Select, kind)
}
