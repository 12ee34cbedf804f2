package plan

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// Render returns instance i (0-based) for the run runID. It is pure and safe for
// concurrent use. Load has already rendered one instance of each Params without error.
func (w *Workload) Render(runID string, i int) (engine.Workload, error) {
	p := w.Params[i%len(w.Params)]
	p.RunID, p.Index = runID, i
	instance, err := w.Template.Render(p)
	if err != nil {
		return engine.Workload{}, fmt.Errorf("workload %s, instance %d: %w", w.Entry, i, err)
	}
	instance.SyncGroup, instance.Canary, instance.Limit = w.SyncGroup, w.Canary, w.Limit
	return instance.Workload, nil
}

// Render returns volume i (0-based) for the run runID. Engines must not modify the
// result: it shares everything but the labels with the template.
func (v *Volume) Render(runID string, i int) engine.Volume {
	one := v.Template
	one.Claim.Name = workload.InstanceName(v.Action, i)
	one.Claim.Labels = map[string]string{workload.LabelRun: runID}
	maps.Copy(one.Claim.Labels, v.Template.Claim.Labels)
	return one
}

// Render returns object i (0-based) for the run runID. It sets the labels by which the
// run finds the object, and disables the service account token of its pods.
func (m *Manifest) Render(runID string, i int) (unstructured.Unstructured, error) {
	p := m.Params
	p.RunID, p.Index = runID, i
	fields, err := m.Template.Render(p)
	if err != nil {
		return unstructured.Unstructured{}, fmt.Errorf("manifest of %s, instance %d: %w", p.Action, i, err)
	}
	workload.DenyToken(fields)
	out := unstructured.Unstructured{Object: fields}
	labels := out.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, m.Labels)
	labels[workload.LabelAction], labels[workload.LabelRun] = p.Action, runID
	out.SetLabels(labels)
	out.SetName(workload.InstanceName(p.Action, i))
	return out, nil
}

// Makes returns the kind of object that the ops of the action create; empty: none.
func (a *Action) Makes() engine.ObjectKind {
	switch {
	case a.Workload != nil:
		return engine.WorkloadObject
	case a.Manifest != nil:
		return engine.ManifestObject
	case a.Volume != nil:
		return engine.VolumeObject
	case a.Snapshot != nil && a.Snapshot.Group:
		return engine.GroupSnapshotObject
	case a.Snapshot != nil:
		return engine.SnapshotObject
	}
	return ""
}

// Way returns the direction in which a rate that counts objects must change to
// trigger the action.
func (a *Action) Way() schedule.Way {
	switch a.Kind.Effect() {
	case op.Makes:
		return schedule.Up
	case op.Removes:
		return schedule.Down
	}
	return schedule.NoWay
}

// Closed reports whether the rate is a closed loop.
func (r *Rate) Closed() bool { return r.Parallelism > 0 }

// ends reports whether the schedule has a finite number of triggers.
func (r *Rate) ends() bool {
	c, ok := r.Schedule.(schedule.Ending)
	if !ok {
		return false
	}
	_, ended := c.Count(0)
	return ended
}
