package run

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// The actions on what runs: what they end is made again by the engine, within
// the op, so that the end of a workload that an op caused is no failure.

// turnOf counts how often an action has come to a target, from 0.
func (r *runner) turnOf(target, action string) int64 {
	n, _ := r.counters.LoadOrStore(action+" "+target, new(atomic.Int64)) // no action has a blank in its name
	return n.(*atomic.Int64).Add(1) - 1
}

// drainTask is the task of one trigger of a drain.
func (r *runner) drainTask(a *plan.Action, due op.Time, episode int64) *task {
	t := r.newTask(a, due, episode)
	t.op.Target = a.Drain.Node
	if t.op.Target == "" {
		t.op.Target = labelText(a.Drain.Labels)
	}
	t.request.Drain = &engine.Drain{Node: a.Drain.Node, Labels: a.Drain.Labels, Pick: r.inventory.draw()}
	return t
}

func labelText(labels map[string]string) string {
	text := ""
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		text += fmt.Sprintf(",%s=%s", k, labels[k])
	}
	return text[min(1, len(text)):]
}

// restartedWorkload is the workload whose processes an op ends on purpose; empty: none
// that is known beforehand.
func restartedWorkload(a *plan.Action, target engine.Object) string {
	switch {
	case a.Kind.Effect() != op.Restarts:
		return ""
	case target.Kind == engine.VolumeObject:
		return target.Owner
	case target.Kind == engine.WorkloadObject:
		return target.Name
	}
	return ""
}

// settle says what is left of a workload after an op on it: one that was made
// again is as before, else its end is the op's doing.
func (r *runner) settle(t *task) {
	if len(t.targets) == 0 {
		return
	}
	name := restartedWorkload(t.action, t.targets[0])
	if name == "" {
		return
	}
	if t.op.Outcome == op.OK {
		r.instances.markRestarted(name)
		return
	}
	if r.instances.lost(name) {
		r.warn("workloadLost", fmt.Sprintf("%s was not made again by %s-%d: %s", name, t.op.Action, t.op.Instance,
			t.op.Message))
	}
}

// findRunning is find for actions that are done to workloads which have not ended.
func (v *inventory) findRunning(action string, t *plan.Target, isRunning func(name string) bool) []engine.Object {
	v.mu.Lock()
	defer v.mu.Unlock()
	var candidates []item
	for _, i := range v.candidates(t) {
		if isRunning(i.Name) {
			candidates = append(candidates, i)
		}
	}
	return v.take(candidates, action, t, false)
}

// describeMade gives what an op made the labels by which actions find it, where the
// engine has not: a workload and an object those of the file, a snapshot those
// that the volumes have in common which it is of.
func describeMade(t *task, made []engine.Object) {
	a := t.action
	for i := range made {
		o := &made[i]
		switch {
		case o.Labels != nil:
		case o.Kind == engine.WorkloadObject && a.Workload != nil:
			o.Labels = a.Workload.Labels
		case o.Kind == engine.ManifestObject && a.Manifest != nil:
			o.Labels = a.Manifest.Labels
		case t.request.Snapshot != nil:
			o.Labels = sourceLabels(t.request.Snapshot.Sources, o.Source)
		}
	}
}

// sourceLabels are those of the volume of that name, or else those that all
// volumes have.
func sourceLabels(sources []engine.Object, name string) map[string]string {
	var common map[string]string
	for _, s := range sources {
		if s.Name == name {
			return s.Labels
		}
		if common == nil {
			common = maps.Clone(s.Labels)
		}
		maps.DeleteFunc(common, func(k, v string) bool { return s.Labels[k] != v })
	}
	return common
}
