package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What one container takes of this machine at least, with a command of one thread that needs no memory, as bench
// instances measures it; and the open files of the runner beside its containers.
const (
	filesEach   = 2       // the runner's: the agent's connection and process
	threadsEach = 8 + 1   // the agent's and the command's
	memoryEach  = 2 << 20 // bytes, of the agent
	otherFiles  = 64
)

// limit is how much there is of something that containers need.
type limit struct {
	need string // what containers need
	each int64  // that one needs
	base int64  // needed beside the containers
	has  int64
	name string // of what sets the limit
	do   string // what raises it
}

// checkLimits returns an error that names each limit below the needs of that many containers.
func checkLimits(containers int, limits []limit) error {
	var errs []error
	for _, l := range limits {
		if need := l.base + int64(containers)*l.each; need > l.has {
			errs = append(errs, fmt.Errorf("the instances of the set-up have %d containers, which need %d %s; %s allows "+
				"%d: %s, or make fewer instances", containers, need, l.need, l.name, l.has, l.do))
		}
	}
	return errors.Join(errs...)
}

// machineLimits reads the limits of this process and of this machine. One that cannot be read is left out.
func machineLimits() []limit {
	var list []limit
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil { // the runtime has raised the soft limit to the hard one
		list = append(list, limit{"open files", filesEach, otherFiles, clamp(r.Cur), "RLIMIT_NOFILE",
			"raise the hard limit (ulimit -n as root, LimitNOFILE= of a service)"})
	}
	tasks := func(has int64, name, do string) {
		list = append(list, limit{"more threads", threadsEach, 0, has, name, do})
	}
	if os.Geteuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &r) == nil { // not enforced for root
		tasks(clamp(r.Cur), "RLIMIT_NPROC", "raise it (ulimit -u, LimitNPROC= of a service)")
	}
	running := tasksOf(readText("/proc/loadavg"))
	for _, name := range []string{"pid_max", "threads-max"} {
		if most, err := strconv.ParseInt(readText("/proc/sys/kernel/"+name), 10, 64); err == nil {
			tasks(most-running, "kernel."+name, "raise it (sysctl -w kernel."+name+"=…)")
		}
	}
	for _, dir := range pidsGroups(readText("/proc/self/cgroup")) {
		most, errMost := strconv.ParseInt(readText(filepath.Join(dir, "pids.max")), 10, 64)
		current, errCurrent := strconv.ParseInt(readText(filepath.Join(dir, "pids.current")), 10, 64)
		if errMost == nil && errCurrent == nil { // without a limit, pids.max is the word max
			tasks(most-current, dir+"/pids.max", "raise it (TasksMax= of a service)")
		}
	}
	if kib := availableMemory(readText("/proc/meminfo")); kib > 0 {
		list = append(list, limit{"bytes of memory", memoryEach, 0, kib << 10, "MemAvailable of /proc/meminfo",
			"end other programs"})
	}
	return list
}

func clamp(v uint64) int64 { return int64(min(v, 1<<62)) }

func readText(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// tasksOf returns the number of threads of the machine in /proc/loadavg, whose fourth field is RUNNING/ALL.
func tasksOf(loadavg string) int64 {
	f := strings.Fields(loadavg)
	if len(f) < 4 {
		return 0
	}
	_, all, _ := strings.Cut(f[3], "/")
	n, _ := strconv.ParseInt(all, 10, 64) // 0: unknown
	return n
}

// availableMemory returns MemAvailable of /proc/meminfo in KiB; 0: unknown.
func availableMemory(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		if value, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return n
		}
	}
	return 0
}

// pidsGroups returns the directories of the control groups of /proc/self/cgroup whose limits of threads hold for this
// process: its own and those above it, of version 2 or of the controller pids.
func pidsGroups(cgroup string) (dirs []string) {
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		root := "/sys/fs/cgroup"
		switch controllers := strings.Split(f[1], ","); {
		case slices.Contains(controllers, "pids"):
			root = "/sys/fs/cgroup/pids"
		case f[1] != "":
			continue
		}
		for p := filepath.Clean("/" + f[2]); ; p = filepath.Dir(p) {
			dirs = append(dirs, filepath.Join(root, p))
			if p == "/" {
				break
			}
		}
	}
	return dirs
}
