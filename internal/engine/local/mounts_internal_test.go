package local

import "testing"

// mountinfo is of a machine with ceph-fuse, a loop device and a bind mount, from /proc/self/mountinfo.
const mountinfo = `22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
87 22 0:51 / /var/lib/a\040b/stage rw,nosuid,nodev,relatime shared:31 - fuse.ceph-fuse ceph-fuse rw,user_id=0
88 22 0:51 / /var/lib/a\040b/mount rw,nosuid,nodev,relatime shared:31 - fuse.ceph-fuse ceph-fuse rw,user_id=0
90 22 7:0 / /var/lib/c/mount rw,relatime - ext4 /dev/loop0 rw
91 22 254:1 /var/lib/d/stage /var/lib/d/mount rw,relatime - ext4 /dev/vda1 rw
92 22 254:1 /tmp /var/lib/e rw,relatime - ext4 /dev/vda1 rw
`

// TestMountIn finds the mount of a path, and where the path is in its file system.
func TestMountIn(t *testing.T) {
	for path, want := range map[string]struct{ fsType, source, within string }{
		"/var/lib/a b/mount/file": {"fuse.ceph-fuse", "ceph-fuse", "/file"},
		"/var/lib/c/mount":        {"ext4", "/dev/loop0", "/"},
		"/var/lib/c":              {"ext4", "/dev/vda1", "/var/lib/c"},
		"/var/lib/d/mount":        {"ext4", "/dev/vda1", "/var/lib/d/stage"},
		"/var/lib/e/x":            {"ext4", "/dev/vda1", "/tmp/x"},
		"/var/lib/ef":             {"ext4", "/dev/vda1", "/var/lib/ef"},
	} {
		m, err := mountIn([]byte(mountinfo), path)
		if err != nil || m.fsType != want.fsType || m.source != want.source || m.within(path) != want.within {
			t.Errorf("%s: %+v, at %s, %v; want %+v", path, m, m.within(path), err, want)
		}
	}
}
