package plan

import (
	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

var rolloutAction = descriptor{
	kind: op.Rollout, field: "rolloutSpec", resolve: (*loader).rollout, plural: "rollouts",
	milestones: append([]string{op.Signalled, op.Gone}, podMilestones...),
	rights: func(d *demands, a *Action) {
		if a.Target.Kind == engine.WorkloadObject {
			d.pods(a.Name, "to make again the pods of")
			return
		}
		d.onManifests(a, "to roll out the objects of", "", "get", "patch")
	},
	request: func(a *Action, q *engine.Request, _ func() int64) {
		q.Rollout = &engine.Rollout{Undo: a.Undo}
	},
}

func (l *loader) rollout(n *info) {
	s, path := n.spec.RolloutSpec, n.path+".rolloutSpec"
	if n.out.Undo = s.Undo; s.Undo {
		l.need(path+".undo", "undo")
	}
	l.target(n, path, v1alpha1.Target{ActionName: s.ActionName, Labels: s.Labels}, s.Select, l.withPods(s.ActionName))
}

// withPods returns the kind of object with pods that an action creates: a manifest or a
// workload.
func (l *loader) withPods(action v1alpha1.ActionName) engine.ObjectKind {
	if of, ok := l.infos[string(action)]; ok && of.made() == engine.ManifestObject {
		return engine.ManifestObject
	}
	return engine.WorkloadObject
}
