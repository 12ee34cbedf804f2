package iolimit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// TestFind: the hierarchy with the I/O controller is found on hosts with version 1, version 2 and both.
func TestFind(t *testing.T) {
	const (
		two    = "29 23 0:26 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid = "40 23 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		one    = "31 23 0:27 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n"
		inside = "31 23 0:27 /docker/x /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n"
		memory = "32 23 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	)
	for _, tt := range []struct {
		name, mounts, own string
		want              *Controller
	}{
		{"version 2", two, "0::/user.slice\n", &Controller{Version: 2, Dir: "/sys/fs/cgroup"}},
		{"version 1", one + memory, "7:blkio:/\n", &Controller{Version: 1, Dir: "/sys/fs/cgroup/blkio"}},
		{"version 1, below the root", one, "7:memory:/a\n6:blkio:/docker/x\n",
			&Controller{Version: 1, Dir: "/sys/fs/cgroup/blkio/docker/x"}},
		{"version 1, in a container", inside, "6:blkio:/docker/x\n", &Controller{Version: 1, Dir: "/sys/fs/cgroup/blkio"}},
		{"version 1, a group in a container", inside, "6:blkio:/docker/x/y\n",
			&Controller{Version: 1, Dir: "/sys/fs/cgroup/blkio/y"}},
		{"version 1, a namespace of its own", inside, "6:blkio:/\n", &Controller{Version: 1, Dir: "/sys/fs/cgroup/blkio"}},
		{"version 2, in a container", two, "0::/\n", &Controller{Version: 2, Dir: "/sys/fs/cgroup"}},
		{"both", memory + hybrid + one, "7:blkio:/\n0::/\n", &Controller{Version: 1, Dir: "/sys/fs/cgroup/blkio"}},
		{"version 2 for the I/O controller", memory + hybrid, "0::/\n", &Controller{Version: 2, Dir: "/sys/fs/cgroup/unified"}},
		{"none", "22 1 254:0 / / rw - ext4 /dev/vda rw\n", "", nil},
	} {
		got, err := find([]byte(tt.mounts), []byte(tt.own))
		if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != (tt.want == nil) {
			t.Errorf("%s: error %v\n%s", tt.name, err, diff)
		}
	}
}

// TestWrites: version 1 takes one limit in each file, version 2 all limits of a device in one line.
func TestWrites(t *testing.T) {
	limit := engine.IOLimit{WriteIOPS: 200, ReadBps: 4 << 20}
	devices := []string{"7:1", "8:0"}
	one, two := &Controller{Version: 1}, &Controller{Version: 2}
	var got []string
	for _, c := range []*Controller{one, two} {
		for _, w := range c.writes(devices, limit) {
			got = append(got, w.file+": "+w.text)
		}
	}
	want := []string{
		"blkio.throttle.write_iops_device: 7:1 200", "blkio.throttle.read_bps_device: 7:1 4194304",
		"blkio.throttle.write_iops_device: 8:0 200", "blkio.throttle.read_bps_device: 8:0 4194304",
		"io.max: 7:1 wiops=200 rbps=4194304", "io.max: 8:0 wiops=200 rbps=4194304",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestIsGroup: only groups that are named after the run are its own.
func TestIsGroup(t *testing.T) {
	c := &Controller{Version: 1, Dir: "/sys/fs/cgroup/blkio"}
	for dir, want := range map[string]bool{
		c.Group("abc", "fio-0"):                       true,
		"/sys/fs/cgroup/blkio/cnsbench-abcd-fio-0":    false,
		"/sys/fs/cgroup/blkio/x/cnsbench-abc-fio-0":   false,
		"/sys/fs/cgroup/blkio/cnsbench-abc-../system": false,
		"/sys/fs/cgroup/blkio/cnsbench-abc-fio-0/":    false,
		"/sys/fs/cgroup/memory/cnsbench-abc-fio-0":    false,
		"/sys/fs/cgroup/blkio":                        false,
	} {
		if got := c.IsGroup(dir, "abc"); got != want {
			t.Errorf("%s: %v, want %v", dir, got, want)
		}
	}
}

// TestDevice: a path on memory has no device, and the error says why.
func TestDevice(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "iolimit-")
	if err != nil {
		t.Skipf("no file system in memory: %v", err)
	}
	defer os.RemoveAll(dir)
	if device, err := Device(dir); err == nil || !strings.Contains(err.Error(), "no block device of its own") {
		t.Errorf("device %q, error %v", device, err)
	}
	if device, err := Device(filepath.Join(dir, "missing")); err == nil {
		t.Errorf("device %q of a missing path", device)
	}
}

// TestGroup makes a real control group with a limit on the disk of the root file system, which no process joins but one
// that sleeps.
func TestGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups")
	}
	c, err := Find()
	if err != nil {
		t.Skip(err)
	}
	device, err := Device("/")
	if err != nil {
		t.Skip(err)
	}
	dir := c.Group("test", "pod-0")
	if err := c.Make(dir, []string{device}, engine.IOLimit{WriteIOPS: 1000000}); err != nil {
		t.Fatal(err)
	}
	defer Remove(dir)
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := Add(dir, cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")); len(procs) == 0 {
		t.Error("the process is not in the group")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for range 2 { // twice: a missing group is no error
		if err := Remove(dir); err != nil {
			t.Error(err)
		}
	}
	if err := c.Make(dir, []string{"999:999"}, engine.IOLimit{WriteIOPS: 1}); err == nil {
		t.Error("a limit on a device that does not exist was accepted")
	}
	if err := Remove(dir); err != nil {
		t.Error(err)
	}
}
