package disrupt

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// rolloutObject has an object's controller replace its pods: it changes an annotation of the template, or restores
// the earlier template.
func (e *Disruptor) rolloutObject(ctx context.Context, r engine.Request, tr *op.Trace) error {
	m, err := e.Manifests.Target(ctx, r.Target)
	if err != nil {
		return err
	}
	if err := e.Manifests.Watch(ctx, m); err != nil {
		return err
	}
	now := new(api.Any)
	if _, err := e.Client.Get(ctx, m.Kind, m.Namespace, m.Name, now); err != nil {
		return core.APIError(ctx, err)
	}
	template, found, _ := unstructured.NestedFieldCopy(now.Object, "spec", "template")
	_, known := status.Ready(m.Kind.GVK(), &now.Unstructured)
	if !found || !known {
		return engine.Errorf("InvalidArgument", "%s %s has no pod template to roll out", m.Kind.Name, m.Name)
	}
	how, body, err := m.RolloutPatch(template, r.Rollout.Undo)
	if err != nil {
		return err
	}
	f := e.Tracker.Follow(m.Key())
	defer f.Close()
	after := new(api.Any)
	call, err := e.Client.Patch(ctx, m.Kind, m.Namespace, m.Name, how, body, after)
	if err != nil {
		return core.APIError(ctx, err)
	}
	tr.MarkAt(op.Acked, call.Answered, 0, "runner")
	return m.WaitReady(ctx, f, tr, call, after.GetGeneration())
}

// killPods deletes the pods of an object's controller, which creates others.
func (e *Disruptor) killPods(ctx context.Context, r engine.Request, tr *op.Trace) error {
	k := r.Kill
	m, err := e.Manifests.Target(ctx, r.Target)
	if err != nil {
		return err
	}
	if k.Signal != "" || !m.HasPods {
		return engine.Errorf("FailedPrecondition",
			"the pods of %s have no agents to send a signal, or do not belong to the run: delete them instead "+
				"(deletePodSpec)", m.Name)
	}
	set := e.NewSet(m.Object.Name)
	defer set.Feed.Close()
	var old []*corev1.Pod
	grace := int64((k.Grace + time.Second - 1) / time.Second)
	for _, p := range set.Pods {
		if p.DeletionTimestamp == nil {
			old = append(old, p)
		}
	}
	slices.SortFunc(old, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	seen := tracker.Milestones{}
	for _, p := range old {
		call, err := e.Client.Delete(ctx, api.Pods, e.Namespace, p.Name,
			metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{UID: &p.UID}})
		if err != nil {
			return core.APIError(ctx, err)
		}
		seen.Set(op.Signalled, p.Name, op.Milestone{At: call.Answered, Source: "runner"})
	}
	err = set.AwaitReplaced(ctx, old, len(old), seen.Set)
	pods.RecordReplacements(tr, r.Target.Name, seen)
	return err
}
