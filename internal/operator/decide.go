package operator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
)

// The words that conditions use as their reasons, beside those that Kubernetes
// has for a pod that does not start.
const (
	reasonPending     = "Pending"          // nothing is made yet
	reasonCreate      = "FailedCreate"     // the runner's Job, or its pod, is refused
	reasonStarting    = "Starting"         // the runner's pod is on its way
	reasonRunning     = "Running"          // the runner runs; more than that is not known
	reasonUp          = "RunnerUp"         // the runner runs
	reasonCompleted   = "Completed"        // done, objectives met
	reasonOpsFailed   = "OperationsFailed" // done, objectives met, but operations failed
	reasonMissed      = "ObjectivesMissed" // done, an objective was missed or could not be judged
	reasonDoubtful    = "Doubtful"         // done, under --strict, with figures that cannot be trusted
	reasonInvalid     = "InvalidBenchmark" // the file is wrong
	reasonRunFailed   = "RunFailed"        // the run says so itself
	reasonInterrupted = "Interrupted"      // somebody ended it
	reasonLost        = "RunnerLost"       // the runner is gone without a word
	reasonEnded       = "Ended"            // the run is over, one way or the other
	reasonNothing     = "NothingMade"      // the runner never ran
	reasonByRunner    = "ByRunner"         // the runner removed what it had made
	reasonByCleanup   = "ByCleanup"        // the clean-up Job did
	reasonCleaning    = "CleaningUp"       // the clean-up Job is at work
	reasonCleanFailed = "CleanupFailed"    // the clean-up Job failed; it is tried again
	reasonBarrierOpen = "BarrierOpen"      // all that stands before the barrier is made
)

const (
	poll         = 5 * time.Second // while something goes on of which no watch tells
	cleanupAgain = 2 * time.Minute // between two attempts to clean up
)

// decision is what to do about a Benchmark: status is what to write, the rest
// what to make and to remove before that.
type decision struct {
	status          v1alpha1.BenchmarkStatus
	addFinalizer    bool
	removeFinalizer bool
	createRunner    bool
	createCleanup   bool
	deleteRunner    bool
	deleteCleanup   bool
	lost            string        // why the run ended without a word, for the results service
	leftBehind      string        // what may be left, where nothing more can be done
	after           time.Duration // when to look again; 0: when something changes
}

// decide is pure: the same observation, the same decision.
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

func (d *decision) ended() bool {
	return d.is(v1alpha1.ConditionComplete) || d.is(v1alpha1.ConditionFailed)
}

func (d *decision) is(condition string) bool {
	return meta.IsStatusConditionTrue(d.status.Conditions, condition)
}

// follow brings the status in line with the runner of a run that has not ended.
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
		d.complete(end.LastTransitionTime.Time, reasonCompleted, "its pod is gone, and with it its last word")
		return
	}
	switch why, gone := d.vanished(o); {
	case gone:
		d.lostRunner(o, why)
	case runs(w.pod):
		d.running(w.pod, o.progress)
		if c.ResultsURL != "" || w.pod.DeletionTimestamp != nil {
			d.after = poll
		}
	case w.job != nil:
		c.starting(d, o)
	case d.status.RunID == "":
		d.createRunner = o.benchmark.DeletionTimestamp == nil
		d.after = poll
	default: // its pod is on the way out
		d.after = poll
	}
}

// begin gives each condition a value, so that columns and waits have one.
func (d *decision) begin() {
	for _, t := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionInitialized, v1alpha1.ConditionRunning, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed} {
		if meta.FindStatusCondition(d.status.Conditions, t) == nil {
			d.set(t, metav1.ConditionFalse, reasonPending, "")
		}
	}
}

// startedAt notes when the runner began, though it may have been given up before.
func (d *decision) startedAt(t metav1.Time) {
	if d.status.StartTime == nil {
		d.status.StartTime = &t
		meta.RemoveStatusCondition(&d.status.Conditions, v1alpha1.ConditionClean)
	}
}

// neverRan says whether it is certain that the runner's container never began.
// That nobody saw it is not enough: the operator may have been away.
func (d *decision) neverRan(w work) bool {
	if d.status.StartTime != nil || started(w.pod) {
		return false
	}
	return d.status.RunID == "" || w.pod != nil || w.job != nil && finished(w.job) == nil
}

// vanished says why a runner that was there is not any more.
func (d *decision) vanished(o observed) (why string, gone bool) {
	job, pod := o.runner.job, o.runner.pod
	// Without an end of its container: evicted before it began, or declared dead
	// by others than its kubelet.
	if pod != nil && pod.Status.Phase == corev1.PodFailed && !ending(pod) {
		return fmt.Sprintf("pod %s on node %s failed: %s%s", pod.Name, pod.Spec.NodeName, reasonOf(pod), disruption(pod)), true
	}
	if pod != nil && abandoned(pod, o.now) {
		return fmt.Sprintf("pod %s does not end: its node %s does not answer%s", pod.Name, pod.Spec.NodeName, disruption(pod)), true
	}
	if pod != nil || d.status.RunID == "" {
		return "", false
	}
	if job == nil {
		return fmt.Sprintf("Job %s was deleted%s", runnerName(o.benchmark), d.lastSeen()), true
	}
	if end := finished(job); end != nil {
		return fmt.Sprintf("the pod of Job %s is gone: %s: %s%s", job.Name, end.Reason, end.Message, d.lastSeen()), true
	}
	return "", false
}

// lastSeen says where a runner that is gone was when it was up: its node may be why.
func (d *decision) lastSeen() string {
	c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Reason != reasonUp {
		return ""
	}
	return "; it was " + c.Message
}

// reasonOf is what a pod's status says of its failure. The controller that removes
// pods of a node that is out of service says nothing.
func reasonOf(p *corev1.Pod) string {
	if text := strings.TrimSpace(p.Status.Reason + " " + p.Status.Message); text != "" {
		return text
	}
	return "its container was not seen to end, and nobody says why: its node may be lost"
}

// abandoned says whether a pod that should end cannot be expected to: its grace
// is over, or the taint of a node that does not answer evicts it.
func abandoned(p *corev1.Pod, now time.Time) bool {
	if p.DeletionTimestamp == nil {
		return false
	}
	asked := p.DeletionTimestamp.Time
	if g := p.DeletionGracePeriodSeconds; g != nil {
		asked = asked.Add(-time.Duration(*g) * time.Second)
	}
	patience := now.Sub(p.DeletionTimestamp.Time) > 30*time.Second
	return patience || disruptedBy(p) == "DeletionByTaintManager" && now.Sub(asked) > time.Minute
}

func disruptedBy(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

func disruption(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf(" (%s: %s)", c.Reason, c.Message)
		}
	}
	return ""
}

// starting names what is in the way of a runner, and gives up in time.
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
	d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reasonStarting, inShort(message))
}

// blocked says why a runner's container has not started. hopeless: it will not.
func blocked(w work) (reason, message string, hopeless bool) {
	if w.pod == nil {
		if w.trouble == "" {
			return reasonStarting, fmt.Sprintf("Job %s has no pod yet", w.job.Name), false
		}
		return reasonCreate, fmt.Sprintf("Job %s: %s", w.job.Name, w.trouble), false
	}
	for _, c := range w.pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, fmt.Sprintf("pod %s: %s", w.pod.Name, c.Message), false
		}
	}
	reason, message = reasonStarting, fmt.Sprintf("pod %s is not on a node yet", w.pod.Name)
	if node := w.pod.Spec.NodeName; node != "" {
		message = fmt.Sprintf("pod %s on node %s starts", w.pod.Name, node)
	}
	if s := state(w.pod).Waiting; s != nil && s.Reason != "" && s.Reason != "ContainerCreating" && s.Reason != "PodInitializing" {
		reason, message = s.Reason, fmt.Sprintf("pod %s: %s", w.pod.Name, s.Message)
		hopeless = s.Reason == "InvalidImageName" || s.Reason == "ErrImageNeverPull"
	}
	if w.trouble != "" && reason == reasonStarting {
		message += ": " + w.trouble
	}
	return reason, message, hopeless
}

// running takes over what the runner tells of itself.
func (d *decision) running(pod *corev1.Pod, p *runnerstatus.Progress) {
	d.set(v1alpha1.ConditionReady, metav1.ConditionTrue, reasonUp, fmt.Sprintf("pod %s on node %s", pod.Name, pod.Spec.NodeName))
	d.set(v1alpha1.ConditionRunning, metav1.ConditionTrue, reasonRunning, "")
	if p == nil {
		if c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionComplete); c.Reason == reasonPending || c.Reason == reasonStarting {
			d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reasonRunning, "")
		}
		return
	}
	d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, camel(p.Phase, reasonRunning), "")
	d.report(p.Seed, p.Barrier, p.Ops, p.Actions)
}

// report takes over figures; what is not told is left as it was.
func (d *decision) report(seed int64, barrier *time.Time, ops runnerstatus.Counts, actions map[string]runnerstatus.Counts) {
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

// terminated judges a runner by its last word, or by the lack of one.
func (d *decision) terminated(o observed, t *corev1.ContainerStateTerminated) {
	end, spoke := runnerstatus.DecodeEnd(t.Message)
	if !spoke {
		d.speechless(o, t)
		return
	}
	d.report(end.Seed, end.Barrier, end.Ops, end.Actions)
	d.status.Verdicts = verdicts(end.SLOs)
	if end.RunID != "" {
		d.status.RunID = end.RunID
	}
	switch end.ExitCode {
	case 0, 3, 4:
		d.complete(t.FinishedAt.Time, map[int]string{0: reasonCompleted, 3: reasonMissed, 4: reasonDoubtful}[end.ExitCode], end.Reason)
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

// speechless is about a runner that ended without its message. Exit code 1 comes
// before anything is made; everything else may have left something.
func (d *decision) speechless(o observed, t *corev1.ContainerStateTerminated) {
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

// keptLog is how many bytes of the end of a log Kubernetes keeps as a message.
const keptLog = 2048

// liveLine is what a runner says in its log of how far it is.
var liveLine = regexp.MustCompile(`^\s*\d+\.\d+s {2}(opening|setting up|running|draining|stopping|removing)\b`)

// logTail is the end of a log that stands in for a message, without the rest of the
// line in which it begins and without the lines that only say how far the run was.
func logTail(message string) string {
	if _, rest, ok := strings.Cut(message, "\n"); ok && len(message) >= keptLog {
		message = rest
	}
	all := strings.Split(message, "\n")
	all = slices.DeleteFunc(all, func(l string) bool { return strings.TrimSpace(l) == "" || liveLine.MatchString(l) })
	return strings.Join(all, "\n")
}

// lostRunner ends a run without its runner's word. Where the Benchmark is being
// deleted, that is what ended it.
func (d *decision) lostRunner(o observed, why string) {
	d.lost = why
	if o.benchmark.DeletionTimestamp != nil {
		d.fail(o.now, reasonInterrupted, "the Benchmark was deleted; "+why)
		return
	}
	d.fail(o.now, reasonLost, why)
}

func (d *decision) fail(at time.Time, reason, message string) {
	d.end(at)
	d.set(v1alpha1.ConditionFailed, metav1.ConditionTrue, reason, message)
	d.set(v1alpha1.ConditionComplete, metav1.ConditionFalse, reason, inShort(message))
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
	d.set(v1alpha1.ConditionComplete, metav1.ConditionTrue, reason, inShort(message))
}

func (d *decision) end(at time.Time) {
	d.status.CompletionTime = &metav1.Time{Time: at}
	d.set(v1alpha1.ConditionReady, metav1.ConditionFalse, reasonEnded, "")
	d.set(v1alpha1.ConditionRunning, metav1.ConditionFalse, reasonEnded, "")
}

// tidy removes what a run that has ended may have left.
func (d *decision) tidy(o observed) {
	if w := o.runner; w.job != nil && finished(w.job) == nil && w.job.DeletionTimestamp == nil && !ending(w.pod) {
		d.deleteRunner = true // it would start, or start again
	}
	d.clean(o)
}

// ending says that a pod is about to end by itself: its Job is finished soon.
func ending(p *corev1.Pod) bool { return state(p).Terminated != nil }

// clean makes sure that nothing is left, by a Job with the rights of the runner.
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
	if wait := cleanupAgain - o.now.Sub(end.LastTransitionTime.Time); wait > 0 {
		d.after = wait
		return
	}
	d.deleteCleanup = true
	d.after = poll
}

// remove ends the run of a Benchmark that is being deleted and lets it go once
// nothing is left.
func (d *decision) remove(o observed) {
	if w := o.runner; !ending(w.pod) && finished(w.job) == nil && !(w.pod != nil && abandoned(w.pod, o.now)) {
		if w.job != nil && w.job.DeletionTimestamp == nil {
			d.deleteRunner = true
			if d.neverRan(w) { // later there is nothing to tell it by
				d.clean(o)
			}
		}
		if w.job != nil || w.pod != nil {
			d.after = poll
			return // the runner removes what it made
		}
	}
	if o.closing && !d.is(v1alpha1.ConditionClean) && !d.neverRan(o.runner) {
		d.leftBehind = fmt.Sprintf("run %s of Benchmark %s/%s: nothing can be created in a namespace that is being deleted, so that its clean-up could not run; "+
			"the namespace takes all but cluster-scoped objects with it: look for PersistentVolumes whose claimRef, and VolumeSnapshotContents whose volumeSnapshotRef, has this namespace and a name that begins with cnsb-%s-",
			RunID(o.benchmark), o.benchmark.Namespace, o.benchmark.Name, RunID(o.benchmark))
		d.removeFinalizer = true
		return
	}
	if !o.closing {
		d.clean(o)
	}
	d.removeFinalizer = o.closing || d.is(v1alpha1.ConditionClean)
}
