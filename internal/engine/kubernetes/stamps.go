package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// stamps are when each milestone was first seen of each object of an op.
type stamps map[string]map[string]op.Milestone

// add notes what a watch event shows, unless it is known.
func (s stamps) add(name, id string, ev watch.Event) {
	source := "watch"
	if ev.Interval {
		source = "list" // seen after a gap: somewhere inside it
	}
	s.set(name, id, op.Milestone{At: ev.At, Err: ev.Err, Source: source})
}

// set notes an instant; the first one counts, except that an agent's, who was
// there, replaces one that was only watched.
func (s stamps) set(name, id string, m op.Milestone) {
	of := s[name]
	if of == nil {
		of = map[string]op.Milestone{}
		s[name] = of
	}
	if old, known := of[id]; known && (m.Source != "agent" || old.Source == "agent") {
		return
	}
	of[id] = m
}

// last is the latest instant of the given milestones; Never if there is none.
func (s stamps) last(names ...string) op.Time {
	at := op.Never
	for _, n := range names {
		for _, m := range s[n] {
			at = max(at, m.At)
		}
	}
	return at
}

// fill writes the milestones to a trace. One that can be of several objects
// carries their names, and by its plain name it is when the last was there.
func (s stamps) fill(tr *op.Trace, ids map[string][]string) {
	for name, of := range s {
		latest := op.Milestone{At: op.Never}
		for id, m := range of {
			if len(ids[name]) > 1 {
				tr.MarkAt(name+"/"+id, m.At, m.Err, m.Source)
			}
			if m.At > latest.At {
				latest = m
			}
		}
		if len(of) >= max(1, len(ids[name])) {
			tr.MarkAt(name, latest.At, latest.Err, latest.Source)
		}
	}
}

// warnings are the last words of the cluster's controllers on each object.
type warnings map[string]warning

type warning struct {
	reason, message string
	count           int
	at              metav1.Time // as the cluster says, to tell the same from one more, and the last
	over            bool        // what it is about has passed
}

func (w warnings) see(e *corev1.Event) {
	if e.Type != corev1.EventTypeWarning {
		return
	}
	n := int(e.Count)
	if e.Series != nil {
		n = int(e.Series.Count)
	}
	k := e.InvolvedObject.Name + " " + e.Reason
	if e.Reason == "Failed" { // what a kubelet calls the cause, and then the consequence
		k += " " + e.Message
	}
	w[k] = warning{reason: e.Reason, message: e.Message, count: max(1, n), at: lastSeen(e)}
}

// lastSeen is when an Event was last told; the recorders of the two APIs of Events
// note it in different fields.
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

// note takes a failure from the status of an object, where it stands until the
// next; false if it was noted before.
func (w warnings) note(object, reason, message string, at *metav1.Time) bool {
	if at == nil {
		at = new(metav1.Time)
	}
	k := object + " " + reason
	old := w[k]
	if old.count > 0 && old.message == message && old.at.Equal(at) {
		return false
	}
	w[k] = warning{reason: reason, message: message, count: old.count + 1, at: *at}
	return true
}

// of is the last that was said of one more failed attempt at an object.
func (w warnings) of(object string) (message string, times int) {
	for k, x := range w {
		if strings.HasPrefix(k, object+" ") && failedAttempts[x.reason] {
			message, times = x.message, times+x.count
		}
	}
	return message, times
}

// attempts is how often a sidecar has tried in vain.
func (w warnings) attempts() int {
	n := 0
	for _, x := range w {
		if failedAttempts[x.reason] {
			n += x.count
		}
	}
	return n
}

// failedAttempts are the reasons of events by which sidecars and kubelets tell
// of one more attempt that failed.
var failedAttempts = map[string]bool{
	"ProvisioningFailed": true, "FailedAttachVolume": true, "FailedAttach": true, "FailedMount": true, "FailedMapVolume": true,
	contentError: true, "SnapshotContentCreationFailed": true, "SnapshotCreationFailed": true, "VolumeResizeFailed": true,
	"FileSystemResizeFailed": true, "VolumeModifyFailed": true, "SnapshotDeleteError": true, "VolumeFailedDelete": true,
	"GroupSnapshotContentCreationFailed": true,
}

// contentError is what we call a failure that stands in the status of a
// VolumeSnapshotContent: its Events are in namespace default, which few may read.
const contentError = "SnapshotContentError"

func (w warnings) String() string {
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

// milestone is the instant of an event.
func milestone(ev watch.Event) op.Milestone {
	source := "watch"
	if ev.Interval {
		source = "list"
	}
	return op.Milestone{At: ev.At, Err: ev.Err, Source: source}
}

// appendTo appends the warnings, if any, in parentheses to a text.
func (w warnings) appendTo(text string) string {
	if said := w.String(); said != "" {
		text += " (" + said + ")"
	}
	return text
}
