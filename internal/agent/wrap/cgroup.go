package wrap

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroupFile returns the path of a file of the agent's cgroup (version 2), or "".
func cgroupFile(name string) string {
	return controllerFile("", "/sys/fs/cgroup", name)
}

// cgroupDir returns the directory of the agent's cgroup (version 2), or "".
func cgroupDir() string {
	if path := cgroupFile("cgroup.procs"); path != "" { // which each has
		return filepath.Dir(path)
	}
	return ""
}

// controllerFile returns the path of a file of the agent's cgroup under the given version 1 controller (""
// for version 2), in the hierarchy at root. In a container the path that the kernel names may not be visible
// while the hierarchy's root is the own cgroup; then the root is used.
func controllerFile(controller, root, name string) string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	return fileOf(string(own), controller, root, name)
}

// fileOf is controllerFile for the groups in own, which has the form of /proc/PID/cgroup.
func fileOf(own, controller, root, name string) string {
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != controller {
			continue
		}
		for _, path := range []string{filepath.Join(root, parts[2], name), filepath.Join(root, name)} {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return ""
}

// oomCounter counts kills by the kernel's OOM killer as close to the agent as visible: its cgroup (version 2,
// then 1), else the machine. A rise during a process's life attributes its SIGKILL.
type oomCounter struct {
	path  string
	where string
	start int64
}

func newOOMCounter() *oomCounter {
	c := &oomCounter{path: "/proc/vmstat", where: "on this machine"}
	if p := cgroupFile("memory.events"); p != "" {
		c.path, c.where = p, "in its cgroup"
	} else if p := controllerFile("memory", "/sys/fs/cgroup/memory", "memory.oom_control"); p != "" {
		c.path, c.where = p, "in its cgroup"
	}
	c.start = c.read()
	return c
}

// Struck reports whether the counter has risen since it was made.
func (c *oomCounter) Struck() bool { return c.start >= 0 && c.read() > c.start }

// read parses "oom_kill N", which all three files contain. It returns -1 if the file is not readable or has no such line.
func (c *oomCounter) read() int64 {
	b, err := os.ReadFile(c.path)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return -1
			}
			return n
		}
	}
	return -1
}
