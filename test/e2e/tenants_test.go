//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tenantsJSON has the fields of the summary that the tests of tenants use.
type tenantsJSON struct {
	Tenants []struct {
		Name, Place  string
		ViolationsNs *int64
		Steps        []struct {
			Name         string
			From, To     int64
			ViolationsNs *int64
			Metrics      []struct {
				Metric    string
				PerSecond *float64
			}
		}
		Limits []struct {
			Limit    float64
			Measured *float64
		}
	}
	Validity []struct{ Name, Severity, Evidence string }
}

func (b *box) tenants() (s tenantsJSON) {
	b.Helper()
	decode(b, b.run("show", b.bundle(), "--output", "json").wants(b, 0).stdout, &s)
	return s
}

// flag returns the evidence of a flag; "" if the run does not have it.
func (s *tenantsJSON) flag(name string) string {
	for _, f := range s.Validity {
		if f.Name == name {
			return f.Evidence
		}
	}
	return ""
}

// injected has a victim whose own rate is below its floor from 4 s to 8.5 s after the barrier: a violation whose
// truth is known, but for the starts of fio in its last two phases, in which there is no I/O, and for the ends of
// intervals of half a second. The aggressor's loads begin at 3 s and 7 s.
const injected = head + `spec:
  runtime: 12s
  actions:
    - name: db
      createObjSpec:
        workload: fio
        vars: {storageClass: hostdir, volumeSize: 32Mi, rw: randwrite, rateIops: 200, histogramMsec: 500, runtime: 12}
        phases:
          - {startAfter: 4s, vars: {rateIops: 50}}
          - {startAfter: 8500ms, vars: {rateIops: 200}}
    - name: batch
      createObjSpec:
        workload: fio
        vars: {storageClass: "null", volumeSize: 32Mi, rw: randwrite, rateIops: 1, runtime: 1}
        phases:
          - {startAfter: 3s, vars: {rateIops: 20, runtime: 4}}
          - {startAfter: 7s, vars: {rateIops: 40}}
  tenants:
    - {name: gold, actions: [db], targets: [{metric: write, iopsFloor: 120}]}
    - {name: noisy, actions: [batch], aggressor: true}
  slos:
    - {name: missed, expr: 'violations(gold) > duration("3500ms") && violations(gold) < duration("7s")'}
    - {name: share, expr: 'compliance(gold) > 0.4 && compliance(gold) < 0.75'}
`

// startOfFio is how long the machine takes at most, of three times, to start and end a fio that does one I/O.
func startOfFio(t *testing.T) (longest time.Duration) {
	t.Helper()
	for range 3 {
		began := time.Now()
		cmd := exec.Command("fio", "--name=one", "--rw=write", "--bs=4k", "--size=4k", "--directory="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		longest = max(longest, time.Since(began))
	}
	return longest
}

// TestViolationSeconds checks that the seconds of violation are those that were put in, within a second, in the run and
// in each load step. The starts of fio in the two phases may add to them.
func TestViolationSeconds(t *testing.T) {
	needProgram(t, "fio")
	b := newBox(t)
	r := b.bench(injected)
	plain, _ := b.readable(b.bundle())
	b.judged(r, plain)
	for _, v := range plain.Verdicts {
		if v.Status != "pass" {
			t.Errorf("objective %s: %s\n%v", v.Name, v.Status, r)
		}
	}
	s := b.tenants()
	if len(s.Tenants) != 2 || s.Tenants[0].ViolationsNs == nil {
		t.Fatalf("tenants %+v\n%v", s.Tenants, r)
	}
	gold := s.Tenants[0]
	if gold.Place != "another pool" {
		t.Errorf("gold is on hostdir, noisy on null: place %q", gold.Place)
	}
	starts := 2 * startOfFio(t).Seconds()
	near := func(what string, got int64, want float64) {
		violated := float64(got) / 1e9
		t.Logf("%s: violations of %.2f s, put in: %v s, and up to %.2f s of starts", what, violated, want, starts)
		if violated < want-1-starts || violated > want+1+starts {
			t.Errorf("%s: violations of %.2f s, want %v ± %.2f s", what, violated, want, 1+starts)
		}
	}
	near("the run", *gold.ViolationsNs, 4.5)
	want := map[string]float64{"base": 0, "load 1": 3, "load 2": 1.5}
	for _, step := range gold.Steps {
		near(step.Name, *step.ViolationsNs, want[step.Name])
	}
	if text := b.run("show", b.bundle()).wants(t, 0).stdout; !strings.Contains(text, "Tenant gold, in another pool: targets missed for ") {
		t.Errorf("the summary does not say how long targets were missed:\n%s", text)
	}
	page := b.in("report.html")
	b.run("report", b.bundle(), "-o", page).wants(t, 0)
	if text, _ := os.ReadFile(page); !strings.Contains(string(text), `<section id="tenants">`) {
		t.Error("the report has no section of tenants")
	}
	b.clean()
}

// throttled has a victim on a volume of its own that commits 100 times per second.
const throttled = head + `spec:
  runtime: 16s
  actions:
    - name: db
      createObjSpec:
        workload: fio
        vars: {storageClass: loopfile, volumeSize: 64Mi, rw: randwrite, iodepth: 1, rateIops: 100, histogramMsec: 500, runtime: 15}
  tenants:
    - {name: gold, actions: [db], targets: [{metric: write, iopsFloor: 60}]}
`

// TestViolationByThrottle checks the seconds of violation against a throttle of the kernel that the test puts on the
// victim's device for a time that it measures. The target is a floor: a latency is missed by a busy machine too.
func TestViolationByThrottle(t *testing.T) {
	needProgram(t, "fio")
	needIOLimits(t)
	const throttle = "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device"
	if _, err := os.Stat(throttle); err != nil {
		t.Skip("needs the root group of the blkio controller of control groups version 1")
	}
	b := newBox(t)
	l := b.startRun(throttled)
	l.reaches("running")
	device := ""
	for _, at := range b.mounts() {
		var st syscall.Stat_t
		if strings.Contains(at, "/volumes/") && syscall.Stat(at, &st) == nil {
			device = fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
		}
	}
	if device == "" {
		t.Fatalf("no volume among %v\n%v", b.mounts(), l.result())
	}
	set := func(limit int) {
		if err := os.WriteFile(throttle, fmt.Appendf(nil, "%s %d", device, limit), 0); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { set(0) })
	time.Sleep(4 * time.Second)
	set(10)
	from := time.Now()
	time.Sleep(5 * time.Second)
	set(0)
	truth := time.Since(from)
	r := l.wait()
	gold := b.tenants().Tenants[0]
	t.Logf("violations of %.2f s, the throttle was on for %.2f s", float64(*gold.ViolationsNs)/1e9, truth.Seconds())
	if diff := time.Duration(*gold.ViolationsNs) - truth; diff.Abs() > time.Second {
		t.Errorf("violations of %v, the throttle was on for %v\n%v", time.Duration(*gold.ViolationsNs), truth, r)
	}
	b.clean()
}

// ignored has a limit that its driver accepts and does not enforce: null stores iops without effect.
const ignored = head + `spec:
  runtime: 6s
  actions:
    - name: batch
      createObjSpec:
        workload: fio
        vars: {storageClass: "null", volumeSize: 32Mi, rw: randwrite, rateIops: 400, runtime: 5}
    - {name: limit, startAfter: 100ms, modifySpec: {actionName: batch, parameters: {iops: "100"}}}
  tenants:
    - {name: noisy, actions: [batch], limit: {writeIOPS: 100, readIOPS: 50, enforcedBy: driver}}
`

// TestLimitWithoutEffect checks that a limit of a driver that silently does nothing is named with what was measured,
// and that a limit that was not reached is not said to hold.
func TestLimitWithoutEffect(t *testing.T) {
	needProgram(t, "fio")
	b := newBox(t)
	r := b.bench(ignored)
	r.wants(t, 0)
	s := b.tenants()
	text := s.flag("limitNotHeld")
	if !strings.HasPrefix(text, "noisy: limit of 100 write IOPS by driver had no effect: ") {
		t.Errorf("limitNotHeld: %q\n%v", text, r)
	}
	if text := s.flag("limitNotReached"); !strings.Contains(text, "50 read IOPS") {
		t.Errorf("limitNotReached: %q", text)
	}
	b.clean()
}

// limited has an aggressor on a volume of its own, whose writes a control group limits.
const limited = head + `spec:
  runtime: 8s
  actions:
    - name: batch
      createObjSpec:
        workload: fio
        vars: {storageClass: loopfile, volumeSize: 64Mi, rw: randwrite, iodepth: 16, runtime: 7}
  tenants:
    - {name: noisy, actions: [batch], limit: {writeIOPS: 150}}
`

// needIOLimits skips a test where control groups cannot limit I/O, with the reason.
func needIOLimits(t *testing.T) {
	t.Helper()
	needRoot(t)
	one, _ := os.Stat("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device")
	two, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if one == nil && !strings.Contains(" "+strings.TrimSpace(string(two))+" ", " io ") {
		t.Skip("needs the blkio controller of control groups version 1, or io of version 2 at /sys/fs/cgroup")
	}
}

// TestLimitByControlGroup checks that a real limit is held, that a killed run's control groups are removed, and that a
// btrfs volume is refused before anything is created.
func TestLimitByControlGroup(t *testing.T) {
	needProgram(t, "fio")
	needIOLimits(t)
	b := newBox(t)
	r := b.bench(limited)
	r.wants(t, 0)
	s := b.tenants()
	if text := s.flag("limitNotHeld") + s.flag("limitNotReached"); text != "" {
		t.Errorf("%s\n%v", text, r)
	}
	if l := s.Tenants[0].Limits[0]; l.Measured == nil || *l.Measured < 120 || *l.Measured > 165 {
		t.Errorf("limit of 150 IOPS: measured %+v", l)
	}
	if left := controlGroups(); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
	b.clean()
	for _, tt := range []struct{ set, want string }{
		{"batch.storageClass=btrfs", "btrfs has no block device to which an I/O limit could apply"},
		{"spec.tenants.noisy.limit.writeBps=-1", "invalid limit -1: want more than 0"},
		{"spec.tenants.noisy.actions=[nothing]", `action "nothing" not found`},
		{"spec.tenants.noisy.aggressor=true", "no action of the aggressor has phases"},
	} {
		file := b.write("bad.yaml", limited)
		if got := b.run("validate", file, "--set", tt.set).wants(t, 1); !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%s: no %q in\n%v", tt.set, tt.want, got)
		}
	}
}

// TestControlGroupsAfterKill checks that cleanup removes the control groups of a killed run.
func TestControlGroupsAfterKill(t *testing.T) {
	needProgram(t, "fio")
	needIOLimits(t)
	b := newBox(t)
	l := b.startRun(strings.Replace(limited, "runtime: 7", "runtime: 60", 1), "--set", "spec.runtime=60s")
	var made []string
	l.until("there is a control group", func() bool { made = controlGroups(); return len(made) > 0 })
	b.killAndCleanUp(l, chance(killSeed(t), t.Name()))
	for _, dir := range made {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}

// controlGroups lists the control groups of runs.
func controlGroups() (dirs []string) {
	for _, pattern := range []string{"/sys/fs/cgroup/blkio/cnsbench-*", "/sys/fs/cgroup/cnsbench-*"} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	return dirs
}
