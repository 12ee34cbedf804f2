package kubernetes

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

// TestTried: what a proxy saw counts, and what the cluster says beyond that;
// nothing twice.
func TestTried(t *testing.T) {
	failed := &csiproxy.Call{RPC: "CreateSnapshot", Code: "DeadlineExceeded", Message: "too late"}
	done := &csiproxy.Call{RPC: "CreateSnapshot", Code: "OK"}
	said := func(n int) warnings {
		return warnings{"s x": {reason: contentError, message: "code = DeadlineExceeded", count: n}, "s y": {reason: "Scheduled", count: 5}}
	}
	tests := []struct {
		name     string
		calls    []*csiproxy.Call
		warnings warnings
		attempts int
		cause    string
	}{
		{"nothing failed", []*csiproxy.Call{done}, warnings{}, 0, ""},
		{"a proxy saw more than the cluster says", []*csiproxy.Call{failed, failed, done}, said(1), 2, "CreateSnapshot answered DeadlineExceeded"},
		{"no proxy", nil, said(2), 2, "SnapshotContentError DeadlineExceeded"},
		{"the proxy came late", []*csiproxy.Call{failed}, said(3), 3, "CreateSnapshot answered DeadlineExceeded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, tr := New(Options{}), op.NewTrace(op.NewClock())
			r := newRPCs(cuttingCalls, 0)
			r.calls = tt.calls
			r.fill(tr, false)
			e.attempts.tried(tr, "snap-0", tt.warnings, r)
			var o op.Op
			tr.Fill(&o)
			if o.Attempts != tt.attempts {
				t.Errorf("%d attempts, want %d", o.Attempts, tt.attempts)
			}
			var causes []string
			for _, f := range e.attempts.findings(nil) {
				causes = append(causes, f.Name+": "+f.Evidence)
			}
			if text := strings.Join(causes, "\n"); (tt.cause == "") != (text == "") || !strings.HasPrefix(text, strings.TrimSuffix("retried: "+tt.cause, " ")) && tt.cause != "" {
				t.Errorf("findings %q, want one of %q", text, tt.cause)
			}
		})
	}
}

// TestNote: a status that is seen again says nothing new; the same message at a
// later time does.
func TestNote(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	later := metav1.NewTime(time.Unix(1002, 0))
	w := warnings{}
	var told []bool
	for _, x := range []struct {
		message string
		at      *metav1.Time
	}{{"a", &at}, {"a", &at}, {"a", &later}, {"b", &later}, {"b", nil}, {"b", nil}} {
		told = append(told, w.note("s", contentError, x.message, x.at))
	}
	if diff := cmp.Diff([]bool{true, false, true, true, true, false}, told); diff != "" {
		t.Error(diff)
	}
	if message, times := w.of("s"); message != "b" || times != 4 || w.attempts() != 4 {
		t.Errorf("%q, %d times, %d attempts", message, times, w.attempts())
	}
}

// TestLost: what may be left at a driver is what failed without a refusal and
// never had a handle.
func TestLost(t *testing.T) {
	handle := "h"
	internal := creation{rpc: "CreateVolume", driver: "d.example", object: "vol-0", times: 2, message: "rpc error: code = Internal desc = no"}
	tests := []struct {
		name   string
		do     func(a *attempts)
		listed map[string]bool
		want   int
	}{
		{"a final error", func(a *attempts) { a.lost("pvc-1", internal) }, nil, 1},
		{"the driver was asked for its list", func(a *attempts) { a.lost("pvc-1", internal) }, map[string]bool{"d.example": true}, 0},
		{"a refusal", func(a *attempts) {
			a.lost("pvc-1", creation{rpc: "CreateVolume", driver: "d", object: "v", times: 1, message: "rpc error: code = ResourceExhausted desc = full"})
		}, nil, 0},
		{"nobody said anything", func(a *attempts) { a.lost("pvc-1", creation{rpc: "CreateVolume"}) }, nil, 0},
		{"the volume came later", func(a *attempts) {
			a.lost("pvc-1", internal)
			a.see(watch.Event{Object: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{UID: "1"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: "h"}}}}})
		}, nil, 0},
		{"the handle was known before", func(a *attempts) {
			a.see(watch.Event{Object: &api.VolumeSnapshotContent{Spec: api.VolumeSnapshotContentSpec{VolumeSnapshotRef: api.ObjectRef{UID: "1"}},
				Status: &api.SnapshotContentStatus{SnapshotHandle: &handle}}})
			a.lost("snapshot-1", internal)
		}, nil, 0},
		{"a content without a handle says nothing", func(a *attempts) {
			a.lost("snapshot-1", internal)
			a.see(watch.Event{Object: &api.VolumeSnapshotContent{Spec: api.VolumeSnapshotContentSpec{VolumeSnapshotRef: api.ObjectRef{UID: "1"}}, Status: &api.SnapshotContentStatus{}}})
		}, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAttempts()
			tt.do(a)
			if got := a.findings(tt.listed); len(got) != tt.want {
				t.Errorf("%v, want %d findings", got, tt.want)
			}
		})
	}
}

// TestSeeKeepsTheCause: a kubelet tells the cause and the consequence by events of
// one reason.
func TestSeeKeepsTheCause(t *testing.T) {
	w := warnings{}
	for _, message := range []string{`Failed to pull image "nowhere:1": no such host`, "Error: ErrImagePull"} {
		w.see(&corev1.Event{Type: corev1.EventTypeWarning, Reason: "Failed", Message: message, InvolvedObject: corev1.ObjectReference{Name: "p"}})
	}
	if want := `Failed: Error: ErrImagePull; Failed: Failed to pull image "nowhere:1": no such host`; w.String() != want {
		t.Errorf("%q, want %q", w, want)
	}
}
