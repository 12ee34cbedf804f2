package machine

import (
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSpaceOf has the forms in which file systems answer statfs(2).
func TestSpaceOf(t *testing.T) {
	t.Parallel()
	const ones = math.MaxUint64
	for name, tt := range map[string]struct {
		st   syscall.Statfs_t
		want Space
	}{
		"ext4": {syscall.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 1000, Bfree: 600, Bavail: 550, Files: 100, Ffree: 89},
			Space{4096000, 1638400, 2252800, 100, 11, 89}},
		"btrfs counts no inodes": {syscall.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 10, Bfree: 9, Bavail: 9},
			Space{40960, 4096, 36864, -1, -1, -1}},
		"CephFS: free inodes -1": {syscall.Statfs_t{Bsize: 4 << 20, Frsize: 4 << 20, Blocks: 100, Bfree: 99, Bavail: 99,
			Files: 2, Ffree: ones}, Space{400 << 20, 4 << 20, 396 << 20, 2, -1, -1}},
		"FUSE: blocks are of the fragment size": {syscall.Statfs_t{Bsize: 1 << 20, Frsize: 4096, Blocks: 10, Bfree: 5,
			Bavail: 5, Files: 10, Ffree: 10}, Space{40960, 20480, 20480, 10, 0, 10}},
		"FUSE without statfs": {syscall.Statfs_t{Bsize: 512, Frsize: 512}, Space{-1, -1, -1, -1, -1, -1}},
		"no fragment size": {syscall.Statfs_t{Bsize: 512, Blocks: 4, Bfree: 4, Bavail: 4, Files: 1, Ffree: 1},
			Space{2048, 0, 2048, 1, 0, 1}},
		"all ones": {syscall.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: ones, Bfree: ones, Bavail: ones, Files: ones,
			Ffree: ones}, Space{-1, -1, -1, -1, -1, -1}},
	} {
		if diff := cmp.Diff(tt.want, spaceOf(&tt.st)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestSpaceOfDirectory compares with what df says.
func TestSpaceOfDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := exec.Command("df", "-B1", "--output=size", dir).Output()
	if err != nil {
		t.Skip(err)
	}
	lines := strings.Fields(string(out))
	size, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	s, err := SpaceOf(dir)
	if err != nil || s.Bytes != size || s.UsedBytes < 0 || s.FreeBytes < 0 || s.UsedBytes+s.FreeBytes > s.Bytes {
		t.Errorf("%+v, %v; df says %d", s, err, size)
	}
	if s, err := SpaceOf("/proc"); err != nil || s != (Space{-1, -1, -1, -1, -1, -1}) {
		t.Errorf("of procfs: %+v, %v", s, err)
	}
	if _, err := SpaceOf("/does/not/exist"); !os.IsNotExist(err) {
		t.Errorf("of nothing: %v", err)
	}
}
