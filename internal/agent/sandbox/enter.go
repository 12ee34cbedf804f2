package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// old is where the host's root is while the new one is made.
const old = "/.host"

// Enter builds the new root for s and moves this process into it. It must be
// called in a mount namespace of its own. log takes what is otherwise than
// asked. After an error the process is of no more use.
func Enter(s *Spec, log func(string)) error {
	// Nothing that we mount or unmount may reach the host; what the host
	// unmounts meanwhile shall go here too.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		if errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("part the mounts from the host's: / is not a mount point here, as in a plain chroot; mount --bind its directory onto itself before: %w", err)
		}
		return fmt.Errorf("part the mounts from the host's: %w", err)
	}
	sources, err := take(s.Mounts)
	if err != nil {
		return err
	}
	if err := letGo(s.Hide); err != nil {
		log(fmt.Sprintf("other volumes of the run may be busy while this process lives: %v", err))
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
	if err := place(targets, sources); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the new root private: %w", err)
	}
	if err := unix.Unmount(old, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's root: %w", err)
	}
	return os.Remove(old)
}

// take clones the mounts that stand at the sources, so that they are at hand
// whatever is unmounted later. Keyed by target.
func take(mounts []Mount) (map[string]int, error) {
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

// clone is open_tree(2): a detached copy of the mounts at and beneath p.
func clone(p string) (int, error) {
	return unix.OpenTree(unix.AT_FDCWD, p, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
}

// attach is move_mount(2): the detached fd, which is closed, at target.
func attach(fd int, target string) error {
	defer unix.Close(fd) // only a handle
	return unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// readOnly makes the mount at p and all beneath it read-only.
func readOnly(p string) error {
	return unix.MountSetattr(unix.AT_FDCWD, p, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// system has the directories whose mounts a program may need to run at all.
var system = []string{"/bin", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/sbin", "/snap", "/sys", "/usr"}

// needed says whether the mount at p comes along: the root, one on a directory
// directly in it, one of the system's. All others may be volumes, of this run
// or another's, which would stay busy as long as the container lives.
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

// letGo unmounts, in this namespace, everything that is not needed. Without
// being root it cannot; the error is about what lies in hide.
func letGo(hide []string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	points := slices.DeleteFunc(mountPoints(mounts), func(p string) bool { return needed(p, hide) })
	// The deepest and latest first.
	sort.SliceStable(points, func(i, j int) bool { return len(points[i]) > len(points[j]) })
	var errs []error
	for _, p := range points {
		err := unix.Unmount(p, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && slices.ContainsFunc(hide, func(dir string) bool { return within(filepath.Clean(dir), p) }) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", p, err))
		}
	}
	return errors.Join(errs...)
}

// mountPoints reads the fifth field of each line of mountinfo, in which
// blanks and backslashes are octal (proc_pid_mountinfo(5)).
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

// pivot makes an empty tmpfs the root and puts the host's root at old. The
// tmpfs is only for directories and what is written beside any volume.
func pivot(root string) error {
	if err := unix.Mount("cnsbench", root, "tmpfs", unix.MS_NOSUID, "mode=0755,size=64m"); err != nil {
		return fmt.Errorf("mount the new root on %s: %w", root, err)
	}
	if err := os.Mkdir(root+old, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, root+old); err != nil {
		return fmt.Errorf("change the root to %s: %w", root, err)
	}
	return os.Chdir("/")
}

// build carries the steps out. Directories of the host become read-only,
// except /dev, whose devices and shared memory are for use.
func build(steps []step, log func(string)) error {
	var firstRO error
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("bring %s into the new root: %w", s.path, err)
		}
		if (s.kind == bindDir || s.kind == bindFile) && !within("/dev", s.path) {
			if err := readOnly(s.path); err != nil && firstRO == nil && !errors.Is(err, unix.ENOENT) {
				firstRO = fmt.Errorf("%s: %w", s.path, err)
			}
		}
	}
	if firstRO != nil {
		log(fmt.Sprintf("directories of the host are writable inside, as they could not be made read-only: %v", firstRO))
	}
	return nil
}

// do makes one entry; the host's may have vanished since they were listed.
func (s step) do() error {
	switch s.kind {
	case makeDir:
		if err := os.Mkdir(s.path, s.mode); err != nil {
			return err
		}
		return os.Chmod(s.path, s.mode) // whatever the umask
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
	fd, err := clone(old + s.path)
	if errors.Is(err, unix.ENOENT) {
		return os.Remove(s.path)
	}
	if err != nil {
		return err
	}
	return attach(fd, s.path)
}

// mountProc mounts /proc for the new PID namespace. Where the kernel refuses
// (a container with a masked /proc, not root) the host's is used: programs
// find themselves in it under other numbers.
func mountProc(log func(string)) error {
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err == nil {
		return nil
	}
	log(fmt.Sprintf("/proc is the host's: mounting a new one was refused: %v", err))
	fd, err := clone(old + "/proc")
	if err != nil {
		return fmt.Errorf("bring /proc into the new root: %w", err)
	}
	return attach(fd, "/proc")
}

// place puts the volumes at their targets, parents first, and then takes the
// right to write from those that are to be read-only. A mount point inside
// another volume that is missing there is made in it, as the kubelet does.
func place(targets []target, sources map[string]int) error {
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

// prepare makes the mount point where it is still missing.
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
