package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// busy returns a Benchmark that runs fio and creates and deletes volumes until it is terminated.
// Unprivileged users and short tests use hostdir, root uses loopfile.
func busy(driver string) string {
	return head + `spec:
  runtime: 10m
  gracePeriod: 5s
  actions:
    - name: fio
      createObjSpec: {workload: fio, count: 2, canary: {}, vars: {storageClass: sut, volumeSize: 64Mi, fillPercent: 30, runtime: 600}}
    - {name: snap, rateName: often, snapshotSpec: {actionName: fio}}
    - {name: back, rateName: often, restoreSpec: {actionName: snap, attach: true}}
    - {name: gone, rateName: later, deleteSpec: {actionName: back}}
    - {name: forget, rateName: later, deleteSpec: {actionName: snap}}
  rates:
    - {name: often, constantRateSpec: {interval: 100ms}}
    - {name: later, startAfter: 500ms, constantRateSpec: {interval: 150ms}}
` + class(driver)
}

// slow has ops that take longer than the timeout of any test.
const slow = head + `spec:
  runtime: 10m
  gracePeriod: 1h
  actions: [{name: v, timeout: 1h, rateName: r, createObjSpec: {volume: {storageClass: sut}}}]
  rates: [{name: r, limit: 3, constantRateSpec: {interval: 10ms}}]
`

// realDriver returns the most realistic backend that the current user can run.
func realDriver() string {
	if os.Geteuid() == 0 {
		return "loopfile"
	}
	return "hostdir"
}

func (b *box) startRun(text string, more ...string) *live {
	b.Helper()
	return b.start(b.cnsbench(), b.runArgs(b.write("bench.yaml", text), more...)...)
}

// TestInterrupt checks that SIGINT, SIGTERM and SIGHUP end a run in each of its phases with a
// complete bundle and no leftovers, and that a second signal ends it without a wait for ops.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	needProgram(t, "fio")
	tests := []struct {
		name   string
		text   string
		at     string // output after which the signal is sent
		signal syscall.Signal
		twice  bool
	}{
		{"once", busy(realDriver()), "running", syscall.SIGINT, false},
		{"SIGTERM", busy(realDriver()), "running", syscall.SIGTERM, false},
		{"SIGHUP", busy("hostdir"), "running", syscall.SIGHUP, false},
		{"while opening", busy(realDriver()), "opening", syscall.SIGINT, false},
		{"while setting up", busy(realDriver()), "setting up", syscall.SIGINT, false},
		{"twice, ops hang for an hour", slow + class("null", `inject: "rpcs: {CreateVolume: {delay: 1h}}"`), "running",
			syscall.SIGINT, true},
		{"twice, while workloads run", busy(realDriver()), "running", syscall.SIGINT, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			l := b.startRun(tt.text)
			l.reaches(tt.at)
			if tt.at == "running" && strings.Contains(tt.text, "fio") {
				l.child("fio", "/config/fio.job") // else clean would miss it
			}
			if tt.at == "running" {
				l.until("ops were recorded", func() bool { return b.recorded() > 0 || tt.twice })
			}
			l.signal(tt.signal)
			if tt.twice {
				l.reaches("interrupt again")
				l.signal(tt.signal)
			}
			r := l.wait().wants(t, 130)
			s, ops := b.readable(b.bundle())
			if s.State != "interrupted" || !s.Complete {
				t.Errorf("state %q, complete %v\n%v", s.State, s.Complete, r)
			}
			for _, o := range ops {
				if o.Outcome == "" || (o.Ended == nil) != (o.Outcome == "dropped") {
					t.Errorf("op %d: outcome %q, ended %v", o.ID, o.Outcome, o.Ended)
				}
			}
			b.run("show", b.bundle(), "--verify").wants(t, 0)
			b.clean()
		})
	}
}

// TestReaderGoesAway checks that a run continues if the reader of its output ends, as in
// `cnsbench run … | head`.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := b.command(t.Context(), b.cnsbench(), b.runArgs(b.write("bench.yaml", atRate+class("hostdir")))...)
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	_ = r.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if s, ops := b.readable(b.bundle()); s.State != "complete" || outcomes(ops, "v")["ok"] != 5 {
		t.Errorf("state %q, ops %v", s.State, outcomes(ops, "v"))
	}
	b.clean()
}

// TestInterruptWhileRemoving checks that an interrupt during removal does not stop the removal.
func TestInterruptWhileRemoving(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	text := head + "spec: {actions: [{name: v, createObjSpec: {count: 200, volume: {storageClass: sut, size: 1Mi}}}]}\n" +
		class("null", `inject: "rpcs: {DeleteVolume: {delay: 300ms}}"`)
	l := b.startRun(text)
	l.reaches("removing")
	l.signal(syscall.SIGINT)
	l.reaches("ending the run")
	l.signal(syscall.SIGINT)
	l.signal(syscall.SIGINT)
	if r := l.wait(); r.code != 0 && r.code != 130 {
		t.Errorf("exit %d\n%v", r.code, r)
	}
	if s, ops := b.readable(b.bundle()); !s.Complete || outcomes(ops, "v")["ok"] != 200 {
		t.Errorf("state %q, complete %v, ops %v", s.State, s.Complete, outcomes(ops, "v"))
	}
	b.clean()
}

// recorded returns the size in bytes of the event segments of an active run.
func (b *box) recorded() (bytes int64) { return b.size(filepath.Join(b.bundle(), "events")) }

// TestDriverStopsInMidRun checks that a run whose driver is stopped with SIGSTOP, so that removals
// get no answer either, ends and leaves nothing.
func TestDriverStopsInMidRun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	l := b.startRun(strings.NewReplacer("runtime: 1s", "runtime: 10m", "limit: 5, ",
		"").Replace(timesOut(atRate)) + class("hostdir"))
	l.reaches("running")
	l.until("ops were recorded", func() bool { return b.recorded() > 0 })
	if err := syscall.Kill(l.child("csi driver", "--backend hostdir"), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l.reaches("timeout")
	l.signal(syscall.SIGINT)
	r := l.wait().wants(t, 130)
	s, ops := b.readable(b.bundle())
	if n := outcomes(ops, "v"); s.State != "interrupted" || n["timeout"] == 0 || n["error"] > 0 {
		t.Errorf("state %q, ops %v\n%v", s.State, n, r)
	}
	b.clean()
}

// TestKilled checks that after SIGKILL of the runner at known and at random moments the bundle is readable and has each
// acknowledged op, cleanup removes everything, also after a cleanup that was killed, and a further one does no harm.
// TestChaos kills more, and more often.
func TestKilled(t *testing.T) {
	t.Parallel()
	needProgram(t, "fio")
	seed := killSeed(t)
	for _, at := range []string{"opening", "setting up", "running"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			l := b.startRun(busy(realDriver()))
			l.reaches(at)
			b.killAndCleanUp(l, chance(seed, at))
		})
	}
	for i := range 3 {
		t.Run(fmt.Sprintf("random %d", i), func(t *testing.T) {
			t.Parallel()
			newBox(t).killRunner(chance(seed, t.Name()))
		})
	}
}

// TestDriverKilledWhileFrozen checks that a run whose driver is killed while file systems are frozen does not wait for
// the writers, which cannot be stopped before the file systems are thawed.
func TestDriverKilledWhileFrozen(t *testing.T) {
	t.Parallel()
	needRoot(t)
	needProgram(t, "fio")
	b := newBox(t)
	l := b.startRun(freezing)
	l.reaches("running")
	pid := l.child("csi driver", "--backend loopfile")
	l.until("a file system was frozen", func() bool { return frozen(b) })
	began := time.Now()
	_ = syscall.Kill(pid, syscall.SIGKILL)
	r := l.wait().wants(t, 2)
	if took := time.Since(began); took > 50*time.Second { // it waited for more than 35 s for each of two
		t.Errorf("the end took %v\n%v", took, r)
	}
	if s, _ := b.readable(b.bundle()); s.State != "failed" || !strings.Contains(s.Reason, "driver loopfile") {
		t.Errorf("state %q, reason %q\n%v", s.State, s.Reason, r)
	}
	b.clean()
}

// freezing freezes file systems beside fio for a minute.
var freezing = head + `spec:
  gracePeriod: 5s
  actions:
    - name: fio
      createObjSpec: {workload: fio, count: 2, vars: {storageClass: sut, volumeSize: 64Mi, fillPercent: 30, runtime: 600}}
    - {name: hold, modifySpec: {actionName: fio, parameters: {freezeHold: 1m}}}
    - {name: snap, snapshotSpec: {actionName: fio}}
` + class("loopfile")

// TestKilledWhileFrozen checks cleanup after runner and driver are killed while file systems are
// frozen. Blocked writers cannot exit until cleanup has thawed the file systems.
func TestKilledWhileFrozen(t *testing.T) {
	t.Parallel()
	needRoot(t)
	needProgram(t, "fio")
	b := newBox(t)
	l := b.startRun(freezing)
	l.reaches("running")
	pid := l.child("csi driver", "--backend loopfile")
	l.until("a file system was frozen", func() bool { return frozen(b) })
	l.kill()
	_ = syscall.Kill(pid, syscall.SIGKILL)
	b.run("cleanup", b.bundle()).wants(t, 0)
	b.clean()
}

// frozen reports whether a thread waits for a file system to be thawed.
func frozen(b *box) bool {
	for _, p := range b.processes() {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/wchan", p.pid))
		for _, w := range tasks {
			if text, _ := os.ReadFile(w); strings.Contains(string(text), "percpu_rwsem_wait") {
				return true
			}
		}
	}
	return false
}

// TestCleanupSparesTheLiving checks that cleanup does not touch an active run, with or without its
// bundle.
func TestCleanupSparesTheLiving(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	l := b.startRun(strings.NewReplacer("runtime: 1s", "runtime: 10m", "limit: 5, ",
		"limit: 1000000, ").Replace(atRate) + class("hostdir"))
	l.reaches("running")
	l.until("ops were recorded", func() bool { return b.recorded() > 0 })
	if r := b.run("cleanup", b.bundle()); r.code == 0 || !strings.Contains(r.stderr, "alive") {
		t.Errorf("a living run was cleaned up\n%v", r)
	}
	if r := b.run("cleanup", "--run", b.runID()); r.code == 0 || !strings.Contains(r.stderr, "alive") {
		t.Errorf("a living run was cleaned up\n%v", r)
	}
	if s, _ := b.readable(b.bundle()); s.State != "running" || s.Complete {
		t.Errorf("state %q, complete %v", s.State, s.Complete)
	}
	l.signal(syscall.SIGINT)
	l.wait().wants(t, 130)
	s, ops := b.readable(b.bundle())
	if s.State != "interrupted" || len(ops) == 0 || outcomes(ops, "v")["ok"] != len(ops) {
		t.Errorf("state %q, ops %v", s.State, outcomes(ops, "v"))
	}
	b.clean()
}

// TestCleanupByID checks that cleanup removes the leftovers of a dead run whose bundle is lost.
func TestCleanupByID(t *testing.T) {
	t.Parallel()
	needProgram(t, "fio")
	b := newBox(t)
	l := b.startRun(busy(realDriver()))
	l.reaches("running")
	l.kill()
	for _, p := range b.processes() { // as a power failure does
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	id := b.runID()
	if err := os.RemoveAll(b.bundle()); err != nil {
		t.Fatal(err)
	}
	b.run("cleanup", "--run", id, "--dry-run").wants(t, 0)
	b.run("cleanup", "--run", id).wants(t, 0)
	b.run("cleanup", "--run", id).wants(t, 1)
	b.clean()
}

// TestCleanupOfAll checks that cleanup without arguments cleans up after the dead runs of its user, and spares the living.
func TestCleanupOfAll(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	if os.Geteuid() == 0 {
		b.asNobody() // whose registry has no runs of other tests
	}
	endless := strings.NewReplacer("runtime: 1s", "runtime: 10m", "limit: 5, ", "limit: 1000000, ").Replace(atRate) +
		class("hostdir")
	dead := b.startRun(endless)
	dead.reaches("running")
	dead.kill()
	living := b.start(b.cnsbench(), "run", b.in("bench.yaml"), "--out", b.in("living"), "--storage-dir", b.in("storage"))
	living.reaches("running")
	for i := range 2 {
		r := b.run("cleanup").wants(t, 0)
		if found := strings.Contains(r.stdout, "run "+b.runID()+" ("); found != (i == 0) ||
			!strings.Contains(r.stdout, " is left alone: it is alive") {
			t.Errorf("time %d: %v", i, r)
		}
	}
	living.signal(syscall.SIGINT)
	living.wait().wants(t, 130)
	if r := b.run("cleanup").wants(t, 0); !strings.Contains(r.stdout, "nothing to remove") {
		t.Errorf("%v", r)
	}
	b.clean()
}

// TestKeep checks that --keep leaves volumes and snapshots in place until cleanup.
func TestKeep(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	text := head + "spec: {actions: [{name: v, createObjSpec: {count: 2, volume: {storageClass: sut}}}, {name: s, snapshotSpec: {actionName: v}}]}\n" + class("hostdir")
	b.bench(text, "--keep").wants(t, 0)
	if kept, _ := filepath.Glob(b.in("storage", "*", "hostdir", "*")); len(kept) == 0 {
		t.Error("nothing was kept")
	}
	if p := b.processes(); len(p) > 0 {
		t.Errorf("processes were kept: %v", p)
	}
	b.run("cleanup", b.bundle()).wants(t, 0)
	b.clean()
}
