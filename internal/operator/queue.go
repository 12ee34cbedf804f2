package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/turns"
)

// staleLease is how long after its last renewal a Lease counts, by the clock of the API server: three renewals, and two
// minutes by which the clock of a runner's node may be wrong. Runs of the Lease's own namespace do not rely on clocks.
const staleLease = 15*time.Second + 2*time.Minute

// queued is where a run stands in the queue for its drivers.
type queued struct {
	waits   bool   // it is in the queue
	message string // what it waits for; empty: nothing
	turn    bool   // no run of another namespace uses its drivers, or waits for them for longer
}

// queue returns where a Benchmark's run stands, while its runner prepares.
func (r *reconciler) queue(ctx context.Context, b *v1alpha1.Benchmark) (queued, error) {
	var list coordinationv1.LeaseList
	if err := r.List(ctx, &list, client.HasLabels{names.LabelRun}); err != nil {
		return queued{}, fmt.Errorf("list the Leases of runs: %w", err)
	}
	return standing(list.Items, b.Namespace, RunID(b), r.now()), nil
}

// standing returns where a run stands. Runs take turns in the order in which they began to wait.
func standing(leases []coordinationv1.Lease, namespace, run string, now time.Time) queued {
	leases = slices.DeleteFunc(slices.Clone(leases), func(l coordinationv1.Lease) bool {
		return l.Spec.RenewTime == nil || now.Sub(l.Spec.RenewTime.Time) > staleLease
	})
	var drivers []string // that this run waits for
	for i := range leases {
		l := &leases[i]
		driver := l.Labels[turns.LabelWaitsFor]
		if driver != "" && l.Labels[names.LabelRun] == run && l.Namespace == namespace {
			drivers = append(drivers, driver)
		}
	}
	if drivers == nil {
		return queued{}
	}
	order := turns.Order(leases)
	earlier := order[:slices.Index(order, run)]
	q, ahead, users := queued{waits: true, turn: true}, map[string]bool{}, map[string]string{}
	for i := range leases {
		l := &leases[i]
		id := l.Labels[names.LabelRun]
		uses, waits := l.Labels[turns.LabelDriver], l.Labels[turns.LabelWaitsFor]
		switch {
		case id == run:
			continue
		case slices.Contains(drivers, uses):
			users[id] = userOf(l, uses, namespace)
		case slices.Contains(drivers, waits) && slices.Contains(earlier, id):
			ahead[id] = true
		default:
			continue
		}
		q.turn = q.turn && l.Namespace == namespace
	}
	for id := range users { // it keeps its tickets until it has all of its drivers
		delete(ahead, id)
	}
	if len(users)+len(ahead) > 0 {
		q.message = fmt.Sprintf("place %d in the queue for %s", len(ahead)+1, strings.Join(drivers, ", "))
		q.message = strings.Join(append([]string{q.message}, slices.Sorted(maps.Values(users))...), "; ")
	}
	return q
}

// userOf says which run uses a driver. The names of other namespaces are not told.
func userOf(l *coordinationv1.Lease, driver, namespace string) string {
	if l.Namespace != namespace {
		return fmt.Sprintf("a run in another namespace uses %s", driver)
	}
	return fmt.Sprintf("run %s uses %s", l.Labels[names.LabelRun], driver)
}

// turnMap returns the ConfigMap that a runner waits for.
func turnMap(b *v1alpha1.Benchmark) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: objectMeta(b, turns.ConfigMap(RunID(b)), roleRunner), Immutable: new(true)}
}

// inQueue copies where the run stands to the status.
func (d *decision) inQueue(q queued) {
	d.giveTurn = q.waits && q.turn
	switch {
	case q.message != "":
		d.set(v1alpha1.ConditionQueued, metav1.ConditionTrue, reasonInUse, q.message)
		d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reasonQueued, shorten(q.message))
	case d.is(v1alpha1.ConditionQueued):
		d.set(v1alpha1.ConditionQueued, metav1.ConditionFalse, reasonTurn, "")
	}
}

// waiting maps a Lease to the Benchmarks whose runs may wait for it.
func (r *reconciler) waiting(ctx context.Context, _ client.Object) (all []reconcile.Request) {
	var list v1alpha1.BenchmarkList
	if err := r.List(ctx, &list); err != nil {
		return nil // the next reconciliation of each is due within seconds
	}
	for i := range list.Items {
		b := &list.Items[i]
		d := decision{status: b.Status}
		if b.Status.RunID != "" && !d.ended() && !d.is(v1alpha1.ConditionInitialized) {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return all
}

// comesOrGoes selects the events of objects that come or go, not those of renewals.
var comesOrGoes = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
