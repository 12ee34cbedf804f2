package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// reattach deletes the pods that mount a volume, waits until it is detached, and creates them
// again on the requested node.
func (e *Engine) reattach(ctx context.Context, r engine.Request, tr *op.Trace) error {
	target := r.Reattach.Target
	tr.On("", target.Name)
	x := e.volume(target.Name)
	if x == nil {
		return notFound(target)
	}
	pods := e.podsUsing(x)
	switch {
	case len(pods) == 0:
		return &engine.Error{Code: "FailedPrecondition", Message: fmt.Sprintf("no pod of the run mounts volume %s: set attach: true, or create it with a workload", target.Name)}
	case e.ephemeralOwner(x) != nil:
		return &engine.Error{Code: "InvalidArgument", Message: fmt.Sprintf("volume %s is ephemeral and cannot be attached again: use a volume that outlives its pod", target.Name)}
	}
	if err := checkAllRunning(pods); err != nil {
		return err
	}
	place, err := e.placement(ctx, r.Reattach.Node, pods)
	if err != nil {
		return err
	}
	rp, err := e.newReplacement(pods, true)
	if err != nil {
		return err
	}
	err = rp.removeOld(ctx, rp.byDeletion(ctx, op.Acked, nil))
	if err == nil {
		err = rp.recreate(ctx, tr, place)
	}
	rp.close(err)
	recordReplacements(tr, target.Name, nil, rp)
	return err
}

// placement returns a function that binds the new pods to nodes.
func (e *Engine) placement(ctx context.Context, node string, pods []*managedPod) (func(*managedPod, *corev1.Pod), error) {
	was := map[*managedPod]string{}
	for _, m := range pods {
		was[m] = m.livePod().Spec.NodeName
	}
	switch node {
	case engine.NodeSame:
		return func(m *managedPod, p *corev1.Pod) { podspec.RequireNode(p, corev1.NodeSelectorOpIn, was[m]) }, nil
	case engine.NodeOther:
		for _, m := range pods {
			if err := e.checkOtherNode(ctx, m, was[m]); err != nil {
				return nil, err
			}
		}
		return func(m *managedPod, p *corev1.Pod) { podspec.RequireNode(p, corev1.NodeSelectorOpNotIn, was[m]) }, nil
	}
	return nil, nil
}

// checkOtherNode returns an error if a pod can run on no other node, as far as that is known in
// advance.
func (e *Engine) checkOtherNode(ctx context.Context, m *managedPod, node string) error {
	list, _, err := e.Client.List(ctx, api.Nodes, "", metav1.ListOptions{})
	if err != nil {
		return core.APIError(ctx, err)
	}
	var reasons []string
	for _, o := range list {
		n := o.(*corev1.Node)
		if n.Name == node {
			continue
		}
		why := e.nodeRefusal(n, m)
		if why == "" {
			return nil
		}
		reasons = append(reasons, n.Name+" "+why)
	}
	text := "the cluster has no other"
	if len(reasons) > 0 {
		slices.Sort(reasons)
		text = strings.Join(reasons, ", ")
	}
	return &engine.Error{Code: "FailedPrecondition", Message: fmt.Sprintf("pod %s is on node %s and there is no other node for it: %s", m.name(), node, text)}
}

// nodeRefusal returns why a node does not accept a pod; empty if it may.
func (e *Engine) nodeRefusal(n *corev1.Node, m *managedPod) string {
	if n.Spec.Unschedulable {
		return "is cordoned"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "is not ready"
		}
	}
	if !labels.SelectorFromSet(m.template.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return "lacks the labels that the pod requires"
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable { // follows Unschedulable, checked above
			continue
		}
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !podspec.Tolerates(m.template, &t) {
			return "has the taint " + t.Key
		}
	}
	for _, x := range e.volumesOf([]*managedPod{m}) {
		pv, ok := e.tracker.Latest(tracker.VolumeOfClaim.Key(x.name)).(*corev1.PersistentVolume)
		if ok && pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil && !podspec.Selects(pv.Spec.NodeAffinity.Required, n) {
			return "cannot reach volume " + x.object.Name
		}
	}
	return ""
}
