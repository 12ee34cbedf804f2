package operator

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
)

// Limits of the text lengths. The API server rejects a status that exceeds those of the schema.
const (
	maxMessage = 8 << 10 // bytes of a condition's message; the schema allows 32 KiB
	maxVerdict = 2048
	maxColumn  = 160 // bytes of the message that `kubectl get -o wide` shows
)

// set sets a condition. LastTransitionTime changes only with the status of the condition.
func (d *decision) set(condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&d.status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: camel(reason, "Unknown"), Message: truncated(message, maxMessage),
		ObservedGeneration: d.status.ObservedGeneration,
	})
}

// camel returns words as the reason of a condition: "setting up" → SettingUp. It returns otherwise if the result is not
// a valid reason.
func camel(words, otherwise string) string {
	var b strings.Builder
	for _, w := range strings.FieldsFunc(words, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	if s := b.String(); s != "" && (s[0] < '0' || s[0] > '9') {
		return s
	}
	return otherwise
}

func truncated(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}

// shorten returns the beginning of a message in one line, for a printer column. Another condition or the verdicts hold
// the full message.
func shorten(message string) string {
	return truncated(strings.Join(strings.Fields(message), " "), maxColumn)
}

func opCounts(c runnerstatus.Counts) v1alpha1.OpCounts {
	n := v1alpha1.OpCounts{
		OK: c[string(op.OK)], Error: c[string(op.Error)], Timeout: c[string(op.Timeout)],
		Censored: c[string(op.Censored)], Dropped: c[string(op.Dropped)],
	}
	n.Failed = n.Error + n.Timeout
	n.Total = n.OK + n.Failed + n.Censored + n.Dropped
	return n
}

func actionCounts(of map[string]runnerstatus.Counts) []v1alpha1.ActionStatus {
	var all []v1alpha1.ActionStatus
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, v1alpha1.ActionStatus{Name: v1alpha1.ActionName(name), Ops: opCounts(of[name])})
	}
	return all
}

func verdicts(of []runnerstatus.Verdict) []v1alpha1.Verdict {
	var all []v1alpha1.Verdict
	for _, v := range of {
		all = append(all, v1alpha1.Verdict{Name: v1alpha1.Name(v.Name), Verdict: v.Verdict,
			Message: truncated(v.Message, maxVerdict)})
	}
	return all
}

// transition is a change of a condition, reported as an Event.
type transition struct{ kind, reason, message string }

// transitions returns the conditions whose status or reason has changed.
func transitions(before, after []metav1.Condition) []transition {
	var all []transition
	for _, c := range after {
		was := meta.FindStatusCondition(before, c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason ||
			c.Reason == reasonPending || c.Reason == reasonEnded {
			continue
		}
		if t, ok := announce(c); ok {
			all = append(all, t)
		}
	}
	return all
}

// meanings holds the texts of Events for conditions without a message.
var meanings = map[string]string{
	reasonRunning:     "the run is in progress",
	reasonBarrierOpen: "the barrier has opened; the rates begin",
	reasonCompleted:   "the run is complete",
	reasonOpsFailed:   "the run is complete; operations failed",
	reasonMissed:      "the run is complete; an objective was missed or could not be judged",
	reasonDoubtful:    "the run is complete; its figures cannot be trusted",
	reasonRunFailed:   "the run failed for an unknown reason",
	reasonInvalid:     "the Benchmark is invalid: see the runner's log",
	reasonInterrupted: "the run was interrupted",
	reasonLost:        "the runner is gone without a termination message",
	reasonStarting:    "the runner is starting",
	reasonTurn:        "no other run uses the drivers now",
	reasonByRunner:    "the runner has removed the objects of the run",
	reasonByCleanup:   "the clean-up Job has removed the objects of the run",
	reasonCleaning:    "the clean-up Job is removing the objects of the run",
	reasonCleanFailed: "the clean-up Job failed and will be retried",
}

// announce returns the Event of a condition, if it has one. Each change is visible in one condition and in one Event.
func announce(c metav1.Condition) (transition, bool) {
	on := c.Status == metav1.ConditionTrue
	t := transition{"Normal", c.Reason, cmp.Or(c.Message, meanings[c.Reason])}
	switch c.Type {
	case v1alpha1.ConditionReady:
		if !on && c.Reason != reasonStarting {
			t.kind = "Warning"
		}
	case v1alpha1.ConditionInitialized:
		return t, on
	case v1alpha1.ConditionQueued:
		return t, true
	case v1alpha1.ConditionComplete:
		return t, on
	case v1alpha1.ConditionFailed:
		t.kind = "Warning"
		return t, on
	case v1alpha1.ConditionClean:
		if c.Reason == reasonCleanFailed {
			t.kind = "Warning"
		}
		return t, c.Reason != reasonNothing
	case v1alpha1.ConditionRunning:
		return t, false // covered by the Event of Ready
	}
	return t, true
}
