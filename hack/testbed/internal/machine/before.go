package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Before is what a machine was like before a test bed changed it, as far as Kubernetes' programs change more of it than
// their own folders.
type Before struct {
	Sysctls map[string]string // value by path below /proc/sys
	Absent  []string          // folders that were not there
	Netns   bool              // /run/netns was a mount point
}

// Root is where a Before looks, so that tests have their own: the machine's is the zero value.
type Root struct{ dir string }

func (r Root) path(name string) string { return filepath.Join("/", r.dir, name) }

const (
	netns = "/run/netns" // ip(8) mounts it onto itself with the first namespace
	proc  = "/proc/sys"
)

// sysctls are those that a kubelet sets (its flag protectKernelDefaults would have it fail instead).
var sysctls = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}

// folders are made by kubelets, containerd, and CNI plugins at fixed places.
var folders = []string{"/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/var/log/pods",
	"/opt/containerd", "/opt/cni", "/etc/cni", "/etc/containerd", "/run/cni",
	"/usr/libexec/kubernetes", netns}

// Remember writes down what the machine is like, unless the file is there already.
func (r Root) Remember(file string) error {
	if exists(file) {
		return nil
	}
	b := Before{Sysctls: map[string]string{}}
	for _, name := range sysctls {
		text, err := os.ReadFile(r.path(filepath.Join(proc, name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // this kernel has none
		}
		if err != nil {
			return err
		}
		b.Sysctls[name] = strings.TrimSpace(string(text))
	}
	for _, dir := range folders {
		if !exists(r.path(dir)) {
			b.Absent = append(b.Absent, dir)
		}
	}
	points, err := mounted()
	if err != nil {
		return err
	}
	b.Netns = slices.Contains(points, r.path(netns))
	text, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Restore makes the machine like that again, and removes the file. Without the file it does nothing.
func (r Root) Restore(file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var b Before
	if err = errors.Join(err, json.Unmarshal(text, &b)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var problems []error
	for name, value := range b.Sysctls {
		problems = append(problems, writeSysctl(r.path(filepath.Join(proc, name)), value))
	}
	if !b.Netns {
		problems = append(problems, unmountUnused(r.path(netns)))
	}
	for _, dir := range b.Absent {
		problems = append(problems, removeUnmounted(r.path(dir)))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return os.Remove(file)
}

func writeSysctl(path, value string) error {
	if now, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(now)) == value {
		return err
	}
	return os.WriteFile(path, []byte(value), 0)
}

// unmountUnused unmounts the folder of network namespaces unless others have some there.
func unmountUnused(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for {
		err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			err = unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
		if errors.Is(err, unix.EINVAL) {
			return nil // it is no mount point any more
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
}

// removeUnmounted removes a folder in which nothing is mounted; else it is in use by others.
func removeUnmounted(dir string) error {
	points, err := mounted()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(points, func(p string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }) {
		return nil
	}
	if strings.HasSuffix(dir, netns) { // it may have others' namespaces
		if err := os.Remove(dir); !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.RemoveAll(dir)
}

func mounted() ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	return mountPoints(string(text)), err
}
