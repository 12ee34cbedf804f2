package kubernetes

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

func waitingPod(reason, message string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "nowhere/img:1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	return p
}

func TestHopeless(t *testing.T) {
	failed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	failed.Status.Phase = corev1.PodFailed
	failed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}
	initFailed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	initFailed.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "i", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "no luck"}}}}
	tests := []struct {
		name string
		pod  *corev1.Pod
		code string
	}{
		{"starting", waitingPod("ContainerCreating", ""), ""},
		{"first pull failed, it tries again", waitingPod("ErrImagePull", "not found"), ""},
		{"pull given up", waitingPod("ImagePullBackOff", "not found"), "ImagePull"},
		{"secret missing", waitingPod("CreateContainerConfigError", `secret "s" not found`), "CreateContainerConfigError"},
		{"out of memory", failed, "PodFailed"},
		{"init container", initFailed, "InitFailed"},
	}
	for _, tt := range tests {
		err := hopeless(tt.pod)
		switch {
		case tt.code == "" && err != nil:
			t.Errorf("%s: %v, want none", tt.name, err)
		case tt.code != "" && (err == nil || err.Code != tt.code):
			t.Errorf("%s: %v, want code %s", tt.name, err, tt.code)
		}
	}
}

func TestReached(t *testing.T) {
	p := &corev1.Pod{}
	p.Spec.Containers, p.Spec.InitContainers = []corev1.Container{{Name: "a"}, {Name: "b"}}, []corev1.Container{{Name: "i"}}
	if got := reached(p); len(got) != 0 {
		t.Errorf("a new pod has reached %v", got)
	}
	p.Spec.NodeName = "n"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, {Name: "b"}}
	if diff := cmp.Diff([]string{op.Scheduled, op.Initialized}, reached(p)); diff != "" {
		t.Errorf("one of two containers runs:\n%s", diff)
	}
	p.Status.ContainerStatuses[1].State.Terminated = &corev1.ContainerStateTerminated{}
	if diff := cmp.Diff([]string{op.Scheduled, op.Initialized, op.Running}, reached(p)); diff != "" {
		t.Errorf("both have started:\n%s", diff)
	}
}

func TestRename(t *testing.T) {
	refs := references{claims: map[string]string{"w-0-data": "X-data"}, configs: map[string]string{"w-0-cfg": "X-cfg"},
		secrets: map[string]string{"w-0-key": "X-key"}, services: map[string]string{"w-0-db": "X-db"}}
	spec := corev1.PodSpec{
		Subdomain: "w-0-db",
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "w-0-data"}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "somebody-elses"}}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "w-0-key"}}},
		},
		Containers: []corev1.Container{{
			Env:     []corev1.EnvVar{{Name: "SERVICE_DB", Value: "w-0-db"}, {Name: "OTHER", Value: "w-0-db"}},
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "w-0-cfg"}}}},
		}},
	}
	refs.rename(&spec)
	got := []string{spec.Subdomain, spec.Volumes[0].PersistentVolumeClaim.ClaimName, spec.Volumes[1].ConfigMap.Name,
		spec.Volumes[2].Secret.SecretName, spec.Containers[0].Env[0].Value, spec.Containers[0].Env[1].Value, spec.Containers[0].EnvFrom[0].ConfigMapRef.Name}
	if diff := cmp.Diff([]string{"X-db", "X-data", "somebody-elses", "X-key", "X-db", "w-0-db", "X-cfg"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDeliverAndWrap(t *testing.T) {
	for _, d := range []Delivery{DeliverInit, DeliverImage, DeliverBaked} {
		spec := corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "own"}},
			Containers:     []corev1.Container{{Name: "main", Command: []string{"fio"}, Args: []string{"job"}}, {Name: "plain"}},
		}
		d.wrap(&spec.Containers[0], []string{"CNSBENCH_AGENT_RUNNER=tls:h:1"}, "secret")
		d.deliver(&spec, "img", []string{"main"})
		want := []string{d.path(), "wrap", "--log-dir", "none", "--", "fio", "job"}
		if diff := cmp.Diff(want, spec.Containers[0].Command); diff != "" {
			t.Errorf("%s: %s", d, diff)
		}
		if got := len(spec.InitContainers); (got == 2) != (d == DeliverInit) {
			t.Errorf("%s: %d init containers", d, got)
		}
		if got := len(spec.Volumes); (got == 1) != (d != DeliverBaked) {
			t.Errorf("%s: %d volumes", d, got)
		}
		if len(spec.Containers[1].VolumeMounts) > 0 || len(spec.Containers[1].Command) > 0 {
			t.Errorf("%s: the container that is not wrapped was changed: %+v", d, spec.Containers[1])
		}
		env := spec.Containers[0].Env
		if env[0].Value != "tls:h:1" || env[1].ValueFrom.SecretKeyRef.Name != "secret" || env[1].ValueFrom.SecretKeyRef.Key != "main" {
			t.Errorf("%s: environment %+v", d, env)
		}
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

// TestFeed: what was seen before comes first, events of others do not come, and
// what is gone is forgotten when nobody follows it.
func TestFeed(t *testing.T) {
	tr := newTracker("ns")
	see := func(kind watch.Type, o api.Object, at op.Time) { tr.see(watch.Event{Type: kind, Object: o, At: at}) }
	see(watch.Added, pod("a"), 1)
	f := tr.follow(pods.Key("a"))
	see(watch.Modified, pod("b"), 2)
	see(watch.Modified, pod("a"), 3)
	see(watch.Deleted, pod("a"), 4)
	var got []op.Time
	for range 3 {
		v, err := f.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v.(watch.Event).At)
	}
	if diff := cmp.Diff([]op.Time{1, 3, 4}, got); diff != "" {
		t.Error(diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if v, err := f.next(ctx); err == nil {
		t.Errorf("one more: %v", v)
	}
	f.close()
	if _, kept := tr.objects[pods.Key("a")]; kept {
		t.Error("a deleted object that nobody follows is kept")
	}
}

// TestStampsFill: one object goes by the plain name, several by theirs and by
// the plain name when the last is there; an agent's word replaces the watch's.
func TestStampsFill(t *testing.T) {
	s := stamps{}
	s.add(op.Bound, "a", watch.Event{At: 10, Err: 2})
	s.add(op.Bound, "a", watch.Event{At: 90})
	s.add(op.Bound, "b", watch.Event{At: 30, Interval: true, Err: 5})
	s.add(op.Running, "p", watch.Event{At: 50})
	s.set(op.Running, "p", op.Milestone{At: 45, Err: 1, Source: "agent"})
	s.add(op.Attached, "a", watch.Event{At: 20})
	tr := op.NewTrace(op.NewClock())
	s.fill(tr, map[string][]string{op.Bound: {"a", "b"}, op.Running: {"p"}, op.Attached: {"a", "b"}})
	var o op.Op
	tr.Fill(&o)
	want := []op.Milestone{
		{Name: "bound/a", At: 10, Err: 2, Source: "watch"}, {Name: "attached/a", At: 20, Source: "watch"},
		{Name: "bound/b", At: 30, Err: 5, Source: "list"}, {Name: "bound", At: 30, Err: 5, Source: "list"},
		{Name: "running", At: 45, Err: 1, Source: "agent"},
	}
	byName := func(list []op.Milestone) map[string]op.Milestone {
		m := map[string]op.Milestone{}
		for _, x := range list {
			m[x.Name] = x
		}
		return m
	}
	if diff := cmp.Diff(byName(want), byName(o.Milestones)); diff != "" {
		t.Error(diff)
	}
}

// TestFailedAttemptsCount: each warning of a sidecar about an attempt counts.
func TestFailedAttemptsCount(t *testing.T) {
	w := warnings{}
	w.see(&corev1.Event{Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: "deadline", Count: 3})
	w.see(&corev1.Event{Type: corev1.EventTypeWarning, Reason: "FailedScheduling", Message: "unbound", Count: 2})
	w.see(&corev1.Event{Type: corev1.EventTypeNormal, Reason: "Provisioning", Count: 4})
	if got := w.attempts(); got != 3 {
		t.Errorf("%d attempts, want 3", got)
	}
	if diff := cmp.Diff("FailedScheduling: unbound (2 times); ProvisioningFailed: deadline (3 times)", w.String()); diff != "" {
		t.Error(diff)
	}
}

func TestLimitingFlags(t *testing.T) {
	got := limitingFlags([]string{"/csi-provisioner", "--kube-api-qps=5", "--kube-api-burst", "10", "-timeout=15s", "--leader-election", "--csi-address=/s"})
	if diff := cmp.Diff(map[string]string{"kube-api-qps": "5", "kube-api-burst": "10", "timeout": "15s"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestPrepareNamesAll: everything that a request makes is owed before.
func TestPrepareNamesAll(t *testing.T) {
	l := &memory{}
	e := New(Options{Namespace: "ns"})
	e.session = engine.Session{RunID: "r1", Ledger: l}
	e.Options.Config = testConfig()
	w := engine.Workload{Claims: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "w-0-data"}}},
		ConfigMaps: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "w-0-cfg"}}},
		Pods:       []engine.Pod{{Pod: *pod("w-0-main")}}}
	if err := e.Prepare(engine.Request{Name: "w-0", Workload: &w}); err != nil {
		t.Fatal(err)
	}
	if err := e.Prepare(engine.Request{Name: "v-0", Volume: &engine.Volume{Attach: true}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"configmaps cnsb-r1-w-0-cfg", "persistentvolumeclaims cnsb-r1-w-0-data", "pods cnsb-r1-w-0-main", "secrets cnsb-r1-w-0-main",
		"persistentvolumeclaims cnsb-r1-v-0", "pods cnsb-r1-v-0-holder", "secrets cnsb-r1-v-0-holder"}
	if diff := cmp.Diff(want, l.names); diff != "" {
		t.Error(diff)
	}
}

// TestSettledIsNoFailure: a pod that is deleted after it was ready does not undo
// the op, and a proxy before controllers alone gives nothing to wait for.
func TestSettledIsNoFailure(t *testing.T) {
	e := New(Options{Namespace: "ns"})
	e.session = engine.Session{RunID: "r", Clock: op.NewClock()}
	e.tracker = newTracker("ns")
	b := e.bring()
	b.pod("p", 1, false)
	b.feed.put(arrived{pod: "cnsb-r-p", ready: op.Milestone{At: 5, Source: "agent"}, began: op.Milestone{At: 4, Source: "agent"}})
	e.tracker.see(watch.Event{Type: watch.Deleted, Object: pod("cnsb-r-p"), At: 9})
	tr := op.NewTrace(e.session.Clock)
	if err := b.await(t.Context(), tr); err != nil {
		t.Errorf("a ready pod that went later: %v", err)
	}
	var o op.Op
	tr.Fill(&o)
	if o.Ended != 5 {
		t.Errorf("the op ended at %d, want at its readiness", o.Ended)
	}
	if e.tracker.seesNodes() {
		t.Error("nothing was seen of nodes")
	}
	e.tracker.called(csiproxy.Call{RPC: "NodePublishVolume", Subject: csiproxy.Subject{Volume: "v"}, End: 3})
	if !e.tracker.seesNodes() {
		t.Error("a call of a node service was seen")
	}
}
