package disrupt

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Reattach deletes the pods that mount a volume, waits until it is detached, and creates them again on the
// requested node.
func (e *Disruptor) Reattach(ctx context.Context, r engine.Request, tr *op.Trace) error {
	target := r.Target
	tr.On("", target.Name)
	x := e.Volume(target.Name)
	if x == nil {
		return core.NotFound(target)
	}
	users := e.PodsUsing(x)
	switch {
	case len(users) == 0:
		return engine.Errorf("FailedPrecondition",
			"no pod of the run mounts volume %s: set attach: true, or create it with a workload", target.Name)
	case e.EphemeralOwner(x) != nil:
		return engine.Errorf("InvalidArgument",
			"volume %s is ephemeral and cannot be attached again: use a volume that outlives its pod", target.Name)
	}
	if err := pods.CheckAllRunning(users); err != nil {
		return err
	}
	place, err := e.placement(ctx, r.Reattach.Node, users)
	if err != nil {
		return err
	}
	rp, err := e.NewReplacement(users, true)
	if err != nil {
		return err
	}
	err = rp.RemoveOld(ctx, rp.ByDeletion(ctx, op.Acked, nil))
	if err == nil {
		err = rp.Recreate(ctx, tr, place)
	}
	rp.Close(err)
	pods.RecordReplacements(tr, target.Name, nil, rp)
	return err
}

// placement returns a function that binds the new pods to nodes.
func (e *Disruptor) placement(ctx context.Context, node string, users []*pods.Pod) (func(*pods.Pod, *corev1.Pod),
	error) {
	was := map[*pods.Pod]string{}
	for _, m := range users {
		was[m] = m.Live().Spec.NodeName
	}
	switch node {
	case engine.NodeSame:
		return func(m *pods.Pod, p *corev1.Pod) { podspec.RequireNode(p, corev1.NodeSelectorOpIn, was[m]) }, nil
	case engine.NodeOther:
		for _, m := range users {
			if err := e.checkOtherNode(ctx, m, was[m]); err != nil {
				return nil, err
			}
		}
		return func(m *pods.Pod, p *corev1.Pod) { podspec.RequireNode(p, corev1.NodeSelectorOpNotIn, was[m]) }, nil
	}
	return nil, nil
}

// checkOtherNode returns an error if a pod can run on no other node, as far as that is known in advance. There may be
// thousands of nodes: they are listed only if the pod cannot run on those found for an earlier pod.
func (e *Disruptor) checkOtherNode(ctx context.Context, m *pods.Pod, node string) error {
	e.Mu.Lock()
	accepted := e.accepted
	e.Mu.Unlock()
	for _, name := range accepted {
		n := new(corev1.Node)
		if name == node {
			continue
		}
		if _, err := e.Client.Get(ctx, api.Nodes, "", name, n); err == nil && e.nodeRefusal(n, m) == "" {
			return nil
		}
	}
	list, _, err := e.Client.List(ctx, api.Nodes, "", metav1.ListOptions{})
	if err != nil {
		return core.APIError(ctx, err)
	}
	var reasons, found []string
	for _, o := range list {
		n := o.(*corev1.Node)
		if n.Name == node {
			continue
		}
		if why := e.nodeRefusal(n, m); why != "" {
			reasons = append(reasons, n.Name+" "+why)
		} else if found = append(found, n.Name); len(found) == 2 {
			break
		}
	}
	if len(found) > 0 {
		e.Mu.Lock()
		defer e.Mu.Unlock()
		e.accepted = found
		return nil
	}
	text := "the cluster has no other"
	if len(reasons) > 0 {
		slices.Sort(reasons)
		text = strings.Join(reasons, ", ")
	}
	return engine.Errorf("FailedPrecondition", "pod %s is on node %s and there is no other node for it: %s", m.Name(),
		node, text)
}

// nodeRefusal returns why a node does not accept a pod; empty if it may.
func (e *Disruptor) nodeRefusal(n *corev1.Node, m *pods.Pod) string {
	if n.Spec.Unschedulable {
		return "is cordoned"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "is not ready"
		}
	}
	if !labels.SelectorFromSet(m.Template.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return "lacks the labels that the pod requires"
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable { // follows Unschedulable, checked above
			continue
		}
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !podspec.Tolerates(m.Template, &t) {
			return "has the taint " + t.Key
		}
	}
	for _, x := range e.VolumesOf([]*pods.Pod{m}) {
		pv, ok := e.Tracker.Latest(tracker.VolumeOfClaim.Key(x.Name)).(*corev1.PersistentVolume)
		if ok && pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil &&
			!podspec.Selects(pv.Spec.NodeAffinity.Required, n) {
			return "cannot reach volume " + x.Object.Name
		}
	}
	return ""
}
