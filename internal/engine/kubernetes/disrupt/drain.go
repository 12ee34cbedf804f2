package disrupt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// uncordonTimeout bounds the uncordoning.
const uncordonTimeout = 30 * time.Second

// Drain cordons a node, evicts the run's pods, has them created again elsewhere and uncordons the node in any case.
func (e *Disruptor) Drain(ctx context.Context, r engine.Request, tr *op.Trace) (err error) {
	node, err := e.drainedNode(ctx, r)
	if err != nil {
		return err
	}
	tr.On(node, node)
	managed, others := e.podsOn(node)
	for _, m := range managed {
		if err := e.checkOtherNode(ctx, m, node); err != nil {
			return err
		}
	}
	if err := e.Cordon(ctx, node, tr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Uncordon(ctx, node)) }()
	crowds := make(chan error, 1)
	controlled := tracker.Milestones{}
	go func() { crowds <- e.evictControlled(ctx, others, controlled, tr) }()
	replacements, err := e.ReplaceEach(managed, func(rp *pods.Replacement) error {
		if err := rp.RemoveOld(ctx, rp.ByEviction(ctx, tr)); err != nil {
			return err
		}
		return rp.Recreate(ctx, tr, nil)
	})
	err = pods.FirstError(err, <-crowds)
	pods.RecordReplacements(tr, node, controlled, replacements...)
	tr.On(node, node)
	return err
}

// drainedNode returns the node of a request, which Prepare has chosen.
func (e *Disruptor) drainedNode(ctx context.Context, r engine.Request) (string, error) {
	e.Mu.Lock()
	node, known := e.drains[r.ID]
	delete(e.drains, r.ID)
	e.Mu.Unlock()
	if known {
		return node, nil
	}
	return e.pickNode(ctx, r.Drain)
}

// pickNode chooses among the nodes with the labels, in order of their names.
func (e *Disruptor) pickNode(ctx context.Context, d *engine.Drain) (string, error) {
	if d.Node != "" {
		return d.Node, nil
	}
	list, _, err := e.Client.List(ctx, api.Nodes, "",
		metav1.ListOptions{LabelSelector: labels.SelectorFromSet(d.Labels).String()})
	if err != nil {
		return "", core.APIError(ctx, err)
	}
	if len(list) == 0 {
		return "", engine.Errorf("NotFound", "no node has the labels %s", labels.Set(d.Labels))
	}
	slices.SortFunc(list, func(a, b api.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return list[d.Pick%uint64(len(list))].GetName(), nil
}

// PrepareDrain chooses the node before the op starts.
func (e *Disruptor) PrepareDrain(r engine.Request) error {
	ctx, cancel := context.WithTimeout(e.Ctx, core.RequestTimeout)
	defer cancel()
	node, err := e.pickNode(ctx, r.Drain)
	if err != nil {
		return err
	}
	e.Mu.Lock()
	e.drains[r.ID] = node
	e.Mu.Unlock()
	return nil
}

// podsOn lists the run's pods on a node: managed pods, and pods of the run's controllers except DaemonSets.
func (e *Disruptor) podsOn(node string) ([]*pods.Pod, []*corev1.Pod) {
	byName := map[string]*pods.Pod{}
	e.Mu.Lock()
	for _, w := range e.Workloads {
		for _, m := range w.Pods {
			byName[m.Name()] = m
		}
	}
	for _, v := range e.Volumes {
		if v.Holder != nil {
			byName[v.Holder.Name()] = v.Holder
		}
	}
	e.Mu.Unlock()
	var managed []*pods.Pod
	var others []*corev1.Pod
	for _, p := range e.Tracker.Pods() {
		if p.Spec.NodeName != node || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded ||
			p.Status.Phase == corev1.PodFailed {
			continue
		}
		switch m := byName[p.Name]; {
		case m != nil && m.Template != nil:
			managed = append(managed, m)
		case m == nil && status.ControllerKind(p) != "" && status.ControllerKind(p) != "DaemonSet":
			others = append(others, p)
		}
	}
	return managed, others
}

// Cordon makes a node unschedulable. It fails if the node is cordoned already.
func (e *Disruptor) Cordon(ctx context.Context, node string, tr *op.Trace) error {
	n := new(corev1.Node)
	if _, err := e.Client.Get(ctx, api.Nodes, "", node, n); err != nil {
		return core.APIError(ctx, err)
	}
	e.Mu.Lock()
	own := e.cordoned[node]
	if !own && !n.Spec.Unschedulable {
		e.cordoned[node] = true
	}
	e.Mu.Unlock()
	if own || n.Spec.Unschedulable {
		return engine.Errorf("FailedPrecondition", "node %s is cordoned already, by a user or by another operation",
			node)
	}
	err := e.Session.Ledger.Add(op.LedgerEntry{Kind: core.CordonKind, Name: node,
		Data: map[string]string{"server": e.ID.Server, "run": e.Session.RunID}})
	if err != nil {
		return err
	}
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}},"spec":{"unschedulable":true}}`,
		core.CordonAnnotation, e.Mark())
	answered, err := e.Patch(ctx, api.Nodes, node, body)
	if err != nil {
		return errors.Join(err, e.Uncordon(ctx, node)) // the server may have applied it
	}
	tr.MarkAt(op.Cordoned, answered, 0, "runner")
	return nil
}

// Uncordon undoes cordon, even if the op's time is over.
func (e *Disruptor) Uncordon(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), uncordonTimeout)
	defer cancel()
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}},"spec":{"unschedulable":null}}`,
		core.CordonAnnotation)
	_, err := e.Client.Patch(ctx, api.Nodes, "", node, types.MergePatchType, body, nil)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("node %s is still cordoned; clean up the run to uncordon it: %w", node, err)
	}
	e.Mu.Lock()
	delete(e.cordoned, node)
	e.Mu.Unlock()
	return e.Session.Ledger.Done(core.CordonKind, node)
}

// evictControlled evicts pods of controllers and waits until each controller has as many ready pods as before.
func (e *Disruptor) evictControlled(ctx context.Context, list []*corev1.Pod, seen tracker.Milestones,
	tr *op.Trace) error {
	byObject := map[string][]*corev1.Pod{}
	for _, p := range list {
		byObject[p.Labels[names.LabelObject]] = append(byObject[p.Labels[names.LabelObject]], p)
	}
	var g errgroup.Group
	var mu sync.Mutex
	for object, of := range byObject {
		g.Go(func() error {
			set := e.NewSet(object)
			defer set.Feed.Close()
			before := set.ActiveCount()
			var errs []error
			for _, p := range of {
				at, err := e.Evict(ctx, p.Name, p.UID, tr)
				if apierrors.IsNotFound(err) {
					err = nil
				}
				errs = append(errs, core.APIError(ctx, err))
				mu.Lock()
				seen.Set(op.Evicted, p.Name, op.Milestone{At: at, Source: "runner"})
				mu.Unlock()
			}
			if err := pods.FirstError(errs...); err != nil {
				return err
			}
			return set.AwaitReplaced(ctx, of, before, func(name, id string, at op.Milestone) {
				mu.Lock()
				defer mu.Unlock()
				seen.Set(name, id, at)
			})
		})
	}
	return g.Wait()
}
