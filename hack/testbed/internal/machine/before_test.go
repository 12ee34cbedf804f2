package machine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What kubelets and CNI plugins change is as before; what was there before stays.
func TestRestore(t *testing.T) {
	r := Root{t.TempDir()}
	file := filepath.Join(t.TempDir(), "machine.json")
	write := func(name, text string) {
		t.Helper()
		path := r.path(name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("/proc/sys/kernel/panic", "0\n")
	write("/proc/sys/vm/overcommit_memory", "2\n")
	write("/etc/cni/net.d/own.conf", "mine")
	if err := r.Remember(file); err != nil {
		t.Fatal(err)
	}
	write("/proc/sys/kernel/panic", "10\n")
	if err := r.Remember(file); err != nil { // it comes up once more
		t.Fatal(err)
	}
	write("/var/lib/kubelet/device-plugins/checkpoint", "x")
	write("/var/lib/cni/results/testbed-1", "x")
	if err := os.MkdirAll(r.path(netns), 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := unix.Mount(r.path(netns), r.path(netns), "", unix.MS_BIND, ""); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(r.path(netns), unix.MNT_DETACH) })
	}
	for range 2 { // the second has nothing to do
		if err := r.Restore(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, gone := range []string{"/var/lib/kubelet", "/var/lib/cni", netns} {
		if exists(r.path(gone)) {
			t.Errorf("%s is left", gone)
		}
	}
	for name, want := range map[string]string{
		"/proc/sys/kernel/panic": "0", "/proc/sys/vm/overcommit_memory": "2\n", "/etc/cni/net.d/own.conf": "mine",
	} {
		if got, err := os.ReadFile(r.path(name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, want %q", name, got, err, want)
		}
	}
	if exists(file) {
		t.Error("the file is left")
	}
}
