package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/op"
)

// mountTable is of a machine with ceph-fuse, a loop device and a bind mount, from /proc/self/mountinfo.
const mountTable = `22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
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
		m, err := mountIn([]byte(mountTable), path)
		if err != nil {
			t.Fatal(err)
		}
		if m.FSType != want.fsType || m.Source != want.source || placeIn(m, path) != want.within {
			t.Errorf("%s: %+v, at %s; want %+v", path, m, placeIn(m, path), want)
		}
	}
}

// TestCheckMount refuses a volume whose path is a directory of this machine because nothing is mounted where it was
// staged, at the staging path or, as ceph-csi stages, below it. A directory that is a volume is none of these.
func TestCheckMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it mounts, which needs root")
	}
	for name, tt := range map[string]struct {
		source string // below the volume's directory
		tmpfs  bool   // mounted at the source
		want   string
	}{
		"the staging path":              {"stage", false, "nothing is mounted at the staging path"},
		"below the staging path":        {"stage/id", false, "nothing is mounted at the staging path"},
		"a file system that was staged": {"stage", true, ""},
		"a directory of a driver":       {"../data", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "volumes", "v")
			v := &volume{driver: &driver{name: "d"}, capability: &csi.VolumeCapability{},
				stagePath: filepath.Join(dir, "stage"), targetPath: filepath.Join(dir, "mount")}
			source := filepath.Join(dir, tt.source)
			for _, d := range []string{v.stagePath, v.targetPath, source} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			mount := func(source, target, fsType string, flags uintptr) {
				t.Helper()
				if err := unix.Mount(source, target, fsType, flags, ""); err != nil {
					t.Skipf("mounts are refused here: %v", err)
				}
				t.Cleanup(func() {
					if err := unix.Unmount(target, 0); err != nil {
						t.Error(err)
					}
				})
			}
			if tt.tmpfs {
				mount("none", source, "tmpfs", 0)
			}
			mount(source, v.targetPath, "", unix.MS_BIND)
			err := v.checkPublished()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %q", err, tt.want)
			}
		})
	}
}

// TestCheckLink refuses links that lead out of the driver's directory, and new volumes that are directories of this machine
// with files.
func TestCheckLink(t *testing.T) {
	base := t.TempDir()
	data, other := filepath.Join(base, "data"), filepath.Join(base, "other")
	for _, d := range []string{filepath.Join(data, "empty"), filepath.Join(data, "full", "sub"), other} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	linked := map[string]string{op.LinkedKey: data}
	copied := &csi.CreateVolumeRequest{VolumeContentSource: &csi.VolumeContentSource{}}
	for name, tt := range map[string]struct {
		manifest map[string]string
		request  *csi.CreateVolumeRequest
		to, want string
	}{
		"of the driver":         {linked, nil, filepath.Join(data, "empty"), ""},
		"elsewhere":             {linked, nil, other, "a link to " + other},
		"up again":              {linked, nil, data + "/empty/../../other", "a link to " + other},
		"not announced":         {nil, nil, filepath.Join(data, "empty"), "a link to"},
		"everywhere":            {map[string]string{op.LinkedKey: "/"}, nil, "/etc", "a link to /etc"},
		"a copy":                {linked, copied, filepath.Join(data, "full"), ""},
		"a new one with files":  {linked, nil, filepath.Join(data, "full"), `with files, such as "sub"`},
		"nowhere":               {linked, nil, filepath.Join(data, "none"), "leads nowhere"},
		"a directory, no mount": {nil, nil, "", "nothing is mounted"},
	} {
		dir := filepath.Join(t.TempDir(), "v")
		v := &volume{driver: &driver{name: "d", info: &csi.GetPluginInfoResponse{Manifest: tt.manifest}}, request: tt.request,
			capability: &csi.VolumeCapability{}, stagePath: filepath.Join(dir, "stage"), targetPath: filepath.Join(dir, "mount")}
		err := os.MkdirAll(dir, 0o755)
		if tt.to == "" {
			err = errors.Join(err, os.Mkdir(v.targetPath, 0o755))
		} else {
			err = errors.Join(err, os.Symlink(tt.to, v.targetPath))
		}
		if err != nil {
			t.Fatal(err)
		}
		err = v.checkPublished()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", name, err, tt.want)
		}
	}
}

// TestOtherFS compares the file system of a directory with the one that was requested.
func TestOtherFS(t *testing.T) {
	var st unix.Statfs_t
	if err := unix.Statfs(t.TempDir(), &st); err != nil {
		t.Fatal(err)
	}
	known := false
	here := int64(st.Type) //nolint:unconvert // 32 bits on some platforms
	for _, magic := range localFS {
		known = known || magic == here
	}
	for fs, magic := range localFS {
		if got, want := otherFS(t.TempDir(), fs), known && magic != here; got != want {
			t.Errorf("%s: %v, want %v", fs, got, want)
		}
	}
	if otherFS(t.TempDir(), "") || otherFS(t.TempDir(), "nfs") {
		t.Error("a type that is not checked is another")
	}
}
