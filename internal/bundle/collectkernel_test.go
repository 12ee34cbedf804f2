package bundle

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKernelParameters checks that values of unknown parameters, which may be secrets, are not recorded.
func TestKernelParameters(t *testing.T) {
	text := `BOOT_IMAGE=/vmlinuz root=UUID=1-2 ro quiet mitigations=off password=hunter2 isolcpus=2-3 x="a b" ` +
		"nvme_core.default_ps_max_latency_us=0\n"
	want := []string{"BOOT_IMAGE=(not recorded)", "root=(not recorded)", "ro", "quiet", "mitigations=off",
		"password=(not recorded)", "isolcpus=2-3", "x=(not recorded)", "nvme_core.default_ps_max_latency_us=0"}
	if diff := cmp.Diff(want, kernelParameters(text)); diff != "" {
		t.Error(diff)
	}
}

func TestTurbo(t *testing.T) {
	for _, tt := range []struct{ off, on, want string }{
		{"1", "", "off"}, {"0", "", "on"}, {"", "0", "off"}, {"", "1", "on"}, {"", "", ""}} {
		if got := turbo(tt.off, tt.on); got != tt.want {
			t.Errorf("turbo(%q, %q) = %q, want %q", tt.off, tt.on, got, tt.want)
		}
	}
}

// TestCollect compares facts of this machine with what its files say.
func TestCollect(t *testing.T) {
	dir := t.TempDir()
	e := CollectEnvironment(context.Background(), Place{StorageRole, dir})
	if e.Format != EnvironmentFormat {
		t.Errorf("format %d", e.Format)
	}
	if len(e.Filesystems) != 1 || e.Filesystems[0].Role != StorageRole || e.Filesystems[0].Type == "" {
		t.Errorf("file systems %+v", e.Filesystems)
	}
	ratio, err := os.ReadFile("/proc/sys/vm/dirty_ratio")
	must(t, err)
	equal(t, "vm.dirty_ratio", e.Sysctls["vm.dirty_ratio"], strings.TrimSpace(string(ratio)))
	self, err := os.Executable()
	must(t, err)
	equal(t, "file of this program", e.Programs["cnsbench"].Path, self)
	if e.Programs["cnsbench"].GoBuildID == "" {
		t.Errorf("programs %v", e.Programs)
	}
	for _, d := range e.Devices {
		ahead := optional(filepath.Join("/sys/block", d.Name, "queue/read_ahead_kb"))
		if want := numberIn(filepath.Join("/sys/block", d.Name, "queue/read_ahead_kb")) << 10; d.ReadAhead != want {
			t.Errorf("%s: read-ahead %d, want %s KiB", d.Name, d.ReadAhead, ahead)
		}
	}
	e.AddPrograms(map[string]string{"sh": "/bin/sh", "none": "/none", "folder": dir})
	if e.Programs["sh"].SHA256 == "" || e.Programs["none"].SHA256 != "" {
		t.Errorf("programs %v", e.Programs)
	}
	if last := e.Warnings[len(e.Warnings)-1]; !strings.Contains(last, "folder") {
		t.Errorf("what cannot be hashed is not named: %q", e.Warnings)
	}
}
