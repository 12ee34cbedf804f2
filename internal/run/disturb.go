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

// The actions on running workloads. The engine restarts what they end within the same op, so that a workload
// that an op ended is not a failure of the run.

// turnOf returns how many times an action has selected a target before, from 0.
func (r *runner) turnOf(target, action string) int64 {
	n, _ := r.counters.LoadOrStore(action+" "+target, new(atomic.Int64)) // action names have no spaces
	return n.(*atomic.Int64).Add(1) - 1
}

// drainTask returns the task of one trigger of a drain.
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

// restartedWorkload returns the workload whose processes an op ends on purpose, or "" if none is known in
// advance.
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

// settle updates the state of a workload after an op that restarts it. After a successful op the workload
// runs as before; otherwise its end is attributed to the op.
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

// findRunning is find restricted to workloads that have not ended.
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

// describeMade sets the labels by which actions find a new object, unless the engine has set them. Workloads
// and manifests get the labels of their file. A snapshot gets the labels of its volume, a group snapshot the
// labels that its volumes have in common.
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

// sourceLabels returns the labels of the volume with that name, or the labels that all volumes have in common
// if there is none.
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
