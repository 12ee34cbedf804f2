package operator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// Reasons of conditions. For a pod that does not start, the reason of Kubernetes is used instead.
const (
	reasonPending     = "Pending"          // no objects exist yet
	reasonCreate      = "FailedCreate"     // the API server refused the runner's Job or its pod
	reasonStarting    = "Starting"         // the runner's pod is starting
	reasonRunning     = "Running"          // the runner runs, in an unknown phase
	reasonQueued      = "Queued"           // another run uses a driver
	reasonInUse       = "DriverInUse"      // another run uses a driver
	reasonTurn        = "Turn"             // no other run uses a driver
	reasonUp          = "RunnerUp"         // the runner runs
	reasonCompleted   = "Completed"        // complete, objectives met
	reasonOpsFailed   = "OperationsFailed" // complete, objectives met, but operations failed
	reasonMissed      = "ObjectivesMissed" // complete, an objective was missed or could not be judged
	reasonDoubtful    = "Doubtful"         // complete, under --strict, with figures that cannot be trusted
	reasonInvalid     = "InvalidBenchmark" // the Benchmark is invalid
	reasonRunFailed   = "RunFailed"        // the runner reported a failure
	reasonInterrupted = "Interrupted"      // the run was interrupted
	reasonLost        = "RunnerLost"       // the runner is gone without a termination message
	reasonEnded       = "Ended"            // the run has ended
	reasonNothing     = "NothingMade"      // the runner never ran, or created nothing
	reasonByRunner    = "ByRunner"         // the runner removed what it had created
	reasonByCleanup   = "ByCleanup"        // the clean-up Job removed it
	reasonCleaning    = "CleaningUp"       // the clean-up Job runs
	reasonCleanFailed = "CleanupFailed"    // the clean-up Job failed and will be retried
	reasonBarrierOpen = "BarrierOpen"      // the barrier has opened
)

// vanished reports whether a runner that was created is gone, and why.
func (d *decision) vanished(o observed) (why string, gone bool) {
	job, pod := o.runner.job, o.runner.pod
	// A failed pod without a container state was evicted before its start, or another component than the kubelet failed
	// it.
	if pod != nil && pod.Status.Phase == corev1.PodFailed && !ending(pod) {
		return fmt.Sprintf("pod %s on node %s failed: %s%s", pod.Name, pod.Spec.NodeName, reasonOf(pod),
			disruption(pod)), true
	}
	if pod != nil && abandoned(pod, o.now) {
		return fmt.Sprintf("pod %s does not end: its node %s does not answer%s", pod.Name, pod.Spec.NodeName,
			disruption(pod)), true
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

// lastSeen returns where a lost runner ran, because its node may be the cause.
func (d *decision) lastSeen() string {
	c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Reason != reasonUp {
		return ""
	}
	return "; it was " + c.Message
}

// reasonOf returns the reason of a pod's failure. The pod garbage collector sets none when it removes pods from a node
// that is out of service.
func reasonOf(p *corev1.Pod) string {
	if text := strings.TrimSpace(p.Status.Reason + " " + p.Status.Message); text != "" {
		return text
	}
	return "its container was not seen to end, for an unknown reason: its node may be lost"
}

// abandoned reports whether a deleted pod will not terminate. This is so if its grace period is over, or if the taint
// of an unreachable node evicts it.
func abandoned(p *corev1.Pod, now time.Time) bool {
	if p.DeletionTimestamp == nil {
		return false
	}
	asked := p.DeletionTimestamp.Time
	if g := p.DeletionGracePeriodSeconds; g != nil {
		asked = asked.Add(-time.Duration(*g) * time.Second)
	}
	overdue := now.Sub(p.DeletionTimestamp.Time) > 30*time.Second
	return overdue || disruptedBy(p) == "DeletionByTaintManager" && now.Sub(asked) > time.Minute
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

// blocked returns why a container has not started. The container can never start if hopeless is set.
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
	s := state(w.pod).Waiting
	if s != nil && s.Reason != "" && s.Reason != "ContainerCreating" && s.Reason != "PodInitializing" {
		reason, message = s.Reason, fmt.Sprintf("pod %s: %s", w.pod.Name, s.Message)
		hopeless = s.Reason == "InvalidImageName" || s.Reason == "ErrImageNeverPull"
	}
	if w.trouble != "" && reason == reasonStarting {
		message += ": " + w.trouble
	}
	return reason, message, hopeless
}

// keptLog is the size, in bytes, of the log tail that Kubernetes keeps as the termination message.
const keptLog = 2048

// liveLine matches a progress line in a runner's log.
var liveLine = regexp.MustCompile(`^\s*\d+\.\d+s {2}(opening|setting up|running|draining|stopping|removing)\b`)

// logTail returns the log tail that replaces a termination message, without a partial first line and without progress
// lines.
func logTail(message string) string {
	if _, rest, ok := strings.Cut(message, "\n"); ok && len(message) >= keptLog {
		message = rest
	}
	all := strings.Split(message, "\n")
	all = slices.DeleteFunc(all, func(l string) bool { return strings.TrimSpace(l) == "" || liveLine.MatchString(l) })
	return strings.Join(all, "\n")
}
