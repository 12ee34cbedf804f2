package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeHost creates a small root file system.
func fakeHost(t *testing.T) string {
	t.Helper()
	// The tested code resolves symbolic links in this path.
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"dev", "proc", "usr/bin", "var/lib/other", "var/log", "run/lock"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"dev/null", "usr/bin/sh", "file"} {
		if err := os.WriteFile(filepath.Join(root, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"bin": "usr/bin", "var/run": "../run"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func (s step) String() string {
	kind := map[stepKind]string{makeDir: "dir", makeFile: "file", bindDir: "bind", bindFile: "bindfile",
		makeLink: "link"}[s.kind]
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", kind, s.path, s.link))
}

func TestLayout(t *testing.T) {
	top := []string{"link /bin usr/bin", "bind /dev", "bindfile /file", "dir /proc", "bind /run", "bind /usr",
		"bind /var"}
	with := func(change map[string][]string) []string {
		var all []string
		for _, s := range top {
			if to, ok := change[s]; ok {
				all = append(all, to...)
			} else {
				all = append(all, s)
			}
		}
		return all
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "device")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		mounts  []Mount
		want    []string
		targets []string
	}{
		{"nothing", nil, top, nil},
		{"existing", []Mount{{Source: dir, Target: "/var/log/"}}, top, []string{"/var/log"}},
		{"at the top", []Mount{{Source: dir, Target: "/data/deep"}},
			append(append([]string{}, top...), "dir /data", "dir /data/deep"), []string{"/data/deep"}},
		{"inside", []Mount{{Source: dir, Target: "/var/lib/new/er"}},
			with(map[string][]string{"bind /var": {"dir /var", "dir /var/lib", "bind /var/lib/other",
				"dir /var/lib/new", "dir /var/lib/new/er", "bind /var/log", "link /var/run ../run"}}),
			[]string{"/var/lib/new/er"}},
		{"through links", []Mount{{Source: dir, Target: "/var/run/x"}, {Source: file, Target: "/bin/tool"}},
			with(map[string][]string{
				"bind /run": {"dir /run", "bind /run/lock", "dir /run/x"},
				"bind /usr": {"dir /usr", "dir /usr/bin", "bindfile /usr/bin/sh", "file /usr/bin/tool"},
			}), []string{"/run/x", "/usr/bin/tool"}},
		{"a device", []Mount{{Source: file, Target: "/dev/xvdb"}},
			with(map[string][]string{"bind /dev": {"dir /dev", "bindfile /dev/null",
				"file /dev/xvdb"}}), []string{"/dev/xvdb"}},
		{"nested volumes", []Mount{{Source: dir, Target: "/data/in/side"}, {Source: dir, Target: "/data"}},
			append(append([]string{}, top...), "dir /data"), []string{"/data", "/data/in/side"}},
		{"a file over a directory", []Mount{{Source: file, Target: "/var/log"}},
			with(map[string][]string{"bind /var": {"dir /var", "bind /var/lib", "link /var/run ../run",
				"file /var/log"}}), []string{"/var/log"}},
		{"a working directory", []Mount{{Target: "/job"}, {Source: dir, Target: "/job/data"}},
			append(append([]string{}, top...), "dir /job", "dir /job/data"), []string{"/job", "/job/data"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			steps, targets, err := layout(fakeHost(t), tc.mounts)
			if err != nil {
				t.Fatal(err)
			}
			var got, paths []string
			for _, s := range steps {
				got = append(got, s.String())
			}
			for _, p := range targets {
				paths = append(paths, p.path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.targets, paths); diff != "" {
				t.Errorf("targets: -want +got:\n%s", diff)
			}
		})
	}
}

func TestLayoutRefuses(t *testing.T) {
	for _, m := range []Mount{{Target: "/"}, {Target: "relative"}, {Target: "/x/.."}, {Target: "/proc/x"},
		{Source: "/does/not/exist", Target: "/x"}} {
		if _, _, err := layout(fakeHost(t), []Mount{m}); err == nil {
			t.Errorf("%+v was accepted", m)
		}
	}
}

func TestMountPoints(t *testing.T) {
	got := mountPoints([]byte("22 1 0:21 / /with\\040blank rw - ext4 /dev/x rw\n23 1 0:22 / /back\\134slash rw - tmpfs x rw\nshort line\n"))
	if diff := cmp.Diff([]string{"/with blank", `/back\slash`}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNeeded(t *testing.T) {
	hide := []string{"/opt/run/", "/mnt"}
	for p, want := range map[string]bool{
		"/": true, "/var": true, "/usr/local": true, "/sys/fs/cgroup": true, "/dev/shm": true, "/opt/tools": true, "/mnt": true,
		"/opt/run/volumes/a": false, "/mnt/x": false, "/var/lib/driver/pool": false, "/tmp/other-run/stage": false, "/home/me/out/volume": false, "/usrlocal/x": false,
	} {
		if got := needed(p, hide); got != want {
			t.Errorf("%s: %v, want %v", p, got, want)
		}
	}
}
