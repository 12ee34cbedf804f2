package pod_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

var agentPath string

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		os.Exit(helper())
	}
	os.Exit(agenttest.Main(m, &agentPath))
}

// fixture is a host with its clock, sink and ledger.
type fixture struct {
	*pod.Host
	t      testing.TB
	dir    string
	clock  op.Clock
	sink   *agenttest.Sink
	ledger *agenttest.Ledger
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{t: t, dir: dir, clock: op.NewClock(), sink: agenttest.NewSink(), ledger: &agenttest.Ledger{}}
	server, err := agent.Listen(t.Context(), filepath.Join(dir, "s"), f.clock, f.sink)
	if err != nil {
		t.Fatal(err)
	}
	f.Host, err = pod.NewHost(t.Context(), pod.HostOptions{
		RunID:  "r",
		Server: server, Clock: f.clock, Ledger: f.ledger, Sink: f.sink, Agent: agentPath,
		Hide: []string{filepath.Join(dir, "volumes")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("close host: %v", err)
		}
		if open := f.ledger.Open(); len(open) > 0 {
			t.Errorf("left in the ledger: %v", open)
		}
		if t.Failed() {
			t.Logf("log:\n%s", f.sink.Logs())
		}
	})
	return f
}

// spec returns a pod with one container that runs a shell script.
func (f *fixture) spec(name, script string, change ...func(*pod.Spec)) pod.Spec {
	s := pod.Spec{Instance: name, Dir: filepath.Join(f.dir, name), Claims: map[string]pod.Claim{}}
	s.Pod.Name = name
	s.Pod.Spec.Containers = []corev1.Container{{Name: "main", Command: []string{"/bin/sh", "-c", script}}}
	for _, c := range change {
		c(&s)
	}
	return s
}

// volume adds a claim for an existing directory, mounted at path.
func volume(name, dir, path string, change ...func(*corev1.VolumeMount)) func(*pod.Spec) {
	return func(s *pod.Spec) {
		s.Claims[name] = pod.Claim{Path: dir}
		s.Pod.Spec.Volumes = append(s.Pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		m := corev1.VolumeMount{Name: name, MountPath: path}
		for _, c := range change {
			c(&m)
		}
		s.Pod.Spec.Containers[0].VolumeMounts = append(s.Pod.Spec.Containers[0].VolumeMounts, m)
	}
}

func (f *fixture) start(s pod.Spec) (*pod.Pod, *op.Trace) {
	f.t.Helper()
	tr := op.NewTrace(f.clock)
	p, err := f.Start(f.t.Context(), s, tr)
	if err != nil {
		f.t.Fatal(err)
	}
	return p, tr
}

// run runs a pod until it ends.
func (f *fixture) run(s pod.Spec) op.InstanceEnd {
	f.t.Helper()
	p, _ := f.start(s)
	return f.wait(p)
}

func (f *fixture) wait(p *pod.Pod) op.InstanceEnd {
	f.t.Helper()
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		f.t.Fatalf("the pod did not end; log:\n%s", f.sink.Logs())
	}
	return p.End()
}

func (f *fixture) stdout(name string) string {
	b, _ := f.sink.OutputOf(name, "main", "stdout")
	return string(b)
}

func mkdir(t testing.TB, elem ...string) string {
	t.Helper()
	d := filepath.Join(elem...)
	if err := os.MkdirAll(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEnds(t *testing.T) {
	tests := []struct {
		name, script string
		want         op.ContainerEnd
		message      string
		ok           bool
	}{
		{name: "success", script: "echo fine", want: op.ContainerEnd{Name: "main"}, ok: true},
		{name: "exit code", script: "echo lost >&2; exit 3", want: op.ContainerEnd{Name: "main", ExitCode: 3},
			message: "lost"},
		{name: "signal", script: "kill -SEGV $$$$",
			want: op.ContainerEnd{Name: "main", ExitCode: 139, Signal: "SIGSEGV"}, message: "SIGSEGV"},
		{name: "foreign kill", script: "kill -KILL $$$$",
			want: op.ContainerEnd{Name: "main", ExitCode: 137, Signal: "SIGKILL"}, message: "not sent by cnsbench"},
		{name: "shell misses a program", script: "fio-that-is-not-there",
			want: op.ContainerEnd{Name: "main", ExitCode: 127}, message: "install fio-that-is-not-there"},
		{name: "orphans are reaped", script: "(sleep 0.05; echo late) & (sleep 100 &) ; sleep 0.3; exit 0",
			want: op.ContainerEnd{Name: "main"}, ok: true},
	}
	f := newFixture(t)
	for i, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			name := fmt.Sprintf("pod-%d", i)
			end := f.run(f.spec(name, tc.script))
			if end.OK != tc.ok || len(end.Containers) != 1 || end.Instance != name {
				t.Fatalf("end %+v, want OK %v", end, tc.ok)
			}
			got := end.Containers[0]
			if !strings.Contains(got.Message, tc.message) {
				t.Errorf("message %q lacks %q", got.Message, tc.message)
			}
			got.Message = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMissingProgram(t *testing.T) {
	f := newFixture(t)
	s := f.spec("p", "")
	s.Pod.Spec.Containers[0].Command = []string{"stress-ng"}
	if _, err := os.Stat("/usr/bin/stress-ng"); err == nil {
		t.Skip("stress-ng is installed here")
	}
	want := []pod.MissingProgram{{Container: "main", Program: "stress-ng", Package: "stress-ng"}}
	if diff := cmp.Diff(want, pod.Missing(&s.Pod.Pod)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p, _ := f.start(s)
	err := p.Ready(t.Context())
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != "ProgramMissing" {
		t.Fatalf("error %v", err)
	}
	for _, part := range []string{"p/main", "stress-ng", "apt-get install stress-ng"} {
		if !strings.Contains(e.Message, part) {
			t.Errorf("%q lacks %q", e.Message, part)
		}
	}
	if end := f.wait(p); end.OK {
		t.Errorf("end %+v", end)
	}
}

func TestBarrier(t *testing.T) {
	f := newFixture(t)
	var pods []*pod.Pod
	for i := range 3 {
		s := f.spec(fmt.Sprintf("fio-%d", i), "echo started", func(s *pod.Spec) {
			s.Barrier = "main"
			s.Pod.Sync = []string{"main"}
			// An error in the mapping of clocks would shift the start by this offset.
			s.ClockOffset = time.Duration(i-1) * 3 * time.Second
		})
		p, tr := f.start(s)
		if err := p.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		var o op.Op
		tr.Fill(&o)
		if !o.Milestone(op.Running).Known() || o.Milestone(op.Running) > f.clock.Now() {
			t.Errorf("milestones %v", o.Milestones)
		}
		pods = append(pods, p)
	}
	time.Sleep(50 * time.Millisecond)
	if started := f.sink.Starts(); len(started) > 0 {
		t.Fatalf("started before the barrier opened: %v", started)
	}
	at := f.clock.Now() + op.Time(300*time.Millisecond)
	for _, p := range pods {
		if err := p.Release(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	if now := f.clock.Now(); now >= at {
		t.Fatalf("the release took until %d, its instant was %d", now, at)
	}
	for _, p := range pods {
		if end := f.wait(p); !end.OK {
			t.Errorf("end %+v", end)
		}
	}
	starts := f.sink.Starts()
	if len(starts) != 3 {
		t.Fatalf("%d starts, want 3", len(starts))
	}
	best, surest := time.Hour, time.Hour
	for _, s := range starts {
		skew := time.Duration(s.At - s.Intended)
		best, surest = min(best, skew), min(surest, time.Duration(s.Err))
		t.Logf("%s: skew %v ± %v", s.Instance, skew, time.Duration(s.Err))
		if s.Intended != at || skew < -time.Duration(s.Err) || skew > time.Second {
			t.Errorf("%s: intended %d (asked for %d), skew %v ± %v", s.Instance, s.Intended, at, skew,
				time.Duration(s.Err))
		}
		if s.Err <= 0 {
			t.Errorf("%s: ± %v", s.Instance, time.Duration(s.Err))
		}
	}
	// On a loaded machine one of three agents may start late, or exchange clocks slowly, but not all.
	if best > 50*time.Millisecond || surest > 20*time.Millisecond {
		t.Errorf("the least skew was %v, the least error %v", best, surest)
	}
}

func TestStop(t *testing.T) {
	tests := []struct {
		name   string
		script string
		grace  time.Duration
		sync   bool
		want   op.ContainerEnd
		within time.Duration
	}{
		{"handles SIGTERM", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done", time.Minute, false,
			op.ContainerEnd{Name: "main", ExitCode: 5}, 30 * time.Second},
		{"ends by SIGTERM", "echo up; exec sleep 100", time.Minute, false,
			op.ContainerEnd{Name: "main", ExitCode: 143, Signal: "SIGTERM"}, 30 * time.Second},
		{"ignores SIGTERM", "trap '' TERM; echo up; while :; do sleep 0.05; done", 300 * time.Millisecond, false,
			op.ContainerEnd{Name: "main", ExitCode: 137, Signal: "SIGKILL"}, 30 * time.Second},
		{"no grace", "trap '' TERM; echo up; sleep 100", 0, false,
			op.ContainerEnd{Name: "main", ExitCode: 137, Signal: "SIGKILL"}, 30 * time.Second},
		{"at its barrier", "echo up", time.Minute, true,
			op.ContainerEnd{Name: "main", Signal: "SIGTERM"}, 30 * time.Second},
	}
	f := newFixture(t)
	for i, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			name := fmt.Sprintf("pod-%d", i)
			s := f.spec(name, tc.script)
			if tc.sync {
				s.Barrier, s.Pod.Sync = "b", []string{"main"}
			}
			p, _ := f.start(s)
			if err := p.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !tc.sync {
				agenttest.Eventually(t, "the script runs",
					func() bool { return strings.Contains(f.stdout(name), "up") })
			}
			began := time.Now()
			if err := p.Stop(t.Context(), tc.grace); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > tc.within {
				t.Errorf("stopping took %v", took)
			}
			if err := p.Stop(t.Context(), tc.grace); err != nil {
				t.Errorf("stop again: %v", err)
			}
			end := p.End()
			got := end.Containers[0]
			got.Message = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !end.OK {
				t.Errorf("stopped on request, and not OK: %+v", end)
			}
		})
	}
}

func TestInitContainersAndServers(t *testing.T) {
	f := newFixture(t)
	s := f.spec("p", "until [ -e /shared/up ]; do sleep 0.01; done; echo main >> /shared/log; exit 0",
		func(s *pod.Spec) {
			s.Pod.Sync = []string{"main"}
			s.Pod.Spec.Volumes = []corev1.Volume{{Name: "shared",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			mount := []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
			s.Pod.Spec.Containers[0].VolumeMounts = mount
			s.Pod.Spec.Containers = append(s.Pod.Spec.Containers, corev1.Container{
				Name: "server", Command: []string{"sh", "-c",
					"trap 'exit 0' TERM; touch /shared/up; while :; do sleep 0.02; done"}, VolumeMounts: mount})
			for _, name := range []string{"one", "two"} {
				s.Pod.Spec.InitContainers = append(s.Pod.Spec.InitContainers, corev1.Container{
					Name: name, Command: []string{"sh", "-c",
						"sleep 0.05; echo " + name + " >> /shared/log"}, VolumeMounts: mount})
			}
		})
	p, tr := f.start(s)
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := f.wait(p)
	var names []string
	for _, c := range end.Containers {
		names = append(names, fmt.Sprint(c.Name, c.Init, c.ExitCode))
	}
	if diff := cmp.Diff([]string{"onetrue0", "twotrue0", "mainfalse0", "serverfalse0"}, names,
		cmp.Transformer("", func(s string) string { return strings.ReplaceAll(s, " ", "") })); diff != "" || !end.OK {
		t.Errorf("OK %v, -want +got:\n%s", end.OK, diff)
	}
	log, err := os.ReadFile(filepath.Join(f.dir, "p/empty/shared/log"))
	if err != nil || string(log) != "one\ntwo\nmain\n" {
		t.Errorf("log %q, %v", log, err)
	}
	var o op.Op
	tr.Fill(&o)
	if i, r := o.Milestone(op.Initialized), o.Milestone(op.Running); !i.Known() || !r.Known() || i > r {
		t.Errorf("milestones %v", o.Milestones)
	}
}

func TestInitFails(t *testing.T) {
	f := newFixture(t)
	s := f.spec("p", "echo never", func(s *pod.Spec) {
		s.Pod.Spec.InitContainers = []corev1.Container{{Name: "prep",
			Command: []string{"sh", "-c", "echo no space left; exit 9"}}}
	})
	p, _ := f.start(s)
	err := p.Ready(t.Context())
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != "InitFailed" || !strings.Contains(e.Message, "no space left") ||
		!strings.Contains(e.Message, "prep") {
		t.Errorf("error %v", err)
	}
	end := f.wait(p)
	want := []op.ContainerEnd{{Name: "prep", Init: true, ExitCode: 9, Message: "no space left"}}
	if diff := cmp.Diff(want, end.Containers); diff != "" || end.OK {
		t.Errorf("OK %v, -want +got:\n%s", end.OK, diff)
	}
}

func TestSurroundings(t *testing.T) {
	f := newFixture(t)
	data, sub := mkdir(t, f.dir, "data"), mkdir(t, f.dir, "sub")
	before := listing(t, "/", "/var/lib", "/mnt")
	script := `set -e
echo pid=$$$$ others=$(ls /proc | grep -c '^[0-9]')
echo hello > /no-such-dir/deep/er/file
echo two > /var/lib/cnsbench-test/x/file
echo ro-fails: $(touch /var/lib/cnsbench-ro/x 2>&1 | grep -o 'Read-only')
echo host-fails: $(touch /usr/cnsbench-x 2>&1 | grep -o 'Read-only')
ls /tmp | wc -l; touch /tmp/mine /var/tmp/mine
mkdir -p /no-such-dir/deep/er/below
echo nested > /nested/a/b/file
pwd
cat /config/greeting /config/sub/other /etc/one-key
stat -c %a /config/greeting
echo "$GREETING $POD/$NAMESPACE $LABEL [$UNKNOWN] $ESCAPED"
echo args: "$0" "$1"
env | grep -c CNSBENCH || true
stat -f -c %T /memory
df /memory >/dev/null
`
	s := f.spec("p", script,
		volume("data", data, "/no-such-dir/deep/er"),
		volume("sub", sub, "/var/lib/cnsbench-test/x", func(m *corev1.VolumeMount) { m.SubPath = "in/side" }),
		func(s *pod.Spec) {
			c := &s.Pod.Spec.Containers[0]
			c.WorkingDir = "/work-dir/x"
			c.Args = []string{"zero", "$(GREETING)-$$(x)-$(NOPE)"}
			s.Pod.Labels = map[string]string{"app": "label"}
			s.ConfigMaps = map[string]corev1.ConfigMap{"cm": {Data: map[string]string{"greeting": "hallo\n",
				"other": "second\n"}}}
			s.Pod.Spec.Volumes = append(s.Pod.Spec.Volumes,
				corev1.Volume{Name: "config",
					VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "cm"},
						Items: []corev1.KeyToPath{{Key: "greeting", Path: "greeting",
							Mode: ptr(int32(0o555))}, {Key: "other", Path: "sub/other"}}}}},
				corev1.Volume{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
				corev1.Volume{Name: "outer",
					VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				corev1.Volume{Name: "inner",
					VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			c.VolumeMounts = append(c.VolumeMounts,
				corev1.VolumeMount{Name: "inner", MountPath: "/nested/a/b"},
				corev1.VolumeMount{Name: "outer", MountPath: "/nested"},
				corev1.VolumeMount{Name: "data", MountPath: "/var/lib/cnsbench-ro", ReadOnly: true},
				corev1.VolumeMount{Name: "config", MountPath: "/config"},
				corev1.VolumeMount{Name: "config", MountPath: "/etc/one-key", SubPath: "greeting"},
				corev1.VolumeMount{Name: "memory", MountPath: "/memory"})
			c.Env = []corev1.EnvVar{
				{Name: "GREETING", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Key: "greeting"}}},
				{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
				{Name: "LABEL", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}}},
				{Name: "ESCAPED", Value: "$$(POD)=$(POD)"},
			}
		})
	end := f.run(s)
	if !end.OK {
		t.Fatalf("end %+v", end)
	}
	out := f.stdout("p")
	want := "ro-fails: Read-only\nhost-fails: Read-only\n0\n/work-dir/x\nhallo\nsecond\nhallo\n555\nhallo\n p/default label [] $(POD)=p\nargs: zero hallo\n-$(x)-$(NOPE)\n0\ntmpfs\n"
	first, rest, _ := strings.Cut(out, "\n")
	if diff := cmp.Diff(want, rest); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// The agent has PID 1 and the shell follows; subshells use a few more.
	var pid, others int
	if _, err := fmt.Sscanf(first, "pid=%d others=%d", &pid, &others); err != nil || pid > 50 || others > 5 {
		t.Errorf("PID namespace: %s", first)
	}
	for path, content := range map[string]string{"data/file": "hello\n", "sub/in/side/file": "two\n",
		"p/empty/inner/file": "nested\n"} {
		if b, err := os.ReadFile(filepath.Join(f.dir, path)); err != nil || string(b) != content {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
	if diff := cmp.Diff(before, listing(t, "/", "/var/lib", "/mnt")); diff != "" {
		t.Errorf("the host was changed:\n%s", diff)
	}
	if left, _ := filepath.Glob("/dev/shm/cnsbench*"); len(left) > 0 {
		t.Errorf("left in memory: %v", left)
	}
}

func listing(t *testing.T, dirs ...string) []string {
	var all []string
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, filepath.Join(d, e.Name()))
		}
	}
	return all
}

func ptr[T any](v T) *T { return &v }

func TestRefused(t *testing.T) {
	f := newFixture(t)
	s := f.spec("p", "true", func(s *pod.Spec) {
		s.Pod.Spec.Containers[0].Command = nil
		s.Pod.Sync = []string{"absent"}
		s.Pod.Spec.Volumes = []corev1.Volume{
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
			{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/does/not/exist"}}},
			{Name: "claim", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "nobody"}}},
			{Name: "up", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
		s.Pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "undefined", MountPath: "/x"},
			{Name: "up", MountPath: "/u", SubPath: "../../escape"}}
		s.Pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "S",
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}}}
	})
	_, err := f.Start(t.Context(), s, op.NewTrace(f.clock))
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != "InvalidPod" {
		t.Fatalf("error %v", err)
	}
	for _, part := range []string{"has no command", `"absent"`, "volume secret", "/does/not/exist",
		`claim "nobody" not found`, `no volume "undefined"`, "escape", "env S"} {
		if !strings.Contains(e.Message, part) {
			t.Errorf("%q lacks %q", e.Message, part)
		}
	}
}

func TestOutputs(t *testing.T) {
	f := newFixture(t)
	data := mkdir(t, f.dir, "data")
	if err := os.WriteFile(filepath.Join(data, "old.log"), []byte("from before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// The big file is written without pauses, and the write ends with the command.
	script := `set -e; cd /data
for i in $(seq 20); do echo line $i >> grow.log; sleep 0.02; done
mv grow.log moved.log; echo after >> moved.log
echo new generation > grow.log; sleep 0.5
: > grow.log; sleep 0.3; echo short > grow.log; sleep 0.3
head -c 52428800 /dev/urandom > big.bin
echo late > late.log
sha256sum big.bin | cut -d' ' -f1`
	s := f.spec("p", script, volume("data", data, "/data"),
		func(s *pod.Spec) { s.Pod.Outputs = []string{"/data/*.log", "/data/big.bin"} })
	if end := f.run(s); !end.OK {
		t.Fatalf("end %+v", end)
	}
	var lines strings.Builder
	for i := range 20 {
		fmt.Fprintf(&lines, "line %d\n", i+1)
	}
	want := map[string]string{
		"/data/grow.log":   lines.String() + "after\n",
		"/data/grow.log~1": "new generation\n",
		"/data/grow.log~2": "short\n",
		"/data/late.log":   "late\n",
	}
	got := map[string]string{}
	for name := range want {
		b, _ := f.sink.OutputOf("p", "main", name)
		got[name] = string(b)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, ok := f.sink.OutputOf("p", "main", "/data/old.log"); ok {
		t.Error("a file from before was delivered")
	}
	sent, _ := f.sink.OutputOf("p", "main", "/data/big.bin")
	there, err := os.ReadFile(filepath.Join(data, "big.bin"))
	if err != nil || len(there) != 50<<20 || !bytes.Equal(sent, there) {
		t.Errorf("big file: %d of %d bytes arrived, equal: %v, %v", len(sent), len(there), bytes.Equal(sent, there),
			err)
	}
	if kept, err := os.ReadFile(filepath.Join(f.dir, "p/logs/main.stdout")); err != nil ||
		string(kept) != f.stdout("p") || len(kept) != 65 {
		t.Errorf("stdout kept %q, delivered %q, %v", kept, f.stdout("p"), err)
	}
}

func TestLogs(t *testing.T) {
	f := newFixture(t)
	f.run(f.spec("p", "echo one; echo two >&2; printf 'no end'; echo x > /dev/stdout"))
	for _, line := range []string{"p/main: one", "p/main: two", "p/main: no endx"} {
		if !strings.Contains("\n"+f.sink.Logs()+"\n", "\n"+line+"\n") {
			t.Errorf("no %q in\n%s", line, f.sink.Logs())
		}
	}
}

// TestSlowSink checks that a slow runner does not delay the workload, and still receives all output.
func TestSlowSink(t *testing.T) {
	f := newFixture(t)
	f.sink.OutputDelay = 10 * time.Millisecond
	p, _ := f.start(f.spec("p", "head -c 10000000 /dev/zero | tr '\\0' 'x'"))
	began := time.Now()
	end := f.wait(p)
	took, ran := time.Since(began), time.Duration(end.At-f.sink.Starts()[0].At)
	if got := len(f.stdout("p")); got != 10_000_000 {
		t.Errorf("%d bytes", got)
	}
	if took < 1500*time.Millisecond || ran > took*2/3 {
		t.Errorf("the workload ran for %v, its output took %v", ran, took)
	}
}

// loopVolume returns the mount point of a file system of the given kind on a loop device, or, if kind is empty, the
// device.
func loopVolume(t *testing.T, kind string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for a loop device")
	}
	sh := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	image := filepath.Join(t.TempDir(), "image")
	sh("truncate", "-s", "320M", image)
	device := sh("losetup", "--find", "--show", image)
	t.Cleanup(func() { sh("losetup", "-d", device) })
	if kind == "" {
		return device
	}
	sh("mkfs."+kind, "-q", device)
	dir := t.TempDir()
	sh("mount", device, dir)
	t.Cleanup(func() { sh("umount", dir) })
	return dir
}

func TestBlockVolume(t *testing.T) {
	device := loopVolume(t, "")
	f := newFixture(t)
	s := f.spec("p", "echo on the device | dd of=/dev/xvdz conv=notrunc 2>/dev/null; test -b /dev/xvdz && test -c /dev/null && echo block", func(s *pod.Spec) {
		s.Claims["data"] = pod.Claim{Device: device}
		s.Pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		s.Pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "data", DevicePath: "/dev/xvdz"}}
		s.Canary = &engine.Canary{Interval: 5 * time.Millisecond, Read: true, Write: true}
	})
	if end := f.run(s); !end.OK || f.stdout("p") != "block\n" {
		t.Fatalf("end %+v, said %q", end, f.stdout("p"))
	}
	b := make([]byte, 13)
	file, err := os.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() // only read, so that the error of Close does not matter
	if _, err := file.Read(b); err != nil || string(b) != "on the device" {
		t.Errorf("%q, %v", b, err)
	}
	if !strings.Contains(f.sink.Logs(), "a raw device is only read") {
		t.Errorf("log:\n%s", f.sink.Logs())
	}
}

// TestCanary checks that the canary reports a freeze of the volume at the right time of the run's clock, even if the
// agent's clock is wrong.
func TestCanary(t *testing.T) {
	dir := loopVolume(t, "xfs")
	f := newFixture(t)
	s := f.spec("p", "echo up; exec sleep 100", volume("claim-0", dir, "/data"), func(s *pod.Spec) {
		s.Canary = &engine.Canary{Interval: 5 * time.Millisecond, Read: true, Write: true}
		s.ClockOffset = -3 * time.Second
	})
	p, _ := f.start(s)
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	canaries := func() []op.CanaryIO { return f.sink.Canaries("p", "claim-0") }
	agenttest.Eventually(t, "canary I/Os", func() bool { return len(canaries()) > 0 })
	if out, err := exec.Command("fsfreeze", "-f", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	from := f.clock.Now()
	time.Sleep(300 * time.Millisecond)
	to := f.clock.Now()
	if out, err := exec.Command("fsfreeze", "-u", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	agenttest.Eventually(t, "canary I/Os after the thaw", func() bool {
		ios := canaries()
		return ios[len(ios)-1].Intended > to
	})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("visible on the volume: %v, %v", entries, err)
	}
	if err := p.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	// Between these times the volume was frozen, even with the clock error (slack). No write that was due in between
	// can have ended in between.
	slack := op.Time(20 * time.Millisecond)
	from, to = from+slack, to-slack
	held := 0
	ios := canaries()
	for i, io := range ios {
		if i > 0 && io.Intended < ios[i-1].Intended {
			t.Fatalf("out of order: %v after %v", io, ios[i-1])
		}
		if !io.Write || io.Intended < from || io.Intended > to {
			continue
		}
		if held++; io.Ended < to {
			t.Errorf("%+v ended, frozen between %d and %d", io, from, to)
		}
	}
	if held < 20 { // the interval is 5 ms
		t.Errorf("%d of %d I/Os were writes due while frozen, between %d and %d", held, len(ios), from, to)
	}
}

func TestSamples(t *testing.T) {
	f := newFixture(t)
	dir := mkdir(t, f.dir, "data")
	// Three kinds of children: reaped by their parent, reaped by the agent (orphans), and still alive.
	script := `cd /data
dd if=/dev/zero of=a bs=1M count=8 oflag=direct 2>/dev/null
(dd if=/dev/zero of=b bs=1M count=8 oflag=direct 2>/dev/null &) 
sleep 1.2
dd if=/dev/zero of=c bs=1M count=8 oflag=direct 2>/dev/null
i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done`
	if end := f.run(f.spec("p", script, volume("data", dir, "/data"))); !end.OK {
		t.Fatalf("end %+v", end)
	}
	samples := f.sink.Samples()
	if len(samples) < 2 {
		t.Fatalf("%d samples", len(samples))
	}
	for i, s := range samples[1:] {
		p := samples[i]
		if s.At <= p.At || s.WriteBytes < p.WriteBytes || s.WriteOps < p.WriteOps || s.CPUNanos < p.CPUNanos ||
			s.ReadBytes < p.ReadBytes {
			t.Errorf("a total decreased: %+v after %+v", s, p)
		}
	}
	last := samples[len(samples)-1]
	t.Logf("last sample %+v", last)
	if want := int64(24 << 20); last.WriteBytes < want || last.WriteBytes > want+want/8 {
		t.Errorf("%d bytes written, want about %d", last.WriteBytes, want)
	}
	if last.CPUNanos < int64(20*time.Millisecond) {
		t.Errorf("%v of CPU", time.Duration(last.CPUNanos))
	}
}

func TestOOM(t *testing.T) {
	const root = "/sys/fs/cgroup/memory"
	if os.Getuid() != 0 {
		t.Skip("needs root, to make a memory cgroup")
	}
	if _, err := os.Stat(root + "/memory.limit_in_bytes"); err != nil {
		t.Skip("needs the version 1 memory cgroup at " + root)
	}
	group := fmt.Sprintf("%s/cnsbench-test-%d", root, os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("cannot make a memory cgroup: " + err.Error())
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	if err := os.WriteFile(group+"/memory.limit_in_bytes", []byte("50000000"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	p, _ := f.start(f.spec("p", "x=$(head -c 200000000 /dev/zero | tr '\\0' x)", func(s *pod.Spec) {
		s.Barrier, s.Pod.Sync = "b", []string{"main"}
	}))
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The agent is added to the cgroup before its container starts.
	pid := f.ledger.Open()[0].Data["pid"]
	if err := os.WriteFile(group+"/cgroup.procs", []byte(pid), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.Release(t.Context(), f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	got := f.wait(p).Containers[0]
	if !got.OOM || got.ExitCode != 137 || !strings.Contains(got.Message, "out-of-memory") {
		t.Errorf("end %+v", got)
	}
}

func TestKillStale(t *testing.T) {
	f := newFixture(t)
	p, _ := f.start(f.spec("p", "sleep 100 & sleep 100"))
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := f.ledger.Open()[0]
	wrong := op.LedgerEntry{Kind: e.Kind, Name: e.Name,
		Data: map[string]string{"pid": e.Data["pid"], "start": "1", "boot": e.Data["boot"]}}
	if err := pod.KillStale(wrong, false); err != nil {
		t.Errorf("another process with that pid: %v", err)
	}
	select {
	case <-p.Done():
		t.Fatal("a process that is not the entry's was killed")
	case <-time.After(50 * time.Millisecond):
	}
	if err := pod.KillStale(e, false); err != nil {
		t.Fatal(err)
	}
	end := f.wait(p)
	if end.OK || end.Containers[0].ExitCode != -1 || !strings.Contains(end.Containers[0].Message, "without a report") {
		t.Errorf("end %+v", end)
	}
	if err := pod.KillStale(e, true); err != nil {
		t.Errorf("again: %v", err)
	}
}

// TestMountsAreLetGo checks that a container's mount namespace does not contain other volumes, so that it does not keep
// them mounted.
func TestMountsAreLetGo(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount")
	}
	f := newFixture(t)
	mine, other, foreign := mkdir(t, f.dir, "volumes/mine"), mkdir(t, f.dir, "volumes/other"), mkdir(t, f.dir,
		"another-run")
	for _, d := range []string{mine, other, foreign} {
		if err := syscall.Mount("x", d, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(d, syscall.MNT_DETACH) })
	}
	p, _ := f.start(f.spec("p", "echo kept > /data/file; echo up; exec sleep 100", volume("mine", mine, "/data")))
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	agenttest.Eventually(t, "the script runs", func() bool { return f.stdout("p") == "up\n" })
	pid := f.ledger.Open()[0].Data["pid"]
	mounts, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), " "+other+" ") || strings.Contains(string(mounts), " "+foreign+" ") ||
		strings.Contains(string(mounts), " "+mine+" ") || !strings.Contains(string(mounts), " /data ") {
		t.Errorf("mounts of the container:\n%s", mounts)
	}
	if b, err := os.ReadFile(filepath.Join(mine, "file")); err != nil || string(b) != "kept\n" {
		t.Errorf("%q, %v", b, err)
	}
	if err := p.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
}

// TestCloseKills checks that closing a host ends pods that were not stopped, and leaves no ledger entries.
func TestCloseKills(t *testing.T) {
	clock, sink, ledger, dir := op.NewClock(), agenttest.NewSink(), &agenttest.Ledger{}, t.TempDir()
	server, err := agent.Listen(t.Context(), filepath.Join(dir, "s"), clock, sink)
	if err != nil {
		t.Fatal(err)
	}
	host, err := pod.NewHost(t.Context(), pod.HostOptions{Server: server, Clock: clock, Ledger: ledger, Sink: sink,
		Agent: agentPath})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Host: host, t: t, dir: dir, clock: clock, sink: sink, ledger: ledger}
	p, _ := f.start(f.spec("p", "trap '' TERM; sleep 100"))
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	if end := f.wait(p); end.OK || len(ledger.Open()) > 0 {
		t.Errorf("end %+v, ledger %v", end, ledger.Open())
	}
	if _, err := host.Start(t.Context(), f.spec("q", "true"), op.NewTrace(clock)); err == nil {
		t.Error("a pod was started on a closed host")
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFio checks a pod with fio, an important workload, from its command line to its output files.
func TestFio(t *testing.T) {
	if len(pod.Missing(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: []string{"fio"}}}}})) > 0 {
		t.Skip("fio is not installed")
	}
	f := newFixture(t)
	s := f.spec("fio-0", "", volume("data", mkdir(t, f.dir, "data"), "/data"), func(s *pod.Spec) {
		s.Pod.Spec.Containers[0].Command = []string{"fio", "--name=x", "--directory=/data", "--size=16M", "--bs=64k",
			"--rw=write", "--numjobs=2", "--end_fsync=1",
			"--output=/out/fio.json", "--output-format=json+", "--write_bw_log=/out/x", "--log_avg_msec=100"}
		s.Pod.Spec.Volumes = append(s.Pod.Spec.Volumes,
			corev1.Volume{Name: "out", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		s.Pod.Spec.Containers[0].VolumeMounts = append(s.Pod.Spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: "out", MountPath: "/out"})
		s.Pod.Outputs = []string{"/out/*"}
		s.Barrier, s.Pod.Sync = "main", []string{"main"}
	})
	p, _ := f.start(s)
	if err := p.Release(t.Context(), f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if end := f.wait(p); !end.OK {
		t.Fatalf("end %+v", end)
	}
	result, _ := f.sink.OutputOf("fio-0", "main", "/out/fio.json")
	var parsed struct {
		Jobs []struct {
			Write struct {
				Bytes int64 `json:"io_bytes"`
			}
		}
	}
	if err := json.Unmarshal(result, &parsed); err != nil || len(parsed.Jobs) != 2 ||
		parsed.Jobs[1].Write.Bytes != 16<<20 {
		t.Errorf("result %v: %+v", err, parsed)
	}
	if names := f.sink.OutputNames(); len(names) < 3 {
		t.Errorf("outputs %v", names)
	}
	samples := f.sink.Samples()
	if last := samples[len(samples)-1]; last.WriteBytes < 32<<20 {
		t.Errorf("last sample %+v", last)
	}
}

func TestReadyTimeout(t *testing.T) {
	f := newFixture(t)
	p, _ := f.start(f.spec("p", "true", func(s *pod.Spec) {
		s.Pod.Spec.InitContainers = []corev1.Container{{Name: "slow", Command: []string{"sleep", "100"}}}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := p.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if err := p.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	var e *engine.Error
	if err := p.Ready(t.Context()); !errors.As(err, &e) || e.Code != "Stopped" {
		t.Errorf("error %v", err)
	}
}
