package tracker

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// Warnings are the last events of type Warning, by object and reason.
type Warnings map[string]event

type event struct {
	reason, message string
	count           int
	at              metav1.Time // by the cluster's clock
	over            bool        // the condition has passed
}

// See adds an event of type Warning.
func (w Warnings) See(e *corev1.Event) {
	if e.Type != corev1.EventTypeWarning {
		return
	}
	n := int(e.Count)
	if e.Series != nil {
		n = int(e.Series.Count)
	}
	k := e.InvolvedObject.Name + " " + e.Reason
	if e.Reason == "Failed" { // the kubelet reports cause and consequence with one reason
		k += " " + e.Message
	}
	w[k] = event{reason: e.Reason, message: e.Message, count: max(1, n), at: lastSeen(e)}
}

// lastSeen returns the time of an event's last occurrence. The two event APIs use different fields.
func lastSeen(e *corev1.Event) metav1.Time {
	at := e.LastTimestamp
	for _, other := range []metav1.MicroTime{e.EventTime, seriesTime(e)} {
		if other.After(at.Time) {
			at = metav1.NewTime(other.Time)
		}
	}
	return at
}

func seriesTime(e *corev1.Event) metav1.MicroTime {
	if e.Series == nil {
		return metav1.MicroTime{}
	}
	return e.Series.LastObservedTime
}

// Note adds a failure from the status of an object. It returns false if it is known.
func (w Warnings) Note(object, reason, message string, at *metav1.Time) bool {
	if at == nil {
		at = new(metav1.Time)
	}
	k, message := object+" "+reason, bounded.Message(message)
	old := w[k]
	if old.count > 0 && old.message == message && old.at.Equal(at) {
		return false
	}
	w[k] = event{reason: reason, message: message, count: old.count + 1, at: *at}
	return true
}

// FailedAttempts returns the last message and the number of failed attempts at an object.
func (w Warnings) FailedAttempts(object string) (message string, times int) {
	for k, x := range w {
		if strings.HasPrefix(k, object+" ") && failedAttemptReasons[x.reason] {
			message, times = x.message, times+x.count
		}
	}
	return message, times
}

// Count returns the number of failed attempts.
func (w Warnings) Count() int {
	n := 0
	for _, x := range w {
		if failedAttemptReasons[x.reason] {
			n += x.count
		}
	}
	return n
}

// failedAttemptReasons are the reasons of events that report a failed attempt.
var failedAttemptReasons = map[string]bool{
	"ProvisioningFailed": true, "FailedAttachVolume": true, "FailedAttach": true, "FailedMount": true,
	"FailedMapVolume": true,
	ContentError:      true, "SnapshotContentCreationFailed": true, "SnapshotCreationFailed": true,
	"VolumeResizeFailed":     true,
	"FileSystemResizeFailed": true, "VolumeModifyFailed": true, "SnapshotDeleteError": true, "VolumeFailedDelete": true,
	"GroupSnapshotContentCreationFailed": true,
}

// ContentError is the reason of failures in the status of a VolumeSnapshotContent. Its events are in namespace
// default, which few may read.
const ContentError = "SnapshotContentError"

func (w Warnings) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(w)) {
		x := w[k]
		text := fmt.Sprintf("%s: %s", x.reason, strings.TrimSpace(x.message))
		if x.count > 1 {
			text += fmt.Sprintf(" (%d times)", x.count)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// AppendTo appends the warnings, if any, in parentheses to a text.
func (w Warnings) AppendTo(text string) string {
	if said := w.String(); said != "" {
		text += " (" + said + ")"
	}
	return text
}

// FailedAttach is the reason of the event that precedes FailedMount when a volume cannot be attached.
const FailedAttach = "FailedAttachVolume"

func failedMount(x event) bool { return x.reason == "FailedMount" || x.reason == "FailedMapVolume" }

// cause returns the latest open warning about objects, a cause before its consequences; empty if there is none.
func (w Warnings) cause(about []string) string {
	var all []event
	for _, k := range slices.Sorted(maps.Keys(w)) {
		object, _, _ := strings.Cut(k, " ")
		if x := w[k]; !x.over && slices.Contains(about, object) {
			all = append(all, x)
		}
	}
	if slices.ContainsFunc(all, func(x event) bool { return x.reason == FailedAttach }) {
		all = slices.DeleteFunc(all, failedMount)
	}
	var latest event
	for _, x := range all {
		if !x.at.Before(&latest.at) {
			latest = x
		}
	}
	if latest.reason == "" {
		return ""
	}
	return latest.reason + ": " + strings.TrimSpace(latest.message)
}

// Attached ends the warnings that a volume could not be attached, and their consequences.
func (w Warnings) Attached(volume string) {
	for k, x := range w {
		if x.reason == FailedAttach && strings.Contains(x.message, strconv.Quote(volume)) {
			object, _, _ := strings.Cut(k, " ")
			w.pass(object, func(x event) bool { return x.reason == FailedAttach || failedMount(x) })
		}
	}
}

// Scheduled ends the warnings that a pod could not be scheduled.
func (w Warnings) Scheduled(pod string) {
	w.pass(pod, func(x event) bool { return x.reason == "FailedScheduling" })
}

// pass ends the warnings of an object for which ended is true.
func (w Warnings) pass(object string, ended func(event) bool) {
	for k, x := range w {
		if strings.HasPrefix(k, object+" ") && ended(x) {
			x.over = true
			w[k] = x
		}
	}
}

var grpcCode = regexp.MustCompile(`code = (\w+)`)

// codeIn returns the gRPC code in a sidecar's message, if any.
func codeIn(message string) string {
	if m := grpcCode.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}

// IsFailedAttempt says whether an event with this reason reports a failed attempt.
func IsFailedAttempt(reason string) bool { return failedAttemptReasons[reason] }
