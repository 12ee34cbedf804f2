package kubernetes

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// annotationRollout is the number of a pod's rollout.
const annotationRollout = "cnsbench.dev/rollout"

// rollout replaces the pods of a workload one after another, or has the object's controller do so.
func (e *Engine) rollout(ctx context.Context, r engine.Request, tr *op.Trace) error {
	target := r.Rollout.Target
	tr.On("", target.Name)
	if target.Kind == engine.ManifestObject {
		return e.rolloutObject(ctx, r.Rollout, tr)
	}
	w := e.workload(target.Name)
	if w == nil {
		return notFound(target)
	}
	if err := checkAllRunning(w.pods); err != nil {
		return err
	}
	revision, err := w.revise(r.Rollout.Undo)
	if err != nil {
		return err
	}
	var replacements []*replacement
	for _, m := range w.pods {
		var rp *replacement
		if rp, err = e.newReplacement([]*managedPod{m}, false); err != nil {
			break
		}
		replacements = append(replacements, rp)
		m.annotateTemplate(annotationRollout, revision)
		if err = rp.removeOld(ctx, rp.byDeletion(ctx, op.Acked, nil)); err == nil {
			err = rp.recreate(ctx, tr, nil)
		}
		rp.close(err)
		if err != nil {
			break
		}
	}
	recordReplacements(tr, target.Name, nil, replacements...)
	return err
}
