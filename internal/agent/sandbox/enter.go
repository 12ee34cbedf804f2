package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hostRoot is where the host's root is mounted while the new root is built.
const hostRoot = "/.host"

// Enter builds the new root for s and moves this process into it. The caller runs in its own mount namespace.
// log receives deviations from s. After an error the process must exit.
func Enter(s *Spec, log func(string)) error {
	// Mounts made here must not propagate to the host; unmounts by the host
	// must propagate here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		if errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("make / a slave mount: / is not a mount point here (a plain chroot): run mount --bind on its directory first: %w", err)
		}
		return fmt.Errorf("make / a slave mount: %w", err)
	}
	sources, err := cloneMounts(s.Mounts)
	if err != nil {
		return err
	}
	if err := unmountOthers(s.Hide); err != nil {
		log(fmt.Sprintf("other volumes of the run may stay busy until this process ends: %v", err))
	}
	steps, targets, err := layout("/", s.Mounts)
	if err != nil {
		return err
	}
	if err := pivot(s.Root); err != nil {
		return err
	}
	if err := build(steps, log); err != nil {
		return err
	}
	if err := mountProc(log); err != nil {
		return err
	}
	if err := attachVolumes(targets, sources); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the new root private: %w", err)
	}
	if err := unix.Unmount(hostRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the host's root: %w", err)
	}
	return os.Remove(hostRoot)
}

// cloneMounts clones the mounts at the sources, so that a later unmount does not affect them. The descriptors
// are keyed by target.
func cloneMounts(mounts []Mount) (map[string]int, error) {
	fds := map[string]int{}
	for _, m := range mounts {
		if m.Source == "" {
			continue
		}
		fd, err := clone(m.Source)
		if err != nil {
			return nil, fmt.Errorf("volume for %s: %s: %w", m.Target, m.Source, err)
		}
		fds[m.Target] = fd
	}
	return fds, nil
}

// clone returns a detached copy of the mounts at and beneath p (open_tree(2)).
func clone(p string) (int, error) {
	return unix.OpenTree(unix.AT_FDCWD, p, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
}

// attach mounts the detached fd at target (move_mount(2)) and closes fd.
func attach(fd int, target string) error {
	defer unix.Close(fd)
	return unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// readOnly makes the mounts at and beneath p read-only.
func readOnly(p string) error {
	return unix.MountSetattr(unix.AT_FDCWD, p, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// system lists the directories whose mounts a program may need to run.
var system = []string{"/bin", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/sbin",
	"/snap", "/sys", "/usr"}

// needed reports whether the sandbox keeps the mount at p: the root, a mount on a top-level directory, or one
// of the system's. Any other mount may be a volume, which the container would keep busy.
func needed(p string, hide []string) bool {
	for _, dir := range hide {
		if dir = filepath.Clean(dir); p != dir && within(dir, p) {
			return false
		}
	}
	if strings.Count(p, "/") <= 1 {
		return true
	}
	return slices.ContainsFunc(system, func(dir string) bool { return within(dir, p) })
}

// unmountOthers unmounts, in this namespace, everything that is not needed. An unprivileged process cannot;
// the error covers mounts in hide.
func unmountOthers(hide []string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	points := slices.DeleteFunc(mountPoints(mounts), func(p string) bool { return needed(p, hide) })
	// Deepest and latest first.
	slices.SortStableFunc(points, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var errs []error
	for _, p := range points {
		err := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && slices.ContainsFunc(hide, func(dir string) bool { return within(filepath.Clean(dir), p) }) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

// mountPoints returns the fifth field of each line of mountinfo, in which blanks and backslashes are octal
// (proc_pid_mountinfo(5)).
func mountPoints(mountinfo []byte) []string {
	var points []string
	for line := range bytes.Lines(mountinfo) {
		f := strings.Fields(string(line))
		if len(f) > 4 {
			points = append(points, unescape(f[4]))
		}
	}
	return points
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// pivot mounts an empty tmpfs as the root and the host's root at hostRoot. The tmpfs holds directories and
// files written outside volumes.
func pivot(root string) error {
	if err := unix.Mount("cnsbench", root, "tmpfs", unix.MS_NOSUID, "mode=0755,size=64m"); err != nil {
		return fmt.Errorf("mount the new root on %s: %w", root, err)
	}
	if err := os.Mkdir(root+hostRoot, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, root+hostRoot); err != nil {
		return fmt.Errorf("change the root to %s: %w", root, err)
	}
	return os.Chdir("/")
}

// build executes the steps. Directories of the host become read-only, except /dev.
func build(steps []step, log func(string)) error {
	var firstRO error
	for _, s := range steps {
		if err := s.create(); err != nil {
			return fmt.Errorf("create %s in the new root: %w", s.path, err)
		}
		if (s.kind == bindDir || s.kind == bindFile) && !within("/dev", s.path) {
			if err := readOnly(s.path); err != nil && firstRO == nil && !errors.Is(err, unix.ENOENT) {
				firstRO = fmt.Errorf("%s: %w", s.path, err)
			}
		}
	}
	if firstRO != nil {
		log(fmt.Sprintf("directories of the host are writable in the sandbox: making them read-only failed: %v",
			firstRO))
	}
	return nil
}

// create makes one entry. An entry of the host may have vanished since it was listed.
func (s step) create() error {
	switch s.kind {
	case makeDir:
		if err := os.Mkdir(s.path, s.mode); err != nil {
			return err
		}
		return os.Chmod(s.path, s.mode) // independent of the umask
	case makeFile:
		return os.WriteFile(s.path, nil, 0o644)
	case makeLink:
		return os.Symlink(s.link, s.path)
	case bindDir:
		if err := os.Mkdir(s.path, 0o755); err != nil {
			return err
		}
	case bindFile:
		if err := os.WriteFile(s.path, nil, 0o644); err != nil {
			return err
		}
	}
	fd, err := clone(hostRoot + s.path)
	if errors.Is(err, unix.ENOENT) {
		return os.Remove(s.path)
	}
	if err != nil {
		return err
	}
	return attach(fd, s.path)
}

// mountProc mounts /proc for the new PID namespace. Where the kernel refuses (a container with a masked /proc
// and no root) it binds the host's, in which processes have other PIDs.
func mountProc(log func(string)) error {
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err == nil {
		return nil
	}
	log(fmt.Sprintf("/proc is the host's: mounting a new one failed: %v", err))
	fd, err := clone(hostRoot + "/proc")
	if err != nil {
		return fmt.Errorf("bind /proc into the new root: %w", err)
	}
	return attach(fd, "/proc")
}

// attachVolumes mounts the volumes at their targets, parents first, and then makes the read-only ones
// read-only. It creates a missing mount point inside another volume, as the kubelet does.
func attachVolumes(targets []target, sources map[string]int) error {
	for _, t := range targets {
		if err := t.prepare(); err != nil {
			return fmt.Errorf("mount point %s: %w", t.path, err)
		}
		if t.Source == "" {
			continue
		}
		if err := attach(sources[t.Target], t.path); err != nil {
			return fmt.Errorf("mount %s at %s: %w", t.Source, t.path, err)
		}
	}
	for _, t := range targets {
		if t.Source == "" || !t.ReadOnly {
			continue
		}
		if err := readOnly(t.path); err != nil {
			return fmt.Errorf("make %s read-only: %w", t.path, err)
		}
	}
	return nil
}

// prepare creates a missing mount point.
func (t target) prepare() error {
	if _, err := os.Lstat(t.path); err == nil {
		return nil
	}
	if !t.file {
		return os.MkdirAll(t.path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(t.path, nil, 0o644)
}
