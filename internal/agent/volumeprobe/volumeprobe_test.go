package volumeprobe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// do returns the reports of Run, with a clock that advances with each reading.
func do(s protocol.VolumeProbeSpec) []protocol.VolumeProbe {
	var all []protocol.VolumeProbe
	clock := int64(0)
	Run(s, func() int64 { clock++; return clock }, func(t protocol.VolumeProbe) { all = append(all, t) })
	return all
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	full, empty := filepath.Join(dir, "full"), filepath.Join(dir, "empty")
	put(t, full+"/a/0-empty", "")
	put(t, full+"/a/file", "x")
	put(t, empty+"/file", "")
	tests := []struct {
		name  string
		spec  protocol.VolumeProbeSpec
		want  int // number of I/Os
		errno syscall.Errno
		err   string
	}{
		{"write", protocol.VolumeProbeSpec{Path: empty, Write: true}, 1, 0, ""},
		{"read", protocol.VolumeProbeSpec{Path: full, Read: true}, 1, 0, ""},
		{"both", protocol.VolumeProbeSpec{Path: full, Write: true, Read: true}, 2, 0, ""},
		{"nothing to read", protocol.VolumeProbeSpec{Path: empty, Read: true}, 1, 0, ""},
		{"no such directory", protocol.VolumeProbeSpec{Path: dir + "/none", Write: true, Read: true}, 2, syscall.ENOENT,
			dir + "/none"},
		{"a file as a volume", protocol.VolumeProbeSpec{Path: full + "/a/file", Write: true}, 1, syscall.ENOTDIR, ""},
		{"an empty file", protocol.VolumeProbeSpec{Path: empty + "/file", Read: true}, 1, 0, "is empty"},
		{"nothing", protocol.VolumeProbeSpec{Path: full}, 0, 0, ""},
		{"never to a device", protocol.VolumeProbeSpec{Path: full + "/a/file", Device: true, Write: true}, 1, 0,
			"not written to"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.spec.Volume = "v"
			got := do(tc.spec)
			if len(got) != tc.want {
				t.Fatalf("%d I/Os: %+v", len(got), got)
			}
			for i, g := range got {
				if g.Volume != "v" || g.At != g.Began+1 || g.Write != (tc.spec.Write && i == 0) {
					t.Errorf("%+v", g)
				}
				if g.Errno != int(tc.errno) || !strings.Contains(g.Message, tc.err) ||
					(g.Message == "") != (tc.errno == 0 && tc.err == "") {
					t.Errorf("errno %v, %q; want %v, %q", syscall.Errno(g.Errno), g.Message, tc.errno, tc.err)
				}
			}
			if left, _ := os.ReadDir(empty); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestCreateUnnamed checks file systems without O_TMPFILE.
func TestCreateUnnamed(t *testing.T) {
	dir := t.TempDir()
	f, err := createUnnamed(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // the error is irrelevant in a test
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it has a name: %v, %v", left, err)
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

// TestVolumes checks that probes of a real file system reach its device in spite of the page cache, and checks probes
// of a read-only file system and of a device.
func TestVolumes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	image, mount := filepath.Join(dir, "image"), filepath.Join(dir, "mount")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	device := loop(t, image)
	run(t, "mkfs.ext4", "-q", device)
	run(t, "mount", device, mount)
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	put(t, mount+"/data", strings.Repeat("x", 10000))

	before := sectors(t, device)
	if got := do(protocol.VolumeProbeSpec{Volume: "v", Path: mount, Write: true}); got[0].Message != "" {
		t.Errorf("write: %+v", got)
	}
	if after := sectors(t, device); after.written < before.written+8 {
		t.Errorf("4 KiB did not reach the device: %d sectors, then %d", before.written, after.written)
	}
	unix.Sync()
	before = sectors(t, device)
	if got := do(protocol.VolumeProbeSpec{Volume: "v", Path: mount, Read: true}); got[0].Message != "" {
		t.Errorf("read: %+v", got)
	}
	if after := sectors(t, device); after.read < before.read+8 {
		t.Errorf("the file came from the page cache: %d sectors, then %d", before.read, after.read)
	}
	if got := do(protocol.VolumeProbeSpec{Volume: "v", Path: device, Device: true, Read: true}); got[0].Message != "" {
		t.Errorf("device: %+v", got)
	}
	run(t, "mount", "-o", "remount,ro", mount)
	got := do(protocol.VolumeProbeSpec{Volume: "v", Path: mount, Write: true, Read: true})
	if got[0].Errno != int(unix.EROFS) || got[1].Message != "" {
		t.Errorf("read-only: %+v", got)
	}
}

// loop attaches a new image to a loop device and detaches it at the end of the test.
func loop(t *testing.T, image string) string {
	t.Helper()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 32<<20); err != nil {
		t.Fatal(err)
	}
	device := run(t, "losetup", "--find", "--show", image)
	t.Cleanup(func() { run(t, "losetup", "--detach", device) })
	return device
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no program %s here", name)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// traffic is the I/O of a device, in sectors of 512 bytes.
type traffic struct{ read, written int64 }

func sectors(t *testing.T, device string) traffic {
	t.Helper()
	b, err := os.ReadFile("/sys/class/block/" + filepath.Base(device) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	var n [7]int64
	if _, err := fmt.Sscan(string(b), &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6]); err != nil {
		t.Fatal(err)
	}
	return traffic{n[2], n[6]}
}
