package pods

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/enginetest"
)

// Only one op at a time replaces a pod, and its end is reported once it is known whether another
// pod replaced it.
func TestReplacedIncarnations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(core.New(core.Options{}))
		e.Tracker = tracker.New("ns")
		first := &Incarnation{UID: "1"}
		m := &Pod{State: e, Object: "w-0", Instance: "w-0", Latest: first}
		ended := make(chan op.InstanceEnd, 1)
		go func() { ended <- m.awaitEnd(t.Context()) }()
		pod := func(uid types.UID, phase corev1.PodPhase) watch.Event {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: m.Name(), UID: uid}}
			p.Status.Phase = phase
			return watch.Event{Type: watch.Modified, Object: p, At: 5}
		}
		quiet := func() {
			t.Helper()
			synctest.Wait()
			if len(ended) > 0 {
				t.Fatalf("ended %+v", <-ended)
			}
		}
		if inc, err := m.beginReplace(); err != nil || inc != first {
			t.Fatal(err)
		}
		if _, err := m.beginReplace(); err == nil {
			t.Error("two ops replace it at once")
		}
		m.endReplace(first)
		m.cancelReplace(first) // nothing was asked of it after all
		if _, err := m.beginReplace(); err != nil {
			t.Error(err)
		}
		e.Tracker.See(pod("1", corev1.PodFailed)) // killed
		quiet()
		second := &Incarnation{restarts: 1, UID: "2"}
		m.finishReplace(first, second, nil)
		e.Tracker.See(pod("1", corev1.PodFailed)) // an old one's, seen late
		quiet()
		if _, err := m.beginReplace(); err == nil {
			t.Error("an op replaces a pod that another op has not finished with")
		}
		m.endReplace(first)
		if _, err := m.beginReplace(); err != nil {
			t.Error(err)
		}
		e.Tracker.See(pod("2", corev1.PodFailed))
		quiet()
		m.finishReplace(second, nil, errors.New("no node takes it"))
		time.Sleep(time.Second)
		select {
		case end := <-ended:
			if last := end.Containers[len(end.Containers)-1]; end.OK || last.ExitCode != -1 || last.Name != "w-0~2" {
				t.Errorf("ended %+v, though nothing took its place", end)
			}
		default:
			t.Error("its end is not told")
		}
	})
}

// A volume with several attachments is detached when the last one is deleted; earlier attachments
// of the name are ignored.
func TestSeveralAttachments(t *testing.T) {
	e := New(core.New(core.Options{}))
	e.Tracker = tracker.New("ns")
	e.Session.Clock = op.NewClock()
	va := func(typ watch.Type, name string, uid types.UID, at op.Time) {
		pv := "pv"
		e.Tracker.See(watch.Event{Type: typ, At: at,
			Object: &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid},
				Spec: storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}}})
	}
	hold := e.Tracker.Follow(tracker.AttachmentOfVolume.Key("pv")) // as an op before does: history is kept
	defer hold.Close()
	va(watch.Added, "a", "old", 1)
	va(watch.Deleted, "a", "old", 2)
	va(watch.Added, "a", "1", 3)
	va(watch.Added, "b", "2", 4)
	r := e.NewRemoval()
	defer r.Feed.Close()
	r.AddAttachments(&Volume{Object: engine.Object{Name: "v"}}, "pv")
	va(watch.Deleted, "b", "2", 10)
	va(watch.Deleted, "a", "1", 20)
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if at := r.Milestones.Last(op.Detached); at != 20 {
		t.Errorf("detached at %d, want 20", at)
	}
}

// A volume created while its claim is deleted is followed too; a claim without one is reported.
func TestVolumeCreatedDuringDeletion(t *testing.T) {
	for name, comes := range map[string]bool{"it comes": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			e := New(core.New(core.Options{}))
			e.Tracker = tracker.New("ns")
			e.Session.Clock = op.NewClock()
			see := func(typ watch.Type, at op.Time, o api.Object) {
				e.Tracker.See(watch.Event{Type: typ, At: at, Object: o})
			}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "1"}}
			pv := func(uid types.UID) *corev1.PersistentVolume {
				return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(uid),
					UID: "of-" + uid}, Spec: corev1.PersistentVolumeSpec{
					ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: "c",
						UID: uid}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}}
			}
			see(watch.Added, 1, claim)
			r := e.NewRemoval()
			defer r.Feed.Close()
			r.AddClaim(&Volume{Name: "c", Object: engine.Object{Name: "v"}})
			see(watch.Added, 5, pv("0")) // of a claim before it, by the same name
			if comes {
				see(watch.Added, 6, pv("1"))
			}
			see(watch.Deleted, 10, claim)
			if comes {
				see(watch.Deleted, 20, pv("1"))
			}
			if err := r.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if at := r.Milestones.Last(VolumeGone); at.Known() != comes || comes && at != 20 {
				t.Errorf("its volume is gone at %d", at)
			}
			if told := slices.ContainsFunc(e.Attempts.Findings(nil), func(f engine.Finding) bool {
				return f.Name == "deletedUnbound" && strings.HasSuffix(f.Evidence, ": v")
			}); told == comes {
				t.Errorf("told of: %v", told)
			}
		})
	}
}

// history records events and keeps them for later feeds.
func history(t *testing.T, e *State, keys ...tracker.Key) func(typ watch.Type, at op.Time, o api.Object) {
	t.Helper()
	t.Cleanup(e.Tracker.Follow(keys...).Close)
	return func(typ watch.Type, at op.Time, o api.Object) {
		e.Tracker.See(watch.Event{Type: typ, At: at, Object: o})
	}
}

// A pod whose containers are restarted was scheduled before the op. It is ready again after it was
// not.
func TestExistingPodHasNoOldMilestones(t *testing.T) {
	e := New(core.New(core.Options{}))
	e.Tracker, e.Session.Clock = tracker.New("ns"), op.NewClock()
	m := &Pod{State: e, Object: "w-0"}
	name := m.Name()
	see := history(t, e, tracker.Pod.Key(name), tracker.EventsOf.Key(name))
	state := func(ready corev1.ConditionStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}}
		p.Spec = corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}}
		running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: running}}
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}, {Type: corev1.PodReady,
				Status: ready}}
		return p
	}
	see(watch.Added, 1, state(corev1.ConditionTrue))
	see(watch.Added, 2, &corev1.Event{Type: corev1.EventTypeWarning, Reason: "FailedMount", Message: "of before",
		InvolvedObject: corev1.ObjectReference{Name: name, UID: "1"}})
	time.Sleep(time.Microsecond)
	pr := e.NewProvision()
	o := op.Op{Started: pr.Calls.Since}
	pr.addExistingPod(m, &Incarnation{UID: "1", Sessions: map[string]*agent.Session{"c": nil}})
	see(watch.Modified, o.Started+10, state(corev1.ConditionTrue))
	see(watch.Modified, o.Started+20, state(corev1.ConditionFalse))
	see(watch.Modified, o.Started+40, state(corev1.ConditionTrue))
	said := func(at op.Time) op.Milestone { return op.Milestone{At: o.Started + at, Source: "agent"} }
	pr.Feed.Put(AgentReady{Pod: name, Started: said(30), Ready: said(50)})
	tr := op.NewTrace(e.Session.Clock)
	if err := pr.Wait(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	tr.Fill(&o)
	enginetest.CheckMilestones(t, o)
	var names []string
	for _, m := range o.Milestones {
		names = append(names, m.Name)
	}
	diff := cmp.Diff([]string{op.Running, status.PodReady, op.Ready}, names)
	if diff != "" || o.Milestone(status.PodReady) != o.Started+40 {
		t.Errorf("milestones %v:\n%s", o.Milestones, diff)
	}
	if pr.Warnings.Count() > 0 {
		t.Errorf("counts a failure of before: %s", pr.Warnings)
	}
}

// A kubelet that does not report sandboxes does not keep an op of a ready pod, which would take a place among those in
// flight.
func TestReadyPodWithoutSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(core.New(core.Options{}))
		e.Tracker, e.Session.Clock = tracker.New("ns"), op.NewClock()
		pr := e.NewProvision()
		pr.AddPod("w-0", 0, nil)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: e.Name("w-0"), UID: "1"}}
		p.Spec = corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		e.Tracker.See(watch.Event{Type: watch.Added, At: e.Session.Clock.Now() + 1, Object: p})
		began := time.Now()
		tr := op.NewTrace(e.Session.Clock)
		if err := pr.Wait(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the op went on for %v after the pod was ready", waited)
		}
	})
}

// An ephemeral claim is created again under the name of the deleted one.
func TestEphemeralClaimIsRecreated(t *testing.T) {
	e := New(core.New(core.Options{Namespace: "ns"}))
	e.Tracker, e.Session.Clock = tracker.New("ns"), op.NewClock()
	e.Session.RunID = "r1"
	template := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cnsb-r1-w-0"}}
	ephemeral := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: ephemeral}}
	m := &Pod{State: e, Object: "w-0", Instance: "w-0", Template: template, Latest: &Incarnation{UID: "1"}}
	e.Workloads["w-0"] = &Workload{State: e, Name: "w-0", Pods: []*Pod{m}}
	const name = "cnsb-r1-w-0-data"
	e.StoreVolume(&Volume{Name: name, Object: engine.Object{Name: "w-0-data", Owner: "w-0"}})
	see := history(t, e, tracker.Claim.Key(name), tracker.VolumeOfClaim.Key(name))
	claim := func(uid types.UID) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
		c.Spec.VolumeName = "pv-" + string(uid)
		c.Status.Phase = corev1.ClaimBound
		return c
	}
	pv := func(of types.UID) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + string(of), UID: "of-" + of}}
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: name, UID: of}
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		return v
	}
	see(watch.Added, 1, pv("old"))
	see(watch.Added, 1, claim("old"))
	time.Sleep(time.Microsecond)
	o := op.Op{Started: e.Session.Clock.Now()}
	rp, err := e.NewReplacement([]*Pod{m}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer rp.Close(errors.New("the test is over"))
	delete(rp.removal.pods, m.Name()) // there is no API server that could delete it
	see(watch.Deleted, o.Started+10, claim("old"))
	see(watch.Deleted, o.Started+20, pv("old"))
	if err := rp.removal.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	see(watch.Added, o.Started+30, pv("new"))
	see(watch.Added, o.Started+40, claim("new"))
	tr := op.NewTrace(e.Session.Clock)
	if err := rp.provision.waitUsable(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	RecordReplacements(tr, "w-0", nil, rp)
	tr.Fill(&o)
	enginetest.CheckMilestones(t, o)
	for name, at := range map[string]op.Time{ClaimGone: 10, VolumeGone: 20, op.Provisioned: 30, op.Bound: 40} {
		if got := o.Milestone(name); got != o.Started+at {
			t.Errorf("%s at %d, want %d after the start", name, got-o.Started, at)
		}
	}
}

// TestContainersInOrder: containers with phases come in the order of their phases.
func TestContainersInOrder(t *testing.T) {
	phases := []engine.Phase{{Container: "main"}, {Container: "beside"}, {Container: "main-phase-1", Number: 1}}
	m := Pod{Phases: phases}
	inc := &Incarnation{Sessions: map[string]*agent.Session{"server": nil, "main-phase-1": nil, "beside": nil,
		"main": nil}}
	if diff := cmp.Diff([]string{"server", "main", "beside", "main-phase-1"}, m.containersInOrder(inc)); diff != "" {
		t.Error(diff)
	}
}
