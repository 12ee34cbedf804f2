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
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// reattach deletes the pods that have a volume, waits until it is detached, and
// makes them again, where they are to be.
func (e *Engine) reattach(ctx context.Context, r engine.Request, tr *op.Trace) error {
	target := r.Reattach.Target
	tr.On("", target.Name)
	x := e.volume(target.Name)
	if x == nil {
		return gone(target)
	}
	members := e.usersOf(x)
	switch {
	case len(members) == 0:
		return &engine.Error{Code: "FailedPrecondition", Message: fmt.Sprintf("no pod of the run has volume %s: give it attach: true, or make it with a workload", target.Name)}
	case e.ephemeralOf(x) != nil:
		return &engine.Error{Code: "InvalidArgument", Message: fmt.Sprintf("volume %s lives and dies with its pod: it cannot be attached again", target.Name)}
	}
	if err := allInUse(members); err != nil {
		return err
	}
	place, err := e.placement(ctx, r.Reattach.Node, members)
	if err != nil {
		return err
	}
	v, err := e.move(members, true)
	if err != nil {
		return err
	}
	err = v.end(ctx, v.deletes(ctx, op.Acked, nil))
	if err == nil {
		err = v.begin(ctx, tr, place)
	}
	v.close(err)
	tell(tr, target.Name, nil, v)
	return err
}

// placement says how the pods are to be bound to nodes, as they are now.
func (e *Engine) placement(ctx context.Context, node string, members []*member) (func(*member, *corev1.Pod), error) {
	was := map[*member]string{}
	for _, m := range members {
		was[m] = m.pod().Spec.NodeName
	}
	switch node {
	case engine.NodeSame:
		return func(m *member, p *corev1.Pod) { podspec.RequireNode(p, corev1.NodeSelectorOpIn, was[m]) }, nil
	case engine.NodeOther:
		for _, m := range members {
			if err := e.otherNode(ctx, m, was[m]); err != nil {
				return nil, err
			}
		}
		return func(m *member, p *corev1.Pod) { podspec.RequireNode(p, corev1.NodeSelectorOpNotIn, was[m]) }, nil
	}
	return nil, nil
}

// otherNode says why a member's pod can go to no node but the one it is on, as
// far as that can be told before it is tried.
func (e *Engine) otherNode(ctx context.Context, m *member, node string) error {
	list, _, err := e.client.List(ctx, api.Nodes, "", metav1.ListOptions{})
	if err != nil {
		return apiError(ctx, err)
	}
	var reasons []string
	for _, o := range list {
		n := o.(*corev1.Node)
		if n.Name == node {
			continue
		}
		why := e.refuses(n, m)
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

// refuses says why a node does not take a member's pod; empty if it may.
func (e *Engine) refuses(n *corev1.Node, m *member) string {
	if n.Spec.Unschedulable {
		return "is cordoned"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "is not ready"
		}
	}
	if !labels.SelectorFromSet(m.template.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return "has not the labels that the pod asks for"
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable { // it follows the field, which is asked for above
			continue
		}
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !podspec.Tolerates(m.template, &t) {
			return "has the taint " + t.Key
		}
	}
	for _, x := range e.mountedBy([]*member{m}) {
		pv, ok := e.tracker.Latest(tracker.VolumeOfClaim.Key(x.name)).(*corev1.PersistentVolume)
		if ok && pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil && !podspec.Selects(pv.Spec.NodeAffinity.Required, n) {
			return "is out of reach of volume " + x.object.Name
		}
	}
	return ""
}
