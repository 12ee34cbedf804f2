//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/test/servers"
)

// A scene kills one part of the product at random moments, checks what is left, and returns the number of kills.
type scene struct {
	name  string
	share int // of 22 kills
	kills int // in one run of the scene
	run   func(b *box, r *rand.Rand, kills int)
}

var scenes = []scene{
	{"runner", 6, 1, func(b *box, r *rand.Rand, _ int) { b.killRunner(r) }},
	{"runner with a foreign driver", 3, 1, killRunnerOfForeign},
	{"driver", 3, 1, killDriver},
	{"agent", 2, 1, killAgent},
	{"object workload", 2, 1, killObjects},
	{"results service", 2, 4, killResults},
	{"study", 2, 2, killStudy},
	{"manager", 2, 10, killManager},
}

// fewKills is the number of kills of make test-long.
const fewKills = 12

// TestChaos kills runners, drivers, agents, object workloads, the results service, studies and the manager with SIGKILL
// at random moments: CNSBENCH_KILLS of them, from the seed CNSBENCH_SEED. docs/design/reliability.md says what is
// checked.
func TestChaos(t *testing.T) {
	needProgram(t, "fio")
	kills := killsOr(t, fewKills)
	seed := killSeed(t)
	for _, s := range scenes {
		left := max(1, kills*s.share/22)
		for i := 0; left > 0; i++ {
			n := min(left, s.kills)
			left -= n
			t.Run(fmt.Sprintf("%s %d", s.name, i), func(t *testing.T) {
				t.Parallel()
				s.run(newBox(t), chance(seed, t.Name()), n)
				if !t.Failed() {
					t.Logf("kills: %d", n)
				}
			})
		}
	}
}

// killsOr returns CNSBENCH_KILLS, or the default.
func killsOr(t *testing.T, few int) int {
	t.Helper()
	s := os.Getenv("CNSBENCH_KILLS")
	if s == "" {
		return few
	}
	kills, err := strconv.Atoi(s)
	if err != nil || kills < 1 {
		t.Fatalf("invalid CNSBENCH_KILLS %q: want a number of kills", s)
	}
	return kills
}

// killRunnerOfForeign kills a run on a driver that it did not start, at a random moment up to its close.
func killRunnerOfForeign(b *box, r *rand.Rand, _ int) {
	f := b.foreignDriver([]string{"null", "hostdir"}[r.IntN(2)])
	l := b.startRun(churn, "--csi-endpoint", f.socket)
	b.wait(within(r, 6*time.Second))
	at := time.Now()
	l.kill()
	if _, err := os.Stat(b.in("bundle", "run.json")); err != nil {
		b.Log("killed before there was a bundle")
	} else {
		s, ops := b.readable(b.bundle())
		if s.Complete {
			b.run("verify", b.bundle()).wants(b, 0)
		}
		b.agrees(ops, callsOf(b, f.truth), at.Add(-ackedAfter))
		b.cleanUp(r)
	}
	if volumes, snapshots := f.holds(); len(volumes)+len(snapshots) > 0 {
		b.Errorf("the driver still has volumes %v, snapshots %v", volumes, snapshots)
	}
	f.process.kill()
	b.clean()
}

// killDriver kills a driver that the run has started. The run then ends as failed, with a complete bundle.
func killDriver(b *box, r *rand.Rand, _ int) {
	backend := "hostdir"
	if os.Geteuid() == 0 {
		backend = []string{"hostdir", "loopfile", "btrfs"}[r.IntN(3)]
	}
	if _, err := exec.LookPath("mkfs.btrfs"); backend == "btrfs" && err != nil {
		backend = "loopfile"
	}
	l := b.startRun(busy(backend))
	l.reaches([]string{"setting up", "running"}[r.IntN(2)])
	pid := l.child("csi driver", "--backend "+backend)
	b.wait(within(r, 2*time.Second))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
	b.failed(l, "driver "+backend, r)
	b.agrees(b.events(b.bundle()), callsOf(b, b.in("bundle", "raw", "driver", backend, "truth.jsonl")), time.Now())
}

// endsWithin is how long a run of which a part was killed may take to end. It has a grace period of 5 s; the rest is
// for a busy machine.
const endsWithin = time.Minute

// failed checks that a run whose part was killed ends by itself as failed because of it, with a complete bundle.
func (b *box) failed(l *live, part string, r *rand.Rand) {
	b.Helper()
	began := time.Now()
	end := l.wait().wants(b, 2)
	if took := time.Since(began); took > endsWithin {
		b.Errorf("the run took %v to end\n%v", took, end)
	}
	s, _ := b.readable(b.bundle())
	if s.State != "failed" || !s.Complete || !strings.Contains(s.Reason, part) {
		b.Errorf("state %q, complete %v, reason %q, want one that names %s\n%v", s.State, s.Complete, s.Reason, part, end)
	}
	b.run("verify", b.bundle()).wants(b, 0)
	b.cleanUp(r)
	b.clean()
}

// killAgent kills the agent of one workload. Nothing of the workload may survive it.
func killAgent(b *box, r *rand.Rand, _ int) {
	backend := realDriver()
	l := b.startRun(busy(backend))
	l.child("fio", "/config/fio.job")
	b.wait(within(r, 2*time.Second))
	var agents []int
	for _, p := range b.processes() {
		if strings.Contains(p.command, "cnsbench-agent") {
			agents = append(agents, p.pid)
		}
	}
	if len(agents) == 0 {
		b.Fatal("no agent is running")
	}
	if err := syscall.Kill(agents[r.IntN(len(agents))], syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
	b.failed(l, "fio-", r)
	b.agrees(b.events(b.bundle()), callsOf(b, b.in("bundle", "raw", "driver", backend, "truth.jsonl")), time.Now())
}

// writes is an object workload that writes each object once, so that the files of the server count its operations.
const writes = head + `spec:
  actions:
    - name: objects
      createObjSpec:
        workload: object
        objectSpec:
          storage: {s3Spec: {endpoint: %q}, credentials: {file: %q}}
          stages:
            - {name: init, works: [{type: init, workers: 1, containers: "r(1,2)", containerPrefix: cnsbench-kill-}]}
            - name: main
              works:
                - {name: small, workers: 3, runtime: 60s, containers: c(1), containerPrefix: cnsbench-kill-, operations: [{type: write, objects: "s(1,1000000)", sizes: c(4)KiB}]}
                - {name: large, workers: 1, runtime: 60s, containers: c(2), containerPrefix: cnsbench-kill-, operations: [{type: multipart, objects: "s(1,1000000)", sizes: c(12)MiB}]}
`

// killObjects kills the runner or the process that does the operations of an object workload.
func killObjects(b *box, r *rand.Rand, _ int) {
	needRoot(b)
	v := servers.ForTest(b.T, servers.StartVersity)
	keys := []string{"AWS_ACCESS_KEY_ID=" + servers.VersityKey, "AWS_SECRET_ACCESS_KEY=" + servers.VersitySecret}
	text := fmt.Sprintf(writes, v.Address, b.private("keys", strings.ToLower(strings.Join(keys, "\n"))))
	l := b.launch(b.command(context.Background(), b.cnsbench(), b.runArgs(b.write("bench.yaml", text))...))
	// written counts the objects that the server has written before an instant.
	written := func(before time.Time) (n int) {
		objects, _ := os.ReadDir(filepath.Join(v.Data, "cnsbench-kill-1"))
		for _, o := range objects {
			if info, err := o.Info(); err == nil && info.ModTime().Before(before) {
				n++
			}
		}
		return n
	}
	l.until("objects were written", func() bool { return written(time.Now()) > 0 })
	b.wait(within(r, 5*time.Second))
	at := time.Now()
	if r.IntN(2) == 0 {
		l.kill()
		if s, _ := b.readable(b.bundle()); s.Complete {
			b.Errorf("a killed run counts as complete: state %q", s.State)
		}
		b.cleanUp(r)
	} else {
		if err := syscall.Kill(b.part(0), syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		l.wait().wants(b, 2)
		b.readable(b.bundle())
		b.run("verify", b.bundle()).wants(b, 0)
	}
	// Operations are recorded by the second.
	recorded, sure, all := b.recordedWrites(), written(at.Add(-time.Second-ackedAfter)), written(time.Now())
	if recorded < sure || recorded > all {
		b.Errorf("%d writes are recorded, the server has done %d, %d of them more than 2 s before the kill", recorded, all,
			sure)
	}
	b.Logf("%d writes are recorded, the server has done %d, %d of them surely recorded", recorded, all, sure)
	removed(b, b.bundle(), keys, v.Address, b.in("keys"))
	if left := b.copies(v, "cnsbench-*"); len(left) > 0 {
		b.Errorf("buckets are left: %v", left)
	}
	b.clean()
}

// recordedWrites counts the writes of work small that the bundle has.
func (b *box) recordedWrites() (n int) {
	b.Helper()
	files, _ := filepath.Glob(b.in("bundle", "raw", "objects-0", "object", "output", "*.objects.jsonl"))
	if len(files) == 0 {
		return 0 // the first batch had not come
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l struct {
			Second struct {
				Work  string
				Cells []struct {
					Key  struct{ OK bool }
					Cell struct{ N int }
				}
			}
		}
		if !strings.HasSuffix(line, "\n") {
			break // torn
		}
		decode(b, line, &l)
		for _, c := range l.Second.Cells {
			if l.Second.Work == "small" && c.Key.OK {
				n += c.Cell.N
			}
		}
	}
	return n
}

// killedStudy has short trials.
const killedStudy = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: killed}
spec:
  repetitions: 2
  factors:
    spec.rates.loop.concurrencySpec.parallelism: [1, 4]
  benchmark:
    runtime: 500ms
    actions:
      - {name: vol, rateName: loop, createObjSpec: {volume: {storageClass: hostdir, size: 64Mi}}}
    rates:
      - {name: loop, concurrencySpec: {parallelism: 1}}
`

// killStudy kills a study several times. Each time it resumes; a trial that is done is not repeated, and in the end
// each is there once.
func killStudy(b *box, r *rand.Rand, kills int) {
	file := b.write("study.yaml", killedStudy)
	args := []string{"study", "run", file, "--out", b.in("study"), "--storage-dir", b.in("storage")}
	done := map[string]string{} // trial → its manifest
	unchanged := func() {
		b.Helper()
		for trial, manifest := range done {
			if now, err := os.ReadFile(filepath.Join(trial, "manifest.json")); err != nil || string(now) != manifest {
				b.Errorf("%s was done and has changed: %v", trial, err)
			}
		}
	}
	for range kills {
		l := b.start(b.cnsbench(), args...)
		b.wait(within(r, 4*time.Second))
		l.kill()
		if r.IntN(2) == 0 {
			for _, p := range b.processes() {
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
			}
		}
		unchanged()
		manifests, _ := filepath.Glob(b.in("study", "*", "manifest.json"))
		for _, name := range manifests {
			trial := filepath.Dir(name)
			text, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			done[trial] = string(text)
			b.run("verify", trial).wants(b, 0)
		}
		if _, err := os.Stat(b.in("study", "study.json")); err == nil {
			b.run("show", b.in("study")).wants(b, 0)
		} else if !errors.Is(err, os.ErrNotExist) {
			b.Error(err)
		}
	}
	b.run(args...).wants(b, 0)
	unchanged()
	b.run("verify", b.in("study")).wants(b, 0)
	trials := b.order(b.in("study"))
	if len(trials) != 4 {
		b.Errorf("trials %v, want 4", trials)
	}
	for _, trial := range trials {
		var s summaryJSON
		decode(b, b.run("show", b.in("study", trial), "--output", "json").wants(b, 0).stdout, &s)
		if s.State != "complete" || !s.Complete {
			b.Errorf("trial %s: state %q, complete %v", trial, s.State, s.Complete)
		}
	}
	b.clean()
}
