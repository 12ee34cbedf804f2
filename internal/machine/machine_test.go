package machine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

func TestParseStat(t *testing.T) {
	const text = `cpu  100 20 30 400 50 6 7 8 9 10
cpu0 50 10 15 200 25 3 4 4 5 5
cpu1 50 10 15 200 25 3 3 4 4 5
intr 1 2 3
procs_running 4
`
	got, err := parseStat(text)
	want := op.MachineCounters{CPUs: 2, BusyNanos: 163 * tickNanos, IdleNanos: 450 * tickNanos,
		StealNanos: 8 * tickNanos, Runnable: 4}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3\n", "cpu a b c d e f g h\ncpu0 1\n", "cpu  1 2 3 4 5 6 7 8\n"} {
		if c, err := parseStat(bad); err == nil {
			t.Errorf("%q gives %+v, want an error", bad, c)
		}
	}
}

func TestParsePressure(t *testing.T) {
	for text, want := range map[string]int64{
		"some avg10=1.00 avg60=2.00 avg300=3.00 total=227381476\nfull avg10=0.00 total=0\n": 227381476000,
		"": -1, "some": -1, "full total=3\n": -1, "some total=x\n": -1,
	} {
		if got := parsePressure(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// TestPressureOfMachine: pressures are those of the files that the kernel has, -1 without.
func TestPressureOfMachine(t *testing.T) {
	proc := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(proc, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want [3]int64, pressure, ioWait bool) {
		t.Helper()
		c, err := readFrom(proc)
		got := [3]int64{c.CPUPressureNanos, c.IOPressureNanos, c.MemoryPressureNanos}
		p, w := accountingOf(proc)
		if err != nil || got != want || p != pressure || w != ioWait {
			t.Errorf("%v, %v, %v, %v: want %v, %v, %v", got, p, w, err, want, pressure, ioWait)
		}
	}
	put("stat", "cpu 1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8\n")
	want([3]int64{-1, -1, -1}, false, false)
	put("sys/kernel/task_delayacct", "0\n")
	const full = "full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"
	put("pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\n"+full)
	put("pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"+full)
	want([3]int64{11000, 12000, -1}, true, false)
	put("pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"+full)
	put("sys/kernel/task_delayacct", "1\n")
	want([3]int64{11000, 12000, 0}, true, true)
}

func FuzzParseProcess(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Skip(err)
	}
	f.Add(own)
	f.Add([]byte("7 (a) b) c) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1"))
	f.Add([]byte("7 ()"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, ok := parseProcess(b); ok && len(x.name) > len(b) {
			t.Errorf("%q has the name %q", b, x.name)
		}
	})
}

func TestParseProcess(t *testing.T) {
	got, ok := parseProcess([]byte("7 (a) b) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1"))
	if want := (process{parent: 3, name: "a) b", cpu: 100 * tickNanos}); !ok || got != want {
		t.Errorf("got %+v, %v; want %+v", got, ok, want)
	}
}

// TestAccount follows a run (10, 11) beside a compiler (20) whose children come and
// go, and a daemon (30) whose children are not waited for.
func TestAccount(t *testing.T) {
	const ms = int64(1e6)
	p := NewProcesses(10)
	steps := []struct {
		name string
		all  map[int]process
		want op.MachineUse
	}{
		{"the first has no before", map[int]process{
			1: {1, 0, "init", 900 * ms}, 10: {10, 1, "cnsbench", 50 * ms}, 11: {11, 10, "fio", 7 * ms},
			20: {20, 1, "go", 100 * ms}, 30: {30, 1, "d", 0},
		}, op.MachineUse{RunNanos: 57 * ms}},
		{"a child of the compiler is new", map[int]process{
			1: {1, 0, "init", 900 * ms}, 10: {10, 1, "cnsbench", 60 * ms}, 11: {11, 10, "fio", 307 * ms},
			20: {20, 1, "go", 110 * ms}, 21: {21, 20, "compile", 400 * ms}, 30: {30, 1, "d", 0}, 31: {31, 30, "lost",
				5 * ms},
		}, op.MachineUse{RunNanos: 367 * ms, OtherNanos: 415 * ms, Top: []op.ProcessUse{{PID: 20, Name: "go",
			CPUNanos: 10 * ms}}}},
		{"it has ended: its time is the compiler's", map[int]process{
			1: {1, 0, "init", 900 * ms}, 10: {10, 1, "cnsbench", 60 * ms}, 11: {11, 10, "fio", 307 * ms},
			20: {20, 1, "go", 620 * ms}, 30: {30, 1, "d", 0},
		}, op.MachineUse{RunNanos: 367 * ms, OtherNanos: 520 * ms, Top: []op.ProcessUse{{PID: 20, Name: "go",
			CPUNanos: 510 * ms}}}},
		{"a daemon with much time ends: nothing is taken back", map[int]process{
			10: {10, 1, "cnsbench", 60 * ms}, 11: {11, 10, "fio", 307 * ms}, 20: {20, 1, "go", 650 * ms},
		}, op.MachineUse{RunNanos: 367 * ms, OtherNanos: 520 * ms, Top: []op.ProcessUse{{PID: 20, Name: "go",
			CPUNanos: 30 * ms}}}},
	}
	for _, s := range steps {
		if diff := cmp.Diff(s.want, p.account(s.all)); diff != "" {
			t.Errorf("%s: -want +got\n%s", s.name, diff)
		}
	}
}

// TestAccountOfShell follows a shell (20) whose children used CPU time before the first reading (21), and while they
// were named (23): none of it counts for the shell when it waits for them.
func TestAccountOfShell(t *testing.T) {
	const ms = int64(1e6)
	p := NewProcesses(10)
	var last op.MachineUse
	for _, all := range []map[int]process{
		{20: {20, 1, "sh", 50 * ms}, 21: {21, 20, "job", 90_000 * ms}, 22: {22, 20, "make", 0}, 23: {23, 22, "cc", 10 * ms}},
		{20: {20, 1, "sh", 50 * ms}, 21: {21, 20, "job", 90_000 * ms}, 22: {22, 20, "make", 0}, 23: {23, 22, "cc", 710 * ms}},
		{20: {20, 1, "sh", 90_790 * ms}}, // 30 ms are its own, or theirs since
	} {
		last = p.account(all)
	}
	want := op.MachineUse{OtherNanos: 730 * ms, Top: []op.ProcessUse{{PID: 20, Name: "sh", CPUNanos: 30 * ms}}}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestDescendants survives PIDs in a circle, which a list that is not made at one
// instant may have.
func TestDescendants(t *testing.T) {
	all := map[int]process{1: {parent: 0}, 2: {parent: 3}, 3: {parent: 2}, 4: {parent: 1}, 5: {parent: 4}}
	if diff := cmp.Diff(map[int]bool{4: true, 5: true}, descendants(all, []int{4})); diff != "" {
		t.Error(diff)
	}
}
