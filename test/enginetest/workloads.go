package enginetest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// script returns a container that runs a shell script with its volume at /data.
func script(text string) corev1.Container {
	return corev1.Container{
		Name: "main", Image: ToolsImage, Command: []string{"/bin/sh", "-c", text},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "output", MountPath: "/output"}},
	}
}

// workload returns a request for a pod with the container c, modified by change.
func (s *session) workload(name string, c corev1.Container, change ...func(*engine.Workload)) engine.Request {
	claim := s.claim(name + "-data")
	w := engine.Workload{
		Claims: []corev1.PersistentVolumeClaim{claim},
		Pods: []engine.Pod{{
			Outputs: []string{"/output/*"},
			Pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{c},
				Volumes: []corev1.Volume{
					{Name: "data", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}},
					{Name: "output", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				}}}}},
	}
	for _, f := range change {
		f(&w)
	}
	return engine.Request{Name: name, Action: "w", Workload: &w}
}

func initContainer(text string) func(*engine.Workload) {
	return func(w *engine.Workload) {
		c := script(text)
		c.Name = "init"
		w.Pods[0].Spec.InitContainers = []corev1.Container{c}
	}
}

func waits(group string) func(*engine.Workload) {
	return func(w *engine.Workload) {
		w.SyncGroup = group
		w.Pods[0].Sync = []string{"main"}
	}
}

// testWorkload shows that init containers run first, that the volume, the environment and the configuration
// are in place, and that outputs are complete.
func testWorkload(t *testing.T, s *session) {
	c := script(`set -e; test "$(cat /data/made)" = by-init; test "$WHO" = me
cat /etc/cfg/key > /output/out.txt; echo done >> /output/out.txt`)
	c.Env = []corev1.EnvVar{{Name: "WHO", Value: "me"}}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cfg", MountPath: "/etc/cfg"})
	o, made, err := s.do(t.Context(), s.workload("w-0", c, initContainer("echo by-init > /data/made"),
		func(w *engine.Workload) {
			w.ConfigMaps = []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "w-0-cfg"},
				Data: map[string]string{"key": "value\n"}}}
			w.Pods[0].Spec.Volumes = append(w.Pods[0].Spec.Volumes,
				corev1.Volume{Name: "cfg", VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "w-0-cfg"}}}})
		}))
	if err != nil {
		t.Fatal(err)
	}
	s.inOrder(o, op.Provisioned, op.Published, op.Initialized, op.Running)
	kinds := map[engine.ObjectKind]string{}
	for _, m := range made {
		kinds[m.Kind] = m.Owner
	}
	if owner, ok := kinds[engine.VolumeObject]; !ok || owner != "w-0" {
		t.Errorf("made %+v, want a volume owned by w-0", made)
	}
	if end := s.sink.waitEnd("w-0"); !end.OK {
		t.Errorf("ended %+v", end)
	}
	if got := string(s.sink.output["w-0/main/output/out.txt"]); got != "value\ndone\n" {
		t.Errorf("output %q of %v", got, keys(s.sink.output))
	}
	s.must(engine.Request{Kind: op.Delete, Target: engine.Object{Kind: engine.WorkloadObject, Name: "w-0"}})
}

// testOutputLimit shows that a workload that writes more than the limit continues normally, and that
// discarded output is counted exactly. stdout has its own share.
func testOutputLimit(t *testing.T, s *session) {
	s.must(s.workload("w-0", script(`head -c 6000000 /dev/zero; head -c 5000000 /dev/zero > /output/big`)))
	if end := s.sink.waitEnd("w-0"); !end.OK {
		t.Errorf("ended %+v", end)
	}
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	for name, want := range map[string]struct{ kept, written int }{
		"stdout":     {maxOutput / 4, 6000000},
		"output/big": {maxOutput * 3 / 4, 5000000},
	} {
		kept, cut := len(s.sink.output["w-0/main/"+name]), int(s.sink.cut["w-0/main/"+name])
		if kept != want.kept || cut != want.written-kept {
			t.Errorf("%s: %d bytes kept, %d discarded, want %d of %d kept", name, kept, cut, want.kept, want.written)
		}
	}
}

func keys(m map[string][]byte) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

// testExits shows that exit codes and signals are distinguished, and that a failing init container fails the
// op with its message.
func testExits(t *testing.T, s *session) {
	s.must(s.workload("code-0", script("echo the-last-words >&2; exit 7")))
	end := s.sink.waitEnd("code-0")
	if end.OK || len(end.Containers) == 0 || end.Containers[len(end.Containers)-1].ExitCode != 7 {
		t.Errorf("exit 7: %+v", end)
	} else if m := end.Containers[len(end.Containers)-1].Message; !strings.Contains(m, "the-last-words") {
		t.Errorf("message %q, want the last lines of the log", m)
	}
	s.must(s.workload("signal-0", script("kill -KILL $$$$"))) // $$ is Kubernetes' way to write $
	end = s.sink.waitEnd("signal-0")
	if end.OK || len(end.Containers) == 0 || end.Containers[len(end.Containers)-1].Signal != "SIGKILL" {
		t.Errorf("killed by SIGKILL, but ended %+v", end)
	}
	_, _, err := s.do(t.Context(), s.workload("init-0", script("true"), initContainer("echo no-such-luck >&2; exit 3")))
	if err == nil || !strings.Contains(err.Error(), "no-such-luck") {
		t.Errorf("failing init container: %v, want its last words", err)
	}
}

// testBarrier shows that waiting containers start together at the instant of the release.
func testBarrier(t *testing.T, s *session) {
	names := []string{"b-0", "b-1", "b-2"}
	for _, n := range names {
		s.must(s.workload(n, script("true"), waits("main")))
	}
	time.Sleep(100 * time.Millisecond)
	s.sink.mu.Lock()
	early := len(s.sink.starts)
	s.sink.mu.Unlock()
	if early > 0 {
		t.Errorf("%d containers began before the barrier", early)
	}
	at := s.clock.Now() + op.Time(200*time.Millisecond)
	if err := s.engine.Release(t.Context(), "main", names, at); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if end := s.sink.waitEnd(n); !end.OK {
			t.Errorf("%s ended %+v", n, end)
		}
	}
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	if len(s.sink.starts) != len(names) {
		t.Fatalf("%d starts, want %d", len(s.sink.starts), len(names))
	}
	for _, e := range s.sink.starts {
		skew := time.Duration(e.At - at)
		if e.Intended != at || skew < -time.Duration(e.Err) || skew > time.Second {
			t.Errorf("%s began %v after the barrier ± %d (intended %d, want %d)", e.Instance, skew, e.Err, e.Intended,
				at)
		}
	}
}

// testStop shows that a running workload is ended, also one that ignores SIGTERM.
func testStop(t *testing.T, s *session) {
	s.must(s.workload("kind-0", script(`trap 'echo bye > /output/bye; exit 0' TERM; while :; do sleep 0.05; done`)))
	s.must(s.workload("rude-0", script(`trap '' TERM; while :; do sleep 0.05; done`)))
	time.Sleep(200 * time.Millisecond)
	begin := time.Now()
	if err := s.engine.Stop(t.Context(), []string{"kind-0", "rude-0"}, time.Second); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("Stop took %v", d)
	}
	s.sink.waitEnd("kind-0")
	s.sink.waitEnd("rude-0")
	if got := string(s.sink.output["kind-0/main/output/bye"]); got != "bye\n" {
		t.Errorf("output %q: Stop returned before the outputs were complete, or SIGTERM did not arrive", got)
	}
}
