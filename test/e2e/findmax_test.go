//go:build e2e

package e2e

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const worker = `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: worker}
spec:
  runtime: 2s
  actions:
    - {name: create, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}
  rates:
    - {name: r, maxInFlight: 1, onSaturation: queue, constantRateSpec: {interval: 100ms}}
`

type findMaxJSON struct {
	FindMax struct {
		Stage, Verdict, Bound, Message string
		PerSecond, AbovePerSecond      *float64
		Steps                          []struct {
			Stage     string
			PerSecond float64
			Held      bool
		}
	}
}

// TestFindMax injects the service time of a single worker, whose capacity is therefore known, kills the search and
// continues it. The second command runs only the steps that are not done, and finds the capacity.
func TestFindMax(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	args := []string{"run", b.write("worker.yaml", worker), "--find-max", "p50(create) < 200ms", "--find-resolution",
		"0.1", "--out", b.in("found"), "--storage-dir", b.in("storage"), "--inject",
		"rpcs: {CreateVolume: {delay: 100ms}}"}
	r := b.run(append(args, "--dry-run")...).wants(t, 0)
	if _, err := os.Stat(b.in("found")); err == nil || !strings.Contains(r.stdout, "nothing was created") {
		t.Errorf("--dry-run: %v", r)
	}
	l := b.start(b.cnsbench(), args...)
	l.reaches("step 3:")
	l.until("the third step recorded ops", func() bool {
		steps, _ := filepath.Glob(b.in("found", "003_*", "events"))
		return len(steps) == 1 && b.size(steps[0]) > 0
	})
	l.kill()

	r = b.run(append(args, "--output", "json")...).wants(t, 0)
	var m findMaxJSON
	decode(t, r.stdout, &m)
	f := &m.FindMax
	if f.Verdict != "found" || f.Stage != "create" || f.PerSecond == nil || math.Abs(*f.PerSecond/10-1) > 0.1 ||
		f.Bound != "worker-bound" {
		t.Errorf("%v; want 10 per second, worker-bound\n%s", *f, r.stderr)
	}
	if strings.Contains(r.stderr, "step 1: 10 per second for") || !strings.Contains(r.stderr, "is repeated") {
		t.Errorf("not only the killed step was repeated\n%v", r)
	}
	bundles, err := filepath.Glob(b.in("found", "*", "manifest.json"))
	if err != nil || len(bundles) != len(f.Steps) {
		t.Errorf("%d bundles of %d steps, %v", len(bundles), len(f.Steps), err)
	}
	var shown findMaxJSON
	decode(t, b.run("show", b.in("found"), "--output", "json").wants(t, 0).stdout, &shown)
	if len(shown.FindMax.Steps) != len(f.Steps) || *shown.FindMax.PerSecond != *f.PerSecond {
		t.Errorf("show: %+v", shown)
	}
	b.clean()
}

// TestFindMaxOfWrites searches the rate of snapshots at which writes keep their rate, on a real file system, beside
// the baseline without snapshots.
func TestFindMaxOfWrites(t *testing.T) {
	needRoot(t)
	needProgram(t, "fio", "mkfs.ext4")
	t.Parallel()
	b := newBox(t)
	file := b.write("snapshots.yaml", `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: snapshots}
spec:
  runtime: 6s
  actions:
    - name: fio
      createObjSpec:
        workload: fio
        vars: {storageClass: loopfile, volumeSize: 64Mi, rw: randwrite, iodepth: "1", rateIops: "400", runtime: "600"}
    - name: snapshots
      rateName: r
      then: [drop]
      snapshotSpec: {actionName: fio}
    - {name: drop, deleteSpec: {actionName: snapshots}}
  rates:
    - {name: r, maxInFlight: 1, onSaturation: queue, constantRateSpec: {perSecond: 1}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: loopfile}
provisioner: loopfile.csi.cnsbench.dev
parameters: {driver.cnsbench.dev/inject: "{rpcs: {CreateSnapshot: {delay: 100ms}}}"}
`)
	r := b.run("run", file, "--find-max", "iops(fio.write) >= 0.5 * baseline(iops(fio.write)) && p50(snapshots) < 2s",
		"--find-resolution", "0.5", "--find-most", "64", "--out", b.in("found"), "--storage-dir", b.in("storage"),
		"--output", "json").wants(t, 0)
	var m findMaxJSON
	decode(t, r.stdout, &m)
	f := &m.FindMax
	if f.Verdict != "found" || f.PerSecond == nil || *f.PerSecond < 1 || *f.PerSecond > 10 { // at most 1/100 ms
		t.Errorf("%+v\n%s", *f, r.stderr)
	}
	if len(f.Steps) == 0 || f.Steps[0].PerSecond != 0 || !f.Steps[0].Held {
		t.Errorf("the first step is not the baseline: %+v", f.Steps)
	}
	b.clean(b.in("storage", "loopfile"))
}

// TestFindMaxRefuses checks the messages on flags and files that a search cannot use.
func TestFindMaxRefuses(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("worker.yaml", worker)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--find-from", "3"}, "--find-from has no effect without --find-max"},
		{[]string{"--find-max", ""}, "--find-max is empty"},
		{[]string{"--find-max", "p99(creates) < 1s"}, `action "creates" not found`},
		{[]string{"--find-max", "p99(create) < 1s", "--find-least", "0.1"}, "give --find-least"},
		{[]string{"--find-max", "p99(create) < 1s", "--keep"}, "exclude each other"},
		{[]string{"--find-max", "p99(create) < 1s", "--window", "1ms"}, "invalid window"},
		{[]string{"--find-max", "p99(create)"}, "compare it with a bound"},
	} {
		r := b.run(append([]string{"run", file, "--out", b.in("x"), "--storage-dir", b.in("storage")}, tt.args...)...)
		if r.wants(t, 1); !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%v: want %q", r, tt.want)
		}
	}
	if _, err := os.Stat(b.in("x")); err == nil {
		t.Error("the directory was made")
	}
	b.clean()
}
