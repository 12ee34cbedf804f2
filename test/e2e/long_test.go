//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// TestQuickstart checks the stalls that the unmodified demo reports against the driver's log.
func TestQuickstart(t *testing.T) {
	needRoot(t)
	needProgram(t, "fio")
	b := newBox(t)
	r := b.run(b.runArgs(filepath.Join(module, "examples", "quickstart.yaml"))...)
	s, ops := b.readable(b.bundle())
	b.judged(r, s)
	t.Log(r.stdout)
	if s.State != "complete" || outcomes(ops, "fio")["ok"] != 3 || outcomes(ops, "snapshots")["ok"] < 15 {
		t.Errorf("state %q, fio %v, snapshots %v", s.State, outcomes(ops, "fio"), outcomes(ops, "snapshots"))
	}
	for _, v := range s.Verdicts {
		if v.Status != "pass" && v.Status != "fail" {
			t.Errorf("objective %s could not be judged: %s", v.Name, v.Status)
		}
	}
	b.stallsMatch("loopfile", s)
	b.clean()
}

// TestKnownStalls checks that a run finds all freezes of different, known lengths.
func TestKnownStalls(t *testing.T) {
	needRoot(t)
	needProgram(t, "fio")
	b := newBox(t)
	r := b.bench(head+`spec:
  actions:
    - name: fio
      createObjSpec: {workload: fio, count: 2, canary: {interval: 10ms}, vars: {storageClass: sut, volumeSize: 256Mi, runtime: 20, rateIops: 200}}
    - {name: a, startAfter: 1s, modifySpec: {actionName: fio, parameters: {freezeHold: 80ms}}}
    - {name: b, startAfter: 2s, snapshotSpec: {actionName: fio}}
    - {name: c, startAfter: 5s, modifySpec: {actionName: fio, parameters: {freezeHold: 300ms}}}
    - {name: d, startAfter: 6s, snapshotSpec: {actionName: fio}}
    - {name: e, startAfter: 10s, modifySpec: {actionName: fio, parameters: {freezeHold: 2s}}}
    - {name: f, startAfter: 11s, snapshotSpec: {actionName: fio}}
`+class("loopfile")).wants(t, 0)
	s, _ := b.readable(b.bundle())
	if n := b.stallsMatch("loopfile", s); n < 6 {
		t.Errorf("the driver logged %d freezes of 50 ms and more, 6 were asked for\n%v", n, r)
	}
	b.clean()
}

// freeze is one freeze as the driver logs it. Writers were blocked at least from frozen_unix_ns to
// the end, and at most for the whole duration.
type freeze struct {
	Event, Volume string
	Start         int64 `json:"start_unix_ns"`
	Frozen        int64 `json:"frozen_unix_ns"`
	End           int64 `json:"end_unix_ns"`
	Duration      int64 `json:"duration_ns"`
}

const (
	stallLeast = int64(50 * time.Millisecond)
	stallError = int64(20 * time.Millisecond)
)

// stallsMatch compares each freeze that blocked writers for at least 50 ms with the summary. The
// summary must have a stall of that volume with that snapshot, and its length must match within 20
// ms. It returns the number of such freezes.
func (b *box) stallsMatch(backend string, s summaryJSON) (n int) {
	b.Helper()
	snapshots := b.snapshotOps()
	for _, f := range b.freezes(backend) {
		if f.End-f.Frozen < stallLeast {
			if f.Duration >= stallLeast {
				b.Logf("the freeze of %s was called for %v and held for %v: nothing need have stalled", f.Volume,
					time.Duration(f.Duration), time.Duration(f.End-f.Frozen))
			}
			continue
		}
		n++
		found := false
		for _, stall := range s.Stalls {
			// FIFREEZE can block a writer at any moment of its call.
			short, long := f.End-f.Frozen-stallError, f.Duration+stallError
			if stall.LengthNs < short || stall.LengthNs > long {
				continue
			}
			for _, culprit := range stall.Ops {
				o, ok := snapshots[culprit.Op]
				found = found || ok && culprit.Own && b.sameTime(o, f)
			}
		}
		if !found {
			b.Errorf("no stall is listed for the freeze of %s, held %v to %v", f.Volume, time.Duration(f.End-f.Frozen),
				time.Duration(f.Duration))
			for _, stall := range s.Stalls {
				b.Logf("  stall %s %s %s: %v, %+v", stall.Instance, stall.Direction, stall.Source,
					time.Duration(stall.LengthNs), stall.Ops)
			}
		}
	}
	b.Logf("%d freezes of at least %v, %d stalls listed", n, time.Duration(stallLeast), len(s.Stalls))
	return n
}

func (b *box) snapshotOps() map[int64]opJSON {
	found := map[int64]opJSON{}
	for _, o := range b.events(b.bundle()) {
		if o.Kind == "snapshot" {
			found[o.ID] = o
		}
	}
	return found
}

// sameTime reports whether the freeze lies within the snapshot's RPC. The run's start on the wall
// clock relates the run's clock to the driver's.
func (b *box) sameTime(o opJSON, f freeze) bool {
	b.Helper()
	var run struct{ Clock struct{ Start time.Time } }
	text, err := os.ReadFile(filepath.Join(b.bundle(), "run.json"))
	if err != nil {
		b.Fatal(err)
	}
	decode(b, string(text), &run)
	zero, slack := run.Clock.Start.UnixNano(), int64(5*time.Millisecond)
	return o.Started != nil && o.Ended != nil && f.Start >= zero+*o.Started-slack && f.End <= zero+*o.Ended+slack
}

func (b *box) freezes(backend string) []freeze {
	b.Helper()
	found := freezesOf(b.T, b.bundle(), backend)
	if len(found) == 0 {
		b.Error("the driver logged no freeze")
	}
	return found
}

// freezesOf reads the log of the driver of a bundle.
func freezesOf(t *testing.T, bundle, backend string) (found []freeze) {
	t.Helper()
	log, err := os.Open(filepath.Join(bundle, "raw", "driver", backend, "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var f freeze
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		if f.Event == "freeze" {
			found = append(found, f)
		}
	}
	return found
}

// TestExamples checks every example unmodified.
func TestExamples(t *testing.T) {
	needRoot(t)
	needProgram(t, "fio", "mkfs.xfs")
	var names, general []string // general: of no application
	for _, file := range examples(t) {
		name := strings.TrimPrefix(file, module+"/examples/")
		if name == "quickstart.yaml" {
			continue // has a separate test
		}
		if strings.HasPrefix(name, "paper/section-") {
			continue // 20 minutes each; TestExamplesShort runs them scaled down
		}
		names = append(names, name)
		if !slices.Contains(rotation.Applications, strings.TrimSuffix(name, ".yaml")) {
			general = append(general, name)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // no figure of theirs is checked
			var more []string
			if slices.Contains(general, name) {
				rotation.Turn(t, len(general)/2, general, name)
			} else {
				rotation.Need(t, strings.TrimSuffix(name, ".yaml"))
			}
			if name == "ycsb.yaml" {
				more = append(more, "--set", "ycsb.goYcsb="+workloadProgram("go-ycsb"))
			}
			if name == "etcd.yaml" {
				more = append(more, "--set", "spec.actions[0].createObjSpec.vars.benchmark="+etcdBenchmark)
			}
			b := newBox(t)
			r := b.run(append(b.runArgs(filepath.Join(module, "examples", name)), more...)...)
			s, ops := b.readable(b.bundle())
			b.judged(r, s)
			if s.State != "complete" || len(ops) == 0 {
				t.Errorf("state %q (%s), %d ops", s.State, s.Reason, len(ops))
			}
			for _, a := range s.Actions {
				if !done(name, a.Name, a.Outcomes["ok"]) || a.Outcomes["error"]+a.Outcomes["timeout"] > 0 {
					t.Errorf("action %s: %v %v", a.Name, a.Outcomes, a.Failures)
				}
			}
			for _, f := range s.Validity {
				if f.Severity == "invalid" && f.Name != "hostBusy" && name == "object/mixed.yaml" {
					t.Errorf("%s: %s", f.Name, f.Evidence)
				}
			}
			if t.Failed() {
				t.Log(r)
			}
			b.run("show", b.bundle(), "--verify").wants(t, 0)
			b.clean()
		})
	}
}

// TestManyInstances checks a run that starts 300 agents at once.
func TestManyInstances(t *testing.T) {
	b := newBox(t)
	r := b.bench(head + `spec:
  actions:
    - {name: many, createObjSpec: {workload: exit, count: 300, vars: {storageClass: hostdir, volumeSize: 1Mi}}}
`)
	s, ops := b.readable(b.bundle())
	if s.State != "complete" || outcomes(ops, "many")["ok"] != 300 {
		t.Errorf("state %s (%s), %v\n%v", s.State, s.Reason, outcomes(ops, "many"), r)
	}
	b.clean()
}
