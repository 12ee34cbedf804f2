package operator

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
)

const (
	poll            = 5 * time.Second // polling interval for changes that no watch reports
	cleanupInterval = 2 * time.Minute // delay before a failed clean-up is retried
)

// decide returns the decision for an observation. It is a pure function.
func (c *Config) decide(o observed) decision {
	d := &decision{status: *o.benchmark.Status.DeepCopy()}
	d.status.ObservedGeneration = o.benchmark.Generation
	b := o.benchmark
	if b.DeletionTimestamp == nil {
		d.addFinalizer = !hasFinalizer(b)
	} else if !hasFinalizer(b) {
		return *d
	}
	if !d.ended() {
		c.follow(d, o)
	}
	switch {
	case b.DeletionTimestamp != nil:
		d.remove(o)
	case d.ended():
		d.tidy(o)
	}
	return *d
}

// follow updates the status from the state of the runner while the run has not ended.
func (c *Config) follow(d *decision, o observed) {
	w := o.runner
	d.begin()
	if w.job != nil {
		d.status.RunID = RunID(o.benchmark)
		d.status.Bundle = c.bundle(o.benchmark)
	}
	if t := state(w.pod).Terminated; t != nil {
		d.startedAt(t.StartedAt)
		d.terminated(o, t)
		return
	}
	if runs(w.pod) {
		d.startedAt(state(w.pod).Running.StartedAt)
	}
	if end := finished(w.job); w.pod == nil && end != nil && end.Type == batchv1.JobComplete {
		d.complete(end.LastTransitionTime.Time, reasonCompleted, "its pod is gone, and its termination message with it")
		return
	}
	switch why, gone := d.vanished(o); {
	case gone:
		d.lostRunner(o, why)
	case runs(w.pod):
		d.running(w.pod, o.progress)
		d.inQueue(o.queue)
		if c.ResultsURL != "" || o.queue.waits || w.pod.DeletionTimestamp != nil {
			d.after = poll
		}
	case w.job != nil:
		c.starting(d, o)
	case d.status.RunID == "":
		d.createRunner = o.benchmark.DeletionTimestamp == nil
		d.after = poll
	default: // the Job is gone, its pod is terminating
		d.after = poll
	}
}

// neverRan reports whether it is certain that the runner's container never started. The operator can miss a start, so a
// missing StartTime alone is no proof.
func (d *decision) neverRan(w work) bool {
	if d.status.StartTime != nil || started(w.pod) {
		return false
	}
	return d.status.RunID == "" || w.pod != nil || w.job != nil && finished(w.job) == nil
}

// starting reports why a runner has not started. It fails the run after the start timeout, or at once if the runner can
// never start.
func (c *Config) starting(d *decision, o observed) {
	d.after = poll
	reason, message, hopeless := blocked(o.runner)
	since := o.benchmark.CreationTimestamp.Time
	if late := o.now.Sub(since) > c.StartTimeout; hopeless || late {
		if late && !hopeless {
			message = fmt.Sprintf("the runner has not started within %v: %s", c.StartTimeout, message)
		}
		d.fail(o.now, reason, message)
		return
	}
	d.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reasonStarting, shorten(message))
}

// running copies the progress that the runner reports to the status.
func (d *decision) running(pod *corev1.Pod, p *runnerstatus.Progress) {
	d.set(v1alpha1.ConditionReady, metav1.ConditionTrue, reasonUp,
		fmt.Sprintf("pod %s on node %s", pod.Name, pod.Spec.NodeName))
	d.set(v1alpha1.ConditionRunning, metav1.ConditionTrue, reasonRunning, "")
	if p == nil {
		c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionComplete)
		if c.Reason == reasonPending || c.Reason == reasonStarting {
			d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reasonRunning, "")
		}
		return
	}
	d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, camel(p.Phase, reasonRunning), "")
	d.report(p.Seed, p.Barrier, p.Ops, p.Actions)
}

// report copies counts and times to the status. Absent values leave the status unchanged.
func (d *decision) report(seed int64, barrier *time.Time, ops runnerstatus.Counts,
	actions map[string]runnerstatus.Counts) {
	if seed != 0 {
		d.status.Seed = &seed
	}
	if barrier != nil {
		d.set(v1alpha1.ConditionInitialized, metav1.ConditionTrue, reasonBarrierOpen, "")
	}
	if ops != nil {
		d.status.Ops = new(opCounts(ops))
	}
	if actions != nil {
		d.status.Actions = actionCounts(actions)
	}
}

// terminated copies the result of a runner from its termination message to the status.
func (d *decision) terminated(o observed, t *corev1.ContainerStateTerminated) {
	end, ok := runnerstatus.DecodeEnd(t.Message)
	if !ok {
		d.withoutMessage(o, t)
		return
	}
	d.report(end.Seed, end.Barrier, end.Ops, end.Actions)
	d.status.Verdicts = verdicts(end.SLOs)
	if end.RunID != "" {
		d.status.RunID = end.RunID
	}
	switch end.ExitCode {
	case 0, 3, 4, 7:
		reasons := map[int]string{0: reasonCompleted, 3: reasonMissed, 4: reasonDoubtful, 7: reasonCompleted}
		d.complete(t.FinishedAt.Time, reasons[end.ExitCode], end.Reason)
	case 1:
		d.fail(t.FinishedAt.Time, reasonInvalid, end.Reason)
		d.set(v1alpha1.ConditionClean, metav1.ConditionTrue, reasonNothing, "")
		return
	case 130:
		d.fail(t.FinishedAt.Time, reasonInterrupted, end.Reason)
	default:
		d.fail(t.FinishedAt.Time, reasonRunFailed, end.Reason)
	}
	if end.Clean {
		d.set(v1alpha1.ConditionClean, metav1.ConditionTrue, reasonByRunner, "")
	}
}

// withoutMessage handles a runner that ended without a termination message. Exit code 1 means that the runner created
// no objects.
func (d *decision) withoutMessage(o observed, t *corev1.ContainerStateTerminated) {
	if t.ExitCode == 1 {
		d.fail(t.FinishedAt.Time, reasonInvalid, logTail(t.Message))
		d.set(v1alpha1.ConditionClean, metav1.ConditionTrue, reasonNothing, "")
		return
	}
	why := fmt.Sprintf("pod %s: its container ended with exit code %d (%s)", o.runner.pod.Name, t.ExitCode, t.Reason)
	if t.Signal != 0 {
		why += fmt.Sprintf(" by signal %d", t.Signal)
	}
	if s := o.runner.pod.Status; s.Reason != "" {
		why += fmt.Sprintf("; %s: %s", s.Reason, s.Message)
	}
	if tail := logTail(t.Message); tail != "" {
		why += ": " + tail
	}
	d.lostRunner(o, why+disruption(o.runner.pod))
}

// lostRunner fails a run whose runner is lost. If the Benchmark is being deleted, the reason is Interrupted.
func (d *decision) lostRunner(o observed, why string) {
	d.lost = why
	if o.benchmark.DeletionTimestamp != nil {
		d.fail(o.now, reasonInterrupted, "the Benchmark was deleted; "+why)
		return
	}
	d.fail(o.now, reasonLost, why)
}

// tidy removes the objects that an ended run may have left.
func (d *decision) tidy(o observed) {
	if w := o.runner; w.job != nil && finished(w.job) == nil && w.job.DeletionTimestamp == nil && !ending(w.pod) {
		d.deleteRunner = true // its container can still start
	}
	d.clean(o)
}

// clean removes the remaining objects of a run with a Job that has the rights of the runner.
func (d *decision) clean(o observed) {
	if d.is(v1alpha1.ConditionClean) {
		return
	}
	if d.neverRan(o.runner) {
		d.set(v1alpha1.ConditionClean, metav1.ConditionTrue, reasonNothing, "")
		return
	}
	w := o.cleanup
	end := finished(w.job)
	switch {
	case w.job == nil:
		d.createCleanup = true
		d.set(v1alpha1.ConditionClean, metav1.ConditionFalse, reasonCleaning, "")
	case w.job.DeletionTimestamp != nil:
		d.after = poll
	case end == nil:
		d.after = poll
		message := ""
		if !started(w.pod) {
			_, message, _ = blocked(w)
		}
		d.set(v1alpha1.ConditionClean, metav1.ConditionFalse, reasonCleaning, message)
	case end.Type == batchv1.JobComplete:
		d.set(v1alpha1.ConditionClean, metav1.ConditionTrue, reasonByCleanup, "")
	default:
		d.cleanAgain(o, end)
	}
}

func (d *decision) cleanAgain(o observed, end *batchv1.JobCondition) {
	message := fmt.Sprintf("Job %s: %s", o.cleanup.job.Name, end.Message)
	if t := state(o.cleanup.pod).Terminated; t != nil && t.Message != "" {
		message += ": " + t.Message
	}
	d.set(v1alpha1.ConditionClean, metav1.ConditionFalse, reasonCleanFailed, message)
	if wait := cleanupInterval - o.now.Sub(end.LastTransitionTime.Time); wait > 0 {
		d.after = wait
		return
	}
	d.deleteCleanup = true
	d.after = poll
}

// remove ends the run of a Benchmark that is being deleted. It removes the finalizer when no objects are left.
func (d *decision) remove(o observed) {
	if w := o.runner; !ending(w.pod) && finished(w.job) == nil && !(w.pod != nil && abandoned(w.pod, o.now)) {
		if w.job != nil && w.job.DeletionTimestamp == nil {
			d.deleteRunner = true
			if d.neverRan(w) { // cannot be determined after the deletion
				d.clean(o)
			}
		}
		if w.job != nil || w.pod != nil {
			d.after = poll
			return // the runner cleans up on termination
		}
	}
	if o.closing && !d.is(v1alpha1.ConditionClean) && !d.neverRan(o.runner) {
		d.leftBehind = fmt.Sprintf("run %s of Benchmark %s/%s: the clean-up could not run, because the namespace is being "+
			"deleted; cluster-scoped objects may be left: look for PersistentVolumes whose claimRef, and "+
			"VolumeSnapshotContents whose volumeSnapshotRef, has this namespace and a name that begins with cnsb-%s-",
			RunID(o.benchmark), o.benchmark.Namespace, o.benchmark.Name, RunID(o.benchmark))
		d.removeFinalizer = true
		return
	}
	if !o.closing {
		d.clean(o)
	}
	d.removeFinalizer = o.closing || d.is(v1alpha1.ConditionClean)
}
