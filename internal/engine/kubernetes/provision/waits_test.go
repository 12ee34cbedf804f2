package provision

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// lines keeps what an engine says.
type lines struct {
	engine.Sink
	mu   sync.Mutex
	said []string
}

func (l *lines) Log(source, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, source+": "+line)
}

// waitingBed is an engine without a cluster, whose watches are the test's.
type waitingBed struct {
	*Provisioner
	lines *lines
	since time.Duration // of the cluster's own time
}

func newWaitingBed() *waitingBed {
	b := &waitingBed{Provisioner: New(pods.New(core.New(core.Options{Namespace: "ns"}))), lines: &lines{}}
	b.Tracker, b.Session = tracker.New("ns"), engine.Session{RunID: "r1", Clock: op.NewClock(), Sink: b.lines}
	return b
}

func (b *waitingBed) see(typ watch.Type, o api.Object) {
	b.Tracker.See(watch.Event{Type: typ, At: b.Session.Clock.Now(), Object: o})
}

// warn adds a warning about an object, a second after the last one.
func (b *waitingBed) warn(kind, name, reason, message string) {
	b.since += time.Second
	b.see(watch.Added, &corev1.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message,
		LastTimestamp:  metav1.NewTime(time.Unix(0, 0).Add(b.since)),
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}})
}

// says fails the test unless these lines were logged since the last call.
func (b *waitingBed) says(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	b.lines.mu.Lock()
	defer b.lines.mu.Unlock()
	if diff := cmp.Diff(want, b.lines.said); diff != "" {
		t.Error(diff)
	}
	b.lines.said = nil
}

func attachment(volume string, attached bool) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va-" + volume, UID: "1"},
		Spec:   storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		Status: storagev1.VolumeAttachmentStatus{Attached: attached}}
}

// The cause of a long wait is logged, not its consequences; then each change, and the end.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWaitingBed()
		pr := e.NewProvision()
		pr.AddPod("w-0-two", 1, nil)
		c := pr.AddClaim("w-0-data", true)
		c.Bound = true
		pr.FollowVolume(c, "pvc-1")
		name := e.Name("w-0-two")
		done := make(chan error, 1)
		go func() { done <- pr.Wait(t.Context(), op.NewTrace(e.Session.Clock)) }()
		const multi = `Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) cnsb-r1-w-0-one`
		e.warn("Pod", name, "FailedScheduling", "0/2 nodes are available")
		e.see(watch.Modified,
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: "n"}})
		e.warn("Pod", name, tracker.FailedAttach, multi)
		e.says(t)
		time.Sleep(tracker.WaitsAfter + time.Second)
		e.warn("Pod", name, tracker.FailedAttach, multi)
		e.warn("Pod", name, "FailedMount", "timed out")
		e.says(t, "waits: w-0-two waits: FailedAttachVolume: "+multi)
		e.see(watch.Modified, attachment("other", true))
		e.see(watch.Modified, attachment("pvc-1", true))
		e.says(t, "waits: w-0-two waits no longer")
		e.warn("Pod", name, "FailedMount", "MountVolume.MountDevice failed")
		e.says(t, "waits: w-0-two waits: FailedMount: MountVolume.MountDevice failed")
		pr.Feed.Put(pods.AgentReady{Pod: name})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		e.says(t, "waits: w-0-two waits no longer")
	})
}

// TestWaitsOfAllOps: every op that waits for the cluster logs the reason.
func TestWaitsOfAllOps(t *testing.T) {
	deleted := func(o api.Object) func(*waitingBed) { return func(e *waitingBed) { e.see(watch.Deleted, o) } }
	vs := &api.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "cnsb-r1-s-0"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "cnsb-r1-v-0", UID: "1"}}
	yes, now, cause := true, metav1.Now(), "the pool is full"
	taken := &api.VolumeSnapshot{ObjectMeta: vs.ObjectMeta,
		Status: &api.SnapshotStatus{ReadyToUse: &yes, CreationTime: &now}}
	wrong := &api.VolumeSnapshot{ObjectMeta: vs.ObjectMeta,
		Status: &api.SnapshotStatus{Error: &api.SnapshotError{Message: &cause, Time: &now}}}
	stuck := attachment("pv", true)
	stuck.Status.DetachError = &storagev1.VolumeError{Message: "the device is busy"}
	tests := []struct {
		name       string
		follow     func(*waitingBed) (await func(context.Context) error)
		warn, done func(*waitingBed)
		want       string // begins with the object
	}{
		{"restore", func(e *waitingBed) func(context.Context) error {
			pr := e.NewProvision()
			pr.AddClaim("v-0", false)
			return func(ctx context.Context) error { return pr.Wait(ctx, op.NewTrace(e.Session.Clock)) }
		}, func(e *waitingBed) {
			e.warn("PersistentVolumeClaim", claim.Name, "ProvisioningFailed",
				"error getting snapshot s from api server")
		}, func(e *waitingBed) {
			bound := claim.DeepCopy()
			bound.Status.Phase = corev1.ClaimBound
			e.see(watch.Modified, bound)
		}, "v-0 waits: ProvisioningFailed: error getting snapshot s from api server"},
		{"snapshot", func(e *waitingBed) func(context.Context) error {
			c := e.newSnapshotCreation(op.NewTrace(e.Session.Clock))
			c.follow("s-0", vs.Name)
			return func(ctx context.Context) error { defer c.close(); return c.wait(ctx) }
		}, func(e *waitingBed) {
			e.warn("VolumeSnapshot", vs.Name, "SnapshotContentCreationFailed", "no class")
		}, func(e *waitingBed) { e.see(watch.Modified, taken) },
			"s-0 waits: SnapshotContentCreationFailed: no class"},
		{"snapshot, by its status", func(e *waitingBed) func(context.Context) error {
			c := e.newSnapshotCreation(op.NewTrace(e.Session.Clock))
			c.follow("s-0", vs.Name)
			return func(ctx context.Context) error { defer c.close(); return c.wait(ctx) }
		}, func(e *waitingBed) { e.see(watch.Modified, wrong) }, func(e *waitingBed) { e.see(watch.Modified, taken) },
			"s-0 waits: SnapshotError: " + cause},
		{"group", func(e *waitingBed) func(context.Context) error {
			c := e.newSnapshotCreation(op.NewTrace(e.Session.Clock))
			c.group = &tracker.Pending{Object: "g-0", Names: []string{"cnsb-r1-g-0", "g-0"}}
			c.Feed.Add(tracker.GroupSnapshot.Key("cnsb-r1-g-0"))
			c.Feed.Add(tracker.EventsOf.Key("cnsb-r1-g-0"))
			r := engine.Request{Name: "g-0", Snapshot: &engine.Snapshot{}}
			return func(ctx context.Context) error {
				defer c.close()
				_, err := e.awaitGroup(ctx, r, &snapshot{}, c)
				return err
			}
		}, func(e *waitingBed) {
			e.warn("VolumeGroupSnapshot", "cnsb-r1-g-0", "GroupSnapshotContentCreationFailed", "no class")
		}, func(e *waitingBed) {
			e.see(watch.Modified, &api.VolumeGroupSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "cnsb-r1-g-0"},
				Status: &api.GroupSnapshotStatus{ReadyToUse: &yes}})
		}, "g-0 waits: GroupSnapshotContentCreationFailed: no class"},
		{"resize", func(e *waitingBed) func(context.Context) error {
			c := e.newClaimUpdate(&pods.Volume{Name: claim.Name, Object: engine.Object{Name: "v-0"}},
				op.NewTrace(e.Session.Clock))
			return func(ctx context.Context) error {
				defer c.close()
				return c.wait(ctx, func(ev watch.Event) bool { return true })
			}
		}, func(e *waitingBed) {
			e.warn("PersistentVolumeClaim", claim.Name, "VolumeResizeFailed", cause)
		}, func(e *waitingBed) { e.see(watch.Modified, claim) }, "v-0 waits: VolumeResizeFailed: " + cause},
		{"deletion", func(e *waitingBed) func(context.Context) error {
			r := e.NewRemoval()
			r.AddClaim(&pods.Volume{Name: claim.Name, Object: engine.Object{Name: "v-0"}})
			return r.Wait
		}, func(e *waitingBed) {
			e.warn("PersistentVolumeClaim", claim.Name, "ProvisioningFailed", "of before")
			e.warn("PersistentVolumeClaim", claim.Name, "VolumeFailedDelete", cause)
		}, deleted(claim), "v-0 waits: VolumeFailedDelete: " + cause},
		{"detachment", func(e *waitingBed) func(context.Context) error {
			e.see(watch.Added, attachment("pv", true))
			r := e.NewRemoval()
			r.AddAttachments(&pods.Volume{Object: engine.Object{Name: "v-0"}}, "pv")
			return r.Wait
		}, func(e *waitingBed) { e.see(watch.Modified, stuck) }, deleted(stuck),
			"v-0 waits: FailedDetach: the device is busy"},
		{"deletion of a pod", func(e *waitingBed) func(context.Context) error {
			r := e.NewRemoval()
			r.AddPod(&pods.Pod{State: e.State, Object: "w-0", Latest: &pods.Incarnation{UID: "1"}}, pods.PodGone)
			return r.Wait
		}, func(e *waitingBed) {
			e.warn("Pod", "cnsb-r1-w-0", "FailedMount", "of before")
			e.warn("Pod", "cnsb-r1-w-0", "FailedKillPod", "error killing pod")
		}, deleted(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cnsb-r1-w-0", UID: "1"}}),
			"w-0 waits: FailedKillPod: error killing pod"},
		{"deletion of a snapshot", func(e *waitingBed) func(context.Context) error {
			d := e.newSnapshotDeletion([]*snapshot{{object: engine.Object{Name: "s-0"}, kind: api.VolumeSnapshots,
				name: vs.Name}})
			return func(ctx context.Context) error {
				_, err := d.wait(ctx, op.NewTrace(e.Session.Clock))
				return err
			}
		}, func(e *waitingBed) {
			e.warn("VolumeSnapshot", vs.Name, "SnapshotDeletePending", "Snapshot is being used to restore a PVC")
		}, deleted(vs), "s-0 waits: SnapshotDeletePending: Snapshot is being used to restore a PVC"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, ended := newWaitingBed(), make(chan error, 1)
				await := tt.follow(e)
				go func() { ended <- await(t.Context()) }()
				tt.warn(e)
				e.says(t)
				time.Sleep(tracker.WaitsAfter + time.Second)
				e.says(t, "waits: "+tt.want)
				tt.done(e)
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				e.says(t, "waits: "+tt.want[:3]+" waits no longer")
			})
		})
	}
}

// The error of a timed-out snapshot deletion has the reason.
func TestSnapshotDeletionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWaitingBed()
		d := e.newSnapshotDeletion([]*snapshot{{object: engine.Object{Name: "s-0"}, kind: api.VolumeSnapshots,
			name: "cnsb-r1-s-0"}})
		e.warn("VolumeSnapshot", "cnsb-r1-s-0", "SnapshotDeletePending", "in use")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := d.wait(ctx, op.NewTrace(e.Session.Clock))
		var coded *engine.Error
		if !errors.As(err, &coded) ||
			coded.Message != "snapshot cnsb-r1-s-0 is still there (SnapshotDeletePending: in use)" {
			t.Errorf("%v", err)
		}
	})
}
