package operator

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// decision is what to do about a Benchmark. The reconciler applies the other fields first and then writes status.
type decision struct {
	status          v1alpha1.BenchmarkStatus
	addFinalizer    bool
	removeFinalizer bool
	createRunner    bool
	giveTurn        bool // among the namespaces
	createCleanup   bool
	deleteRunner    bool
	deleteCleanup   bool
	lost            string        // why the runner is lost, for the results service; empty: not lost
	leftBehind      string        // message about objects that may be left and cannot be removed; empty: none
	after           time.Duration // delay until the next reconciliation; 0: wait for the next change
}

func (d *decision) ended() bool {
	return d.is(v1alpha1.ConditionComplete) || d.is(v1alpha1.ConditionFailed)
}

func (d *decision) is(condition string) bool {
	return meta.IsStatusConditionTrue(d.status.Conditions, condition)
}

// begin initializes the missing conditions, so that printer columns and kubectl wait find a value.
func (d *decision) begin() {
	for _, t := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionInitialized, v1alpha1.ConditionRunning,
		v1alpha1.ConditionComplete, v1alpha1.ConditionFailed} {
		if meta.FindStatusCondition(d.status.Conditions, t) == nil {
			d.set(t, metav1.ConditionFalse, reasonPending, "")
		}
	}
}

// startedAt records the start time of the runner. It removes the condition Clean, which may have been set when the
// runner was assumed not to have started.
func (d *decision) startedAt(t metav1.Time) {
	if d.status.StartTime == nil {
		d.status.StartTime = &t
		meta.RemoveStatusCondition(&d.status.Conditions, v1alpha1.ConditionClean)
	}
}

func (d *decision) fail(at time.Time, reason, message string) {
	d.end(at)
	d.set(v1alpha1.ConditionFailed, metav1.ConditionTrue, reason, message)
	d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reason, shorten(message))
}

func (d *decision) complete(at time.Time, reason, message string) {
	d.end(at)
	n := d.status.Ops
	if reason == reasonCompleted && n != nil && n.Failed > 0 {
		reason = reasonOpsFailed
	}
	if message == "" && n != nil {
		noun := "operations"
		if n.Total == 1 {
			noun = "operation"
		}
		message = fmt.Sprintf("%d %s, %d failed", n.Total, noun, n.Failed)
	}
	d.set(v1alpha1.ConditionInitialized, metav1.ConditionTrue, reasonBarrierOpen, "")
	d.set(v1alpha1.ConditionFailed, metav1.ConditionFalse, reason, "")
	d.set(v1alpha1.ConditionComplete, metav1.ConditionTrue, reason, shorten(message))
}

func (d *decision) end(at time.Time) {
	d.status.CompletionTime = &metav1.Time{Time: at}
	d.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reasonEnded, "")
	d.set(v1alpha1.ConditionRunning, metav1.ConditionFalse, reasonEnded, "")
}
