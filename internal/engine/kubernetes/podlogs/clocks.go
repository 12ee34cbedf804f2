package podlogs

import (
	"context"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
)

// clockTolerance is the difference of two clocks that is noted. The instants of the API server that they are compared
// by have whole seconds.
const clockTolerance = 3 * time.Second

// compareClocks notes the nodes of pods whose clock differs from the runner's: lines of their logs are placed by it.
// Both clocks are compared with that of the API server. It stamps each write of an object, and the writer's own instant
// is in the object: in the heartbeat of a node, and in the Lease of a driver that the runner renews.
func (r *reader) compareClocks(ctx context.Context, pods []*corev1.Pod, read []container) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	runner, ok := r.runnerAhead(ctx)
	if !ok {
		return
	}
	var names []string
	for _, p := range pods {
		if !slices.Contains(names, p.Spec.NodeName) && slices.ContainsFunc(read, func(c container) bool {
			return c.namespace == p.Namespace && c.pod == p.Name
		}) {
			names = append(names, p.Spec.NodeName)
		}
	}
	for _, name := range names {
		n := new(corev1.Node)
		if _, err := r.Client.Get(ctx, api.Nodes, "", name, n); err != nil {
			continue // a pod that has no node yet, or a right that only adds detail
		}
		if node, ok := nodeAhead(n); ok && (node-runner).Abs() >= clockTolerance {
			r.note("the clock of node %s differs from the runner's by about %+.0f s: lines of its pods' logs may be "+
				"of other instants", name, (node - runner).Seconds())
		}
	}
}

// runnerAhead returns by how much the runner's clock is ahead of the API server's; false if the run holds no Lease.
func (r *reader) runnerAhead(ctx context.Context) (time.Duration, bool) {
	for _, driver := range r.DriversInUse() {
		l := new(coordinationv1.Lease)
		_, err := r.Client.Get(ctx, core.Leases, r.Namespace, core.LeaseName(driver), l)
		if err != nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != r.Session.RunID ||
			l.Spec.RenewTime == nil {
			continue
		}
		if at := written(l.ManagedFields, func(metav1.ManagedFieldsEntry) bool { return true }); !at.IsZero() {
			return l.Spec.RenewTime.Truncate(time.Second).Sub(at), true
		}
	}
	return 0, false
}

// nodeAhead returns by how much the clock of a node is ahead of the API server's; false if its kubelet wrote no status.
func nodeAhead(n *corev1.Node) (time.Duration, bool) {
	at := written(n.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == "kubelet" && f.Subresource == "status"
	})
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && !at.IsZero() && !c.LastHeartbeatTime.IsZero() {
			return c.LastHeartbeatTime.Sub(at), true
		}
	}
	return 0, false
}

// written returns when the API server last wrote fields of the managers that are meant; zero if it does not say.
func written(fields []metav1.ManagedFieldsEntry, meant func(metav1.ManagedFieldsEntry) bool) (at time.Time) {
	for _, f := range fields {
		if f.Time != nil && f.Time.After(at) && meant(f) {
			at = f.Time.Time
		}
	}
	return at
}
