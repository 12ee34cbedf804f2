package disrupt

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/op"
)

// annotationRollout is the number of a pod's rollout.
const annotationRollout = "cnsbench.dev/rollout"

// Rollout replaces the pods of a workload one after another, or has the object's controller do so.
func (e *Disruptor) Rollout(ctx context.Context, r engine.Request, tr *op.Trace) error {
	target := r.Target
	tr.On("", target.Name)
	if target.Kind == engine.ManifestObject {
		return e.rolloutObject(ctx, r, tr)
	}
	w := e.Workload(target.Name)
	if w == nil {
		return core.NotFound(target)
	}
	if err := pods.CheckAllRunning(w.Pods); err != nil {
		return err
	}
	revision, err := w.Revise(r.Rollout.Undo)
	if err != nil {
		return err
	}
	var replacements []*pods.Replacement
	for _, m := range w.Pods {
		var rp *pods.Replacement
		if rp, err = e.NewReplacement([]*pods.Pod{m}, false); err != nil {
			break
		}
		replacements = append(replacements, rp)
		m.AnnotateTemplate(annotationRollout, revision)
		if err = rp.RemoveOld(ctx, rp.ByDeletion(ctx, op.Acked, nil)); err == nil {
			err = rp.Recreate(ctx, tr, nil)
		}
		rp.Close(err)
		if err != nil {
			break
		}
	}
	pods.RecordReplacements(tr, target.Name, nil, replacements...)
	return err
}
