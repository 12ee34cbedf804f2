package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/machine"
)

// tools are the programs whose versions affect results, with their version flags.
var tools = map[string][]string{
	"fio":       {"--version"},
	"mkfs.xfs":  {"-V"},
	"mkfs.ext4": {"-V"},
	"btrfs":     {"--version"},
	"mount":     {"--version"},
	"postgres":  {"--version"},
}

// CollectEnvironment describes this machine and the file systems of places. Unknown values stay empty and are
// listed in Warnings; it does not fail. ctx bounds the programs that report versions.
func CollectEnvironment(ctx context.Context, places ...Place) Environment {
	c := collector{}
	e := Environment{Format: EnvironmentFormat, CollectedAt: time.Now()}
	e.Hostname, _ = os.Hostname()
	e.OS = parseOSRelease(c.text("/etc/os-release"))
	e.Kernel = c.kernel()
	e.CPU = c.cpu()
	e.Memory = parseMeminfo(c.text("/proc/meminfo"))
	e.Memory.HugePages = parseScheduler(optional("/sys/kernel/mm/transparent_hugepage/enabled"))
	e.Cgroup = c.cgroup()
	e.Devices = c.devices()
	e.Clocksource = c.line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	e.Load = parseLoad(c.text("/proc/loadavg"))
	mounts := parseMountinfo(c.text("/proc/self/mountinfo"))
	for _, p := range places {
		if fs, ok := c.filesystem(p.Path, mounts); ok {
			fs.Role = p.Role
			e.Filesystems = append(e.Filesystems, fs)
		}
	}
	e.Programs = c.programs()
	e.Tools = toolVersions(ctx)
	e.KernelParameters = kernelParameters(c.text("/proc/cmdline"))
	e.Sysctls = c.sysctls()
	e.ClockSync = c.clockSync()
	e.Virtualization = c.virtualization(ctx)
	e.Warnings = c.warnings
	return e
}

// collector reads files and collects warnings about missing ones.
type collector struct{ warnings []string }

func (c *collector) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// text reads a file that exists on any Linux.
func (c *collector) text(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		c.warn("%v", err)
	}
	return string(b)
}

func (c *collector) line(path string) string { return strings.TrimSpace(c.text(path)) }

// optional reads a file that may be missing.
func optional(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (c *collector) kernel() Kernel {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		c.warn("uname: %v", err)
	}
	return Kernel{
		Release: unix.ByteSliceToString(u.Release[:]),
		Version: unix.ByteSliceToString(u.Version[:]),
		Arch:    unix.ByteSliceToString(u.Machine[:]),
	}
}

func (c *collector) cpu() CPU {
	cpu := CPU{
		Model:    parseCPUModel(c.text("/proc/cpuinfo")),
		Count:    runtime.NumCPU(),
		Governor: optional("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		Driver:   optional("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
		MaxKHz:   numberIn("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq"),
		Turbo: turbo(optional("/sys/devices/system/cpu/intel_pstate/no_turbo"),
			optional("/sys/devices/system/cpu/cpufreq/boost")),
		SMT:         optional("/sys/devices/system/cpu/smt/control"),
		Mitigations: make(map[string]string),
	}
	files, err := filepath.Glob("/sys/devices/system/cpu/vulnerabilities/*")
	if err != nil {
		c.warn("%v", err)
	}
	for _, f := range files {
		cpu.Mitigations[filepath.Base(f)] = optional(f)
	}
	return cpu
}

func (c *collector) cgroup() Cgroup {
	g := Cgroup{Path: parseCgroup(c.text("/proc/self/cgroup"))}
	if g.Path == "" {
		return g
	}
	dir := cgroupDir("/sys/fs/cgroup", g.Path)
	g.CPUMax = optional(filepath.Join(dir, "cpu.max"))
	g.MemoryMax = optional(filepath.Join(dir, "memory.max"))
	g.IOMax = optional(filepath.Join(dir, "io.max"))
	g.CPUs = optional(filepath.Join(dir, "cpuset.cpus.effective"))
	g.PIDsMax = optional(filepath.Join(dir, "pids.max"))
	return g
}

// cgroupDir returns the directory of a group of version 2. In a container the path that the kernel names may not be
// visible while the root of the mounted hierarchy is the own group; then it is the root.
func cgroupDir(root, path string) string {
	dir := filepath.Join(root, path)
	if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err != nil {
		return root
	}
	return dir
}

// devices lists the block devices with a size, which excludes unused loop devices.
func (c *collector) devices() []BlockDevice {
	entries, err := os.ReadDir("/sys/block")
	if err != nil {
		c.warn("%v", err)
	}
	var list []BlockDevice
	for _, e := range entries {
		dir := filepath.Join("/sys/block", e.Name())
		number := func(file string) int64 { return numberIn(filepath.Join(dir, file)) }
		size := number("size")
		if size == 0 {
			continue
		}
		list = append(list, BlockDevice{
			Name:          e.Name(),
			Device:        optional(filepath.Join(dir, "dev")),
			Model:         optional(filepath.Join(dir, "device/model")),
			Bytes:         size * 512, // sysfs always counts 512-byte sectors
			Rotational:    number("queue/rotational") == 1,
			Scheduler:     parseScheduler(optional(filepath.Join(dir, "queue/scheduler"))),
			LogicalBlock:  int(number("queue/logical_block_size")),
			PhysicalBlock: int(number("queue/physical_block_size")),
			WriteCache:    optional(filepath.Join(dir, "queue/write_cache")),
			QueueDepth:    int(number("queue/nr_requests")),
			ReadAhead:     number("queue/read_ahead_kb") << 10,
			MaxRequest:    number("queue/max_sectors_kb") << 10,
			MaxDiscard:    number("queue/discard_max_bytes"),
			NoMerges:      optional(filepath.Join(dir, "queue/nomerges")),
			Throttle:      optional(filepath.Join(dir, "queue/wbt_lat_usec")),
			On:            below(dir),
		})
	}
	return list
}

// filesystem returns the mount that holds path: the last one whose mount point is the longest prefix.
func (c *collector) filesystem(path string, mounts []mountEntry) (Filesystem, bool) {
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	var st unix.Stat_t
	if err == nil {
		err = unix.Stat(real, &st)
	}
	var space machine.Space
	if err == nil {
		space, err = machine.SpaceOf(real)
	}
	if err != nil {
		c.warn("filesystem of %s: %v", path, err)
		return Filesystem{}, false
	}
	fs := Filesystem{
		Path: path, Device: deviceString(st.Dev),
		Bytes: space.Bytes, Free: space.FreeBytes,
	}
	if m, ok := mountOf(real, mounts); ok {
		fs.Mount, fs.Type, fs.Source, fs.Options = m.Point, m.Type, m.Source, m.Options
	}
	return fs, true
}

func deviceString(dev uint64) string {
	return fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev))
}

// toolVersion returns the first line of a program's version output; "" if it is not installed.
// toolVersions asks all tools at the same time.
func toolVersions(ctx context.Context) map[string]string {
	versions := make(map[string]string, len(tools))
	var mu sync.Mutex
	var asked sync.WaitGroup
	for name, args := range tools {
		asked.Go(func() {
			v := toolVersion(ctx, name, args)
			mu.Lock()
			defer mu.Unlock()
			versions[name] = v
		})
	}
	asked.Wait()
	return versions
}

func toolVersion(ctx context.Context, name string, args []string) string {
	path, err := findTool(name)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil {
		return strings.TrimSpace(fmt.Sprintf("%s (%v)", first, err))
	}
	return first
}

// findTool also searches the sbin directories, where Debian installs mkfs.
func findTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if err == nil {
			break
		}
		path, err = exec.LookPath(filepath.Join(dir, name))
	}
	return path, err
}

// virtualization uses systemd-detect-virt, or else signs of a hypervisor and a container.
func (c *collector) virtualization(ctx context.Context) string {
	if path, err := exec.LookPath("systemd-detect-virt"); err == nil {
		out, err := exec.CommandContext(ctx, path).Output()
		var exit *exec.ExitError
		if err == nil || errors.As(err, &exit) { // exit code 1: none
			return strings.TrimSpace(string(out))
		}
	}
	var marks []string
	if hasFlag(c.text("/proc/cpuinfo"), "hypervisor") {
		marks = append(marks, strings.TrimSpace("virtual machine "+optional("/sys/class/dmi/id/sys_vendor")))
	}
	if pathExists("/.dockerenv") {
		marks = append(marks, "docker")
	}
	if len(marks) == 0 {
		return "none"
	}
	return strings.Join(marks, ", ")
}

func hasFlag(cpuinfo, flag string) bool {
	return slices.Contains(strings.Fields(field(cpuinfo, "flags")), flag)
}

// SameFilesystem reports whether a and b are on one file system, by st_dev. For a missing path its nearest
// existing parent counts. Two btrfs subvolumes of one file system count as two.
func SameFilesystem(a, b string) (bool, error) {
	da, err := deviceOf(a)
	if err != nil {
		return false, err
	}
	db, err := deviceOf(b)
	return da == db, err
}

func deviceOf(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(ExistingParent(path), &st); err != nil {
		return 0, fmt.Errorf("bundle: stat %s: %w", path, err)
	}
	return st.Dev, nil
}

// ExistingParent returns path, or its nearest parent that exists.
func ExistingParent(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	for parent := filepath.Dir(path); parent != path; path, parent = parent, filepath.Dir(parent) {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return path
}

// FilesystemOf describes the file system that holds path, or would hold it.
func FilesystemOf(path string) (Filesystem, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Filesystem{}, fmt.Errorf("bundle: %w", err)
	}
	c := collector{}
	found, ok := c.filesystem(ExistingParent(path), parseMountinfo(string(mounts)))
	if !ok {
		return Filesystem{}, fmt.Errorf("bundle: %s", strings.Join(c.warnings, "; "))
	}
	return found, nil
}
