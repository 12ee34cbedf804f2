package wrap

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// statLine is /proc/<pid>/task/<tid>/stat of a thread that has waited for 7 ticks.
const statLine = "42 (a) b) S 1 42 42 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 100 1 2 3 4 5 6 7 8 0 0 0 0 0 0 0 17 0 " +
	"0 0 7 0 0 0 0 0 0 0 0 0 0\n"

// TestIOWait: the waits of all threads of the descendants add up, unless the kernel does not count them.
func TestIOWait(t *testing.T) {
	t.Parallel()
	if got := parseIOWait([]byte(statLine)); got != 7*tickNanos {
		t.Errorf("%d ns, want 7 ticks", got)
	}
	for _, broken := range []string{"", "42 (a", "42 (a) S 1"} {
		if got := parseIOWait([]byte(broken)); got != 0 {
			t.Errorf("%q: %d ns", broken, got)
		}
	}
	proc := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(proc, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range []string{"42", "43"} {
		put(pid+"/stat", strings.Replace(statLine, "42 (a", pid+" (a", 1))
		put(pid+"/task/"+pid+"/stat", statLine)
		put(pid+"/task/"+pid+"9/stat", statLine)
	}
	tree := &tree{proc: proc, self: 1}
	if got, ok := tree.ioWait(); !ok || got != 4*7*tickNanos {
		t.Errorf("%d ns, %v, want 28 ticks", got, ok)
	}
	put("sys/kernel/task_delayacct", "0\n")
	if _, ok := tree.ioWait(); ok {
		t.Error("waits of a kernel that does not count them")
	}
}

// TestReadPressures: what the control group does not count is not observed, with the reason.
func TestReadPressures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	none := op.SampleDetail{CPUPressureNanos: -1, IOPressureNanos: -1, MemoryPressureNanos: -1}
	wants := func(dir string, want op.SampleDetail) {
		t.Helper()
		got := none
		if readPressures(dir, &got); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	missing := none
	missing.PressureMissing = op.NoCgroup2
	wants("", missing)
	missing.PressureMissing = op.NoPressure
	wants(dir, missing)
	for _, name := range []string{"cpu", "io", "memory"} {
		text := "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + strconv.Itoa(len(name)) + "\nfull total=9\n"
		if err := os.WriteFile(filepath.Join(dir, name+".pressure"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wants(dir, op.SampleDetail{CPUPressureNanos: 3000, IOPressureNanos: 2000, MemoryPressureNanos: 6000})
	// As of a control group whose pressure is switched off (cgroup.pressure).
	if err := os.Remove(filepath.Join(dir, "cpu.pressure")); err != nil {
		t.Fatal(err)
	}
	wants(dir, op.SampleDetail{CPUPressureNanos: -1, IOPressureNanos: 2000, MemoryPressureNanos: 6000,
		PressureMissing: op.NoPressure})
}

// TestSamplerCost: the cost is the CPU time of the reading only.
func TestSamplerCost(t *testing.T) {
	t.Parallel()
	var s sampler
	end := s.measure()
	time.Sleep(200 * time.Millisecond)
	end()
	if got := s.cpuNanos.Load(); got > int64(100*time.Millisecond) {
		t.Errorf("%v of CPU time asleep", time.Duration(got))
	}
	end = s.measure()
	for began := threadCPU(); threadCPU()-began < int64(20*time.Millisecond); {
	}
	end()
	if got := s.cpuNanos.Load(); got < int64(20*time.Millisecond) {
		t.Errorf("%v of CPU time, want 20 ms or more", time.Duration(got))
	}
}
