//go:build e2e

package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// The marks are in the programs that steppable links: the instant of CLOCK_MONOTONIC in ns from which on their wall
// clock is ahead, and the seconds by which.
const (
	stepAt = 0x7a11c10c5e7a7a11 // centuries after the boot
	stepBy = 0x5ec0d55ec0d55ec0
)

// steppable links the programs with a package time whose wall clock makes a step, and returns their directory. The
// host's clock is not touched, and nothing of the programs' own code is changed. What is not Go, as fio, the kernel
// and its file systems, keeps its clock.
func steppable(t *testing.T) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the marks are found in machine code of amd64 only")
	}
	dir := t.TempDir()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	const reading = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()"
	if bytes.Count(source, []byte(reading)) != 1 {
		t.Fatalf("time.Now is not what the test expects: %s", library)
	}
	// Neither lines nor symbols change, so that the packages which import this one need not be compiled again.
	patched := bytes.Replace(source, []byte(reading), fmt.Appendf(nil, "%s; if mono >= %d { sec += %d }", reading,
		stepAt, stepBy), 1)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {library: filepath.Join(dir, "time.go")}})
	if err != nil {
		t.Fatal(err)
	}
	const linker = `#!/bin/sh
for a; do
	case $1$last in
	*/link-importcfg) sed -i "s|^packagefile time=.*|packagefile time=${0%/*}/time.a|" "$a" ;;
	esac
	last=$a
done
exec "$@"
`
	for name, text := range map[string][]byte{"time.go": patched, "overlay.json": overlay, "linker": []byte(linker)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, "time.a"), "time"},
		{"-toolexec", filepath.Join(dir, "linker"), "-o", dir, "./cmd/cnsbench", "./cmd/cnsbench-agent"},
	} {
		build := exec.Command("go", append([]string{"build", "-trimpath"}, args...)...)
		build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
	}
	return dir
}

// setsWall replaces the programs of the box by those of steppable, whose wall clocks are set by a number of seconds
// after a while.
func (b *box) setsWall(from string, seconds int64, after time.Duration) {
	b.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"cnsbench", "cnsbench-agent"} {
		program, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			b.Fatal(err)
		}
		for mark, value := range map[uint64]int64{stepAt: now.Nano() + int64(after), stepBy: seconds} {
			old := binary.LittleEndian.AppendUint64(nil, mark)
			if n := bytes.Count(program, old); n != 1 {
				b.Fatalf("%s has the mark %#x %d times", name, mark, n)
			}
			program = bytes.Replace(program, old, binary.LittleEndian.AppendUint64(nil, uint64(value)), 1)
		}
		if err := os.Remove(b.in("bin", name)); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(b.in("bin", name), program, 0o755); err != nil {
			b.Fatal(err)
		}
	}
}

// TestWallClockIsSet sets the wall clock of runner, agents and driver by an hour in the middle of a run. Durations,
// rates and the order of instants do not change, the step is stated with its size, and the times at which the writer
// says that its writes were durable are still those of the run: else copies of before and after the step would seem
// to have lost writes, or to have some of the future.
func TestWallClockIsSet(t *testing.T) {
	needRoot(t)
	programs := steppable(t)
	for name, seconds := range map[string]int64{"forward": 3600, "back": -3600} {
		t.Run(name, func(t *testing.T) {
			rotation.Turn(t, 1, []string{"back", "forward"}, name)
			b := newBox(t)
			b.setsWall(programs, seconds, 8*time.Second)
			began := time.Now()
			r := b.bench(head+`spec:
  runtime: 20s
  actions:
    - {name: writer, createObjSpec: {workload: integrity, vars: {storageClass: btrfs, volumeSize: 512Mi, fileSize: 4Mi,
       duration: 20}}}
    - {name: snap, rateName: r, snapshotSpec: {actionName: writer}, then: [back, look]}
    - {name: back, restoreSpec: {actionName: snap}}
    - {name: look, checkSpec: {actionName: back}}
  rates: [{name: r, limit: 15, constantRateSpec: {interval: 1s}}]
  slos:
    - {name: snapshots, expr: value(look.violations) == 0.0}
    - {name: volume, expr: value(writer.violations) == 0.0}
`).wants(t, 0)
			took := time.Since(began)
			severity, evidence := b.flagOf("clockStep")
			if want := "was set " + name + " by 3600 s "; severity != "warning" || !strings.Contains(evidence, want) {
				t.Errorf("flag %q: %q, want %q\n%v", severity, evidence, want, r)
			}
			if !strings.Contains(b.text("bundle/log.jsonl"), "the wall clock of the runner's machine was set by") {
				t.Errorf("the step was not logged\n%v", r)
			}
			_, ops := b.readable(b.bundle())
			snapshots := 0
			for _, o := range ops {
				if o.Started == nil || o.Ended == nil || *o.Ended < *o.Started || *o.Ended-*o.Started > int64(took) {
					t.Errorf("op %d, %s: from %v to %v", o.ID, o.Action, o.Started, o.Ended)
				}
				if o.Action == "snap" {
					snapshots++
				}
			}
			if snapshots != 15 {
				t.Errorf("%d snapshots, want 15", snapshots)
			}
			for line := range strings.Lines(b.text("bundle/series/series.jsonl")) {
				var s struct {
					Metric string
					Points []struct{ At int64 }
				}
				decode(t, line, &s)
				for _, p := range s.Points {
					if p.At < 0 || p.At > int64(took) {
						t.Errorf("%s has a point at %v, the run took %v", s.Metric, time.Duration(p.At), took)
						break
					}
				}
			}
			if severity, evidence := b.flagOf("integrityViolated"); severity != "" {
				t.Errorf("integrity: %s", evidence)
			}
			b.clean()
		})
	}
}
