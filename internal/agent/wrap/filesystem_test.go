package wrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// TestUncounted checks that a real FUSE file system is one whose reads are not counted, and others, also below it, are
// not.
func TestUncounted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount")
	}
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skipf("%v: install the package bindfs", err)
	}
	dir, below := t.TempDir(), t.TempDir()
	if out, err := exec.Command("bindfs", below, dir).CombinedOutput(); err != nil {
		t.Skipf("bindfs: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	for _, tt := range []struct{ path, want string }{
		{dir, "FUSE"}, {below, ""}, {"/dev/shm", ""}, {filepath.Join(dir, "missing"), ""}, {"/proc", "type 0x9fa0"},
	} {
		if got, uncounted := uncountedAt(tt.path); got != tt.want || uncounted != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.path, got, uncounted, tt.want)
		}
	}
	s := session{welcome: &protocol.Welcome{Volumes: []protocol.CanaryVolume{{Path: below}},
		Probes: []protocol.VolumeProbeSpec{{Path: dir}}}}
	if got := s.uncounted(); got != "fileSystem:FUSE" {
		t.Errorf("of two volumes: %q", got)
	}
}
