package tracker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestCount: failed calls that a proxy saw count, and failed attempts in events beyond that; none
// counts twice.
func TestCount(t *testing.T) {
	failed := &csiproxy.Call{RPC: "CreateSnapshot", Code: "DeadlineExceeded", Message: "too late"}
	done := &csiproxy.Call{RPC: "CreateSnapshot", Code: "OK"}
	said := func(n int) Warnings {
		return Warnings{"s x": {reason: ContentError, message: "code = DeadlineExceeded", count: n},
			"s y": {reason: "Scheduled", count: 5}}
	}
	tests := []struct {
		name     string
		calls    []*csiproxy.Call
		warnings Warnings
		attempts int
		cause    string
	}{
		{"nothing failed", []*csiproxy.Call{done}, Warnings{}, 0, ""},
		{"a proxy saw more than the cluster says", []*csiproxy.Call{failed, failed, done}, said(1), 2,
			"CreateSnapshot answered DeadlineExceeded"},
		{"no proxy", nil, said(2), 2, "SnapshotContentError DeadlineExceeded"},
		{"the proxy came late", []*csiproxy.Call{failed}, said(3), 3, "CreateSnapshot answered DeadlineExceeded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, tr := NewAttempts(), op.NewTrace(op.NewClock())
			r := newCSICalls(SnapshotCalls, 0)
			r.calls = tt.calls
			r.Fill(tr, false)
			a.Count(tr, "snap-0", tt.warnings, r)
			var o op.Op
			tr.Fill(&o)
			if o.Attempts != tt.attempts {
				t.Errorf("%d attempts, want %d", o.Attempts, tt.attempts)
			}
			var causes []string
			for _, f := range a.Findings(nil) {
				causes = append(causes, f.Name+": "+f.Evidence)
			}
			if text := strings.Join(causes, "\n"); (tt.cause == "") != (text == "") ||
				!strings.HasPrefix(text, strings.TrimSuffix("retried: "+tt.cause, " ")) && tt.cause != "" {
				t.Errorf("findings %q, want one of %q", text, tt.cause)
			}
		})
	}
}

// TestNote: a known status is not noted again; the same message at a later time is.
func TestNote(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	later := metav1.NewTime(time.Unix(1002, 0))
	w := Warnings{}
	var told []bool
	for _, x := range []struct {
		message string
		at      *metav1.Time
	}{{"a", &at}, {"a", &at}, {"a", &later}, {"b", &later}, {"b", nil}, {"b", nil}} {
		told = append(told, w.Note("s", ContentError, x.message, x.at))
	}
	if diff := cmp.Diff([]bool{true, false, true, true, true, false}, told); diff != "" {
		t.Error(diff)
	}
	if message, times := w.FailedAttempts("s"); message != "b" || times != 4 || w.Count() != 4 {
		t.Errorf("%q, %d times, %d attempts", message, times, w.Count())
	}
}

// TestCreationFailed: a creation may leave an orphan if it failed without a refusal and never had
// a handle.
func TestCreationFailed(t *testing.T) {
	handle := "h"
	internal := Creation{RPC: "CreateVolume", Driver: "d.example", Object: "vol-0", Times: 2,
		Message: "rpc error: code = Internal desc = no"}
	tests := []struct {
		name   string
		do     func(a *Attempts)
		listed map[string]bool
		want   int
	}{
		{"a final error", func(a *Attempts) { a.CreationFailed("pvc-1", internal) }, nil, 1},
		{"the driver was asked for its list", func(a *Attempts) { a.CreationFailed("pvc-1", internal) },
			map[string]bool{"d.example": true}, 0},
		{"a refusal", func(a *Attempts) {
			a.CreationFailed("pvc-1", Creation{RPC: "CreateVolume", Driver: "d", Object: "v", Times: 1,
				Message: "rpc error: code = ResourceExhausted desc = full"})
		}, nil, 0},
		{"a driver that was not called", func(a *Attempts) {
			a.CreationFailed("pvc-1", Creation{RPC: "CreateVolume", Driver: "d", Object: "v", Times: 1,
				Message: `storageclass.storage.k8s.io "fast" not found`})
		}, nil, 0},
		{"nobody said anything", func(a *Attempts) { a.CreationFailed("pvc-1", Creation{RPC: "CreateVolume"}) }, nil,
			0},
		{"the volume came later", func(a *Attempts) {
			a.CreationFailed("pvc-1", internal)
			a.See(watch.Event{Object: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
				ClaimRef:               &corev1.ObjectReference{UID: "1"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: "h"}}}}})
		}, nil, 0},
		{"the handle was known before", func(a *Attempts) {
			a.See(watch.Event{Object: &api.VolumeSnapshotContent{
				Spec:   api.VolumeSnapshotContentSpec{VolumeSnapshotRef: corev1.ObjectReference{UID: "1"}},
				Status: &api.SnapshotContentStatus{SnapshotHandle: &handle}}})
			a.CreationFailed("snapshot-1", internal)
		}, nil, 0},
		{"a content without a handle says nothing", func(a *Attempts) {
			a.CreationFailed("snapshot-1", internal)
			a.See(watch.Event{Object: &api.VolumeSnapshotContent{
				Spec:   api.VolumeSnapshotContentSpec{VolumeSnapshotRef: corev1.ObjectReference{UID: "1"}},
				Status: &api.SnapshotContentStatus{}}})
		}, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := NewAttempts()
			tt.do(a)
			if got := a.Findings(tt.listed); len(got) != tt.want {
				t.Errorf("%v, want %d findings", got, tt.want)
			}
		})
	}
}

// TestWarningsKeepCauseAndConsequence: a kubelet reports the cause and the consequence by events
// of one reason.
func TestWarningsKeepCauseAndConsequence(t *testing.T) {
	w := Warnings{}
	for _, message := range []string{`Failed to pull image "nowhere:1": no such host`, "Error: ErrImagePull"} {
		w.See(&corev1.Event{Type: corev1.EventTypeWarning, Reason: "Failed", Message: message,
			InvolvedObject: corev1.ObjectReference{Name: "p"}})
	}
	if want := `Failed: Error: ErrImagePull; Failed: Failed to pull image "nowhere:1": no such host`; w.String() != want {
		t.Errorf("%q, want %q", w, want)
	}
}

// TestLongWarning: the message of an event or a condition is cut, and says by how much.
func TestLongWarning(t *testing.T) {
	w := Warnings{}
	w.Note("pvc", "ProvisioningFailed", strings.Repeat("x", 1<<20), nil)
	got, times := w.FailedAttempts("pvc")
	if times != 1 || len(got) > 5<<10 || !strings.HasSuffix(got, " more bytes)") {
		t.Errorf("%d times, %d bytes", times, len(got))
	}
}
