// Package bundletrace makes a trace of the control operations of a bundle.
package bundletrace

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// setUpSuffix follows the action's name in ops that a replay makes before the barrier; it is run.Before.
const setUpSuffix = ".before"

// Read makes a trace of the operations of a bundle, from the barrier on. Objects created before the barrier exist at
// the start of the trace.
func Read(dir string) ([]trace.Record, error) {
	b, err := bundle.Open(dir)
	if err != nil {
		return nil, err
	}
	var spec v1alpha1.Benchmark
	if err := json.Unmarshal(b.Run.Spec, &spec); err != nil {
		return nil, fmt.Errorf("%s: the spec in run.json: %w", dir, err)
	}
	if !b.Run.BarrierAt.Known() || !b.Run.EndedAt.Known() {
		return nil, fmt.Errorf("%s: the run has not begun or not ended", dir)
	}
	actions := map[string]*v1alpha1.Action{}
	for i := range spec.Spec.Actions {
		actions[string(spec.Spec.Actions[i].Name)] = &spec.Spec.Actions[i]
	}
	var records []trace.Record
	sizes := map[string]int64{}
	for o, err := range b.Ops() {
		if err != nil {
			return nil, err
		}
		if r, ok := recordOf(&o, actions); ok {
			addRequest(&r, actions[strings.TrimSuffix(o.Action, setUpSuffix)], sizes)
			r.Time -= int64(b.Run.BarrierAt)
			if r.Time < 0 {
				r.Time, r.Op, r.Duration, r.Outcome = 0, trace.Exists, trace.Unknown, ""
			}
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("%s: no operation on storage after the barrier", dir)
	}
	end := int64(b.Run.EndedAt - b.Run.BarrierAt)
	if limit := spec.Spec.Runtime; limit != nil {
		end = min(end, int64(limit.Duration.Duration)) // then the last ops drained
	}
	records = append(records, trace.Record{Time: end, Op: trace.End, Duration: trace.Unknown})
	trace.Sort(records)
	return records, nil
}

// recordOf turns an op into a record; ok is false if a trace has no such operation.
func recordOf(o *op.Op, actions map[string]*v1alpha1.Action) (r trace.Record, ok bool) {
	what := trace.Op(o.Kind)
	a := actions[strings.TrimSuffix(o.Action, setUpSuffix)]
	if !what.Replayed() || a == nil || o.Outcome == op.Dropped || !o.Ended.Known() {
		return trace.Record{}, false
	}
	r = trace.Record{Time: int64(o.Started), Op: what, Kind: kindOf(a), Object: o.Target, Node: o.Node,
		Outcome: string(o.Outcome), Duration: int64(o.Ended - o.Started)}
	switch what {
	case trace.Snapshot, trace.Restore, trace.Clone:
		r.Object, r.Source = fmt.Sprintf("%s-%d", a.Name, o.Instance), o.Target
	case trace.Delete:
		r.Kind = trace.Volume
		if of := actions[string(a.DeleteSpec.ActionName)]; of != nil {
			r.Kind = kindOf(of)
		}
	}
	return r, true
}

// addRequest adds the class and the size that a record's action requests, as far as its spec has them. sizes are the
// sizes of the objects so far.
func addRequest(r *trace.Record, a *v1alpha1.Action, sizes map[string]int64) {
	var size *resource.Quantity
	switch {
	case r.Op == trace.Create && a.CreateObjSpec.Volume != nil:
		r.Class, size = a.CreateObjSpec.Volume.StorageClass, a.CreateObjSpec.Volume.Size
	case r.Op == trace.Snapshot:
		r.Class = a.SnapshotSpec.SnapshotClass
	case r.Op == trace.Restore:
		r.Class, size = a.RestoreSpec.StorageClass, a.RestoreSpec.Size
	case r.Op == trace.Clone:
		r.Class, size = a.CloneSpec.StorageClass, a.CloneSpec.Size
		r.Size = sizes[r.SourceKeys()[0]] // at least
	case r.Op == trace.Resize && a.ResizeSpec.Factor != nil:
		r.Size = int64(float64(sizes[r.Key()]) * a.ResizeSpec.Factor.Value)
	case r.Op == trace.Resize && a.ResizeSpec.IncreaseBy != nil:
		if was := sizes[r.Key()]; was > 0 {
			r.Size = was + a.ResizeSpec.IncreaseBy.Value()
		}
	case r.Op == trace.Resize:
		size = a.ResizeSpec.Size
	}
	if size != nil {
		r.Size = size.Value()
	}
	if r.Size > 0 && r.Outcome == string(op.OK) {
		sizes[r.Key()] = r.Size
	}
}

// kindOf is the kind of object that an action creates.
func kindOf(a *v1alpha1.Action) trace.Kind {
	switch {
	case a.SnapshotSpec != nil:
		return trace.Snapshots
	case a.CreateObjSpec != nil && a.CreateObjSpec.Workload != "":
		return trace.Workload
	}
	return trace.Volume
}
