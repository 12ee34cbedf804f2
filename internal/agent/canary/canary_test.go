package canary_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/canary"
	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
)

// volume returns a new file system on a loop device.
func volume(t testing.TB, kind string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for a loop device")
	}
	if _, err := exec.LookPath("mkfs." + kind); err != nil {
		t.Skip(err.Error())
	}
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 320<<20); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs." + kind, "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

// Ioctl numbers of linux/fs.h.
const (
	fiFreeze = 0xc0045877
	fiThaw   = 0xc0045878
)

// freeze blocks all writes to the file system of dir for d and returns the actual duration.
func freeze(t testing.TB, dir string, d time.Duration) time.Duration {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Writes block from the start of the freeze, before its flush of dirty data.
	began := time.Now()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), fiFreeze, 0); err != nil {
		t.Fatalf("freeze: %v", err)
	}
	time.Sleep(d)
	if err := unix.IoctlSetPointerInt(int(f.Fd()), fiThaw, 0); err != nil {
		t.Fatalf("thaw: %v", err)
	}
	return time.Since(began)
}

// run runs a canary until during returns, and returns all its I/Os and its log.
func run(t testing.TB, dir string, spec protocol.CanarySpec, during func()) ([]protocol.CanaryIO, string) {
	t.Helper()
	var mu sync.Mutex
	var said []string
	c, err := canary.Open(protocol.CanaryVolume{Name: "v", Path: dir}, spec, clock.New(0), func(line string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, line)
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err == nil {
		for _, e := range entries {
			if e.Name() != "lost+found" {
				t.Errorf("visible on the volume: %s", e.Name())
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() { c.Run(ctx); close(finished) }()
	during()
	cancel()
	<-finished
	ios, dropped := c.Take(true)
	if dropped > 0 {
		t.Errorf("%d dropped", dropped)
	}
	return ios, strings.Join(said, "\n")
}

// TestStallIsRecovered checks that the longest response equals the length of a freeze, and that every interval of the
// freeze has its I/O. A freeze does not delay reads, so the longest read is added as the tolerance for a busy machine.
// At least one of three freezes must be measured within 20 ms.
func TestStallIsRecovered(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			dir := volume(t, kind)
			for try := 1; ; try++ {
				frozen, longest, read, of := stall(t, dir)
				lags := of.Lags(true)
				if (longest-frozen).Abs() <= 20*time.Millisecond+read && len(lags) == 0 {
					return
				}
				t.Logf("try %d: longest response %v, frozen for %v, longest of the reads %v, lags %+v", try, longest, frozen,
					read, lags)
				if try == 3 {
					t.Fatal("no freeze was measured within 20 ms and the reads' longest response, and not as a lag")
				}
			}
		})
	}
}

// stall freezes a volume under a canary and returns the duration of the freeze, the longest responses of writes and
// reads, and all I/Os.
func stall(t *testing.T, dir string) (frozen, longest, read time.Duration, of dataset.Canary) {
	t.Helper()
	const interval = 5 * time.Millisecond
	ios, said := run(t, dir, protocol.CanarySpec{IntervalNanos: int64(interval), Size: 4096, Read: true, Write: true},
		func() {
			time.Sleep(200 * time.Millisecond)
			frozen = freeze(t, dir, 300*time.Millisecond)
			time.Sleep(200 * time.Millisecond)
		})
	if said != "" {
		t.Errorf("it said %q", said)
	}
	stalled := 0
	last := map[bool]int64{}
	for _, io := range ios {
		if prev, seen := last[io.Write]; seen && io.Intended-prev != int64(interval) {
			t.Errorf("intended %v after the one before, not %v", time.Duration(io.Intended-prev), interval)
		}
		last[io.Write] = io.Intended
		if io.Ended == protocol.Never || io.Errno != 0 {
			continue
		}
		if response := time.Duration(io.Ended - io.Intended); io.Write {
			longest = max(longest, response)
			if response > 20*time.Millisecond {
				stalled++
			}
		} else {
			read = max(read, response)
		}
	}
	// Open loop: each interval of the stall has an I/O, except for those at its very end.
	if want := 280 / 5; stalled < want-4 {
		t.Errorf("%d I/Os of %d met the stall, want about %d", stalled, len(ios), want)
	}
	return frozen, longest, read, recorded(ios)
}

func TestFileIsRemoved(t *testing.T) {
	dir := volume(t, "ext4")
	before := used(t, dir)
	run(t, dir, protocol.CanarySpec{IntervalNanos: int64(time.Millisecond), Size: 8192, Write: true},
		func() { time.Sleep(50 * time.Millisecond) })
	if after := used(t, dir); after != before {
		t.Errorf("%d blocks used, before %d", after, before)
	}
}

func used(t testing.TB, dir string) uint64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks - st.Bfree
}

func TestDevice(t *testing.T) {
	device := filepath.Join(t.TempDir(), "device") // a regular file in place of a device
	content := strings.Repeat("x", 64*4096)
	if err := os.WriteFile(device, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ios, said := run(t, device, protocol.CanarySpec{IntervalNanos: int64(time.Millisecond), Size: 4096, Read: true,
		Write: true}, func() { time.Sleep(50 * time.Millisecond) })
	if !strings.Contains(said, "only read") || len(ios) < 20 {
		t.Errorf("%d I/Os, said %q", len(ios), said)
	}
	for _, io := range ios {
		if io.Write {
			t.Fatal("it wrote")
		}
	}
	if after, err := os.ReadFile(device); err != nil || string(after) != content {
		t.Errorf("the device was changed: %v", err)
	}
}

func TestFilesystems(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "canary-")
	if err != nil {
		t.Skip(err.Error())
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ios, said := run(t, dir, protocol.CanarySpec{IntervalNanos: int64(time.Millisecond), Size: 4096, Read: true,
		Write: true}, func() { time.Sleep(50 * time.Millisecond) })
	direct := exec.Command("dd", "if=/dev/zero", "of="+dir+"/probe", "bs=4096", "count=1", "oflag=direct").Run() == nil
	if strings.Contains(said, "page cache") == direct || len(ios) < 20 {
		t.Errorf("O_DIRECT works: %v; %d I/Os, said %q", direct, len(ios), said)
	}
}

func TestRefused(t *testing.T) {
	good := protocol.CanarySpec{IntervalNanos: int64(time.Millisecond), Size: 4096, Write: true}
	tests := map[string]func(*protocol.CanarySpec, *protocol.CanaryVolume){
		"size":       func(s *protocol.CanarySpec, _ *protocol.CanaryVolume) { s.Size = 1000 },
		"interval":   func(s *protocol.CanarySpec, _ *protocol.CanaryVolume) { s.IntervalNanos = 10 },
		"nothing":    func(s *protocol.CanarySpec, _ *protocol.CanaryVolume) { s.Write = false },
		"no such":    func(_ *protocol.CanarySpec, v *protocol.CanaryVolume) { v.Path = "/does/not/exist" },
		"unwritable": func(_ *protocol.CanarySpec, v *protocol.CanaryVolume) { v.Path = "/proc" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s, v := good, protocol.CanaryVolume{Name: "v", Path: t.TempDir()}
			change(&s, &v)
			if _, err := canary.Open(v, s, clock.New(0), func(string) {}); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// BenchmarkCanary measures the CPU time per I/O and the lateness of I/Os at the usual rates.
func BenchmarkCanary(b *testing.B) {
	dir := volume(b, "ext4")
	for _, interval := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
		b.Run(fmt.Sprint(interval), func(b *testing.B) {
			began := cpu(b)
			var ios []protocol.CanaryIO
			for b.Loop() {
				got, _ := run(b, dir, protocol.CanarySpec{IntervalNanos: int64(interval), Size: 4096, Read: true,
					Write: true}, func() { time.Sleep(time.Second) })
				ios = append(ios, got...)
			}
			var late []int64
			for _, io := range ios {
				if io.Started != protocol.Never {
					late = append(late, io.Started-io.Intended)
				}
			}
			sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
			b.ReportMetric(float64(cpu(b)-began)/float64(len(ios)), "cpu-ns/io")
			b.ReportMetric(float64(late[len(late)/2]), "late-p50-ns")
			b.ReportMetric(float64(late[len(late)*99/100]), "late-p99-ns")
		})
	}
}

// cpu returns the CPU time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
